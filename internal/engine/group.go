package engine

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
)

// Ready is what a socket is ready for. A stream that has failed is ready for both.
type Ready uint8

// What a socket may be ready for.
const (
	In  Ready = 1 << iota // there is something to read, or an end
	Out                   // it takes more
)

// Stream is what a Group serves by way of a socket. Its methods do not block. They may be
// called from any goroutine, Drive from one at a time.
type Stream interface {
	// Drive handles what the socket is ready for, and reports whether anything was
	// done. It does not take long: a budget is the stream's affair.
	Drive(Ready) bool
	// Flush sends what is held back (see Socket.Hold). looked says that it is because
	// the program has looked for completions.
	Flush(looked bool)
}

// Queue is what a Group completes to.
type Queue interface {
	// Awaited reports whether somebody who does not sleep in a Group wants to be told
	// of completions.
	Awaited() bool
}

// Group is a set of sockets that are served together. The zero Group is ready to be used.
type Group struct {
	turn sync.Mutex // who looks what is ready, and drives it

	life sync.Mutex // who makes the set and the keeper, or ends them

	mu      sync.Mutex // never held while another lock is taken
	set     set
	open    bool // there is a set, and a keeper; as long as there are sockets
	closed  bool
	sockets []*Socket // by slot; nil is a free one
	free    []int32   // slots
	gen     int32     // of the last socket added
	soon    []*Socket // to be driven, whatever the system says of them
	queues  atomic.Pointer[[]Queue]
	held    held

	members atomic.Int32 // sockets that are served
	pending atomic.Int32 // how many are in soon
	ended   atomic.Bool  // the set and the keeper are about to go
	hot     atomic.Pointer[Socket]

	// Owned by who has the turn.
	ready     [readyAtOnce]event
	served    [readyAtOnce]*Socket
	running   []*Socket
	fruitless uint
	row       int  // looks in a row at the hot one alone
	crowded   bool // many were ready at the last look

	berth berth
	keeper
}

// hotRow bounds how often in a row the stream that was active last is driven while the
// others wait.
const hotRow = 16

// readyAtOnce is how many sockets one turn drives. When so many were ready that there is a
// crowd, the set is taken out of the runtime's while it is served.
const (
	readyAtOnce = 64
	crowd       = 8
)

// ErrClosed is what Add returns after Close.
var ErrClosed = errors.New("the group is closed")

// Socket is the place of a stream in a Group.
type Socket struct {
	g      *Group
	stream Stream
	fd     int
	slot   int32
	gen    int32
	out    atomic.Bool // mask has Out
	// Guarded by g.mu.
	mask    Ready // what the set waits for
	in      bool  // it is in the set
	removed bool
	queued  bool // it is in g.soon
	holding bool // it is in g.held
}

// Add gives the stream of the socket fd, which has to stay open until Remove, a place in g:
// it is served from Begin on. It fails if the system has no descriptors left.
func (g *Group) Add(fd int, stream Stream) (*Socket, error) {
	g.life.Lock()
	defer g.life.Unlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, ErrClosed
	}
	if !g.open {
		if err := g.set.open(); err != nil {
			return nil, err
		}
		g.open = true
		g.keeper.start(g)
	}
	s := &Socket{g: g, stream: stream, fd: fd}
	if n := len(g.free); n > 0 {
		s.slot, g.free = g.free[n-1], g.free[:n-1]
	} else {
		s.slot = int32(len(g.sockets))
		g.sockets = append(g.sockets, nil)
	}
	g.gen++
	s.gen = g.gen
	if err := g.set.add(s); err != nil {
		g.free = append(g.free, s.slot)
		go g.rest()
		return nil, err
	}
	s.in = true
	g.sockets[s.slot] = s
	g.members.Add(1)
	return s, nil
}

// Remove ends the service: the descriptor is the group's no more. A Drive that has begun may
// still be running. Removing twice is removing once.
func (s *Socket) Remove() {
	g := s.g
	g.mu.Lock()
	defer g.mu.Unlock()
	if s.removed {
		return
	}
	s.removed = true
	if s.in { // before it is closed: another descriptor of the same socket would keep it in the set
		g.set.remove(s)
		s.in = false
	}
	g.sockets[s.slot] = nil
	g.free = append(g.free, s.slot)
	g.hot.CompareAndSwap(s, nil)
	if g.members.Add(-1) == 0 {
		go g.rest()
	}
}

// Begin makes the group serve the stream.
func (s *Socket) Begin() {
	s.g.mu.Lock()
	defer s.g.mu.Unlock()
	s.want(s.mask | In)
}

// WantOutput says whether the stream has something to send that the socket did not take. If
// it has, somebody is told when the socket takes more, though it may do so by now.
func (s *Socket) WantOutput(on bool) {
	s.g.mu.Lock()
	defer s.g.mu.Unlock()
	switch {
	case on:
		s.want(s.mask | Out) // anew: what was told of the time before does not count
	case s.mask&Out != 0:
		s.want(s.mask &^ Out)
	}
}

// WantsOutput is what WantOutput has said.
func (s *Socket) WantsOutput() bool { return s.out.Load() }

// want says what the set waits for. With g.mu held.
func (s *Socket) want(mask Ready) {
	if s.removed {
		return
	}
	s.mask = mask
	s.out.Store(mask&Out != 0)
	if !s.in {
		return
	}
	if mask&Out == 0 {
		s.g.set.change(s)
		return
	}
	// Not a change: of a socket that is on the system's list of ready ones already, from a
	// look before, that would wake nobody.
	s.g.set.remove(s)
	s.in = s.g.set.add(s) == nil
}

// Pause takes the socket out of the set: nothing is to be read from it for now. (The system
// would tell of a reset again and again.)
func (s *Socket) Pause() {
	g := s.g
	g.mu.Lock()
	defer g.mu.Unlock()
	if s.in {
		g.set.remove(s)
		s.in = false
	}
}

// Resume undoes Pause.
func (s *Socket) Resume() {
	g := s.g
	g.mu.Lock()
	defer g.mu.Unlock()
	if !s.in && !s.removed && g.set.add(s) == nil {
		s.in = true
	}
}

// Soon has the stream driven as if its socket were ready. It does not block.
func (s *Socket) Soon() {
	g := s.g
	g.mu.Lock()
	if s.removed || s.queued {
		g.mu.Unlock()
		return
	}
	s.queued = true
	g.soon = append(g.soon, s)
	g.pending.Add(1)
	g.mu.Unlock()
	g.rouse()
}

// Serve says that streams of g complete to q.
func (g *Group) Serve(q Queue) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var list []Queue
	if old := g.queues.Load(); old != nil {
		for _, o := range *old {
			if o == q {
				return
			}
		}
		list = append(list, *old...)
	}
	list = append(list, q)
	g.queues.Store(&list)
}

// Forget undoes Serve.
func (g *Group) Forget(q Queue) {
	g.mu.Lock()
	defer g.mu.Unlock()
	old := g.queues.Load()
	if old == nil {
		return
	}
	var list []Queue
	for _, o := range *old {
		if o != q {
			list = append(list, o)
		}
	}
	g.queues.Store(&list)
}

// awaited reports whether somebody waits who does not sleep here.
func (g *Group) awaited() bool {
	list := g.queues.Load()
	if list == nil {
		return false
	}
	for _, q := range *list {
		if q.Awaited() {
			return true
		}
	}
	return false
}

// Close ends the group, which serves nobody any more, and returns when its keeper has gone.
func (g *Group) Close() {
	g.life.Lock()
	defer g.life.Unlock()
	g.mu.Lock()
	g.closed = true
	open := g.open
	g.mu.Unlock()
	if open {
		g.shut()
	}
}

// rest ends the set and the keeper of a group that has no sockets any more.
func (g *Group) rest() {
	g.life.Lock()
	defer g.life.Unlock()
	g.mu.Lock()
	idle := g.open && g.members.Load() == 0
	g.mu.Unlock()
	if idle {
		g.shut()
	}
}

// shut ends the set and the keeper. With life held.
func (g *Group) shut() {
	g.ended.Store(true)
	g.keeper.end(g)
	g.berth.Lock() // who slept here has left
	g.turn.Lock()
	g.mu.Lock()
	g.set.close()
	g.open = false
	g.ended.Store(g.closed)
	g.mu.Unlock()
	g.turn.Unlock()
	g.berth.Unlock()
}

// Drive is a poller's: it takes the turn, if it is free, and reports whether anything was
// done.
func (g *Group) Drive() bool {
	g.held.looked(g)
	if g.members.Load() == 0 || !g.turn.TryLock() {
		return false
	}
	defer g.turn.Unlock()
	if g.ended.Load() {
		return false
	}
	g.polls.Add(1)
	g.askKeeper()
	if g.advance(true) {
		g.fruitless = 0
		return true
	}
	if g.fruitless++; g.fruitless%yieldEvery == 0 {
		yieldThread() // the one that is waited for may need the processor
	}
	return false
}

// yieldEvery is how many fruitless polls in a row make a poller offer its processor to
// other threads.
const yieldEvery = 32

// advance looks once what is ready and drives it. The caller has the turn. A poller looks
// at the stream that was active last before it asks the system; where there is but one,
// nobody asks.
func (g *Group) advance(polls bool) bool {
	got := g.pending.Load() > 0 && g.driveSoon()
	if hot := g.hot.Load(); hot != nil {
		alone := g.members.Load() == 1
		if alone {
			return hot.stream.Drive(In|Out) || got
		}
		if g.row++; polls && g.row < hotRow && hot.stream.Drive(In|Out) {
			return true
		}
	}
	g.row = 0
	return g.driveReady() || got
}

// driveReady drives the streams that the system says are ready.
func (g *Group) driveReady() bool {
	n := g.set.wait(g.ready[:])
	g.crowded = n >= crowd
	return n > 0 && g.drive(n)
}

// drive drives those that the first n events name.
func (g *Group) drive(n int) bool {
	g.mu.Lock()
	for i := range n {
		s := g.sockets[g.ready[i].slot()]
		if s != nil && s.gen != g.ready[i].gen() {
			s = nil // it was another's
		}
		g.served[i] = s
	}
	g.mu.Unlock()
	var last *Socket
	for i, s := range g.served[:n] {
		if s != nil && s.stream.Drive(g.ready[i].what()) {
			last = s
		}
		g.served[i] = nil
	}
	if last != nil && last != g.hot.Load() {
		g.mu.Lock()
		if !last.removed {
			g.hot.Store(last)
		}
		g.mu.Unlock()
	}
	return last != nil
}

// driveSoon drives those of Soon.
func (g *Group) driveSoon() (got bool) {
	g.mu.Lock()
	g.running, g.soon = g.soon, g.running[:0]
	for _, s := range g.running {
		s.queued = false
	}
	g.pending.Add(-int32(len(g.running)))
	g.mu.Unlock()
	for _, s := range g.running {
		got = s.stream.Drive(In|Out) || got
	}
	clear(g.running)
	return got
}

// askKeeper has the keeper step aside for pollers that meet it again and again.
func (g *Group) askKeeper() {
	if g.parked.Load() && g.missed.Add(1)%askAfter == 0 {
		g.asked.Store(byPoller)
		g.set.wake()
		runtime.Gosched() // or the keeper may not run for long
	}
}

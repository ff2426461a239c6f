package netpoll

import (
	"errors"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/softrnic/softrnic/internal/inventory"
	"github.com/softrnic/softrnic/internal/lockorder"
	"github.com/softrnic/softrnic/internal/proflabel"
)

// Member is what a Group serves by way of a socket. Its methods do not block. They may be
// called from any goroutine, Drive from one at a time.
type Member interface {
	// Drive handles what the socket is ready for, and reports whether anything was
	// done. It does not take long: a budget is the stream's affair.
	Drive(Ready) bool
	// Flush sends what is held back (see Socket.Hold). looked says that it is because
	// the program has looked for completions.
	Flush(looked bool)
}

// Queue is what a Group completes to.
type Queue interface {
	// Awaited reports whether a completion is waited for otherwise than by sleeping in a Group.
	Awaited() bool
}

// Group is a set of sockets that are served together. The zero Group is ready to be used.
type Group struct {
	// Slack is how long pollers and waiters may stay away before the background poller serves; less than watchTick stands
	// for that. It is set before the first Add.
	Slack time.Duration
	// Labels are those of its goroutines, set before the first Add.
	Labels proflabel.Set
	// Inventory is the object that the group belongs to, set before the first Add; nil for none.
	Inventory *inventory.Object

	pollLock lockorder.Mutex[lockorder.Poll] // held by the poller that looks what is ready, and drives it

	life lockorder.Mutex[lockorder.GroupLife] // held to make the set and the background poller, or to end them

	mu      lockorder.Mutex[lockorder.Group] // never held while another lock is taken
	set     set
	open    bool // there is a set, and a background poller; as long as there are sockets
	closed  bool
	sockets []*Socket         // by slot; nil is a free one
	free    []int32           // slots
	gen     int32             // of the last socket added
	soon    []*Socket         // to be driven, whatever the system says of them
	counted *inventory.Object // the group, while it is open
	queues  []Queue           // that streams complete to; a list is never changed once it is here
	back    postBatches

	state atomic.Uint64          // see type state
	polls atomic.Uint64          // looks of pollers and waiters
	looks atomic.Uint64          // how often the program has looked for completions
	hot   atomic.Pointer[Socket] // the one that was active last

	// Guarded by pollLock.
	ready      [readyAtOnce]event
	served     [readyAtOnce]task
	running    []task
	fruitless  uint
	row        int // looks in a row at the hot one alone
	readyCount int // how many were ready at the last look
	missed     int // polls that found the background poller parked, until recount

	slot lockorder.Mutex[lockorder.Slot] // the poller slot
	backgroundPoller
}

// hotRow bounds how often in a row the stream that was active last is driven while the
// others wait.
const hotRow = 16

// readyAtOnce is how many sockets one look drives. When so many were ready that there is a
// crowd, the set is taken out of the runtime's while it is served.
const (
	readyAtOnce = 64
	crowd       = 8
)

// task is a stream to be driven.
type task struct {
	*Socket
	what Ready
}

// ErrClosed is what Add returns after Close.
var ErrClosed = errors.New("the group is closed")

// Add gives the stream of the socket fd, which has to stay open until Remove, a place in g:
// it is served from Begin on. It fails if the system has no descriptors left. With none for fd
// it is Socket.level that tells what the stream is ready for.
func (g *Group) Add(fd int, stream Member) (*Socket, error) {
	g.life.Lock()
	defer g.life.Unlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, ErrClosed
	}
	if fd != none && !g.now().has(sets) {
		if err := g.set.open(); err != nil {
			return nil, err
		}
		g.on(evSets)
		g.set.waker.wake() // who sleeps there sleeps in the sets next
	}
	if !g.open {
		g.set.start()
		g.open = true
		g.counted = inventory.Open(g.Inventory, "netpoll group", nil, g)
		g.startBackground()
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
	if fd != none {
		if err := g.set.add(s); err != nil { // it waits for nothing as yet, but has its place
			g.free = append(g.free, s.slot)
			go g.rest()
			return nil, err
		}
		s.in = true
	}
	g.sockets[s.slot] = s
	g.state.Add(uint64(oneMember))
	return s, nil
}

// Count implements inventory.Counter.
func (g *Group) Count(tell inventory.Tell) {
	g.mu.Lock()
	defer g.mu.Unlock()
	members := g.now().members()
	tell(members, "socket")
	tell(len(g.sockets)-len(g.free)-members, "slot")
	tell(len(g.soon), "stream to drive")
	if g.open { // they may stay behind its last stream
		tell(len(g.queues), "queue")
	}
}

// Serve says that streams of g complete to q.
func (g *Group) Serve(q Queue) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !slices.Contains(g.queues, q) {
		g.queues = append(slices.Clip(g.queues), q)
	}
}

// Forget undoes Serve.
func (g *Group) Forget(q Queue) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.queues = slices.DeleteFunc(slices.Clone(g.queues), func(o Queue) bool { return o == q })
}

// awaited reports whether a completion is waited for otherwise than by sleeping here.
func (g *Group) awaited() bool {
	g.mu.Lock()
	list := g.queues
	g.mu.Unlock()
	return slices.ContainsFunc(list, Queue.Awaited) // without the lock: a queue has one of its own
}

// Close ends the group, which serves no stream any more, and returns when its background poller has gone.
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

// rest ends the set and the background poller of a group that has no sockets any more.
func (g *Group) rest() {
	g.life.Lock()
	defer g.life.Unlock()
	g.mu.Lock()
	idle := g.open && g.now().members() == 0
	g.mu.Unlock()
	if idle {
		g.shut()
	}
}

// shut ends the set and the background poller. With life held.
func (g *Group) shut() {
	g.on(evEnd)
	g.endBackground()
	g.slot.Lock() // the last sleeper has left
	g.pollLock.Lock()
	g.mu.Lock()
	if g.on(evNoSets) {
		g.set.close()
	}
	clear(g.soon) // none is driven any more
	g.soon = g.soon[:0]
	g.on(evDriven)
	g.open = false
	g.counted.Close()
	g.mu.Unlock()
	g.pollLock.Unlock()
	g.slot.Unlock()
}

// Drive is a poller's: it takes the poll lock, if that is free, and reports whether anything was
// done.
func (g *Group) Drive() bool {
	if s := g.looked(); s.has(watched) && !g.awaited() { // else another thread's: one that sleeps may be meant
		g.on(evPoll)
	}
	return g.driveFor()
}

// driveFor is Drive behind looked.
func (g *Group) driveFor() bool {
	if g.now().members() == 0 {
		return false
	}
	if !g.pollLock.TryLock() {
		runtime.Gosched() // its holder may have lost the processor
		return false
	}
	defer g.pollLock.Unlock()
	s := g.now()
	if s.has(ended) {
		return false
	}
	g.polls.Add(1)
	if s.has(bgParked) {
		g.askBackground()
	}
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

// advance looks once what is ready and drives it. The caller holds the poll lock. A poller looks
// at the stream that was active last before it asks the system; where there is but one,
// it never asks. Whether a socket takes more is for the system to say: trying costs as much
// as sending.
func (g *Group) advance(polls bool) bool {
	s := g.now()
	got := s.has(soon) && g.driveSoon()
	if hot := g.hot.Load(); hot != nil && !hot.WantsOutput() {
		if s.members() == 1 {
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
	n := 0
	if g.now().has(sets) {
		n = g.set.wait(g.ready[:])
	}
	g.readyCount = n
	return n > 0 && g.drive(n)
}

// drive drives those that the first n events name.
func (g *Group) drive(n int) bool {
	g.mu.Lock()
	for i := range n {
		e, t := &g.ready[i], &g.served[i]
		*t = task{}
		s := g.sockets[e.slot()]
		if s != nil && s.gen == e.gen() { // else it was another's
			*t = task{s, e.what() & s.waits}
		}
	}
	g.mu.Unlock()
	var last *Socket
	for i := range n {
		t := &g.served[i]
		if t.what != 0 && t.stream.Drive(t.what) {
			last = t.Socket
		}
		t.Socket = nil
	}
	if last != nil && last != g.hot.Load() {
		g.mu.Lock()
		if !last.removed && last.waits&In != 0 {
			g.hot.Store(last)
		}
		g.mu.Unlock()
	}
	return last != nil
}

// driveSoon drives those of Soon.
func (g *Group) driveSoon() (got bool) {
	g.running = g.running[:0]
	g.mu.Lock()
	for i, s := range g.soon {
		if g.soon[i], s.listed, s.told = nil, false, false; !s.removed {
			g.running = append(g.running, task{s, In | Out | s.mask&Lost})
		}
	}
	g.soon = g.soon[:0]
	g.on(evDriven)
	g.mu.Unlock()
	for _, t := range g.running {
		got = t.stream.Drive(t.what) || got
		if t.fd == none {
			t.again()
		}
	}
	clear(g.running)
	return got
}

// again has a stream without a descriptor driven by the next look, if it is still ready. Nobody is told of it but a thread that
// sleeps on the set: the server is here, and looks again if anything was done. But what has just arrived tells it all the same.
func (s *Socket) again() {
	g := s.g
	g.mu.Lock()
	due := s.due()
	if due {
		s.list()
	}
	g.mu.Unlock()
	if due && g.now().has(watched) {
		g.on(evArrived)
	}
}

// askBackground has the background poller, which is parked, step aside for pollers that meet it again and again. With
// pollLock held.
func (g *Group) askBackground() {
	if g.on(evRecount) {
		g.missed = 0
	}
	if g.missed++; g.missed%askAfter == 0 && g.on(evStandAside) {
		runtime.Gosched() // or the background poller may not run for long
	}
}

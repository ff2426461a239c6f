package netpoll

import "sync/atomic"

// Ready is what a socket is ready for. A stream that has failed is ready for both.
type Ready uint8

// What a socket may be ready for.
const (
	In     Ready = 1 << iota // there is something to read, or an end
	Out                      // it takes more
	Lost                     // the system cannot tell of it any more, out of memory
	paused                   // of what is wanted: nothing is to be read for now
)

// none is the descriptor of a stream that has none.
const none = -1

// Socket is the place of a stream in a Group.
type Socket struct {
	g      *Group
	stream Member
	fd     int // none: level tells what the system would
	slot   int32
	gen    int32
	out    atomic.Bool   // mask has Out
	level  atomic.Uint32 // of one without a descriptor: what it is ready for
	// Guarded by g.mu.
	mask    Ready // what is wanted; In from Begin on
	stopped Ready // of what is wanted: what the port lets not through for now
	waits   Ready // what the set waits for
	in      bool  // it is in the set
	removed bool
	listed  bool // it is in g.soon
	told    bool // the server has been told of that
	holding bool // it is in g.back
	awake   bool // and not to stay there over a sleep
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
	g.set.clearLowWater()
	if s.in { // before it is closed: another descriptor of the same socket would keep it in the set
		g.set.remove(s)
		s.in = false
	}
	g.sockets[s.slot] = nil
	g.free = append(g.free, s.slot)
	g.hot.CompareAndSwap(s, nil)
	if state(g.state.Add(^uint64(oneMember-1))).members() == 0 {
		go g.rest()
	}
}

// Begin makes the group serve the stream.
func (s *Socket) Begin() { s.want(In, 0) }

// WantOutput says whether the stream has something to send that the socket did not take. If
// it has, the stream is driven when the socket takes more, though it may do so by now.
func (s *Socket) WantOutput(on bool) {
	if on {
		s.want(Out, 0)
	} else {
		s.want(0, Out)
	}
}

// WantsOutput is what WantOutput has said.
func (s *Socket) WantsOutput() bool { return s.out.Load() }

// Pause says that nothing is to be read from the socket for now.
func (s *Socket) Pause() { s.want(paused, 0) }

// Resume undoes Pause.
func (s *Socket) Resume() { s.want(0, paused) }

// stop has nothing of that be waited for, whatever is wanted, until let.
func (s *Socket) stop(what Ready) { s.through(what, 0) }

// let undoes stop.
func (s *Socket) let(what Ready) { s.through(0, what) }

func (s *Socket) through(stop, let Ready) {
	g := s.g
	g.mu.Lock()
	was := s.stopped
	s.stopped = was&^let | stop
	if s.removed || s.stopped == was {
		g.mu.Unlock()
		return
	}
	lost := s.apply(let != 0)
	due := s.due() && s.queue()
	g.mu.Unlock()
	if due {
		g.on(evArrived)
	}
	if lost {
		g.on(evSoon)
	}
}

// want changes what is wanted.
func (s *Socket) want(more, less Ready) {
	g := s.g
	g.mu.Lock()
	s.mask = s.mask&^less | more
	s.out.Store(s.mask&Out != 0)
	lost := s.apply(more&Out != 0)
	due := s.due() && s.queue()
	g.mu.Unlock()
	if due {
		g.on(evArrived)
	}
	if lost || more&Out != 0 && g.Slack > watchTick && g.now().role() == rolePollers { // it is not to wait for as long
		g.on(evSoon)
	}
}

// apply has the set wait for what is wanted; anew says that what was told of before does not
// count. That is so for room, each time that it is asked for, though it was asked for before: the
// poller may have been told while the poster had the transmit side, and may have gone to sleep, with
// a socket that has taken all so far and so tells of nothing. It reports false but where the set has
// no room for the socket any more. With g.mu held.
func (s *Socket) apply(anew bool) (lost bool) {
	s.g.set.clearLowWater()
	waits := s.mask & (In | Out)
	switch {
	case s.mask&In == 0: // it has not begun
		waits = 0
	case s.mask&paused != 0:
		waits = Out & s.mask
	}
	waits &^= s.stopped
	if s.fd == none {
		s.waits = waits
	}
	if !s.in || waits == s.waits && !anew {
		return false
	}
	gains := anew || waits&^s.waits != 0
	if s.waits = waits; waits&In == 0 {
		s.g.hot.CompareAndSwap(s, nil)
	}
	if !gains {
		s.g.set.change(s)
		return false
	}
	// Not a change: of a socket that is on the system's list of ready ones already, from a
	// look before, that would wake nobody.
	s.g.set.remove(s)
	if s.g.set.add(s) == nil {
		return false
	}
	s.in, s.mask = false, s.mask|Lost
	s.queue()
	return true
}

// Soon has the stream driven as if its socket were ready. It does not block.
func (s *Socket) Soon() {
	g := s.g
	g.mu.Lock()
	if s.removed || s.told {
		g.mu.Unlock()
		return
	}
	s.queue()
	g.mu.Unlock()
	g.on(evSoon)
}

// arrived has the stream driven for what level has risen to. It does not block.
func (s *Socket) arrived() {
	g := s.g
	g.mu.Lock()
	due := s.due() && s.queue()
	g.mu.Unlock()
	if due {
		g.on(evArrived)
	}
}

// due reports whether a stream without a descriptor is ready for something that is wanted. With g.mu held.
func (s *Socket) due() bool { return s.fd == none && !s.removed && s.waits&Ready(s.level.Load()) != 0 }

// queue puts s among those of Soon, and reports whether the server has to be told. With g.mu held.
func (s *Socket) queue() bool {
	s.list()
	if s.told {
		return false
	}
	s.told = true
	return true
}

// list puts s among those of Soon without a word: the next look is for it too. With g.mu held.
func (s *Socket) list() {
	if !s.listed {
		s.listed = true
		s.g.soon = append(s.g.soon, s)
		s.g.on(evQueue)
	}
}

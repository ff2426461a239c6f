package qp

import "sync"

// A program that waits for completions may sleep on this stream (see cq.Sleeper): it
// is the one that the network poller wakes, and receives at once. receiveLoop steps
// aside for it as it does for pollers.

// berth is the place to sleep in the network poller until something arrives. Who has
// it is the only one who may: receiveLoop, until it steps aside, or a program between
// Claim and Leave.
type berth struct {
	sync.Mutex

	rouse  sync.Mutex
	asleep bool // a program is; guarded by rouse, as roused
	roused bool // and has not noticed
}

// begin starts a sleep, unless somebody has roused the sleeper already.
func (b *berth) begin() bool {
	b.rouse.Lock()
	defer b.rouse.Unlock()
	b.asleep, b.roused = !b.roused, false
	return b.asleep
}

func (b *berth) end() {
	b.rouse.Lock()
	b.asleep = false
	b.rouse.Unlock()
}

// taken reports whether a program has the berth, or is about to have it.
func (r *rxSide) taken() bool { return r.sleeping.Load() }

// Claim implements cq.Sleeper.
func (s *session) Claim() bool {
	r := &s.rx
	s.uncork()
	if !r.sleeping.CompareAndSwap(false, true) {
		return false
	}
	// From here on receiveLoop does not take over.
	if !r.berth.TryLock() {
		if !s.makeWay() {
			r.sleeping.Store(false)
			s.gone()
			return false
		}
		r.berth.Lock() // it is on its way out
	}
	if s.stopping.Load() {
		s.Leave()
		return false
	}
	r.berth.rouse.Lock()
	r.berth.roused = false
	r.berth.rouse.Unlock()
	return true
}

// makeWay asks receiveLoop, if it sleeps, to step aside.
func (s *session) makeWay() bool {
	r := &s.rx
	if !r.mu.TryLock() {
		return false
	}
	defer r.mu.Unlock()
	if s.stopping.Load() || !s.llp.parked.Load() {
		return false
	}
	r.asked.Store(bySleeper)
	s.llp.wakeReader()
	return true
}

// Sleep implements cq.Sleeper.
func (s *session) Sleep() bool {
	r := &s.rx
	s.unpolled()
	// finish wakes who sleeps when stopping is set: a look at it comes behind each
	// rearmReader.
	for !s.stopping.Load() && r.berth.begin() {
		n, out, held := s.llp.raw.sleep(&r.in, &r.mu)
		r.berth.end()
		switch {
		case held:
			r.polls.Add(1)
			s.received(n, out) // if the session ends meanwhile, it is finish's
			r.mu.Unlock()
			return true
		case out != ioAgain: // the side is taken, or the stream paused
			return false
		}
		s.llp.rearmReader()
	}
	return !s.stopping.Load()
}

// Rouse implements cq.Sleeper.
func (s *session) Rouse() {
	b := &s.rx.berth
	b.rouse.Lock()
	defer b.rouse.Unlock()
	b.roused = true
	if b.asleep {
		s.llp.wakeReader()
	}
}

// Leave implements cq.Sleeper. receiveLoop takes over if somebody else waits for what
// comes; else it leaves the sleeper some time to return.
func (s *session) Leave() {
	r := &s.rx
	r.sleeping.Store(false)
	r.berth.Unlock()
	s.gone()
}

// gone tells receiveLoop what it needs to know when no program has the berth any more.
func (s *session) gone() {
	r := &s.rx
	switch {
	case s.q.sq.cq.Awaited() || s.q.rq.cq.Awaited():
		signal(r.resume)
	case r.dormant.Load() && r.dormant.Swap(false):
		signal(r.stir)
	}
}

// unpolled ends what polled began, for who sleeps where pollers have received until
// now.
func (s *session) unpolled() {
	r := &s.rx
	if !r.polled.Load() {
		return
	}
	r.hush.Lock()
	s.setPolled(false)
	r.hush.Unlock()
	s.wakeTransmit()
}

// setPolled says whether pollers receive, who are not to be disturbed. With hush
// held.
func (s *session) setPolled(on bool) {
	if s.rx.polled.Swap(on) != on {
		s.llp.raw.hush(on)
	}
}

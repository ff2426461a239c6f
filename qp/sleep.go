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
func (r *receiver) taken() bool { return r.sleeping.Load() }

// Claim implements cq.Sleeper.
func (r *receiver) Claim() bool {
	r.s.tx.looked()
	if !r.sleeping.CompareAndSwap(false, true) {
		return false
	}
	// From here on receiveLoop does not take over.
	if !r.berth.TryLock() {
		if !r.makeWay() {
			r.sleeping.Store(false)
			r.berthFree()
			return false
		}
		r.berth.Lock() // it is on its way out
	}
	if r.s.stopping.Load() {
		r.Leave()
		return false
	}
	r.berth.rouse.Lock()
	r.berth.roused = false
	r.berth.rouse.Unlock()
	return true
}

// makeWay asks receiveLoop, if it sleeps, to step aside.
func (r *receiver) makeWay() bool {
	if !r.mu.TryLock() {
		return false
	}
	defer r.mu.Unlock()
	if r.s.stopping.Load() || !r.llp.parked.Load() {
		return false
	}
	r.asked.Store(bySleeper)
	r.llp.wakeReader()
	return true
}

// Sleep implements cq.Sleeper.
func (r *receiver) Sleep() bool {
	r.unpolled()
	// finish wakes who sleeps when stopping is set: a look at it comes behind each
	// rearmReader.
	for !r.s.stopping.Load() && r.berth.begin() {
		n, out, owned := r.llp.raw.sleep(&r.in, &r.mu)
		r.berth.end()
		switch {
		case owned:
			r.polls.Add(1)
			r.received(n, out) // if the session ends meanwhile, it is finish's
			r.mu.Unlock()
			return true
		case out != ioAgain: // the side is taken, or the stream paused
			return false
		}
		r.llp.rearmReader()
	}
	return !r.s.stopping.Load()
}

// Rouse implements cq.Sleeper.
func (r *receiver) Rouse() {
	b := &r.berth
	b.rouse.Lock()
	defer b.rouse.Unlock()
	b.roused = true
	if b.asleep {
		r.llp.wakeReader()
	}
}

// Leave implements cq.Sleeper. receiveLoop takes over if somebody else waits for what
// comes; else it leaves the sleeper some time to return.
func (r *receiver) Leave() {
	r.sleeping.Store(false)
	r.berth.Unlock()
	r.berthFree()
}

// berthFree tells receiveLoop what it needs to know when no program has the berth any more.
func (r *receiver) berthFree() {
	switch {
	case r.s.q.sq.cq.Awaited() || r.rq.cq.Awaited():
		signal(r.resume)
	case r.dormant.Load() && r.dormant.Swap(false):
		signal(r.stir)
	}
}

// unpolled ends what polled began, for who sleeps where pollers have received until
// now.
func (r *receiver) unpolled() {
	if !r.polled.Load() {
		return
	}
	r.polledMu.Lock()
	r.setPolled(false)
	r.polledMu.Unlock()
	r.s.tx.wakeLoop()
}

// setPolled says whether pollers receive, who are not to be disturbed. With polledMu
// held.
func (r *receiver) setPolled(on bool) {
	if r.polled.Swap(on) != on {
		r.llp.raw.setLowWater(on)
	}
}

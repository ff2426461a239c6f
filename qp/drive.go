package qp

import (
	"runtime"
	"time"
)

// Pollers of a CQ as drivers of the receive side (see cq.Driver), and how
// receiveLoop makes way for them.

const (
	// askAfter is how many polls make the loop step aside.
	askAfter = 64
	// watchTick is when a loop that stepped aside first looks whether pollers
	// still come, and fewPolls how many it wants to see. As long as they do, each
	// look waits twice as long as the one before, up to watchMost: it takes the
	// processor from them. A look that comes late says little: maybe the process
	// did not get the processor. But overdueLooks of them in a row mean that others
	// have it.
	watchTick    = 2 * time.Millisecond
	watchMost    = 16 * time.Millisecond
	fewPolls     = 2
	overdueLooks = 3
	// yieldEvery is how many fruitless polls in a row make a poller offer its
	// processor to other threads: the one it waits for may need it.
	yieldEvery = 32
)

// attach lets pollers of the CQs know this session.
func (r *receiver) attach() {
	if r.tuning.Drive >= 0 && r.llp.direct() && !r.attached.Load() {
		r.attached.Store(true)
		r.s.q.sq.cq.Attach(r)
		r.rq.cq.Attach(r)
	}
}

func (r *receiver) detach() {
	r.s.q.sq.cq.Detach(r)
	r.rq.cq.Detach(r)
}

// stepAside returns when the loop shall own the receive side again. It gives the berth
// up meanwhile.
func (r *receiver) stepAside() {
	watch := time.NewTimer(r.tick)
	defer watch.Stop()
	w := watchdog{seen: r.polls.Load(), at: time.Now(), tick: r.tick}
	if r.asked.Load() == byPoller {
		r.pollersReceive()
	}
	r.berth.Unlock()
	fed := false
	for r.asked.Load() != byNobody {
		select {
		case <-r.s.stop:
			r.asked.Store(byNobody)
		case <-r.resume:
			if !r.taken() { // else Leave asks again
				r.asked.Store(byNobody)
			}
		case <-r.feed:
			fed = true
		case <-r.stir:
			w = watchdog{seen: r.polls.Load(), at: time.Now(), tick: r.tick}
			watch.Reset(w.tick)
		case <-watch.C:
			if r.watch(&w) {
				watch.Reset(w.tick)
			}
		}
		if fed && !r.taken() { // its turn for a receive: pollers may have gone
			r.asked.Store(byNobody)
		}
	}
	r.berth.Lock()
	r.missed.Store(0)
	r.unpolled()
	if fed {
		signal(r.feed)
	}
}

// watch looks who receives, and reports whether to look again.
func (r *receiver) watch(w *watchdog) bool {
	polls := r.polls.Load()
	many := polls-w.seen >= askAfter
	switch {
	case r.taken() && polls == w.seen: // asleep for long, maybe
		r.dormant.Store(true)
		return !r.taken() && r.dormant.Swap(false) // or Leave stirs
	case w.look(polls, time.Now()) && !r.taken():
		r.asked.Store(byNobody)
		return false
	case many && !r.taken():
		r.pollersReceive()
	}
	return true
}

// pollersReceive sees to it that nothing disturbs them, unless a program is about to
// sleep.
func (r *receiver) pollersReceive() {
	r.polledMu.Lock()
	defer r.polledMu.Unlock()
	r.setPolled(true)
	if r.taken() {
		r.setPolled(false)
	}
}

// watchdog tells whether pollers have gone.
type watchdog struct {
	seen    uint64 // polls at the last look
	at      time.Time
	tick    time.Duration // from there to the next one
	overdue int           // looks in a row that came late and saw few polls
}

// look reports whether to take over, polls being their number by now.
func (w *watchdog) look(polls uint64, now time.Time) bool {
	few := polls-w.seen < fewPolls
	overdue := now.Sub(w.at) >= 2*w.tick
	w.seen, w.at = polls, now
	switch {
	case !few:
		w.overdue = 0
		w.tick = min(2*w.tick, watchMost)
		return false
	case !overdue:
		return true
	}
	w.tick = watchTick
	w.overdue++
	return w.overdue >= overdueLooks
}

// Drive implements cq.Driver.
func (r *receiver) Drive() bool {
	r.s.tx.looked()
	if !r.mu.TryLock() {
		return false
	}
	defer r.mu.Unlock()
	if r.s.stopping.Load() {
		return false
	}
	r.polls.Add(1)
	if r.llp.parked.Load() && r.missed.Add(1)%askAfter == 0 {
		r.asked.Store(byPoller)
		r.llp.wakeReader()
		runtime.Gosched() // or the loop, and transmitLoop, may not run for long
	}
	var got bool
	if r.in.kept == nil {
		got = r.received(r.llp.raw.tryPoll(&r.in)) == ioDone
	} else { // paused: only a receive lets it go on
		r.deliver()
		got = r.in.kept == nil
	}
	if r.s.tx.stalled.Load() && r.s.tx.stalled.CompareAndSwap(true, false) {
		before := r.s.tx.written.Load()
		r.s.tx.kick()
		got = got || r.s.tx.written.Load() != before // a poller that sends is not idle
	}
	if got {
		r.fruitless = 0
	} else if r.fruitless++; r.fruitless%yieldEvery == 0 {
		yieldThread()
	}
	return got
}

// Yield implements cq.Driver.
func (r *receiver) Yield() {
	r.s.tx.looked()
	r.attached.Store(false)
	r.missed.Store(0)
	if r.asked.Load() != byNobody {
		signal(r.resume)
	}
}

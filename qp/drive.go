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
	// did not get the processor. But lateLooks of them in a row mean that others
	// have it.
	watchTick = 2 * time.Millisecond
	watchMost = 16 * time.Millisecond
	fewPolls  = 2
	lateLooks = 3
	// yieldEvery is how many fruitless polls in a row make a poller offer its
	// processor to other threads: the one it waits for may need it.
	yieldEvery = 32
)

// attach lets pollers of the CQs know this session.
func (s *session) attach() {
	if s.tuning.Drive >= 0 && s.llp.direct() && !s.rx.attached.Load() {
		s.rx.attached.Store(true)
		s.q.sq.cq.Attach(s)
		s.q.rq.cq.Attach(s)
	}
}

func (s *session) detach() {
	s.q.sq.cq.Detach(s)
	s.q.rq.cq.Detach(s)
}

// stepAside returns when the loop shall own the receive side again. It gives the berth
// up meanwhile.
func (s *session) stepAside() {
	r := &s.rx
	watch := time.NewTimer(watchTick)
	defer watch.Stop()
	w := watchdog{seen: r.polls.Load(), at: time.Now(), tick: watchTick}
	if r.asked.Load() == byPoller {
		s.pollersReceive()
	}
	r.berth.Unlock()
	for r.asked.Load() != byNobody {
		select {
		case <-s.stop:
			r.asked.Store(byNobody)
		case <-r.resume:
			if !r.taken() { // else Leave asks again
				r.asked.Store(byNobody)
			}
		case <-r.stir:
			w = watchdog{seen: r.polls.Load(), at: time.Now(), tick: watchTick}
			watch.Reset(w.tick)
		case <-watch.C:
			if s.watch(&w) {
				watch.Reset(w.tick)
			}
		}
	}
	r.berth.Lock()
	r.missed.Store(0)
	s.unpolled()
}

// watch looks who receives, and reports whether to look again.
func (s *session) watch(w *watchdog) bool {
	r := &s.rx
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
		s.pollersReceive()
	}
	return true
}

// pollersReceive sees to it that nothing disturbs them, unless a program is about to
// sleep.
func (s *session) pollersReceive() {
	r := &s.rx
	r.hush.Lock()
	defer r.hush.Unlock()
	s.setPolled(true)
	if r.taken() {
		s.setPolled(false)
	}
}

// watchdog tells whether pollers have gone.
type watchdog struct {
	seen uint64 // polls at the last look
	at   time.Time
	tick time.Duration // from there to the next one
	late int           // looks in a row that came late and saw few polls
}

// look reports whether to take over, polls being their number by now.
func (w *watchdog) look(polls uint64, now time.Time) bool {
	few := polls-w.seen < fewPolls
	late := now.Sub(w.at) >= 2*w.tick
	w.seen, w.at = polls, now
	switch {
	case !few:
		w.late = 0
		w.tick = min(2*w.tick, watchMost)
		return false
	case !late:
		return true
	}
	w.tick = watchTick
	w.late++
	return w.late >= lateLooks
}

// Drive implements cq.Driver.
func (s *session) Drive() bool {
	r := &s.rx
	s.uncork()
	if !r.mu.TryLock() {
		return false
	}
	defer r.mu.Unlock()
	if s.stopping.Load() {
		return false
	}
	r.polls.Add(1)
	if s.llp.parked.Load() && r.missed.Add(1)%askAfter == 0 {
		r.asked.Store(byPoller)
		s.llp.wakeReader()
		runtime.Gosched() // or the loop, and transmitLoop, may not run for long
	}
	var got bool
	if r.in.kept == nil {
		got = s.received(s.llp.raw.tryPoll(&r.in)) == ioDone
	} else { // paused: only a receive lets it go on
		s.deliver()
		got = r.in.kept == nil
	}
	if s.tx.stalled.Load() && s.tx.stalled.CompareAndSwap(true, false) {
		before := s.tx.written.Load()
		s.kick()
		got = got || s.tx.written.Load() != before // a poller that sends is not idle
	}
	if got {
		r.empty = 0
	} else if r.empty++; r.empty%yieldEvery == 0 {
		yieldThread()
	}
	return got
}

// Yield implements cq.Driver.
func (s *session) Yield() {
	r := &s.rx
	s.uncork()
	r.attached.Store(false)
	r.missed.Store(0)
	if r.asked.Load() != byNobody {
		signal(r.resume)
	}
}

package netpoll

import (
	"runtime"
	"time"

	"github.com/softrnic/softrnic/internal/proflabel"
)

const (
	// askAfter is how many polls make the background poller step aside.
	askAfter = 64
	// watchTick is when a background poller that stepped aside first looks whether pollers
	// still come, and fewPolls how many it wants to see. As long as they do, each
	// look waits twice as long as the one before, up to watchMost: it takes the
	// processor from them. A look that comes late says little: maybe the process
	// did not get the processor. But overdueLooks of them in a row mean that others
	// have it.
	watchTick    = 2 * time.Millisecond
	watchMost    = 16 * time.Millisecond
	fewPolls     = 2
	overdueLooks = 3
)

// backgroundPoller is the goroutine that serves without pollers and waiters.
type backgroundPoller struct {
	told         chan struct{} // a token when the state asks it for something
	over         chan struct{} // it is to end
	gone         chan struct{} // it has ended
	onBackground func() bool   // tryBackground and tryWait, made once
	onSleep      func() bool
}

// startBackground starts the background poller of a group that has none. With g.mu held.
func (g *Group) startBackground() {
	k := &g.backgroundPoller
	if k.told == nil {
		k.told = make(chan struct{}, 1)
		k.onBackground, k.onSleep = g.tryBackground, g.tryWait
	}
	g.on(evOpen)
	k.over, k.gone = make(chan struct{}), make(chan struct{})
	g.back.over = k.over
	go g.backgroundLoop(k.gone)
}

// endBackground waits for the background poller and for flushLoop, which have been told to end.
func (g *Group) endBackground() {
	close(g.over)
	<-g.gone
	g.endFlush()
}

// backgroundLoop is the background poller. One goroutine a group.
func (g *Group) backgroundLoop(gone chan<- struct{}) {
	defer close(gone)
	g.Labels.With(proflabel.Work, "background poller").Wear()
	g.takeSlot()
	defer g.slot.Unlock()
	for !g.now().has(ended) {
		if g.on(evBackgroundSleeps) {
			_, woken := g.sleep(g.onBackground)
			g.on(evBackgroundWakes)
			if woken {
				g.rearm()
			}
		}
		if s := g.now(); s.role() != roleBackground && !s.has(ended) {
			g.stepAside()
		}
	}
}

// tryBackground serves until there is nothing to do, and then lets the background poller sleep. It reports
// true if it has to step aside.
func (g *Group) tryBackground() bool {
	for s := g.now(); s.role() == roleBackground && !s.has(ended); s = g.now() {
		some := g.trySleep()
		g.flushAwake() // nobody looks
		if !some {
			return false
		}
	}
	return true
}

// stepAside returns when the background poller shall serve again. It gives the poller slot up meanwhile.
func (g *Group) stepAside() {
	g.undisturbed()
	g.slot.Unlock()
	g.takeSlot()
}

// takeSlot takes the poller slot when the background poller shall serve. While a waiter has it that is not waited for with
// the lock, which would keep the clock of testing/synctest.
func (g *Group) takeSlot() {
	for g.awaitTurn(); !g.slot.TryLock(); g.awaitTurn() {
		runtime.Gosched() // its holder is about to leave
	}
}

// awaitTurn returns when the background poller shall serve, or the group has ended.
func (g *Group) awaitTurn() {
	if s := g.now(); s.role() == roleBackground || s.has(ended) {
		return
	}
	least := max(watchTick, g.Slack)
	watch := time.NewTimer(least)
	defer watch.Stop()
	w := watchdog{seen: g.polls.Load(), at: time.Now(), tick: least, least: least}
	for s := g.now(); s.role() != roleBackground && !s.has(ended); s = g.now() {
		select {
		case <-g.over:
		case <-g.told:
			g.on(evAnswer)
			w = watchdog{seen: g.polls.Load(), at: time.Now(), tick: least, least: least}
			watch.Reset(w.tick)
		case <-watch.C:
			if g.watch(&w) {
				watch.Reset(w.tick)
			}
		}
	}
}

// watch looks which role serves, and reports whether to look again.
func (g *Group) watch(w *watchdog) bool {
	polls := g.polls.Load()
	many := polls-w.seen >= askAfter
	switch {
	case polls == w.seen && g.on(evRely): // asleep for long, maybe
		return false
	case w.look(polls, time.Now()) && g.on(evTakeOver): // the timer goes on: a waiter may claim the slot meanwhile
	case many:
		g.undisturbed()
	}
	return true
}

// undisturbed sees to it that arrivals wake no goroutine, unless one is about to sleep.
func (g *Group) undisturbed() {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.now()
	if s.role() == roleWaiter {
		return
	}
	if g.set.disarm(); s.members() < crowd { // to come back, the system looks at each
		g.set.detach()
	}
	if hot := g.hot.Load(); hot != nil && s.members() == 1 && hot.waits == In && !s.has(watched) {
		g.set.setLowWater(hot) // no look at the set is for it
	}
}

// Yield says that the program does not poll from here on: progress must go on by itself.
func (g *Group) Yield() {
	g.looked()
	g.on(evYield)
}

// watchdog tells whether pollers have gone.
type watchdog struct {
	seen    uint64 // polls at the last look
	at      time.Time
	tick    time.Duration // from there to the next one
	least   time.Duration // what it is at first; 0: watchTick
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
		w.tick = min(2*w.tick, max(watchMost, w.least))
		return false
	case !overdue:
		return true
	}
	w.tick = max(watchTick, w.least)
	w.overdue++
	return w.overdue >= overdueLooks
}

// Server is the role that sleeps in a Group, if one does.
type Server uint8

// Nobody: pollers serve, or a waiter is about to come back, or the poll lock is held.
const (
	Nobody Server = iota
	BackgroundPoller
	Waiter
)

// Server is the role that sleeps in g just now, or is about to.
func (g *Group) Server() Server {
	switch s := g.now(); {
	case s.has(asleep):
		return Waiter
	case s.has(bgParked):
		return BackgroundPoller
	default:
		return Nobody
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

package netpoll

import (
	"runtime"
	"sync/atomic"
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

// pollerRole is the role that serves. Each change is of one word, so that what one goroutine decides holds
// against all others:
//
//	             standAside           claim
//	               ----->            ----->
//	roleBackground         rolePollers      roleWaiter
//	               <-----            <-----
//	              takeOver            leave
//
// A claim also goes straight from roleBackground.
type pollerRole struct{ state atomic.Uint32 }

const (
	roleBackground uint32 = iota // the background poller
	rolePollers                  // pollers, or a waiter that is about to return; or none, for a while
	roleWaiter                   // a waiter, which has the poller slot or is about to have it
)

// claim makes the caller the waiter, unless there is one.
func (r *pollerRole) claim() bool {
	for {
		s := r.state.Load()
		if s == roleWaiter || r.state.CompareAndSwap(s, roleWaiter) {
			return s != roleWaiter
		}
	}
}

// leave is the waiter's.
func (r *pollerRole) leave() { r.state.Store(rolePollers) }

// standAside makes the background poller step aside for pollers. It reports false if it does already.
func (r *pollerRole) standAside() bool { return r.state.CompareAndSwap(roleBackground, rolePollers) }

// takeOver makes the background poller serve again, unless there is a waiter.
func (r *pollerRole) takeOver() bool { return r.state.CompareAndSwap(rolePollers, roleBackground) }

func (r *pollerRole) background() bool { return r.state.Load() == roleBackground }
func (r *pollerRole) waiter() bool     { return r.state.Load() == roleWaiter }

// backgroundPoller is the goroutine that serves without pollers and waiters.
type backgroundPoller struct {
	role           pollerRole
	bgParked       atomic.Bool   // it sleeps, or is about to
	missed         atomic.Uint32 // polls that found it parked
	polls          atomic.Uint64 // turns of pollers and waiters
	reliesOnWaiter atomic.Bool   // set while it relies on the waiter
	resume         chan struct{} // asks it to take over
	stir           chan struct{} // asks it to look after the pollers again
	over           chan struct{} // it is to end
	gone           chan struct{} // it has ended
	onBackground   func() bool   // tryBackground and tryWait, made once
	onSleep        func() bool
}

// start starts the background poller of a group that has none. With g.mu held.
func (k *backgroundPoller) start(g *Group) {
	if k.resume == nil {
		k.resume, k.stir = make(chan struct{}, 1), make(chan struct{}, 1)
		k.onBackground, k.onSleep = g.tryBackground, g.tryWait
	}
	k.role.takeOver()
	k.reliesOnWaiter.Store(false)
	k.over, k.gone = make(chan struct{}), make(chan struct{})
	g.held.start(k.over)
	go g.backgroundLoop(k.gone)
}

// end makes it end, and waits for that.
func (k *backgroundPoller) end(g *Group) {
	close(k.over)
	g.set.wake()
	g.Rouse()
	<-k.gone
	g.held.end()
}

// backgroundLoop is the background poller. One goroutine a group.
func (g *Group) backgroundLoop(gone chan<- struct{}) {
	defer close(gone)
	g.Labels.With(proflabel.Work, "background poller").Wear()
	g.takeSlot()
	defer g.pollerSlot.Unlock()
	for !g.ended.Load() {
		g.bgParked.Store(true)
		_, woken := g.set.sleep(g.onBackground)
		g.bgParked.Store(false)
		if woken {
			g.set.rearm()
		}
		if !g.role.background() && !g.ended.Load() {
			g.stepAside()
		}
	}
}

// tryBackground serves until there is nothing to do, and then lets the background poller sleep. It reports
// true if it has to step aside.
func (g *Group) tryBackground() bool {
	for !g.ended.Load() && g.role.background() {
		if !g.trySleep() {
			return false
		}
	}
	return true
}

// stepAside returns when the background poller shall serve again. It gives the poller slot up meanwhile.
func (g *Group) stepAside() {
	g.undisturbed()
	g.pollerSlot.Unlock()
	g.takeSlot()
	g.missed.Store(0)
}

// takeSlot takes the poller slot when the background poller shall serve. While a waiter has it that is not waited for with
// the lock, which would keep the clock of testing/synctest.
func (g *Group) takeSlot() {
	for g.awaitTurn(); !g.pollerSlot.TryLock(); g.awaitTurn() {
		runtime.Gosched() // its holder is about to leave
	}
}

// awaitTurn returns when the background poller shall serve, or the group has ended.
func (g *Group) awaitTurn() {
	if g.ended.Load() || g.role.background() {
		return
	}
	least := max(watchTick, g.Slack)
	watch := time.NewTimer(least)
	defer watch.Stop()
	w := watchdog{seen: g.polls.Load(), at: time.Now(), tick: least, least: least}
	for !g.ended.Load() && !g.role.background() {
		select {
		case <-g.over:
		case <-g.resume:
			g.role.takeOver() // if there is a waiter, Leave asks again
		case <-g.stir:
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
	case g.role.waiter() && polls == w.seen: // asleep for long, maybe
		g.reliesOnWaiter.Store(true)
		return !g.role.waiter() && g.reliesOnWaiter.Swap(false) // or Leave stirs
	case w.look(polls, time.Now()) && g.role.takeOver():
		return false
	case many:
		g.undisturbed()
	}
	return true
}

// undisturbed sees to it that arrivals wake no goroutine, unless one is about to sleep.
func (g *Group) undisturbed() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.role.waiter() {
		return
	}
	if g.set.disarm(); g.members.Load() < crowd { // to come back, the system looks at each
		g.set.detach()
	}
	if hot := g.hot.Load(); hot != nil && g.members.Load() == 1 && hot.waits == In && !g.watched.Load() {
		g.set.setLowWater(hot) // no look at the set is for it
	}
}

// Yield says that the program does not poll from here on: progress must go on by itself.
func (g *Group) Yield() {
	g.held.looked(g)
	g.missed.Store(0)
	if !g.role.background() {
		signal(g.resume)
	}
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
	g.pollerSlot.state.Lock()
	asleep := g.pollerSlot.asleep
	g.pollerSlot.state.Unlock()
	switch {
	case asleep:
		return Waiter
	case g.bgParked.Load():
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

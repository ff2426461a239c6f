package engine

import (
	"sync/atomic"
	"time"

	"github.com/softrnic/softrnic/internal/label"
)

const (
	// askAfter is how many polls make the keeper step aside.
	askAfter = 64
	// watchTick is when a keeper that stepped aside first looks whether pollers
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

// rota says who is to serve. Each change is of one word, so that what one of them decides holds
// against all others:
//
//	         ask             claim
//	        ----->          ----->
//	keeping         aside          claimed
//	        <-----          <-----
//	       takeOver          leave
//
// A claim also goes straight from keeping.
type rota struct{ state atomic.Uint32 }

const (
	keeping uint32 = iota // the keeper
	aside                 // pollers, or a waiter that is about to return; or nobody, for a while
	claimed               // a waiter, which has the berth or is about to have it
)

// claim makes the caller the waiter, unless there is one.
func (r *rota) claim() bool {
	for {
		s := r.state.Load()
		if s == claimed || r.state.CompareAndSwap(s, claimed) {
			return s != claimed
		}
	}
}

// leave is the waiter's.
func (r *rota) leave() { r.state.Store(aside) }

// ask makes the keeper step aside for pollers. It reports false if it does already.
func (r *rota) ask() bool { return r.state.CompareAndSwap(keeping, aside) }

// takeOver makes the keeper serve again, unless there is a waiter.
func (r *rota) takeOver() bool { return r.state.CompareAndSwap(aside, keeping) }

func (r *rota) kept() bool  { return r.state.Load() == keeping }
func (r *rota) taken() bool { return r.state.Load() == claimed }

// keeper is the goroutine that serves when nobody else does.
type keeper struct {
	rota    rota
	parked  atomic.Bool   // it sleeps, or is about to
	missed  atomic.Uint32 // polls that found it parked
	polls   atomic.Uint64 // turns of pollers and waiters
	dormant atomic.Bool   // set while it relies on the waiter
	resume  chan struct{} // asks it to take over
	stir    chan struct{} // asks it to look after the pollers again
	over    chan struct{} // it is to end
	gone    chan struct{} // it has ended
	onKeep  func() bool   // tryKeep and tryWait, made once
	onSleep func() bool
}

// start starts the keeper of a group that has none. With g.mu held.
func (k *keeper) start(g *Group) {
	if k.resume == nil {
		k.resume, k.stir = make(chan struct{}, 1), make(chan struct{}, 1)
		k.onKeep, k.onSleep = g.tryKeep, g.tryWait
	}
	k.rota.takeOver()
	k.dormant.Store(false)
	k.over, k.gone = make(chan struct{}), make(chan struct{})
	g.held.start(k.over)
	go g.keep(k.gone)
}

// end makes the keeper end, and waits for it.
func (k *keeper) end(g *Group) {
	close(k.over)
	g.set.wake()
	g.Rouse()
	<-k.gone
	g.held.end()
}

// keep serves whenever nobody else does. One goroutine a group.
func (g *Group) keep(gone chan<- struct{}) {
	defer close(gone)
	g.Labels.With(label.Work, "keep").Wear()
	g.berth.Lock()
	defer g.berth.Unlock()
	for !g.ended.Load() {
		g.parked.Store(true)
		_, woken := g.set.sleep(g.onKeep)
		g.parked.Store(false)
		if woken {
			g.set.rearm()
		}
		if !g.rota.kept() && !g.ended.Load() {
			g.stepAside()
		}
	}
}

// tryKeep serves until there is nothing to do, and then lets the keeper sleep. It reports
// true if it has to step aside.
func (g *Group) tryKeep() bool {
	for !g.ended.Load() && g.rota.kept() {
		if !g.trySleep() {
			return false
		}
	}
	return true
}

// stepAside returns when the keeper shall serve again. It gives the berth up meanwhile.
func (g *Group) stepAside() {
	least := max(watchTick, g.Slack)
	watch := time.NewTimer(least)
	defer watch.Stop()
	w := watchdog{seen: g.polls.Load(), at: time.Now(), tick: least, least: least}
	g.undisturbed()
	g.berth.Unlock()
	for !g.ended.Load() && !g.rota.kept() {
		select {
		case <-g.over:
		case <-g.resume:
			g.rota.takeOver() // if there is a waiter, Leave asks again
		case <-g.stir:
			w = watchdog{seen: g.polls.Load(), at: time.Now(), tick: least, least: least}
			watch.Reset(w.tick)
		case <-watch.C:
			if g.watch(&w) {
				watch.Reset(w.tick)
			}
		}
	}
	g.berth.Lock()
	g.missed.Store(0)
}

// watch looks who serves, and reports whether to look again.
func (g *Group) watch(w *watchdog) bool {
	polls := g.polls.Load()
	many := polls-w.seen >= askAfter
	switch {
	case g.rota.taken() && polls == w.seen: // asleep for long, maybe
		g.dormant.Store(true)
		return !g.rota.taken() && g.dormant.Swap(false) // or Leave stirs
	case w.look(polls, time.Now()) && g.rota.takeOver():
		return false
	case many:
		g.undisturbed()
	}
	return true
}

// undisturbed sees to it that arrivals wake nobody, unless somebody is about to sleep.
func (g *Group) undisturbed() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.rota.taken() {
		return
	}
	if g.set.disarm(); g.members.Load() < crowd { // to come back, the system looks at each
		g.set.part()
	}
	if hot := g.hot.Load(); hot != nil && g.members.Load() == 1 && hot.waits == In && !g.watched.Load() {
		g.set.quiet(hot) // nobody asks the set for it
	}
}

// Yield says that nobody polls from here on: progress must go on by itself.
func (g *Group) Yield() {
	g.held.looked(g)
	g.missed.Store(0)
	if !g.rota.kept() {
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

// Server is who serves a Group, as far as somebody sleeps.
type Server uint8

// Nobody sleeps: pollers serve, or a waiter is about to come back, or somebody has the turn.
const (
	Nobody Server = iota
	Keeper
	Waiter
)

// Server tells who sleeps in g just now, or is about to.
func (g *Group) Server() Server {
	g.berth.state.Lock()
	asleep := g.berth.asleep
	g.berth.state.Unlock()
	switch {
	case asleep:
		return Waiter
	case g.parked.Load():
		return Keeper
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

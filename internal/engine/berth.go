package engine

import "sync"

// berth is the place to sleep until a socket is ready. Who has it is the only one who may:
// the keeper until it steps aside, or a waiter between Claim and Leave.
type berth struct {
	sync.Mutex

	state  sync.Mutex
	asleep bool // a waiter is, or looks for the last time; guarded by state, as the next ones
	parked bool // it has looked: only a wake-up ends the sleep
	roused bool // it has not noticed
}

// begin starts a sleep, unless somebody has roused the sleeper already.
func (b *berth) begin() bool {
	b.state.Lock()
	defer b.state.Unlock()
	b.asleep, b.roused = !b.roused, false
	return b.asleep
}

func (b *berth) end() {
	b.state.Lock()
	b.asleep, b.parked = false, false
	b.state.Unlock()
}

// park says whether the sleeper is about to stop looking. It reports false if it has been
// roused: what it drives itself may do that, and need not wake anybody.
func (b *berth) park(on bool) bool {
	b.state.Lock()
	defer b.state.Unlock()
	b.parked = on && !b.roused
	return b.parked
}

// Claim asks for the right to Sleep, which one goroutine has at a time. It reports false if
// another has it.
func (g *Group) Claim() bool {
	g.held.looked(g)
	if g.members.Load() == 0 || !g.rota.claim() {
		return false
	}
	if !g.berth.TryLock() {
		g.set.wake()
		g.berth.Lock() // the keeper is on its way out
	}
	if g.ended.Load() {
		g.Leave()
		return false
	}
	g.berth.state.Lock()
	g.berth.roused = false
	g.berth.state.Unlock()
	return true
}

// Sleep returns when something has been driven, after Rouse, and when the group is closed.
// It reports false if it cannot sleep.
func (g *Group) Sleep() bool {
	for !g.ended.Load() && g.members.Load() > 0 && g.berth.begin() {
		got, woken := g.set.sleep(g.onSleep)
		g.berth.end()
		if got {
			g.polls.Add(1)
			break
		}
		if !woken {
			return false
		}
		g.set.rearm()
	}
	return !g.ended.Load() && g.members.Load() > 0
}

// tryWait is trySleep for a waiter.
func (g *Group) tryWait() bool {
	g.berth.park(false)
	return g.trySleep() || !g.berth.park(true)
}

// trySleep takes a turn, and reports whether there was anything to do. If not, the next
// arrival ends the sleep.
func (g *Group) trySleep() bool {
	got, crowded := g.look()
	if got {
		if crowded { // more will come while these are served: it need wake nobody
			g.mu.Lock()
			g.set.disarm()
			g.mu.Unlock()
		}
		return true
	}
	g.mu.Lock()
	armed := !g.ended.Load() && g.set.arm()
	g.mu.Unlock()
	if armed { // once more: what came before told nobody
		got, _ = g.look()
	}
	return got
}

// look takes a turn. If nothing came of as many sockets as one look tells of, it looks at the
// others too, which the system tells of next: nobody is woken again for what is ready by now.
func (g *Group) look() (got, crowded bool) {
	g.turn.Lock()
	defer g.turn.Unlock()
	for left := g.members.Load(); left > 0 && !g.ended.Load(); left -= readyAtOnce {
		g.told = 0
		if got = g.advance(false); got || g.told < readyAtOnce {
			break
		}
		crowded = true
	}
	return got, crowded || g.told >= crowd
}

// Rouse ends a Sleep. It has effect from Claim on, and does not block.
func (g *Group) Rouse() {
	b := &g.berth
	b.state.Lock()
	defer b.state.Unlock()
	b.roused = true
	if b.parked {
		g.set.wake()
	}
}

// Leave gives up the right. The keeper takes over if somebody else waits for what comes;
// else it leaves the sleeper some time to return.
func (g *Group) Leave() {
	g.rota.leave()
	g.berth.Unlock()
	switch {
	case g.awaited() || g.pending.Load() > 0:
		signal(g.resume)
	case g.dormant.Load() && g.dormant.Swap(false):
		signal(g.stir)
	}
}

// rouse wakes who serves, for something that the system does not know of.
func (g *Group) rouse() {
	switch {
	case g.rota.taken():
		g.Rouse()
	case g.parked.Load():
		g.set.wake()
	}
	signal(g.resume) // nobody may poll any more
}

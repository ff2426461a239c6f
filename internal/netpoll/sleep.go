package netpoll

import "sync"

// pollerSlot is the place to sleep until a socket is ready. Its holder alone may: the background poller until it steps
// aside, or a waiter between Claim and Leave.
type pollerSlot struct {
	sync.Mutex

	state  sync.Mutex
	asleep bool // a waiter is, or looks for the last time; guarded by state, as the next ones
	parked bool // it has looked: only a wake-up ends the sleep
	woken  bool // it has not noticed
}

// begin starts a sleep, unless the sleeper has been roused already.
func (b *pollerSlot) begin() bool {
	b.state.Lock()
	defer b.state.Unlock()
	b.asleep, b.woken = !b.woken, false
	return b.asleep
}

func (b *pollerSlot) end() {
	b.state.Lock()
	b.asleep, b.parked = false, false
	b.state.Unlock()
}

// park says whether the sleeper is about to stop looking. It reports false if it has been
// roused: what it drives itself may do that, and need not wake anybody.
func (b *pollerSlot) park(on bool) bool {
	b.state.Lock()
	defer b.state.Unlock()
	b.parked = on && !b.woken
	return b.parked
}

// Claim asks for the right to Sleep, which one goroutine has at a time. It reports false if
// another has it.
func (g *Group) Claim() bool {
	g.held.looked(g)
	if g.members.Load() == 0 || !g.role.claim() {
		return false
	}
	if !g.pollerSlot.TryLock() {
		g.set.wake()
		g.pollerSlot.Lock() // the background poller is on its way out
	}
	if g.ended.Load() {
		g.Leave()
		return false
	}
	g.pollerSlot.state.Lock()
	g.pollerSlot.woken = false
	g.pollerSlot.state.Unlock()
	return true
}

// Sleep returns when something has been driven, after Rouse, and when the group is closed.
// It reports false if it cannot sleep.
func (g *Group) Sleep() bool {
	for !g.ended.Load() && g.members.Load() > 0 && g.pollerSlot.begin() {
		got, woken := g.set.sleep(g.onSleep)
		g.pollerSlot.end()
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
	g.pollerSlot.park(false)
	return g.trySleep() || !g.pollerSlot.park(true)
}

// trySleep takes the poll lock for a look, and reports whether there was anything to do. If not, the next
// arrival ends the sleep.
func (g *Group) trySleep() bool {
	got, crowded := g.look()
	if got {
		if crowded { // more will come while these are served: no wake-up is due
			g.mu.Lock()
			g.set.disarm()
			g.mu.Unlock()
		}
		return true
	}
	g.mu.Lock()
	armed := !g.ended.Load() && g.set.arm()
	g.mu.Unlock()
	if armed { // once more: what came before has woken none
		got, _ = g.look()
	}
	return got
}

// look takes the poll lock, and asks which sockets are ready. If nothing came of as many as one look tells of, it looks at
// the others too, which the system tells of next: no other wake-up comes for what is ready by now.
func (g *Group) look() (got, crowded bool) {
	g.pollLock.Lock()
	defer g.pollLock.Unlock()
	for left := g.members.Load(); left > 0 && !g.ended.Load(); left -= readyAtOnce {
		g.readyCount = 0
		if got = g.advance(false); got || g.readyCount < readyAtOnce {
			break
		}
		crowded = true
	}
	return got, crowded || g.readyCount >= crowd
}

// Rouse ends a Sleep. It has effect from Claim on, and does not block.
func (g *Group) Rouse() {
	b := &g.pollerSlot
	b.state.Lock()
	defer b.state.Unlock()
	b.woken = true
	if b.parked {
		g.set.wake()
	}
}

// Leave gives up the right. The background poller takes over if another goroutine waits for what comes;
// else it leaves the sleeper some time to return.
func (g *Group) Leave() {
	g.role.leave()
	g.pollerSlot.Unlock()
	switch {
	case g.awaited() || g.pending.Load() > 0:
		signal(g.resume)
	case g.reliesOnWaiter.Load() && g.reliesOnWaiter.Swap(false):
		signal(g.stir)
	}
}

// rouse wakes the server of the group, for something that the system does not know of.
func (g *Group) rouse() {
	g.arrived()
	signal(g.resume) // the polls may have ended
}

// arrived wakes the server of the group, for what the system would wake it for. Pollers see it by themselves.
func (g *Group) arrived() {
	switch {
	case g.role.waiter():
		g.Rouse()
	case g.bgParked.Load():
		g.set.wake()
	case g.watched.Load(): // the thread does not sleep on this
		signal(g.resume)
	}
}

package netpoll

// Claim asks for the poller slot: the right to Sleep, which one goroutine has at a time. It reports false if
// another has it.
func (g *Group) Claim() bool {
	if s := g.looked(); s.members() == 0 || !g.on(evClaim) {
		return false
	}
	g.slot.Lock() // the background poller is on its way out
	if g.now().has(ended) {
		g.Leave()
		return false
	}
	return true
}

// Sleep returns when something has been driven, after Rouse, and when the group is closed.
// It reports false if it cannot sleep.
func (g *Group) Sleep() bool {
	for g.serves() && g.on(evSleep) {
		g.flushAwake()
		got, woken := g.sleep(g.onSleep)
		g.on(evAwake)
		if got {
			g.polls.Add(1)
			break
		}
		if !woken {
			return false
		}
		g.rearm()
	}
	return g.serves()
}

// serves reports whether there are sockets.
func (g *Group) serves() bool {
	s := g.now()
	return !s.has(ended) && s.members() > 0
}

// rearm makes sleep possible again, after wake.
func (g *Group) rearm() {
	g.mu.Lock()
	g.set.rearm()
	g.mu.Unlock()
}

// tryWait is trySleep for a waiter. What it drives may rouse it, and need not wake anybody: it looks behind evPark.
func (g *Group) tryWait() bool {
	g.on(evLook)
	return g.trySleep() || !g.on(evPark)
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
	armed := !g.now().has(ended) && g.set.arm()
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
	for left := g.now().members(); left > 0 && !g.now().has(ended); left -= readyAtOnce {
		g.readyCount = 0
		if got = g.advance(false); got || g.readyCount < readyAtOnce {
			break
		}
		crowded = true
	}
	return got, crowded || g.readyCount >= crowd
}

// Rouse ends a Sleep. It has effect from Claim on, and does not block.
func (g *Group) Rouse() { g.on(evRouse) }

// Leave gives up the right. The background poller takes over if another goroutine waits for what comes;
// else it leaves the sleeper some time to return.
func (g *Group) Leave() {
	g.on(evLeave)
	g.slot.Unlock()
	if g.awaited() {
		g.on(evHandOver)
	} else {
		g.on(evLeft)
	}
}

package netpoll

import "slices"

// A thread that is not Go's may sleep by itself, in poll(2): it asks what to sleep on and, when that is ready, asks again, which
// drives the streams. So an arrival wakes that thread and no other. It holds nothing meanwhile: to the background poller it
// is a poller, of which nothing is known while it sleeps. If it sleeps for long, or never returns, that has taken over.

// Watch is Drive for such a thread. If nothing was done it adds to fds the descriptor that is ready to be read when
// there is something to do, unless it is there already, or there are no sockets. It may be closed, or another file's, by the time
// that the thread sleeps on it: it has to wait for what it wants from the group as well.
func (g *Group) Watch(fds []int) (more []int, got bool) {
	g.looked()
	g.mu.Lock()
	if !g.open || g.now().members() == 0 || slices.Contains(fds, g.set.watchable()) {
		g.mu.Unlock()
		return fds, false
	}
	g.on(evWatch)
	g.set.clearLowWater()
	fd := g.set.watchable()
	g.mu.Unlock()
	if g.driveFor() {
		return fds, true
	}
	if g.now().has(soon) { // another has the poll lock, and may not look again: the set does not tell of this
		g.on(evArrived)
	}
	if fd == none { // what comes has the background poller take over
		return fds, false
	}
	return append(fds, fd), false
}

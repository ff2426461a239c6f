package netpoll

// waker is where the holder of the poller slot sleeps while no stream of the group has a socket: Socket.arrived tells of
// what has come elsewhere.
type waker struct{ token chan struct{} }

// start is for before the first sleep.
func (w *waker) start() {
	if w.token == nil {
		w.token = make(chan struct{}, 1)
	}
}

// sleep calls try and, unless that returns true, sleeps until wake.
func (w *waker) sleep(try func() bool) (did, woken bool) {
	if try() {
		return true, false
	}
	<-w.token
	return false, true
}

func (w *waker) wake() { signal(w.token) }

func (w *waker) rearm() {
	select {
	case <-w.token:
	default:
	}
}

// sleep is that of the sets, or of the waker while there are none. The holder of the poller slot calls it.
func (g *Group) sleep(try func() bool) (did, woken bool) {
	if g.now().has(sets) {
		return g.set.sleep(try)
	}
	return g.set.waker.sleep(try)
}

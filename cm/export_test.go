package cm

import "time"

// AwaitBacklog waits until n Requests wait for Accept.
func AwaitBacklog(l *Listener, n int) {
	for len(l.reqs) != n { // there is no event to wait for
		time.Sleep(time.Millisecond)
	}
}

// Stopped is closed when the Listener has begun to stop.
func Stopped(l *Listener) <-chan struct{} { return l.in.Context().Done() }

// Held is how many connections have a place at the Listener.
func Held(l *Listener) int { return l.in.Held() }

// HandedOut is how many connections the Listener remembers.
func HandedOut(l *Listener) int {
	l.out.mu.Lock()
	defer l.out.mu.Unlock()
	return len(l.out.open)
}

// GiveUp is the end of Shutdown's time, for those whose Accept is under way.
func GiveUp(l *Listener) {
	l.out.mu.Lock()
	defer l.out.mu.Unlock()
	l.out.open, l.out.closed = nil, true
}

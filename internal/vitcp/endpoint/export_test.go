package endpoint

import (
	"sync"
	"sync/atomic"
)

// Skip has an endpoint that has not been started go on as if n receives had been posted at
// either end, told and used up.
func (e *Endpoint) Skip(n uint16) {
	e.posted, e.told, e.consumed = n, n, n
	e.peerPosted, e.spent = n, n
}

// Broken is what a write failed with before the end.
func (e *Endpoint) Broken() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.broken
}

// resting is the lock of Endpoint.work, which nobody takes by it but Wait, and nobody waits
// there but the writer.
type resting struct {
	*sync.Mutex
	yes atomic.Bool
}

func (r *resting) Unlock() {
	r.yes.Store(true)
	r.Mutex.Unlock()
}

func (r *resting) Lock() {
	r.Mutex.Lock()
	r.yes.Store(false)
}

// WriterRests returns a function that reports whether the writer waits for work. As long as
// nothing is there for it to do, all that is told the Handler is told by the reader. To be
// called before Start.
func (e *Endpoint) WriterRests() func() bool {
	if e.sock != nil {
		return e.idle
	}
	r := &resting{Mutex: &e.mu}
	e.work.L = r
	return r.yes.Load
}

// idle reports whether nobody is the writer of an endpoint that has no goroutine for it.
func (e *Endpoint) idle() bool {
	if e.tx.more.Load() || !e.tx.own.TryLock() {
		return false
	}
	e.tx.own.Unlock()
	return true
}

// ReaderWaits reports whether the reader waits for something, and has told the group.
func (e *Endpoint) ReaderWaits() bool {
	if !e.rx.own.TryLock() {
		return false
	}
	defer e.rx.own.Unlock()
	return e.rx.waits
}

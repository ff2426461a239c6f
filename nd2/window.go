package nd2

import (
	"maps"
	"slices"
	"sync"

	"github.com/softrnic/softrnic/verbs"
)

// MemoryWindow lets the peer of one queue pair read or write a piece of a region,
// from QueuePair.Bind until QueuePair.Invalidate (IND2MemoryWindow).
type MemoryWindow struct {
	a *Adapter

	// mu is held while a Bind or Invalidate of the window is posted. Within it
	// the mu of a bindings may be taken.
	mu    sync.Mutex
	v     *verbs.MW // guarded by mu, as all below
	key   uint8     // of the last Bind; differs from one to the next
	token uint32    // of the last Bind
	// qp is the queue pair of the last Bind, and ending says that an Invalidate
	// of it was posted; nil: none may have the window bound.
	qp     *QueuePair
	ending bool
}

// GetRemoteToken is the token for the peer's Reads and Writes. It is that of the
// last Bind as soon as Bind has returned (ND-Bind-M6); 0 before the first.
func (w *MemoryWindow) GetRemoteToken() uint32 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.token
}

// Close destroys the window, bound or not. When it returns nothing is read or
// written through it any more. Errors: ErrInvalidHandle (it is closed),
// ErrDeviceRemoved.
func (w *MemoryWindow) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.v.Deallocate(); err != nil {
		return explain(err)
	}
	w.bind(nil)
	return nil
}

// bind notes whom the window is bound to, with mu held.
func (w *MemoryWindow) bind(q *QueuePair) {
	w.ending = false
	if w.qp == q {
		return
	}
	if w.qp != nil {
		w.qp.bound.remove(w)
	}
	if w.qp = q; q != nil {
		q.bound.add(w)
	}
}

// free makes sure that q can bind the window (ND-Bind-M2), with mu held: it is not
// bound, or an Invalidate goes before the Bind. Where the connection has ended
// nobody can invalidate it any more: then the window is made anew.
func (w *MemoryWindow) free(q *QueuePair) error {
	switch {
	case w.qp == nil, w.qp == q && w.ending:
		return nil
	case w.qp.v.State() != verbs.StateRTS:
		return w.renew()
	case !w.ending:
		return ErrInvalidDeviceState
	}
	a, err := w.v.Query() // the Invalidate of another queue pair may have happened
	if err != nil {
		return explain(err)
	}
	if a.Valid {
		return ErrInvalidDeviceState
	}
	return nil
}

// renew takes the window from its queue pair, with mu held.
func (w *MemoryWindow) renew() error {
	fresh, err := w.a.pd.AllocateWindow()
	if err != nil {
		return explain(err)
	}
	if err := w.v.Deallocate(); err != nil {
		_ = fresh.Deallocate()
		return explain(err)
	}
	w.v = fresh
	w.bind(nil)
	return nil
}

// leave takes the window from a queue pair that is closed.
func (w *MemoryWindow) leave(q *QueuePair) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.qp == q {
		_ = w.renew() // without resources it stays, and Close of the queue pair says so
	}
}

// bindings are the windows bound to a queue pair.
type bindings struct {
	mu  sync.Mutex
	set map[*MemoryWindow]struct{} // guarded by mu
}

func (b *bindings) add(w *MemoryWindow) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.set == nil {
		b.set = map[*MemoryWindow]struct{}{}
	}
	b.set[w] = struct{}{}
}

func (b *bindings) remove(w *MemoryWindow) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.set, w)
}

// list is those there are at this moment.
func (b *bindings) list() []*MemoryWindow {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Keys(b.set))
}

package nd2

import (
	"sync"
	"sync/atomic"
)

// owner is whose slot an ID names: one of the two is set. They are no interface,
// through which a call would make its arguments escape to the heap.
type owner struct {
	ring *ring
	srq  *SharedReceiveQueue
}

const (
	ownerChunk = 256
	maxOwners  = 1 << (64 - ownerShift)
)

// owners finds an owner by number, without a lock.
type owners struct {
	chunks [maxOwners / ownerChunk]atomic.Pointer[[ownerChunk]atomic.Pointer[owner]]

	mu   sync.Mutex
	next uint64   // guarded by mu, as below
	idle []uint64 // numbers given back
}

// add gives o a number; ok is false if all are in use.
func (t *owners) add(o *owner) (number uint64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case len(t.idle) > 0:
		number = t.idle[len(t.idle)-1]
		t.idle = t.idle[:len(t.idle)-1]
	case t.next < maxOwners:
		number = t.next
		t.next++
	default:
		return 0, false
	}
	chunk := &t.chunks[number/ownerChunk]
	if chunk.Load() == nil {
		chunk.Store(new([ownerChunk]atomic.Pointer[owner]))
	}
	chunk.Load()[number%ownerChunk].Store(o)
	return number, true
}

// find is the owner of a number, nil if there is none.
func (t *owners) find(number uint64) *owner {
	chunk := t.chunks[number/ownerChunk].Load()
	if chunk == nil {
		return nil
	}
	return chunk[number%ownerChunk].Load()
}

// remove forgets a number, which may be given out again.
func (t *owners) remove(number uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.chunks[number/ownerChunk].Load()[number%ownerChunk].Store(nil)
	t.idle = append(t.idle, number)
}

// retirement is what to forget once some completion queues can have nothing of it
// any more: results of a queue pair may be retrieved after its release.
type retirement struct {
	left   atomic.Int32 // completion queues that may have something
	gone   atomic.Bool  // it has been forgotten
	forget func()
}

// over says that one queue has nothing any more.
func (r *retirement) over() {
	if r.left.Add(-1) == 0 {
		r.end()
	}
}

// end forgets, once.
func (r *retirement) end() {
	if r.gone.CompareAndSwap(false, true) {
		r.forget()
	}
}

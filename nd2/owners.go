package nd2

import "sync/atomic"

// owner is whose slot an ID names: one of the two is set. They are no interface,
// through which a call would make its arguments escape to the heap.
type owner struct {
	ring *ring
	srq  *SharedReceiveQueue
}

// disown forgets the owner of an ID, whose number may be given out again.
func (a *Adapter) disown(id uint64) {
	number := uint32(id >> ownerShift)
	a.owners.Remove(number, a.owners.Get(number))
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

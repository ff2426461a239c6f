package srq

import "github.com/softrnic/softrnic/wr"

// slabSize is how many elements are allocated at a time.
const slabSize = 64

// Element is a posted receive that a queue pair has taken. It is the queue pair's
// until its completion is in the Completion Queue; who reaps that completion, or
// drops it, calls Release.
type Element struct {
	ID     uint64
	Length uint64 // octets of all its buffers together
	SGL    []wr.SGE

	q     *Queue
	next  *Element // in posted or free; guarded by q.mu
	taken bool     // between Take and Release; guarded by q.mu
}

// Release implements cq.Releaser: the completion was reaped, and the slot can be
// posted to again (RV-6.3.5-M8). A queue pair whose completion found no room in
// the CQ calls it itself. The position is not used: slots come free in any order.
// Only the first Release after a Take does something. It is harmless after Close.
func (e *Element) Release(uint64) {
	q := e.q
	q.mu.Lock()
	defer q.mu.Unlock()
	if !e.taken {
		return
	}
	e.taken = false
	q.used--
	if !q.closed {
		q.put(e)
	}
}

// put makes an element free. mu is held.
func (q *Queue) put(e *Element) {
	e.next, q.free = q.free, e
	q.spare++
}

// get returns a free element, or nil if all slots are in use. mu is held.
func (q *Queue) get() *Element {
	if q.used == q.depth {
		return nil
	}
	if q.free == nil {
		q.grow(min(slabSize, q.depth-q.used))
	}
	e := q.free
	q.free, e.next = e.next, nil
	q.spare--
	q.used++
	return e
}

// grow adds n free elements and the storage of their lists. Queues are often made
// deeper than they are ever filled, so slabs come as they are needed. mu is held.
func (q *Queue) grow(n int) {
	elements := make([]Element, n)
	sges := make([]wr.SGE, n*q.sge)
	for i := range elements {
		e := &elements[i]
		e.q = q
		e.SGL, sges = sges[:0:q.sge], sges[q.sge:]
		q.put(e)
	}
}

// trim drops free elements that are more than depth allows, which is at least used.
// mu is held.
func (q *Queue) trim() {
	for q.used+q.spare > q.depth {
		q.free = q.free.next
		q.spare--
	}
}

// fifo is a queue of elements, linked through next.
type fifo struct {
	head, tail *Element
	n          int
}

func (f *fifo) push(e *Element) {
	if f.tail == nil {
		f.head = e
	} else {
		f.tail.next = e
	}
	f.tail = e
	f.n++
}

// pop returns the oldest element, or nil.
func (f *fifo) pop() *Element {
	e := f.head
	if e == nil {
		return nil
	}
	f.head, e.next = e.next, nil
	if f.head == nil {
		f.tail = nil
	}
	f.n--
	return e
}

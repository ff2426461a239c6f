package qp

import "sync/atomic"

// slots is the ring of a work queue's elements: position p lives in slot
// p&mask. Modify QP replaces the ring, never an element that is in use, so that
// the other sides of the queue go on without a lock.
//
// Posters read it, and one replaces it, under the queue's postMu. The others ask
// for positions below a tail that they have loaded before: a ring that is
// published before tail moves has all of these.
type slots[E any] struct {
	ring atomic.Pointer[[]*E] // its length is a power of two
}

// init makes a ring for n elements at least; create makes elements.
func (s *slots[E]) init(n int, create func(n int) []*E) {
	ring := create(ringSize(n))
	s.ring.Store(&ring)
}

// at is the element of position pos.
func (s *slots[E]) at(pos uint64) *E {
	ring := *s.ring.Load()
	return ring[pos&uint64(len(ring)-1)]
}

// depth is how many elements the ring has.
func (s *slots[E]) depth() int { return len(*s.ring.Load()) }

// resize makes the ring one for n elements at least. Positions from up to to are
// in use and keep their elements; they are n at most. The caller has postMu.
func (s *slots[E]) resize(n int, from, to uint64, create func(n int) []*E) {
	old, size := *s.ring.Load(), uint64(ringSize(n))
	if size == uint64(len(old)) {
		return
	}
	ring := make([]*E, size)
	for pos := from; pos < to; pos++ {
		ring[pos&(size-1)] = s.at(pos)
	}
	// The other slots get what the old ring has left, then new elements.
	idle, end := to, from+uint64(len(old))
	var fresh []*E
	if size > uint64(len(old)) {
		fresh = create(int(size) - len(old))
	}
	for pos := to; pos < from+size; pos++ {
		if idle < end {
			ring[pos&(size-1)] = s.at(idle)
			idle++
			continue
		}
		ring[pos&(size-1)], fresh = fresh[0], fresh[1:]
	}
	s.ring.Store(&ring)
}

// ringSize rounds a depth up to a power of two, so that a position becomes a
// slot with a mask. The queue is then deeper than asked for, which Create QP
// may be (verbs draft 6.1.1).
func ringSize(depth int) int {
	n := 1
	for n < depth {
		n <<= 1
	}
	return n
}

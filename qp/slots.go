package qp

import (
	"sync"
	"sync/atomic"

	"github.com/softrnic/softrnic/cq"
	"github.com/softrnic/softrnic/wr"
)

// workQueue is what the Send and the Receive Queue have in common: which slots are
// free. Positions count from 0 and never wrap; see slots for where an element is.
//
//	freed <= done <= tail <= freed+slots.depth()
//	  |        |        +-- posted: next to fill
//	  |        +-- completed: next to complete
//	  +-- reusable: next slot to give back
//
// tail is moved by posters under postMu, done by who completes, reaped by who polls
// the CQ.
type workQueue[E any] struct {
	slots   slots[slot[E]]
	sges    int // room for the list of each element
	keep    func(*E, []wr.SGE)
	cq      *cq.Queue
	qp      wr.QPID
	context any // for completions

	tail   atomic.Uint64
	done   atomic.Uint64
	reaped atomic.Uint64 // behind the last completion polled

	postMu sync.Mutex
	freed  uint64     // guarded by postMu, as the next two
	most   uint64     // posted and not completed there have been
	full   *wr.Reason // of refuseFull, or nil
}

// slot has an element, and whether a completion of it waits to be reaped, which is
// said before done passes.
type slot[E any] struct {
	element E
	queued  bool
}

// init makes room for depth elements at least, each with a list of up to sges; keep
// gives one the storage for a list of one. A longer list gets its storage when an element
// has its first such list, and the element keeps it: most lists have one.
func (q *workQueue[E]) init(depth, sges int, keep func(*E, []wr.SGE)) {
	q.sges, q.keep = sges, keep
	q.slots.init(depth)
}

// take is the slot to fill at tail, with postMu held.
func (q *workQueue[E]) take(tail uint64) *slot[E] {
	s := q.slots.at(tail)
	if s == nil {
		q.slots.fill(q.elements)
		s = q.slots.at(tail)
	}
	s.queued = false
	return s
}

func (q *workQueue[E]) elements(n int) []slot[E] {
	list := make([]slot[E], n)
	first := min(q.sges, 1)
	sges := make([]wr.SGE, n*first)
	for i := range list {
		q.keep(&list[i].element, sges[:0:first])
		sges = sges[first:]
	}
	return list
}

func (q *workQueue[E]) at(pos uint64) *E { return &q.slots.at(pos).element }

// Release implements cq.Releaser: the slots behind an element whose completion is
// reaped are free up to it, those of unsignaled ones too (verbs draft 8.2.1).
func (q *workQueue[E]) Release(pos uint64) { q.reaped.Store(pos + 1) }

// reclaim takes back the slots that are free, and reports how many are in use, with
// postMu held. The slot of an element without a completion, for it was unsignaled or the
// CQ was full, is free when it is done.
func (q *workQueue[E]) reclaim() uint64 {
	// A completion may be reaped before done has moved over it.
	done, reaped := q.done.Load(), q.reaped.Load()
	for q.freed < reaped || q.freed < done && !q.slots.at(q.freed).queued {
		q.freed++
	}
	return q.tail.Load() - q.freed
}

// room reports whether a slot is free, with postMu held.
func (q *workQueue[E]) room(tail uint64) bool {
	depth := uint64(q.slots.depth())
	return tail-q.freed < depth || q.reclaim() < depth
}

// spare reports how many elements can be posted now.
func (q *workQueue[E]) spare() int {
	q.postMu.Lock()
	defer q.postMu.Unlock()
	return q.slots.depth() - int(q.reclaim())
}

// deepened notes how full a post has made the queue, with postMu held.
func (q *workQueue[E]) deepened() { q.most = max(q.most, q.tail.Load()-q.done.Load()) }

// resize makes the queue one of depth elements at least, with postMu held. reclaim must
// have reported depth or less (RV-6.1.3-M10).
func (q *workQueue[E]) resize(depth int) {
	q.slots.resize(depth, q.freed)
	q.full = nil
}

// slots is the ring of a work queue's elements: position p lives in slot
// p&mask. Modify QP replaces the ring, never an element that is in use, so that
// the other sides of the queue go on without a lock. Elements are made when the first is
// needed: many a queue is never posted to.
//
// Posters read it, and one fills or replaces it, under the queue's postMu. The others ask
// for positions below a tail that they have loaded before: a ring that is
// published, or an element that is made, before tail moves is there for all of these.
type slots[E any] struct {
	ring atomic.Pointer[[]*E] // its length is a power of two
}

// init makes a ring for n elements at least.
func (s *slots[E]) init(n int) {
	ring := make([]*E, ringSize(n))
	s.ring.Store(&ring)
}

// fill makes the elements that are missing; create makes n of them.
func (s *slots[E]) fill(create func(n int) []E) {
	ring := *s.ring.Load()
	missing := 0
	for _, e := range ring {
		if e == nil {
			missing++
		}
	}
	fresh := create(missing)
	for i, e := range ring {
		if e == nil {
			ring[i], fresh = &fresh[0], fresh[1:]
		}
	}
}

// at is the element of position pos, nil if it is not in use and not made.
func (s *slots[E]) at(pos uint64) *E {
	ring := *s.ring.Load()
	return ring[pos&uint64(len(ring)-1)]
}

// depth is how many elements the ring has room for.
func (s *slots[E]) depth() int { return len(*s.ring.Load()) }

// resize makes the ring one for n elements at least. Positions from from on are in use, n at
// most, and keep their elements. The caller has postMu.
func (s *slots[E]) resize(n int, from uint64) {
	old, size := *s.ring.Load(), uint64(ringSize(n))
	if size == uint64(len(old)) {
		return
	}
	ring := make([]*E, size)
	for pos := from; pos < from+min(size, uint64(len(old))); pos++ {
		ring[pos&(size-1)] = s.at(pos)
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

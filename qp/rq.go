package qp

import (
	"sync"
	"sync/atomic"

	"github.com/softrnic/softrnic/cq"
	"github.com/softrnic/softrnic/wr"
)

// rqe is an element of the Receive Queue.
type rqe struct {
	id     uint64
	length uint64   // octets of all its buffers together
	sgl    []wr.SGE // its storage belongs to the element
	queued bool     // a completion waits to be reaped; set before head passes
}

// recvQueue is a ring of posted receives; positions as in sendQueue.
//
//	freed <= head <= next <= tail <= freed+slots.depth()
//
// tail is moved by posters under postMu, head and next by the receive side, reaped by
// who polls the CQ. With an S-RQ nothing is ever posted here; the CQ is used all
// the same.
type recvQueue struct {
	slots   slots[rqe]
	maxSGE  int
	cq      *cq.Queue
	qp      wr.QPID
	context any // for completions

	tail   atomic.Uint64
	head   atomic.Uint64 // the first element whose completion the CQ has not got
	next   uint64        // the element that the next, or current, Send fills; receive side
	reaped atomic.Uint64

	postMu sync.Mutex
	freed  uint64 // guarded by postMu
}

func (r *recvQueue) init(c *Config, depth, maxSGE int) {
	r.maxSGE, r.cq, r.qp, r.context = maxSGE, c.RecvCQ, c.ID, c.Context
	r.slots.init(depth, r.elements)
}

// elements makes n elements with room for their lists.
func (r *recvQueue) elements(n int) []*rqe {
	elems, sges := make([]rqe, n), make([]wr.SGE, n*r.maxSGE)
	list := make([]*rqe, n)
	for i := range list {
		list[i] = &elems[i]
		list[i].sgl, sges = sges[:0:r.maxSGE], sges[r.maxSGE:]
	}
	return list
}

// Release implements cq.Releaser. Every receive is signaled, so slots come back
// in order.
func (r *recvQueue) Release(pos uint64) { r.reaped.Store(pos + 1) }

// reclaim takes back the slots whose completions were reaped, or were dropped
// because the CQ was full, and reports how many are in use. The caller has
// postMu. A completion may be reaped before handed has moved head over it.
func (r *recvQueue) reclaim() uint64 {
	head, reaped := r.head.Load(), r.reaped.Load()
	for r.freed < reaped || r.freed < head && !r.slots.at(r.freed).queued {
		r.freed++
	}
	return r.tail.Load() - r.freed
}

// room reports whether a slot is free, with postMu held.
func (r *recvQueue) room(tail uint64) bool {
	depth := uint64(r.slots.depth())
	return tail-r.freed < depth || r.reclaim() < depth
}

// resize makes the queue one of depth receives at least, with postMu held.
// reclaim must have reported depth or less (RV-6.1.3-M10).
func (r *recvQueue) resize(depth int) {
	r.slots.resize(depth, r.freed, r.tail.Load(), r.elements)
}

// push posts one receive, with postMu held.
func (r *recvQueue) push(w *wr.Recv) error {
	if err := checkList(w.SGL, r.maxSGE); err != nil {
		return err
	}
	tail := r.tail.Load()
	if !r.room(tail) {
		return wr.ErrQueueFull
	}
	e := r.slots.at(tail)
	e.id, e.length, e.queued = w.ID, 0, false
	e.sgl = append(e.sgl[:0], w.SGL...)
	for i := range w.SGL {
		e.length += uint64(w.SGL[i].Length)
	}
	r.tail.Store(tail + 1)
	return nil
}

// posted is how many receives are not taken. Receive side.
func (r *recvQueue) posted() int { return int(r.tail.Load() - r.next) }

// current is the element for the next Send, nil if none is posted. Receive side.
func (r *recvQueue) current() *rqe {
	if r.next == r.tail.Load() {
		return nil
	}
	return r.slots.at(r.next)
}

// complete finishes the current element. The receive side hands its completion to
// the CQ, and then says so (handed).
func (r *recvQueue) complete(c wr.Completion, solicited bool) cq.Entry {
	e := r.slots.at(r.next)
	e.queued = true
	c.ID, c.QP, c.Op = e.id, r.qp, wr.OpRecv
	c.Context = r.context
	r.next++
	return cq.Entry{Completion: c, Owner: r, Pos: r.next - 1, Solicited: solicited}
}

// refused says that the CQ had no room for the completion of pos.
func (r *recvQueue) refused(pos uint64) { r.slots.at(pos).queued = false }

// handed says that the CQ has got, or refused, all completions.
func (r *recvQueue) handed() { r.head.Store(r.next) }

// flush completes everything left: the first with status, the others as
// Flushed. No new element can come in, and the receive side does not run.
func (r *recvQueue) flush(status wr.Status) {
	for r.current() != nil {
		if e := r.complete(wr.Completion{Status: status}, false); !r.cq.Push(e) {
			r.refused(e.Pos)
		}
		status = wr.StatusFlushed
	}
	r.handed()
}

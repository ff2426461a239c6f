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
	length uint64 // octets of all its buffers together
	nsge   uint8
	queued bool // a completion waits to be reaped; set before head passes
}

// recvQueue is a ring of posted receives; positions as in sendQueue.
//
//	freed <= head <= tail <= freed+len(slots)
//
// tail is moved by posters under postMu, head by the receive side, reaped by
// who polls the CQ.
type recvQueue struct {
	slots  []rqe
	sges   []wr.SGE
	mask   uint64
	maxSGE int
	cq     *cq.Queue
	qp     wr.QPID

	tail   atomic.Uint64
	head   atomic.Uint64 // the element that the next, or current, Send fills
	reaped atomic.Uint64

	postMu sync.Mutex
	freed  uint64 // guarded by postMu
}

func (r *recvQueue) init(id wr.QPID, depth, maxSGE int, q *cq.Queue) {
	n := ringSize(depth)
	r.slots = make([]rqe, n)
	r.sges = make([]wr.SGE, n*maxSGE)
	r.mask, r.maxSGE, r.cq, r.qp = uint64(n-1), maxSGE, q, id
}

func (r *recvQueue) list(pos uint64) []wr.SGE {
	i := int(pos&r.mask) * r.maxSGE
	return r.sges[i : i+int(r.slots[pos&r.mask].nsge)]
}

// Release implements cq.Releaser. Every receive is signaled, so slots come back
// in order.
func (r *recvQueue) Release(pos uint64) { r.reaped.Store(pos + 1) }

// room reports whether a slot is free, with postMu held: its completion was
// reaped, or was dropped because the CQ was full.
func (r *recvQueue) room(tail uint64) bool {
	if tail-r.freed <= r.mask {
		return true
	}
	head, reaped := r.head.Load(), r.reaped.Load()
	for r.freed < reaped || r.freed < head && !r.slots[r.freed&r.mask].queued {
		r.freed++
	}
	return tail-r.freed <= r.mask
}

// push posts one receive, with postMu held.
func (r *recvQueue) push(w *wr.Recv) error {
	if len(w.SGL) > r.maxSGE {
		return wr.ErrInvalidSGLLength
	}
	tail := r.tail.Load()
	if !r.room(tail) {
		return wr.ErrQueueFull
	}
	e := &r.slots[tail&r.mask]
	e.id, e.nsge, e.length, e.queued = w.ID, uint8(len(w.SGL)), 0, false
	copy(r.sges[int(tail&r.mask)*r.maxSGE:], w.SGL)
	for i := range w.SGL {
		e.length += uint64(w.SGL[i].Length)
	}
	r.tail.Store(tail + 1)
	return nil
}

// current is the element for the next Send, if one is posted. Receive side.
func (r *recvQueue) current() (pos uint64, e *rqe, ok bool) {
	pos = r.head.Load()
	if pos == r.tail.Load() {
		return 0, nil, false
	}
	return pos, &r.slots[pos&r.mask], true
}

// complete finishes the current element. It reports false if the CQ had no
// room. Receive side.
func (r *recvQueue) complete(c wr.Completion, solicited bool) bool {
	pos := r.head.Load()
	e := &r.slots[pos&r.mask]
	c.ID, c.QP, c.Op = e.id, r.qp, wr.OpRecv
	e.queued = true
	ok := r.cq.Push(cq.Entry{Completion: c, Owner: r, Pos: pos, Solicited: solicited})
	if !ok {
		e.queued = false
	}
	r.head.Store(pos + 1)
	return ok
}

// flush completes everything left: the first with status, the others as
// Flushed. No new element can come in, and the receive side does not run.
func (r *recvQueue) flush(status wr.Status) {
	for r.head.Load() != r.tail.Load() {
		r.complete(wr.Completion{Status: status}, false)
		status = wr.StatusFlushed
	}
}

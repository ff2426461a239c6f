package qp

import (
	"github.com/softrnic/softrnic/cq"
	"github.com/softrnic/softrnic/internal/misfit"
	"github.com/softrnic/softrnic/internal/tally"
	"github.com/softrnic/softrnic/wr"
)

// rqe is an element of the Receive Queue.
type rqe struct {
	id     uint64
	length uint64   // octets of all its buffers together
	sgl    []wr.SGE // its storage belongs to the element
}

// recvQueue is the posted receives. done is moved by the receive side, which has next
// between it and tail. With an S-RQ nothing is ever posted here; the CQ is used all the
// same.
type recvQueue struct {
	workQueue[rqe]
	next uint64 // the element that the next, or current, Send fills; receive side
	// statuses are of the receives of an S-RQ too. The receive side's; without a session, of
	// who has the queue pair's mu.
	statuses tally.Statuses
}

func (r *recvQueue) init(c *Config, depth, maxSGE int) {
	r.cq, r.qp, r.context = c.RecvCQ, c.ID, c.Context
	r.workQueue.init(depth, maxSGE, func(e *rqe, list []wr.SGE) { e.sgl = list })
}

// push posts one receive, with postMu held.
func (r *recvQueue) push(w *wr.Recv) error {
	if err := misfit.CheckList(w.SGL, r.sges); err != nil {
		return err
	}
	tail := r.tail.Load()
	if !r.room(tail) {
		return r.refuseFull(wr.OpRecv)
	}
	e := &r.take(tail).element
	e.id, e.length = w.ID, 0
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
	return r.at(r.next)
}

// complete finishes the current element. The receive side hands its completion to
// the CQ, and then says so (handed).
func (r *recvQueue) complete(c wr.Completion, solicited bool) cq.Entry {
	slot := r.slots.at(r.next)
	slot.queued = true
	r.statuses.Add(c.Status)
	c.ID, c.QP, c.Op = slot.element.id, r.qp, wr.OpRecv
	c.Context = r.context
	r.next++
	return cq.Entry{Completion: c, Owner: r, Pos: r.next - 1, Solicited: solicited}
}

// refused says that the CQ had no room for the completion of pos.
func (r *recvQueue) refused(pos uint64) { r.slots.at(pos).queued = false }

// handed says that the CQ has got, or refused, all completions.
func (r *recvQueue) handed() { r.done.Store(r.next) }

// flush completes everything left: the first with status and the number of its
// reason, the others as Flushed. No new element can come in, and the receive side does not run.
func (r *recvQueue) flush(status wr.Status, number uint64) {
	for r.current() != nil {
		if e := r.complete(wr.Completion{Status: status, Value: number}, false); !r.cq.Push(e) {
			r.refused(e.Pos)
		}
		status, number = wr.StatusFlushed, 0
	}
	r.handed()
}

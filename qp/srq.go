package qp

import (
	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/wr"
)

// What the watchdog of an S-RQ sees of a session (srq/watch.go): how far the message is
// that fills a receive of it.

func (r *receiver) joinShared() {
	if shared := r.cfg.SRQ; shared != nil {
		shared.Join(r)
	}
}

func (r *receiver) leaveShared() {
	if shared := r.cfg.SRQ; shared != nil {
		shared.Leave(r)
	}
}

// PartialReceive implements srq.Stream: the MSN of the message, and how many of its octets are
// placed.
func (r *receiver) PartialReceive() uint64 { return r.filling.Load() }

// Holds implements srq.Waiter. noteFilling says more behind the read.
func (r *receiver) Holds() { r.filling.Store(uint64(r.send.MSN())<<32 + 1) }

// Stalled implements srq.Stream.
func (r *receiver) Stalled() {
	if r.loss != nil {
		r.loss.stalled.Store(true)
		r.Wake()
		return
	}
	r.s.fail(faultStalled)
}

// noteFilling, for a queue pair with an S-RQ, takes down how far the message in progress is, behind every read. The
// caller owns the receive side.
func (r *receiver) noteFilling() {
	before, now := r.filling.Load(), uint64(0)
	if r.recv.open {
		placed := uint64(r.send.MO())
		if t := &r.in.placement; t.state == underWay && t.hlen == ddp.UntaggedHeader { // not of a tagged one
			placed += t.at
		}
		now = uint64(r.send.MSN())<<32 + placed + 1
	}
	if now != before {
		r.filling.Store(now)
	}
	if now != 0 {
		r.cfg.SRQ.Fills() // behind the number: see watch.stalled
	}
}

// checkRQLimit raises the event when a receive has been taken. A message is in
// progress from then until its completion. The LLP delivers in order, and a
// message ends before the next one begins, so one is all there ever is: only a
// limit of 0 can be exceeded. Creating a queue pair does not arm that one
// (RV-6.3.8-M15), Modify QP does.
func (r *receiver) checkRQLimit() {
	const inProgress = 1
	if r.s.q.rqLimit.exceeded(inProgress) {
		r.s.q.raise(wr.EventRQLimit, nil)
	}
}

// checkLimit finds the Immediate Errors of a new QP RQ Limit; nil keeps the old.
func (q *QP) checkLimit(limit *int, arm bool) error {
	switch {
	case limit == nil && !arm:
		return nil
	case q.cfg.SRQ == nil:
		return &wr.Reason{Err: wr.ErrInvalidModifier, What: "there is no S-RQ for a QP RQ Limit", Remedy: "set QPConfig.SRQ"}
	case limit == nil:
		return nil
	}
	return q.cfg.SRQ.CheckRQLimit(*limit)
}

// setLimit changes what checkLimit has found good, in Idle: no receive side runs.
// A new limit leaves it armed or not, as it was.
func (q *QP) setLimit(limit *int, arm bool) {
	now, armed := q.rqLimit.get()
	if limit != nil {
		now = *limit
	}
	q.rqLimit.set(now, armed || arm)
}

package qp

import (
	"sync/atomic"

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

// Filling implements srq.Filler: the MSN of the message, and how many of its octets are
// placed.
func (r *receiver) Filling() uint64 { return r.filling.Load() }

// Stalled implements srq.Filler.
func (r *receiver) Stalled() { r.s.fail(faultStalled) }

// noteFilling takes down how far the message in progress is, behind every read. The
// caller owns the receive side.
func (r *receiver) noteFilling() {
	shared := r.cfg.SRQ
	if shared == nil {
		return
	}
	before, now := r.filling.Load(), uint64(0)
	if r.landing.open {
		placed := uint64(r.send.MO())
		if t := &r.in.transit; t.state == underWay && t.hlen == ddp.UntaggedHeader { // not of a tagged one
			placed += t.at
		}
		now = uint64(r.send.MSN())<<32 + placed + 1
	}
	if now != before {
		r.filling.Store(now)
	}
	if now != 0 {
		shared.Fills() // behind the number: see watch.stalled
	}
}

// rqLimit is the QP RQ Limit of a queue pair with an S-RQ and whether it is armed
// (verbs draft 6.3.8). The two are one word, so that the receive side sees them
// together: limit<<1, and 1 if armed.
type rqLimit struct{ word atomic.Int64 }

// set changes the limit. The RNIC and Modify QP check its range.
func (l *rqLimit) set(limit int, armed bool) {
	word := int64(limit) << 1
	if armed {
		word |= 1
	}
	l.word.Store(word)
}

func (l *rqLimit) get() (limit int, armed bool) {
	word := l.word.Load()
	return int(word >> 1), word&1 != 0
}

// exceeded reports whether it is armed and messages are more than the limit, and
// disarms it then: the event comes once for each arming.
func (l *rqLimit) exceeded(messages int) bool {
	word := l.word.Load()
	return word&1 != 0 && int64(messages) > word>>1 && l.word.CompareAndSwap(word, word&^1)
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

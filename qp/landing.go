package qp

import (
	"github.com/softrnic/softrnic/cq"
	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/srq"
	"github.com/softrnic/softrnic/stag"
	"github.com/softrnic/softrnic/trace"
	"github.com/softrnic/softrnic/wr"
)

// inSend places a segment of a Send and, behind the last one, completes the
// receive it has filled. Immediate Data takes a receive as a Send does, and leaves its
// buffers alone (RFC 7306 6.3): package rdmap has seen that it is one segment of eight
// octets. wait says that nothing has been done, because the segment has to wait for a
// receive.
func (r *receiver) inSend(op rdmap.Opcode, seg ddp.Segment) (c *cause, wait bool) {
	if r.inWhole(op, seg) {
		return nil, false
	}
	l := &r.landing
	if seg.MSN() == r.send.MSN() { // else no receive is taken for it
		if l.open && op != l.op {
			return inboundCause(faultOpcode, seg), false // RFC 5041 5.2: one message, one opcode
		}
		if !l.open {
			f, wait := r.openLanding(op)
			if wait {
				return nil, true
			}
			if f != noFault {
				return &cause{fault: f}, false // not the segment's: its headers are not repeated
			}
		}
	}
	mo, room, immediate := r.send.MO(), l.length, op.IsImmediate()
	if immediate {
		room = rdmap.ImmediateSize
	}
	if f := r.sendFault(seg, r.send.Accept(seg, room, l.open)); f != noFault {
		c := inboundCause(f, seg)
		c.recv = f == faultSendTooLong
		return c, false
	}
	if immediate {
		r.completed(r.closeLanding(immediateData(seg), op.Solicited()))
		return nil, false
	}
	if f := r.scatter(seg); f != noFault {
		return &cause{fault: f, recv: true}, false
	}
	if r.cfg.Trace != nil && seg.Size() > 0 {
		r.s.q.tellSegment(trace.Placed, seg, seg.Size())
	}
	if seg.Last() {
		return r.sendDone(op, seg, mo+uint64(seg.Size())), false
	}
	return nil, false
}

// immediateData is what the completion of a receive says of Immediate Data (RFC 7306 6.1).
func immediateData(seg ddp.Segment) wr.Completion {
	data, _ := rdmap.ParseImmediate(seg.Payload()) // its length has been checked
	return wr.Completion{Value: data, HasImmediate: true}
}

// inWhole handles the usual Send: all of it is in this segment, and goes to the one
// buffer of a receive of this queue pair, or is Immediate Data. It reports false, having done nothing, if
// it is not that, or if anything is wrong with it. A landing is open if segments came
// before, or the payload was placed on its way (transit.go).
func (r *receiver) inWhole(op rdmap.Opcode, seg ddp.Segment) bool {
	rq := r.rq
	e := rq.current()
	if e == nil || r.landing.open || op.Invalidates() || !r.send.Whole(seg) {
		return false
	}
	if op.IsImmediate() {
		r.send.Pass()
		r.completed(rq.complete(immediateData(seg), op.Solicited()))
		return true
	}
	if len(e.sgl) != 1 {
		return false
	}
	g, payload := &e.sgl[0], seg.Payload()
	if len(payload) > int(g.Length) {
		return false
	}
	if len(payload) > 0 {
		ref, f := r.sinks.Resolve(g.STag, g.TO, uint64(len(payload)))
		if f != stag.OK || !ref.CopyIn(0, payload) {
			return false
		}
		if r.cfg.Trace != nil {
			r.s.q.tellSegment(trace.Placed, seg, len(payload))
		}
	}
	r.send.Pass()
	r.completed(rq.complete(wr.Completion{Bytes: uint32(len(payload))}, op.Solicited()))
	return true
}

// sendFault maps what package ddp refuses of a segment of a Send.
func (r *receiver) sendFault(seg ddp.Segment, c ddp.Code) fault {
	switch c {
	case ddp.CodeOK:
		return noFault
	case ddp.CodeNoBuffer:
		return faultNoReceive
	case ddp.CodeMSNRange:
		if ahead(seg, r.send.MSN(), r.receives()) {
			return faultSendMSNGap
		}
		return faultSendMSNRange
	case ddp.CodeTooLong:
		return faultSendTooLong
	default: // the MO: ddp.Inbound has no other
		return faultSendMO
	}
}

// receives is how many Sends there are receives for, as far as a queue pair can
// tell: an S-RQ may have as many as it is deep.
func (r *receiver) receives() int {
	if shared := r.cfg.SRQ; shared != nil {
		return shared.Query().Depth
	}
	return r.rq.posted()
}

// sendDone completes the receive of a Send of n octets, whose last segment is
// placed.
func (r *receiver) sendDone(op rdmap.Opcode, last ddp.Segment, n uint64) *cause {
	c := wr.Completion{Bytes: uint32(n)}
	if op.Invalidates() {
		c.Invalidated, c.HasInvalidated = wr.STag(last.RsvdULP32()), true
		// RFC 5040 5.3, draft 8.2.2.1 rule 1: after delivery, before the
		// completion is seen.
		if f := r.invalidate(c.Invalidated); f != noFault {
			bad := inboundCause(f, last)
			bad.recv = true
			bad.why.STag, bad.why.HasSTag, bad.why.Asked = c.Invalidated, true, wr.Octets{}
			return bad
		}
		r.count.invalidates++
	}
	r.completed(r.closeLanding(c, op.Solicited()))
	return nil
}

// invalidate does what an inbound Send with Invalidate asks for. The queue pair's
// rights come first: a peer without any learns nothing about an STag.
func (r *receiver) invalidate(t wr.STag) fault {
	if r.rights.noRead.Load() && r.rights.noWrite.Load() { // RV-7.8-M15
		return faultSendInvAccess
	}
	return memoryFault(sideInvalidateRemote, r.cfg.STags.InvalidateRemote(t, r.s.user))
}

// landing is the receive that the Send in progress fills, wherever it comes
// from: the head of the Receive Queue, or an element of the S-RQ, which is this
// queue pair's from the message's first segment to its completion (verbs draft
// 6.3.5). Owned by the receive side.
type landing struct {
	open    bool // a receive is taken, its message not complete
	op      rdmap.Opcode
	id      uint64
	length  uint64 // octets of all its buffers together
	sgl     []wr.SGE
	element *srq.Element // nil: it is the head of the Receive Queue

	// Where the next octet goes.
	sge int
	off uint64
}

// openLanding takes a receive for a message of kind op. Without a fault, and if
// it need not wait for one to be posted, it leaves the landing closed when there
// is none.
func (r *receiver) openLanding(op rdmap.Opcode) (f fault, wait bool) {
	for asked := false; ; asked = true {
		ok, failed := r.takeReceive(op)
		switch {
		case failed:
			return faultSRQ, false // RV-6.3.6-M6
		case ok || !r.cfg.GracefulReceive:
			return noFault, false
		case asked:
			return noFault, true
		}
		r.askForFeed() // then look again: one may have been posted just before
	}
}

func (r *receiver) takeReceive(op rdmap.Opcode) (ok, failed bool) {
	l, shared := &r.landing, r.cfg.SRQ
	if shared == nil {
		e := r.rq.current()
		if e == nil {
			return false, false
		}
		l.take(op, e.id, e.length, e.sgl, nil)
		return true, false
	}
	e, failed := shared.TakeFor(r)
	if e == nil {
		return false, failed
	}
	l.take(op, e.ID, e.Length, e.SGL, e)
	r.checkRQLimit()
	return true, false
}

func (l *landing) take(op rdmap.Opcode, id, length uint64, sgl []wr.SGE, e *srq.Element) {
	l.open, l.op, l.id, l.length, l.sgl, l.element = true, op, id, length, sgl, e
	l.sge, l.off = 0, 0
}

// scatter puts the payload of a segment into the landing, behind what came before,
// if it is not there yet. Accept has seen to it that there is room.
func (r *receiver) scatter(seg ddp.Segment) fault {
	l, p := &r.landing, seg.Payload()
	for left := uint64(seg.Size()); left > 0; {
		g := &l.sgl[l.sge]
		n := min(left, uint64(g.Length)-l.off)
		if n > 0 {
			to := g.TO + l.off
			if to < g.TO {
				return faultRQWrap
			}
			ref, f := r.sinks.Resolve(g.STag, to, n)
			if f != stag.OK {
				return memoryFault(sideRQ, f)
			}
			if !seg.IsPlaced() {
				if !ref.CopyIn(0, p[:n]) {
					return memoryFault(sideRQ, ref.Lost())
				}
				p = p[n:]
			}
			left -= n
		}
		if l.off += n; l.off == uint64(g.Length) {
			l.sge++
			l.off = 0
		}
	}
	return noFault
}

// closeLanding completes the receive of the message in progress. The completion is
// for the CQ.
func (r *receiver) closeLanding(c wr.Completion, solicited bool) cq.Entry {
	l, rq := &r.landing, r.rq
	l.open = false
	if l.element == nil {
		return rq.complete(c, solicited)
	}
	rq.statuses.Add(c.Status)
	c.ID, c.QP, c.Op = l.id, rq.qp, wr.OpRecv
	c.Context = rq.context
	return cq.Entry{Completion: c, Owner: l.element, Solicited: solicited}
}

// flushReceives completes the receives that this queue pair has: the one of the
// message in progress with status and the number of its reason, the others as Flushed. Receives of an S-RQ
// that were not taken stay there (RV-6.3.6-M7). The caller owns the receive side,
// and posts are refused.
func (r *receiver) flushReceives(status wr.Status, number uint64) {
	if r.cfg.SRQ == nil {
		r.landing.open = false
		r.rq.flush(status, number)
		return
	}
	if r.landing.open {
		r.hand([]cq.Entry{r.closeLanding(wr.Completion{Status: status, Value: number}, false)})
	}
}

// Receives that complete because of what one read has brought go to the CQ together,
// completedAtOnce at a time.
const completedAtOnce = 48

// completed takes the completion of a receive for the CQ. It is there when deliver
// returns. The caller owns the receive side; there is a buffer, because the end of
// each FPDU comes through it.
func (r *receiver) completed(e cq.Entry) {
	in := &r.in
	in.buf.completed[in.completed] = e
	if in.completed++; in.completed == completedAtOnce {
		r.handCompleted()
	}
}

// handCompleted puts into the CQ what completed has kept back.
func (r *receiver) handCompleted() {
	in := &r.in
	if in.completed == 0 {
		return
	}
	list := in.buf.completed[:in.completed]
	r.hand(list)
	clear(list)
	in.completed = 0
}

// hand puts completions of receives into the CQ. Where it has no room, the receives
// come free and the stream ends.
func (r *receiver) hand(list []cq.Entry) {
	r.tell()
	rq := r.rq
	n := rq.cq.PushAll(list)
	for _, e := range list[n:] { // nobody will reap it
		if e.Owner == rq {
			rq.refused(e.Pos)
		} else {
			e.Owner.Release(e.Pos)
		}
	}
	rq.handed()
	if n < len(list) {
		r.s.fail(faultRQCompletion)
	}
}

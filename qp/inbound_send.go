package qp

import (
	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/internal/cq"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/srq"
	"github.com/softrnic/softrnic/stag"
	"github.com/softrnic/softrnic/wr"
)

// inSend places a segment of a Send and, behind the last one, completes the
// receive it has filled. Immediate Data takes a receive as a Send does, and leaves its
// buffers alone (RFC 7306 6.3): package rdmap has seen that it is one segment of eight
// octets. wait says that nothing has been done, because the segment has to wait for a
// receive.
func (r *receiver) inSend(op rdmap.Opcode, seg ddp.Segment) (f streamFault, wait bool) {
	if r.inWhole(op, seg) {
		return noFault, false
	}
	l := &r.recv
	if seg.MSN() == r.send.MSN() { // else no receive is taken for it
		if l.open && op != l.op {
			return faultOpcode, false // RFC 5041 5.2: one message, one opcode
		}
		if !l.open {
			if f, wait = r.openRecv(op, seg.Last()); wait || f != noFault {
				return f, wait
			}
		}
	}
	mo, room, immediate := r.send.MO(), l.length, op.IsImmediate()
	if immediate {
		room = rdmap.ImmediateSize
	}
	if f := r.sendFault(seg, r.send.Accept(seg, room, l.open)); f != noFault {
		return f, false
	}
	if immediate {
		r.completed(r.closeRecv(immediateData(seg), op.Solicited()))
		return noFault, false
	}
	if f := r.scatter(seg); f != noFault {
		return f, false
	}
	r.tracePlaced(seg)
	if seg.Last() {
		return r.sendDone(op, seg, mo+uint64(seg.Size())), false
	}
	return noFault, false
}

// immediateData is what the completion of a receive says of Immediate Data (RFC 7306 6.1).
func immediateData(seg ddp.Segment) wr.Completion {
	data, _ := rdmap.ParseImmediate(seg.Payload()) // its length has been checked
	return wr.Completion{Value: data, HasImmediate: true}
}

// inWhole handles the usual Send: all of it is in this segment, and goes to the one
// buffer of a receive of this queue pair, or is Immediate Data. It reports false, having done nothing, if
// it is not that, or if anything is wrong with it. The context is open if segments came
// before, or the payload is placed directly (direct.go).
func (r *receiver) inWhole(op rdmap.Opcode, seg ddp.Segment) bool {
	rq := r.rq
	e := rq.current()
	if e == nil || r.recv.open || op.Invalidates() || !r.send.Whole(seg) {
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
	}
	r.tracePlaced(seg)
	r.send.Pass()
	c := wr.Completion{Bytes: uint32(len(payload))}
	r.broughtImmediate(seg, &c)
	r.completed(rq.complete(c, op.Solicited()))
	return true
}

// broughtImmediate says in a completion what a Send has brought beside its payload.
func (r *receiver) broughtImmediate(last ddp.Segment, c *wr.Completion) {
	if r.cfg.SendImmediate && last.RsvdULP()&rdmap.ControlImmediate != 0 {
		c.Value, c.HasImmediate = uint64(last.RsvdULP32()), true
	}
}

// tracePlaced records that the payload of a Send is in its receive.
func (r *receiver) tracePlaced(seg ddp.Segment) {
	if r.cfg.Trace != nil && seg.Size() > 0 {
		r.s.q.traceSegment(wr.RecordPlaced, seg, seg.Size())
	}
}

// sendFault maps what package ddp refuses of a segment of a Send.
func (r *receiver) sendFault(seg ddp.Segment, c ddp.Code) streamFault {
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

// ahead reports whether the MSN of seg is ahead of msn, the one due, which it is
// not, by less than a queue of depth messages is deep: those between have gone
// missing. All others are not of the queue's range (draft figure 24, RFC 5041 7.1).
func ahead(seg ddp.Segment, msn uint32, depth int) bool {
	return int64(seg.MSN()-msn) < int64(depth)
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
func (r *receiver) sendDone(op rdmap.Opcode, last ddp.Segment, n uint64) streamFault {
	c := wr.Completion{Bytes: uint32(n)}
	if op.Invalidates() {
		c.Invalidated, c.HasInvalidated = wr.STag(last.RsvdULP32()), true
		// RFC 5040 5.3, draft 8.2.2.1 rule 1: after delivery, before the
		// completion is seen.
		if f := r.invalidate(c.Invalidated); f != noFault {
			return f
		}
		r.count.invalidates++
	} else {
		r.broughtImmediate(last, &c)
	}
	r.completed(r.closeRecv(c, op.Solicited()))
	return noFault
}

// invalidate does what an inbound Send with Invalidate asks for. The queue pair's
// rights come first: a peer without any learns nothing about an STag.
func (r *receiver) invalidate(t wr.STag) streamFault {
	if r.rights.noRead.Load() && r.rights.noWrite.Load() { // RV-7.8-M15
		return faultSendInvAccess
	}
	return memoryFault(sideInvalidateRemote, r.cfg.STags.InvalidateRemote(t, r.s.user))
}

// openRecv takes a receive for a message of kind op. Without a fault, and if
// it need not wait for one to be posted, it leaves the context closed when there
// is none.
func (r *receiver) openRecv(op rdmap.Opcode, whole bool) (f streamFault, wait bool) {
	for asked := false; ; asked = true {
		ok, failed := r.takeReceive(op, whole)
		switch {
		case failed:
			return faultSRQ, false // RV-6.3.6-M6
		case ok || !r.waits():
			return noFault, false
		case asked:
			return noFault, true
		}
		r.requestRecv() // then look again: one may have been posted just before
	}
}

// waits reports whether a Send that finds no receive is to wait for one. The draft lets a
// stream end for an empty S-RQ (RV-6.3.5-O2), and does not ask for it: it does not for what
// others hold.
func (r *receiver) waits() bool {
	return r.loss == nil && (r.cfg.GracefulReceive || r.cfg.SRQ != nil && r.cfg.SRQ.HeldByOthers(r))
}

// takeReceive takes a receive, if there is one. whole says that all of the message is here.
func (r *receiver) takeReceive(op rdmap.Opcode, whole bool) (ok, failed bool) {
	l, shared := &r.recv, r.cfg.SRQ
	if shared == nil {
		e := r.rq.current()
		if e == nil {
			return false, false
		}
		l.take(op, e.id, e.length, e.sgl, nil)
		return true, false
	}
	e, failed := shared.TakeFor(r, !whole)
	if e == nil {
		return false, failed
	}
	l.take(op, e.ID, e.Length, e.SGL, e)
	r.checkRQLimit()
	return true, false
}

func (l *recvContext) take(op rdmap.Opcode, id, length uint64, sgl []wr.SGE, e *srq.Element) {
	l.open, l.op, l.id, l.length, l.sgl, l.element = true, op, id, length, sgl, e
	l.sge, l.off = 0, 0
}

// scatter puts the payload of a segment into the receive, behind what came before,
// if it is not there yet. Accept has seen to it that there is room.
func (r *receiver) scatter(seg ddp.Segment) streamFault {
	l, p := &r.recv, seg.Payload()
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

// closeRecv completes the receive of the message in progress. The completion is
// for the CQ.
func (r *receiver) closeRecv(c wr.Completion, solicited bool) cq.Entry {
	l, rq := &r.recv, r.rq
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
		r.recv.open = false
		r.rq.flush(status, number)
		return
	}
	if r.recv.open {
		r.hand([]cq.Entry{r.closeRecv(wr.Completion{Status: status, Value: number}, false)})
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

// handCompleted puts into the CQ what completed has kept back, behind the acknowledgement that the peer waits for.
func (r *receiver) handCompleted() {
	r.acknowledge() // before this side's program can answer what came, or end the connection
	in := &r.in
	if in.completed == 0 {
		return
	}
	r.s.settle()
	list := in.buf.completed[:in.completed]
	r.hand(list)
	clear(list)
	in.completed = 0
}

// hand puts completions of receives into the CQ. Where it has no room, the receives
// come free and the stream ends.
func (r *receiver) hand(list []cq.Entry) {
	rq := r.rq
	n := rq.cq.PushAll(list)
	for _, e := range list[n:] { // none will be reaped
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

package qp

import (
	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/stag"
	"github.com/softrnic/softrnic/wr"
)

// inSend places a segment of a Send and, behind the last one, completes the
// receive it has filled. It reports false, having done nothing, if the segment
// has to wait for a receive.
func (s *session) inSend(op rdmap.Opcode, seg ddp.Segment) bool {
	if s.inWhole(op, seg) {
		return true
	}
	r := &s.rx
	l := &r.landing
	if seg.MSN() == r.send.MSN() { // else no receive is taken for it
		if l.open && op != l.op {
			s.end(inboundCause(faultOpcode, seg)) // RFC 5041 5.2: one message, one opcode
			return true
		}
		if !l.open {
			f, wait := s.openLanding(op)
			if wait {
				return false
			}
			if f != noFault {
				s.fail(f) // not the segment's fault: its headers are not repeated
				return true
			}
		}
	}
	mo := r.send.MO()
	if f := s.sendFault(seg, r.send.Accept(seg, l.length, l.open)); f != noFault {
		c := inboundCause(f, seg)
		c.recv = f == faultSendTooLong
		s.end(c)
		return true
	}
	if f := s.scatter(seg); f != noFault {
		s.end(cause{fault: f, recv: true})
		return true
	}
	if seg.Last() {
		s.sendDone(op, seg, mo+uint64(seg.Size()))
	}
	return true
}

// inWhole handles the usual Send: all of it is in this segment, and goes to the one
// buffer of a receive of this queue pair. It reports false, having done nothing, if
// it is not that, or if anything is wrong with it. A landing is open if segments came
// before, or the payload was placed on its way (transit.go).
func (s *session) inWhole(op rdmap.Opcode, seg ddp.Segment) bool {
	r, rq := &s.rx, &s.q.rq
	e := rq.current()
	if e == nil || len(e.sgl) != 1 || r.landing.open || op.Invalidates() || !r.send.Whole(seg) {
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
	r.send.Pass()
	s.completed(rq.complete(wr.Completion{Bytes: uint32(len(payload))}, op.Solicited()))
	return true
}

// sendFault maps what package ddp refuses of a segment of a Send.
func (s *session) sendFault(seg ddp.Segment, c ddp.Code) fault {
	switch c {
	case ddp.CodeOK:
		return noFault
	case ddp.CodeNoBuffer:
		return faultNoReceive
	case ddp.CodeMSNRange:
		if ahead(seg, s.rx.send.MSN(), s.receives()) {
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
func (s *session) receives() int {
	if shared := s.q.cfg.SRQ; shared != nil {
		return shared.Query().Depth
	}
	return s.q.rq.posted()
}

// sendDone completes the receive of a Send of n octets, whose last segment is
// placed.
func (s *session) sendDone(op rdmap.Opcode, last ddp.Segment, n uint64) {
	c := wr.Completion{Bytes: uint32(n)}
	if op.Invalidates() {
		c.Invalidated, c.HasInvalidated = wr.STag(last.RsvdULP32()), true
		// RFC 5040 5.3, draft 8.2.2.1 rule 1: after delivery, before the
		// completion is seen.
		if f := s.invalidate(c.Invalidated); f != noFault {
			bad := inboundCause(f, last)
			bad.recv = true
			s.end(bad)
			return
		}
	}
	s.completed(s.closeLanding(c, op.Solicited()))
}

// invalidate does what an inbound Send with Invalidate asks for. The queue pair's
// rights come first: a peer without any learns nothing about an STag.
func (s *session) invalidate(t wr.STag) fault {
	c := &s.q.cfg
	if c.NoInboundRead && c.NoInboundWrite { // RV-7.8-M15
		return faultSendInvAccess
	}
	return memoryFault(sideInvalidateRemote, c.STags.InvalidateRemote(t, s.user))
}

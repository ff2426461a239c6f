package qp

import (
	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/stag"
	"github.com/softrnic/softrnic/wr"
)

// inWrite places a segment of an RDMA Write.
func (s *session) inWrite(seg ddp.Segment) Fault {
	if f := s.tagged(rdmap.Write, seg); f != NoFault {
		return f
	}
	// RFC 5040 5.1, RFC 5041 5.2: an empty segment's STag is not looked at.
	if len(seg.Payload()) == 0 {
		return NoFault
	}
	return s.placeTagged(seg)
}

// tagged follows tagged messages: one ends before another begins.
func (s *session) tagged(op rdmap.Opcode, seg ddp.Segment) Fault {
	r := &s.rx
	some := len(seg.Payload()) > 0 // an empty segment's STag is not looked at
	if r.tagOpen && (r.tagOp != op || some && r.tagSTag != seg.STag()) {
		return FaultOpcode
	}
	if some || !r.tagOpen {
		r.tagSTag = seg.STag()
	}
	r.tagOpen, r.tagOp = !seg.Last(), op
	return NoFault
}

// placeTagged copies the payload to where its STag and TO say.
func (s *session) placeTagged(seg ddp.Segment) Fault {
	if s.q.cfg.NoInboundWrite { // figure 21
		return FaultWriteNotEnabled
	}
	p := seg.Payload()
	ref, f := s.q.cfg.STags.Resolve(wr.STag(seg.STag()), seg.TO(), uint64(len(p)), s.user, wr.RemoteWrite)
	if f != stag.OK {
		return memoryFault(sideTagged, f)
	}
	if !ref.CopyIn(0, p) {
		return FaultTagSTag // revoked between the two
	}
	return NoFault
}

// inReadResponse places a segment of the answer to the oldest outstanding RDMA
// Read. It has to be what was asked for: a peer may not use the response to
// write elsewhere (RFC 5040 5.2.2).
func (s *session) inReadResponse(seg ddp.Segment) Fault {
	if f := s.tagged(rdmap.ReadResponse, seg); f != NoFault {
		return f
	}
	o := s.reads.first()
	if o == nil {
		return FaultUnexpectedResponse
	}
	n := uint32(len(seg.Payload()))
	if n > 0 {
		switch {
		case seg.STag() != o.stag:
			return FaultTagSTag
		case seg.TO() != o.to+uint64(o.got), n > o.size-o.got:
			return FaultTagBounds
		}
		if f := s.placeTagged(seg); f != NoFault {
			return f
		}
		o.got += n
	}
	if !seg.Last() { // the L bit may come on an empty segment behind the data
		return NoFault
	}
	if o.got != o.size {
		return FaultTagBounds
	}
	s.readDone(o)
	return NoFault
}

// readDone completes the oldest outstanding RDMA Read.
func (s *session) readDone(o *outboundRead) {
	pos, rtr := o.pos, o.rtr
	s.reads.pop()
	if !rtr {
		s.q.sq.finishRead(pos)
		s.completeSQ()
	}
	s.kick() // a fence or ORD may have held the Send Queue back
}

// inReadRequest queues an RDMA Read Request for the transmit side, which checks
// its source (verbs draft figure 24, IRRQ).
func (s *session) inReadRequest(seg ddp.Segment) Fault {
	if s.q.cfg.NoInboundRead {
		return FaultReadNotEnabled
	}
	room := s.irrq.len() < len(s.irrq.items)
	msn := s.rx.read.MSN()
	switch s.rx.read.Accept(seg, rdmap.ReadRequestSize, room) {
	case ddp.CodeOK:
	case ddp.CodeNoBuffer:
		return FaultReadTooMany
	default:
		return FaultReadMSN
	}
	req, _ := rdmap.ParseReadRequest(seg.Payload()) // rdmap.Check saw its length
	s.irrq.push(inboundRead{req: req, msn: msn})
	s.kick()
	return NoFault
}

// inTerminate keeps the peer's Terminate Message.
func (s *session) inTerminate(seg ddp.Segment) {
	s.halt(cause{
		fault:     FaultTerminateReceived,
		terminate: append([]byte(nil), seg.Payload()...),
	})
}

// inSend places a segment of a Send and, behind the last one, completes the
// receive it has filled.
func (s *session) inSend(op rdmap.Opcode, seg ddp.Segment) {
	r, rq := &s.rx, &s.q.rq
	pos, e, have := rq.current()
	var room uint64
	if have {
		room = e.length
	}
	first := r.send.MO() == 0
	if !first && op != r.sendOp && seg.MSN() == r.send.MSN() {
		s.halt(inboundCause(FaultOpcode, seg)) // RFC 5041 5.2: one message, one opcode
		return
	}
	mo := r.send.MO()
	if f := sendFault(r.send.Accept(seg, room, have)); f != NoFault {
		c := inboundCause(f, seg)
		c.recv = f == FaultSendTooLong
		s.halt(c)
		return
	}
	if first {
		r.sendOp, r.sge, r.sgeOff = op, 0, 0
	}
	if f := s.scatter(pos, seg.Payload()); f != NoFault {
		s.halt(cause{fault: f, recv: true})
		return
	}
	if !seg.Last() {
		return
	}
	c := wr.Completion{Bytes: uint32(mo + uint64(len(seg.Payload())))}
	if op.Invalidates() {
		c.Invalidated, c.HasInvalidated = wr.STag(seg.RsvdULP32()), true
		// RFC 5040 5.3: after delivery, before the completion is seen.
		if f := s.q.cfg.STags.InvalidateRemote(c.Invalidated, s.user); f != stag.OK {
			bad := inboundCause(FaultInvalidate, seg)
			bad.recv = true
			s.halt(bad)
			return
		}
	}
	if !rq.complete(c, op.Solicited()) {
		s.fail(FaultRQCompletion)
	}
}

func sendFault(c ddp.Code) Fault {
	switch c {
	case ddp.CodeOK:
		return NoFault
	case ddp.CodeNoBuffer:
		return FaultNoReceive
	case ddp.CodeMSNRange:
		return FaultSendMSN
	case ddp.CodeTooLong:
		return FaultSendTooLong
	default: // the MO: ddp.Inbound has no other
		return FaultSendMO
	}
}

// scatter copies p to the receive at pos, from where the last segment stopped.
// Accept has seen to it that there is room.
func (s *session) scatter(pos uint64, p []byte) Fault {
	r := &s.rx
	list := s.q.rq.list(pos)
	for len(p) > 0 {
		g := list[r.sge]
		n := min(uint64(len(p)), uint64(g.Length)-r.sgeOff)
		if n > 0 {
			to := g.TO + r.sgeOff
			if to < g.TO {
				return FaultRQWrap
			}
			ref, f := s.q.cfg.STags.Resolve(g.STag, to, n, s.user, wr.LocalWrite)
			if f != stag.OK {
				return memoryFault(sideRQ, f)
			}
			if !ref.CopyIn(0, p[:n]) {
				return FaultRQSTag
			}
			p = p[n:]
		}
		if r.sgeOff += n; r.sgeOff == uint64(g.Length) {
			r.sge++
			r.sgeOff = 0
		}
	}
	return NoFault
}

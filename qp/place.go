package qp

import (
	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/stag"
	"github.com/softrnic/softrnic/wr"
)

// inWrite places a segment of an RDMA Write.
func (r *receiver) inWrite(seg ddp.Segment) streamFault {
	f := r.tagged(rdmap.Write, seg)
	// RFC 5040 5.1, RFC 5041 5.2: an empty segment's STag is not looked at.
	if f == noFault && seg.Size() == 0 && seg.STag() == notReadySTag {
		r.toldNotReady(uint32(seg.TO()))
	}
	if f != noFault || seg.Size() == 0 {
		return f
	}
	return r.placeTagged(sideTagged, seg)
}

// tagged follows tagged messages: one ends before another begins.
func (r *receiver) tagged(op rdmap.Opcode, seg ddp.Segment) streamFault {
	if r.outOfTurn(op, seg) {
		return faultOpcode
	}
	if seg.Size() > 0 || !r.tagOpen {
		r.tagSTag = seg.STag()
	}
	r.tagOpen, r.tagOp = !seg.Last(), op
	return noFault
}

// outOfTurn reports whether a segment belongs to another tagged message than the
// one that has begun. An empty segment's STag is not looked at.
func (r *receiver) outOfTurn(op rdmap.Opcode, seg ddp.Segment) bool {
	return r.tagOpen && (r.tagOp != op || seg.Size() > 0 && r.tagSTag != seg.STag())
}

// placeTagged copies the payload to where its STag and TO say. What is wrong with the
// memory is a fault of that side.
func (r *receiver) placeTagged(of side, seg ddp.Segment) streamFault {
	f := r.placeInto(of, seg)
	if f == noFault {
		r.tracePlaced(seg)
	}
	return f
}

func (r *receiver) placeInto(of side, seg ddp.Segment) streamFault {
	if of == sideSink && r.cfg.ReadIntoLocal {
		return place(&r.answers, of, seg)
	}
	if r.rights.noWrite.Load() { // figure 21
		return faultWriteNotEnabled
	}
	return place(&r.targets, of, seg)
}

// place is placeTagged with the rights of in.
func place(in *stag.Resolver, of side, seg ddp.Segment) streamFault {
	ref, f := in.Resolve(wr.STag(seg.STag()), seg.TO(), uint64(seg.Size()))
	if f != stag.OK {
		return memoryFault(of, f)
	}
	if !seg.IsPlaced() && !copyPayload(of == sideTagged, ref, seg) {
		return memoryFault(of, ref.Lost()) // revoked between the two, or vanished
	}
	return noFault
}

// copyPayload copies the payload that is here to its memory, and reports whether it could. byPeer says that a peer writes
// there by itself, and not the answer to a request of the program.
func copyPayload(byPeer bool, ref stag.Ref, seg ddp.Segment) bool {
	if byPeer {
		return ref.CopyInForPeer(0, seg.Payload())
	}
	return ref.CopyIn(0, seg.Payload())
}

// inReadResponse places a segment of the answer to the oldest outstanding RDMA Read,
// and completes that with the last one.
func (r *receiver) inReadResponse(seg ddp.Segment) streamFault {
	o := r.reads.first()
	f := r.placeResponse(o, seg)
	if f != noFault || !seg.Last() { // the L bit may come on an empty segment behind the data
		return f
	}
	r.readGot = 0
	return r.readDone(o, 0)
}

// placeResponse places a segment of the answer to o, or finds what is wrong with it.
func (r *receiver) placeResponse(o *outboundRead, seg ddp.Segment) streamFault {
	if f := r.tagged(rdmap.ReadResponse, seg); f != noFault {
		return f
	}
	if f := r.responseFault(o, seg); f != noFault {
		return f
	}
	if n := uint32(seg.Size()); n > 0 {
		if f := r.placeTagged(sideSink, seg); f != noFault {
			return f
		}
		r.readGot += n
	}
	if seg.Last() && r.readGot != o.size {
		return faultTagBounds
	}
	return noFault
}

// responseFault is what is wrong with a segment as the next one of the answer to o, nil
// if no RDMA Read is outstanding. It has to be what was asked for: a peer may not use the
// response to write elsewhere (RFC 5040 5.2.2). Of an empty one nothing is looked at.
func (r *receiver) responseFault(o *outboundRead, seg ddp.Segment) streamFault {
	n := seg.Size()
	switch {
	case o == nil, o.atomic:
		return faultUnexpectedResponse
	case n == 0:
		return noFault
	case seg.STag() != o.stag:
		return faultTagSTag
	case seg.TO() != o.to+uint64(r.readGot), uint64(n) > uint64(o.size-r.readGot):
		return faultTagBounds
	}
	return noFault
}

// inAtomicResponse completes the oldest outstanding request, which has to be the Atomic that
// is answered: responses come in the order of requests, those of RDMA Reads among them
// (R7306-5.2.2-M8).
func (r *receiver) inAtomicResponse(seg ddp.Segment) streamFault {
	o := r.reads.first()
	switch r.answer.Accept(seg, rdmap.AtomicResponseSize, o != nil && o.atomic) {
	case ddp.CodeOK:
	case ddp.CodeNoBuffer:
		return faultAtomicAnswer
	default:
		return faultAtomicAnswerMSN
	}
	h, _ := rdmap.ParseAtomicResponse(seg.Payload()) // rdmap.Check saw its length
	if h.RequestID != o.id {
		return faultAtomicAnswerID
	}
	return r.readDone(o, h.Value)
}

// readDone completes the oldest outstanding RDMA Read, or Atomic, with what was in the
// memory before. A Read's STag is invalidated,
// if that was asked for, while the Read still counts as outstanding: before its
// completion can be seen, and before a request behind a Read Fence goes on (draft
// 8.2.2.1 rule 2).
func (r *receiver) readDone(o *outboundRead, original uint64) streamFault {
	if o.part {
		r.reads.pop()
		r.flushPending = true // ORD may have held the next one back
		return noFault
	}
	pos, rtr := o.pos, o.rtr
	if !rtr {
		if e := r.s.q.sq.at(pos); e.op == wr.OpReadInvalidate {
			if f := r.cfg.STags.InvalidateLocal(e.sgl[0].STag, r.s.user); f != stag.OK {
				return memoryFault(sideInvalidate, f)
			}
			r.count.invalidates++
		}
	}
	placed := o.placed
	if placed {
		r.s.q.sq.finishPlaced(pos)
		r.s.tx.writeAck.outstanding.Store(false)
	}
	r.reads.pop()
	if rtr {
		r.rtrAnswered.Store(true)
		r.s.tx.rested()
	} else {
		r.s.q.sq.finishRead(pos, original)
	}
	if !rtr || placed {
		r.handCompleted() // of receives that came before: the order in which things happened
		r.s.settle()
		r.s.completeSQ()
	}
	r.flushPending = true // a fence or ORD may have held the Send Queue back
	return noFault
}

// inRequest queues an RDMA Read Request or an Atomic Request, each behind those that came before it (R7306-5.2.1-M9,
// M12), for the transmit side, which checks its source (verbs draft figure 24, IRRQ).
func (r *receiver) inRequest(op rdmap.Opcode, seg ddp.Segment) streamFault {
	in := inboundRead{op: op} // rdmap.Check saw the length of its header
	if op == rdmap.AtomicRequest {
		in.atomic, _ = rdmap.ParseAtomicRequest(seg.Payload())
	} else {
		in.req, _ = rdmap.ParseReadRequest(seg.Payload())
	}
	if f := r.refuses(&in); f != noFault {
		return f
	}
	return r.queueRequest(seg, in)
}

// acknowledge answers the requests that the peer's own wait for, if there are any: all that came together at once.
func (r *receiver) acknowledge() {
	if r.ackPending {
		r.ackPending = false
		r.s.tx.tryTransmit()
	}
}

// refuses is what is wrong with a request by the rights of the queue pair. A Read of no octets asks for the peer's
// Writes: see Config.PlacedWrites.
func (r *receiver) refuses(in *inboundRead) streamFault {
	if in.op == rdmap.AtomicRequest {
		if r.rights.noAtomic.Load() {
			return faultAtomicNotEnabled
		}
		return noFault
	}
	if in.acknowledges(r.cfg) {
		return noFault
	}
	if r.rights.noRead.Load() {
		return faultReadNotEnabled
	}
	return noFault
}

// queueRequest gives in, the request that seg is, its place in the IRRQ.
func (r *receiver) queueRequest(seg ddp.Segment, in inboundRead) streamFault {
	room := r.irrq.len() < r.irrq.size()
	msn := r.read.MSN()
	switch r.read.Accept(seg, uint64(seg.Size()), room) {
	case ddp.CodeOK:
	case ddp.CodeNoBuffer:
		return faultReadTooMany
	default:
		if ahead(seg, msn, r.irrq.size()) {
			return faultReadMSNGap
		}
		return faultReadMSNRange
	}
	in.msn, in.head = msn, [6]byte(seg.Header())
	acknowledges := in.acknowledges(r.cfg)
	if !acknowledges {
		r.handCompleted() // what came before it shall be in the CQ when the peer's program sees the answer
	}
	if !r.irrq.push(in) { // Modify QP has lowered IRD meanwhile
		return faultReadTooMany
	}
	r.ackPending = r.ackPending || acknowledges
	r.flushPending = true
	return noFault
}

package qp

import (
	"bytes"

	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/stag"
	"github.com/softrnic/softrnic/trace"
	"github.com/softrnic/softrnic/wr"
)

// inWrite places a segment of an RDMA Write.
func (r *receiver) inWrite(seg ddp.Segment) *cause {
	if f := r.tagged(rdmap.Write, seg); f != noFault {
		return inboundCause(f, seg)
	}
	// RFC 5040 5.1, RFC 5041 5.2: an empty segment's STag is not looked at.
	if seg.Size() == 0 {
		return nil
	}
	return inboundCause(r.placeTagged(sideTagged, seg), seg)
}

// tagged follows tagged messages: one ends before another begins.
func (r *receiver) tagged(op rdmap.Opcode, seg ddp.Segment) fault {
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
func (r *receiver) placeTagged(of side, seg ddp.Segment) fault {
	f := r.placeInto(of, seg)
	if r.cfg.Trace != nil && f == noFault {
		r.s.q.tellSegment(trace.Placed, seg, seg.Size())
	}
	return f
}

func (r *receiver) placeInto(of side, seg ddp.Segment) fault {
	if of == sideSink && r.cfg.ReadIntoLocal {
		return place(&r.answers, of, seg)
	}
	if r.rights.noWrite.Load() { // figure 21
		return faultWriteNotEnabled
	}
	return place(&r.targets, of, seg)
}

// place is placeTagged with the rights of in.
func place(in *stag.Resolver, of side, seg ddp.Segment) fault {
	ref, f := in.Resolve(wr.STag(seg.STag()), seg.TO(), uint64(seg.Size()))
	if f != stag.OK {
		return memoryFault(of, f)
	}
	if !seg.IsPlaced() && !placed(of == sideTagged, ref, seg) {
		return memoryFault(of, ref.Lost()) // revoked between the two, or vanished
	}
	return noFault
}

// placed copies the payload that is here to its memory. byPeer says that a peer writes
// there by itself, and not the answer to a request of the program.
func placed(byPeer bool, ref stag.Ref, seg ddp.Segment) bool {
	if byPeer {
		return ref.CopyInForPeer(0, seg.Payload())
	}
	return ref.CopyIn(0, seg.Payload())
}

// inReadResponse places a segment of the answer to the oldest outstanding RDMA Read,
// and completes that with the last one.
func (r *receiver) inReadResponse(seg ddp.Segment) *cause {
	o := r.reads.first()
	if f := r.placeResponse(o, seg); f != noFault {
		return r.placingCause(f, seg)
	}
	if !seg.Last() { // the L bit may come on an empty segment behind the data
		return nil
	}
	r.readGot = 0
	return r.readDone(o, 0)
}

// placeResponse places a segment of the answer to o, or finds what is wrong with it.
func (r *receiver) placeResponse(o *outboundRead, seg ddp.Segment) fault {
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
func (r *receiver) responseFault(o *outboundRead, seg ddp.Segment) fault {
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

// placingCause is inboundCause for a segment that is not of a Send. If its fault is the
// sink's, the oldest RDMA Read is at fault, whose answer it is (draft 6.2.2.3).
func (r *receiver) placingCause(f fault, seg ddp.Segment) *cause {
	c := inboundCause(f, seg)
	switch f {
	case faultSinkSTag, faultSinkBounds, faultSinkAccess, faultSinkPD:
		c.sq, c.hasSQ = r.reads.first().pos, true
	default:
	}
	return c
}

// readDone completes the oldest outstanding RDMA Read, or Atomic, with what was in the
// memory before. A Read's STag is invalidated,
// if that was asked for, while the Read still counts as outstanding: before its
// completion can be seen, and before a request behind a Read Fence goes on (draft
// 8.2.2.1 rule 2).
func (r *receiver) readDone(o *outboundRead, original uint64) *cause {
	pos, rtr := o.pos, o.rtr
	if !rtr {
		if e := r.s.q.sq.at(pos); e.op == wr.OpReadInvalidate {
			if f := r.cfg.STags.InvalidateLocal(e.local.STag, r.s.user); f != stag.OK {
				return &cause{fault: memoryFault(sideInvalidate, f), sq: pos, hasSQ: true}
			}
			r.count.invalidates++
		}
	}
	r.tell()
	placed := o.placed
	if placed {
		r.s.q.sq.finishPlaced(pos)
		r.s.tx.placing.asking.Store(false)
	}
	r.reads.pop()
	if !rtr {
		r.s.q.sq.finishRead(pos, original)
	}
	if !rtr || placed {
		r.handCompleted() // of receives that came before: the order in which things happened
		r.s.completeSQ()
	}
	r.owes = true // a fence or ORD may have held the Send Queue back
	return nil
}

// inReadRequest queues an RDMA Read Request for the transmit side, which checks
// its source (verbs draft figure 24, IRRQ).
func (r *receiver) inReadRequest(seg ddp.Segment) *cause {
	req, _ := rdmap.ParseReadRequest(seg.Payload()) // rdmap.Check saw its length
	if r.cfg.PlacedWrites && req.Size == 0 {        // a peer asks for its Writes
		return r.queueRequest(seg, inboundRead{op: rdmap.ReadRequest, req: req})
	}
	if r.rights.noRead.Load() {
		return inboundCause(faultReadNotEnabled, seg)
	}
	return r.queueRequest(seg, inboundRead{op: rdmap.ReadRequest, req: req})
}

// queueRequest gives in, the request that seg is, its place in the IRRQ.
func (r *receiver) queueRequest(seg ddp.Segment, in inboundRead) *cause {
	room := r.irrq.len() < r.irrq.size()
	msn := r.read.MSN()
	switch r.read.Accept(seg, uint64(seg.Size()), room) {
	case ddp.CodeOK:
	case ddp.CodeNoBuffer:
		return inboundCause(faultReadTooMany, seg)
	default:
		if ahead(seg, msn, r.irrq.size()) {
			return inboundCause(faultReadMSNGap, seg)
		}
		return inboundCause(faultReadMSNRange, seg)
	}
	in.msn, in.head = msn, [6]byte(seg.Header())
	r.tell()              // the answer may be seen
	r.handCompleted()     // who sees the answer shall find what came before it in the CQ
	if !r.irrq.push(in) { // Modify QP has lowered IRD meanwhile
		return inboundCause(faultReadTooMany, seg)
	}
	r.owes = true
	return nil
}

// ahead reports whether the MSN of seg is ahead of msn, the one due, which it is
// not, by less than a queue of depth messages is deep: those between have gone
// missing. All others are not of the queue's range (draft figure 24, RFC 5041 7.1).
func ahead(seg ddp.Segment, msn uint32, depth int) bool {
	return int64(seg.MSN()-msn) < int64(depth)
}

// inTerminate keeps the peer's Terminate Message.
func (*receiver) inTerminate(seg ddp.Segment) *cause {
	return &cause{fault: faultTerminateReceived, terminate: bytes.Clone(seg.Payload())}
}

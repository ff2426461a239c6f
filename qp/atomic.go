package qp

import (
	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/stag"
	"github.com/softrnic/softrnic/wr"
)

// The way of an Atomic Operation (RFC 7306 5). It goes with the RDMA Reads: its request has the
// next MSN of their queue, counts for ORD, and waits in the peer's IRRQ for its turn to be
// answered. It is carried out then, by the transmit side, when all requests before it have
// been answered. The response has a queue of its own, QN 3.

// atomics are those that the transmit side asks for and answers.
type atomics struct {
	asked  uint32       // requests, which are numbered by it: the nth has Request Identifier n
	msn    ddp.Outbound // QN 3
	answer rdmap.AtomicResponseHeader
}

// checkAtomic finds the Immediate Errors of an Atomic.
func checkAtomic(r *wr.Request) error {
	if r.Atomic == nil {
		return &wr.Reason{Err: wr.ErrInvalidModifier, What: "an Atomic needs its modifiers", Remedy: "set Request.Atomic"}
	}
	return nil
}

// atomicSize is how many octets an Atomic is about.
const atomicSize = 8

// keepAtomic copies the modifiers of an Atomic.
func (e *sqe) keepAtomic(r *wr.Request) {
	if e.atomic == nil {
		e.atomic = new(wr.AtomicRequest)
	}
	*e.atomic = *r.Atomic
	e.length = atomicSize
}

// startAtomic starts the Atomic that is next on the Send Queue.
func (t *transmitter) startAtomic() {
	t.atomics.asked++
	t.msg.op, t.msg.msn, t.msg.length = rdmap.AtomicRequest, t.readMSN.Next(), 0 // R7306-5.2-M1
	t.reads.push(outboundRead{pos: t.next, msn: t.msg.msn, atomic: true, id: t.atomics.asked})
}

func (t *transmitter) appendAtomicRequest(hdr []byte) []byte {
	e := t.sq.at(t.next)
	h := rdmap.AtomicRequestHeader{
		Op: rdmap.CmpSwap, RequestID: t.atomics.asked, STag: uint32(e.remote.STag), TO: e.remote.TO,
		Data: e.atomic.Data, Mask: e.atomic.Mask, Compare: e.atomic.Compare, CompareMask: e.atomic.CompareMask,
	}
	switch e.op {
	case wr.OpFetchAdd: // which has nothing to compare
		h.Op, h.Compare, h.CompareMask = rdmap.FetchAdd, 0, ^uint64(0)
	case wr.OpSwap: // whatever is there
		h.Compare, h.CompareMask = 0, 0
	default: // OpCompareSwap
	}
	return h.Append(ddp.AppendUntagged(hdr, true, rdmap.Control(rdmap.AtomicRequest), 0, ddp.QNReadRequest, t.msg.msn, 0))
}

// inAtomicRequest queues an Atomic Request behind the RDMA Read Requests that came before it
// (R7306-5.2.1-M9, M12).
func (r *receiver) inAtomicRequest(seg ddp.Segment) *cause {
	if r.rights.noAtomic.Load() {
		return inboundCause(faultAtomicNotEnabled, seg)
	}
	h, _ := rdmap.ParseAtomicRequest(seg.Payload()) // rdmap.Check saw its length
	return r.queueRequest(seg, inboundRead{op: rdmap.AtomicRequest, atomic: h})
}

// answerAtomic carries out the oldest request, which is an Atomic, and starts its response.
func (t *transmitter) answerAtomic(r *inboundRead) (bool, cause) {
	h := &r.atomic
	if !h.Op.Known() { // R7306-5.2.1-M8
		return false, t.readCause(faultAtomicOpcode, 0)
	}
	ref, f := t.cfg.STags.Resolve(wr.STag(h.STag), h.TO, atomicSize, t.s.user, wr.RemoteAtomic)
	if f != stag.OK {
		return false, t.readCause(memoryFault(sideRead, f), 0)
	}
	old, aligned, ok := ref.Update(h.Apply)
	switch {
	case !aligned: // R7306-8.2-M7
		return false, t.readCause(faultAtomicMisaligned, 0)
	case !ok: // revoked between the two, or vanished
		return false, t.readCause(memoryFault(sideRead, ref.Lost()), 0)
	}
	t.atomics.answer = rdmap.AtomicResponseHeader{RequestID: h.RequestID, Value: old}
	t.msg = message{kind: fromIRRQ, op: rdmap.AtomicResponse, msn: t.atomics.msn.Next()}
	return true, cause{}
}

func (t *transmitter) appendAtomicResponse(hdr []byte) []byte {
	return t.atomics.answer.Append(
		ddp.AppendUntagged(hdr, true, rdmap.Control(rdmap.AtomicResponse), 0, ddp.QNAtomicResponse, t.msg.msn, 0))
}

// inAtomicResponse completes the oldest outstanding request, which has to be the Atomic that
// is answered: responses come in the order of requests, those of RDMA Reads among them
// (R7306-5.2.2-M8).
func (r *receiver) inAtomicResponse(seg ddp.Segment) *cause {
	o := r.reads.first()
	switch r.answer.Accept(seg, rdmap.AtomicResponseSize, o != nil && o.atomic) {
	case ddp.CodeOK:
	case ddp.CodeNoBuffer:
		return inboundCause(faultAtomicAnswer, seg)
	default:
		return inboundCause(faultAtomicAnswerMSN, seg)
	}
	h, _ := rdmap.ParseAtomicResponse(seg.Payload()) // rdmap.Check saw its length
	if h.RequestID != o.id {
		return inboundCause(faultAtomicAnswerID, seg)
	}
	return r.readDone(o, h.Value)
}

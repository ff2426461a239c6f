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

// answerAtomic carries out the oldest request, which is an Atomic, and starts its response.
func (t *transmitter) answerAtomic(r *inboundRead) (bool, streamFault) {
	h := &r.atomic
	if !h.Op.Known() { // R7306-5.2.1-M8
		return false, faultAtomicOpcode
	}
	ref, f := t.cfg.STags.Resolve(wr.STag(h.STag), h.TO, atomicSize, t.s.user, wr.RemoteAtomic)
	if f != stag.OK {
		return false, memoryFault(sideRead, f)
	}
	old, aligned, ok := ref.Update(h.Apply)
	switch {
	case !aligned: // R7306-8.2-M7
		return false, faultAtomicMisaligned
	case !ok: // revoked between the two, or vanished
		return false, memoryFault(sideRead, ref.Lost())
	}
	t.atomics.answer = rdmap.AtomicResponseHeader{RequestID: h.RequestID, Value: old}
	t.msg = message{kind: fromIRRQ, op: rdmap.AtomicResponse, msn: t.atomics.msn.Next()}
	return true, noFault
}

func (t *transmitter) appendAtomicResponse(hdr []byte) []byte {
	return t.atomics.answer.Append(
		ddp.AppendUntagged(hdr, true, rdmap.Control(rdmap.AtomicResponse), 0, ddp.QNAtomicResponse, t.msg.msn, 0))
}

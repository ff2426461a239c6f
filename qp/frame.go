package qp

import (
	"slices"

	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/stag"
	"github.com/softrnic/softrnic/wr"
)

// frame adds FPDUs of the message to b, until b is full or the message ends; then it
// moves on.
func (t *transmitter) frame(b *batch) streamFault {
	var held holder
	defer held.release()
	for {
		hdr, n, last := t.header()
		before := b.Size()
		var f stag.AccessFault
		switch {
		case !t.framer.Plain():
			f = t.frameMarked(b, hdr, n, &held)
		case t.gathers(n):
			f = t.frameGathered(b, hdr, n)
		default:
			f = t.frameCopied(b, hdr, n, &held)
		}
		if f != stag.OK {
			return t.lost(f)
		}
		if t.traced {
			t.traceSent(hdr, n)
		}
		t.pos += uint64(b.Size() - before)
		t.msg.off += uint64(n)
		t.count.ops.segment(t.msg.op, uint64(n), last)
		if last {
			t.endMessage()
		}
		if last || b.Full(t.tuning.Batch) {
			return noFault
		}
	}
}

// gathers reports whether payload of n octets, the next of the message, is sent from
// where it is.
func (t *transmitter) gathers(n int) bool {
	g := t.tuning.Gather
	return g >= 0 && n >= g && t.framer.Gather() && !t.msg.vanish
}

// frameGathered adds an FPDU whose payload, n octets, is not copied. Like the two below
// it adds nothing if memory was revoked or has vanished: see stag.Ref.Lost.
func (t *transmitter) frameGathered(b *batch, hdr []byte, n int) stag.AccessFault {
	before, from := b.Mark(), len(b.Arena)
	b.Arena = t.framer.AppendHead(b.Arena, hdr, n)
	b.Copied(from)
	if f := t.pieces(b, uint64(n)); f != stag.OK {
		b.Rollback(before)
		return f
	}
	from = len(b.Arena)
	b.Arena = mpa.AppendTail(b.Arena, len(hdr)+n)
	b.framed(from)
	if t.msg.kind == fromIRRQ {
		b.answers = append(b.answers, answer{*t.irrq.first(), t.refs[0], t.msg.off, b.Size()})
	}
	return stag.OK
}

// frameCopied adds an FPDU with a copy of the payload, whose memory it leaves held. The CRC is that of the
// copy, and made with it.
func (t *transmitter) frameCopied(b *batch, hdr []byte, n int, held *holder) stag.AccessFault {
	from := len(b.Arena)
	b.Arena = t.framer.AppendHead(b.Arena, hdr, n)
	at := len(b.Arena)
	b.Arena = b.Arena[:at+n]
	sum := t.beginSum(b.Arena[from:at], n)
	if f := t.copyOut(b.Arena[at:], &sum, held); f != stag.OK {
		b.Arena = b.Arena[:from]
		return f
	}
	b.Arena = t.finishSum(b.Arena, from, sum)
	b.framed(from)
	return stag.OK
}

// frameMarked adds an FPDU with markers in it. The payload is copied before they come
// between.
func (t *transmitter) frameMarked(b *batch, hdr []byte, n int, held *holder) stag.AccessFault {
	from := len(b.Arena)
	b.marked = slices.Grow(b.marked[:0], n)[:n]
	if f := t.copyOut(b.marked, &sum{}, held); f != stag.OK {
		return f
	}
	b.Arena = t.framer.AppendFPDU(b.Arena, hdr, b.marked)
	b.framed(from)
	return stag.OK
}

// header makes the DDP and RDMAP headers of the next segment, which takes n
// octets of payload.
func (t *transmitter) header() (hdr []byte, n int, last bool) {
	m := &t.msg
	hdr = t.hdr[:0]
	ctrl := rdmap.Control(m.op)
	switch {
	case m.op == rdmap.ReadRequest:
		hdr = ddp.AppendUntagged(hdr, true, ctrl, 0, ddp.QNReadRequest, m.msn, 0)
		req := rdmap.ReadRequestHeader{SinkSTag: m.stag}
		if m.kind == fromSQ {
			e := t.sq.at(t.next)
			sink := &e.sgl[t.asked.sinks]
			req = rdmap.ReadRequestHeader{
				SinkSTag: uint32(sink.STag), SinkTO: sink.TO, Size: sink.Length,
				SourceSTag: uint32(e.remote.STag), SourceTO: e.remote.TO + t.asked.octets,
			}
		}
		return req.Append(hdr), 0, true
	case m.op == rdmap.AtomicRequest:
		return t.appendAtomicRequest(hdr), 0, true
	case m.op == rdmap.AtomicResponse:
		return t.appendAtomicResponse(hdr), 0, true
	case m.op.Tagged():
		n, last = ddp.Cut(m.length-m.off, t.mulpdu, ddp.TaggedHeader)
		return ddp.AppendTagged(hdr, last, ctrl, m.stag, m.to+m.off), n, last
	case m.op.IsImmediate():
		hdr = ddp.AppendUntagged(hdr, true, ctrl, 0, ddp.QNSend, m.msn, 0)
		return rdmap.AppendImmediate(hdr, t.sq.at(t.next).immediate), 0, true
	default:
		n, last = ddp.Cut(m.length-m.off, t.mulpdu, ddp.UntaggedHeader)
		return ddp.AppendUntagged(hdr, last, sendControl(m.op, m.imm), m.field, ddp.QNSend, m.msn, uint32(m.off)), n, last
	}
}

// copyOut fills dst with the next octets of the message's memory.
func (t *transmitter) copyOut(dst []byte, s *sum, held *holder) stag.AccessFault {
	for len(dst) > 0 {
		ref, off, k := t.take(uint64(len(dst)))
		if k > 0 && !(held.hold(ref) && s.copyHeld(ref, dst[:k], off, t.msg.kind == fromIRRQ)) {
			return ref.Lost()
		}
		dst = dst[k:]
	}
	return stag.OK
}

// pieces adds the next n octets of the message's memory to b, not copied.
func (t *transmitter) pieces(b *batch, n uint64) stag.AccessFault {
	for n > 0 {
		ref, off, k := t.take(n)
		if k > 0 && !b.Memory(ref, off, k) {
			return ref.Lost()
		}
		n -= k
	}
	return stag.OK
}

// take moves over up to n octets of one element of the scatter/gather list.
func (t *transmitter) take(n uint64) (ref stag.Ref, off, k uint64) {
	m := &t.msg
	ref = t.refs[m.sge]
	off = m.sgeOff
	k = min(n, ref.Len()-off)
	if m.sgeOff += k; m.sgeOff == ref.Len() {
		m.sge++
		m.sgeOff = 0
	}
	return ref, off, k
}

// lost is the fault when memory of the message being framed was revoked or has
// vanished. Its segment has not begun to go out, so the Terminate takes its place
// (draft 6.4).
func (t *transmitter) lost(f stag.AccessFault) streamFault {
	if t.msg.kind == fromIRRQ {
		return memoryFault(sideRead, f)
	}
	return memoryFault(sideSQ, f)
}

// endMessage ends the message.
func (t *transmitter) endMessage() {
	switch t.msg.kind {
	case fromSQ:
		e := t.sq.at(t.next)
		if t.msg.op == rdmap.Write && e.op.IsImmediate() { // the second message of this request
			t.msg = message{kind: fromSQ, op: sendOpcodes[e.op], msn: t.sendMSN.Next()}
			e.msn = t.msg.msn
			return
		}
		if t.msg.op == rdmap.ReadRequest && t.asked.sinks+1 < len(e.sgl) { // each sink has a Request of its own
			t.asked.octets += uint64(e.sgl[t.asked.sinks].Length)
			t.asked.sinks++
			break
		}
		t.advance(e)
	case fromIRRQ:
		t.irrq.pop()
	default: // an RTR belongs to no queue
	}
	t.msg.kind = noMessage
}

// Most of what a busy program posts is alike: Sends, RDMA Writes and Immediate Data, of a
// few octets in one piece. frameShorts frames as many of them as come in a row. With anything else, or
// anything wrong, the usual way goes on (schedule.go, frame.go), which does the same
// for one message at a time and knows what to make of a fault.

// shortLimit is the longest message, in octets, that frameShorts frames: it fits one segment
// and is copied. It is negative if there is none.
func (t *transmitter) shortLimit() int64 {
	if !t.framer.Plain() {
		return -1
	}
	n := min(t.mulpdu-ddp.UntaggedHeader, t.tuning.Short)
	if g := t.tuning.Gather; g >= 0 && t.framer.Gather() {
		n = min(n, g-1)
	}
	return int64(n)
}

// frameShorts frames short messages from the head of the Send Queue on, until one is not,
// the batch is full or an RDMA Read Request waits for its answer.
func (t *transmitter) frameShorts(b *batch) {
	sq := t.sq
	if t.short < 0 || t.rtr != 0 || t.s.gate.Load() {
		return
	}
	var held holder // from one message to the next: all this is one copy
	defer held.release()
	pos, tail := t.next, sq.tail.Load()
	for ; pos != tail && !b.Full(t.tuning.Batch) && t.irrq.len() == 0; pos++ {
		e := sq.at(pos)
		if !e.plain || int64(e.length) > t.short || e.op.IsExtension() && !t.s.extensions {
			break
		}
		var ref stag.Ref
		if e.length > 0 {
			var f stag.AccessFault
			if ref, f = t.sources.Resolve(e.sgl[0].STag, e.sgl[0].TO, e.length); f != stag.OK || !held.hold(ref) {
				break
			}
		}
		if !t.frameShort(b, e, ref) {
			break
		}
		t.writeAck.framedUpTo(pos+1, e)
	}
	if pos != t.next {
		t.next = pos
		sq.framed.Store(pos)
	}
}

// frameShort appends the messages of an element, of one segment each, whose memory is
// held. It reports false, having done nothing, if that has vanished.
func (t *transmitter) frameShort(b *batch, e *sqe, ref stag.Ref) bool {
	from, immediate := len(b.Arena), e.op.IsImmediate()
	if (!immediate || e.op.IsWrite()) && !t.frameShortPayload(b, e, ref) {
		return false
	}
	if immediate {
		t.frameShortImmediate(b, e)
	}
	t.pos += uint64(len(b.Arena) - from)
	e.end = t.pos
	return true
}

func (t *transmitter) frameShortImmediate(b *batch, e *sqe) {
	from := len(b.Arena)
	e.msn = t.sendMSN.Next()
	b.Arena = t.framer.AppendLength(b.Arena, ddp.UntaggedHeader+rdmap.ImmediateSize)
	b.Arena = ddp.AppendUntagged(b.Arena, true, rdmap.Control(sendOpcodes[e.op]), 0, ddp.QNSend, e.msn, 0)
	b.Arena = rdmap.AppendImmediate(b.Arena, e.immediate)
	b.Arena = t.framer.Finish(b.Arena, from)
	b.framed(from)
	t.count.ops.segment(sendOpcodes[e.op], 0, true)
	if t.traced {
		t.traceSent(b.Arena[from+lengthSize:], 0)
	}
}

// frameShortPayload is frameShort for a Send or RDMA Write.
func (t *transmitter) frameShortPayload(b *batch, e *sqe, ref stag.Ref) bool {
	from, n, msn, op := len(b.Arena), int(e.length), t.sendMSN, rdmap.Write
	if e.op.IsWrite() {
		b.Arena = t.framer.AppendLength(b.Arena, ddp.TaggedHeader+n)
		b.Arena = ddp.AppendTagged(b.Arena, true, rdmap.Control(op), uint32(e.remote.STag), e.remote.TO)
	} else {
		op = sendOpcodes[e.op]
		b.Arena = t.framer.AppendLength(b.Arena, ddp.UntaggedHeader+n)
		e.msn = t.sendMSN.Next()
		b.Arena = ddp.AppendUntagged(b.Arena, true, sendControl(op, e.flags&wr.WithImmediate != 0), e.untaggedField(), ddp.QNSend, e.msn, 0)
	}
	at := len(b.Arena)
	b.Arena = b.Arena[:at+n]
	sum := t.beginSum(b.Arena[from:at], n)
	if n > 0 && !sum.copyHeld(ref, b.Arena[at:], 0, false) {
		b.Arena, t.sendMSN = b.Arena[:from], msn
		return false
	}
	b.Arena = t.finishSum(b.Arena, from, sum)
	b.framed(from)
	t.count.ops.segment(op, uint64(n), true)
	if t.traced {
		t.traceSent(b.Arena[from+lengthSize:], n)
	}
	return true
}

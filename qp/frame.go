package qp

import (
	"slices"

	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/stag"
)

// frame adds FPDUs of the message to b, until b is full or the message ends; then it
// moves on.
func (s *session) frame(b *batch) cause {
	t := &s.tx
	var held holder
	defer held.release()
	for {
		hdr, n, last := s.header()
		before := b.size
		var f stag.Fault
		switch {
		case !t.framer.Plain():
			f = s.frameMarked(b, hdr, n, &held)
		case s.gathers(n):
			f = s.frameGathered(b, hdr, n)
		default:
			f = s.frameCopied(b, hdr, n, &held)
		}
		if f != stag.OK {
			return s.lost(f)
		}
		t.pos += uint64(b.size - before)
		t.msg.off += uint64(n)
		if last {
			s.framed()
		}
		if last || b.full(s.tuning.Batch) {
			return cause{}
		}
	}
}

// gathers reports whether payload of n octets, the next of the message, is sent from
// where it is.
func (s *session) gathers(n int) bool {
	t, g := &s.tx, s.tuning.Gather
	return g >= 0 && n >= g && s.llp.direct() && t.framer.Gather() && !t.msg.vanish
}

// frameGathered adds an FPDU whose payload, n octets, is not copied. Like the two below
// it adds nothing if memory was revoked or has vanished: see stag.Ref.Lost.
func (s *session) frameGathered(b *batch, hdr []byte, n int) stag.Fault {
	before, from := b.mark(), len(b.arena)
	b.arena = s.tx.framer.AppendHead(b.arena, hdr, n)
	b.size += len(b.arena) - from
	if f := s.pieces(b, uint64(n)); f != stag.OK {
		b.rollback(before)
		return f
	}
	from = len(b.arena)
	b.arena = mpa.AppendTail(b.arena, len(hdr)+n)
	b.copied(from)
	return stag.OK
}

// frameCopied adds an FPDU with a copy of the payload, whose memory it leaves held.
func (s *session) frameCopied(b *batch, hdr []byte, n int, held *holder) stag.Fault {
	from := len(b.arena)
	b.arena = s.tx.framer.AppendHead(b.arena, hdr, n)
	at := len(b.arena)
	b.arena = b.arena[:at+n]
	if f := s.copyOut(b.arena[at:], held); f != stag.OK {
		b.arena = b.arena[:from]
		return f
	}
	b.arena = s.tx.framer.Finish(b.arena, from)
	b.copied(from)
	return stag.OK
}

// frameMarked adds an FPDU with markers in it. The payload is copied before they come
// between.
func (s *session) frameMarked(b *batch, hdr []byte, n int, held *holder) stag.Fault {
	from := len(b.arena)
	b.marked = slices.Grow(b.marked[:0], n)[:n]
	if f := s.copyOut(b.marked, held); f != stag.OK {
		return f
	}
	b.arena = s.tx.framer.AppendFPDU(b.arena, hdr, b.marked)
	b.copied(from)
	return stag.OK
}

// header makes the DDP and RDMAP headers of the next segment, which takes n
// octets of payload.
func (s *session) header() (hdr []byte, n int, last bool) {
	t, m := &s.tx, &s.tx.msg
	hdr = t.hdr[:0]
	ctrl := rdmap.Control(m.op)
	switch {
	case m.op == rdmap.ReadRequest:
		hdr = ddp.AppendUntagged(hdr, true, ctrl, 0, ddp.QNReadRequest, m.msn, 0)
		req := rdmap.ReadRequestHeader{SinkSTag: m.stag}
		if m.kind == fromSQ {
			e := s.q.sq.at(t.next)
			req = rdmap.ReadRequestHeader{
				SinkSTag: uint32(e.local.STag), SinkTO: e.local.TO, Size: e.local.Length,
				SourceSTag: uint32(e.remote.STag), SourceTO: e.remote.TO,
			}
		}
		return req.Append(hdr), 0, true
	case m.op.Tagged():
		n, last = ddp.Cut(m.length-m.off, t.mulpdu, ddp.TaggedHeader)
		return ddp.AppendTagged(hdr, last, ctrl, m.stag, m.to+m.off), n, last
	default:
		n, last = ddp.Cut(m.length-m.off, t.mulpdu, ddp.UntaggedHeader)
		return ddp.AppendUntagged(hdr, last, ctrl, m.inv, ddp.QNSend, m.msn, uint32(m.off)), n, last
	}
}

// copyOut fills dst with the next octets of the message's memory.
func (s *session) copyOut(dst []byte, held *holder) stag.Fault {
	t := &s.tx
	for len(dst) > 0 {
		ref, off, k := t.take(uint64(len(dst)))
		if k > 0 && !(held.hold(ref) && t.copyHeld(ref, dst[:k], off)) {
			return ref.Lost()
		}
		dst = dst[k:]
	}
	return stag.OK
}

// copyHeld copies what a request of the program sends, or what a peer reads by itself.
func (t *txSide) copyHeld(ref stag.Ref, dst []byte, off uint64) bool {
	if t.msg.kind == fromIRRQ {
		return ref.CopyHeldForPeer(dst, off)
	}
	return ref.CopyHeld(dst, off)
}

// pieces adds the next n octets of the message's memory to b, not copied.
func (s *session) pieces(b *batch, n uint64) stag.Fault {
	t := &s.tx
	for n > 0 {
		ref, off, k := t.take(n)
		if k > 0 && !b.memory(ref, off, k) {
			return ref.Lost()
		}
		n -= k
	}
	return stag.OK
}

// take moves over up to n octets of one element of the scatter/gather list.
func (t *txSide) take(n uint64) (ref stag.Ref, off, k uint64) {
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

// lost is the cause when memory of the message being framed was revoked or has
// vanished. Its segment has not begun to go out, so the Terminate takes its place
// (draft 6.4).
func (s *session) lost(f stag.Fault) cause {
	t := &s.tx
	if t.msg.kind == fromIRRQ {
		return s.readCause(memoryFault(sideRead, f), t.msg.off)
	}
	return cause{fault: memoryFault(sideSQ, f), sq: t.next, hasSQ: true}
}

// framed ends the message.
func (s *session) framed() {
	t := &s.tx
	switch t.msg.kind {
	case fromSQ:
		s.advance(s.q.sq.at(t.next))
	case fromIRRQ:
		s.irrq.pop()
	default: // an RTR belongs to no queue
	}
	t.msg.kind = noMessage
}

// advance moves on behind the next Send Queue element, all of which is framed, or
// executed.
func (s *session) advance(e *sqe) {
	t := &s.tx
	e.end = t.pos
	t.next++
	s.q.sq.framed.Store(t.next)
}

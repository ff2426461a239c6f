package qp

import (
	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/stag"
)

// frame adds FPDUs of the message to b, one at least, and, behind its last one, moves
// on.
func (s *session) frame(b *batch) cause {
	t := &s.tx
	before := b.size
	var last, ok bool
	switch {
	case !t.framer.Plain():
		last, ok = s.frameMarked(b)
	case s.gathers():
		last, ok = s.frameGathered(b)
	default:
		last, ok = s.frameCopied(b)
	}
	t.pos += uint64(b.size - before)
	if !ok {
		return s.lost()
	}
	if last {
		s.framed()
	}
	return cause{}
}

// gathers reports whether the next segment is sent from where its payload is.
func (s *session) gathers() bool {
	g := s.tuning.Gather
	if g < 0 || !s.llp.direct() || !s.tx.framer.Gather() {
		return false
	}
	_, n, _ := s.header()
	return n >= g
}

// frameGathered adds an FPDU whose payload is not copied.
func (s *session) frameGathered(b *batch) (last, ok bool) {
	t := &s.tx
	hdr, n, last := s.header()
	before := b.mark()
	from := len(b.arena)
	b.arena = t.framer.AppendHead(b.arena, hdr, n)
	b.size += len(b.arena) - from
	if !s.pieces(b, uint64(n)) {
		b.rollback(before)
		return false, false
	}
	from = len(b.arena)
	b.arena = mpa.AppendTail(b.arena, len(hdr)+n)
	b.copied(from)
	t.msg.off += uint64(n)
	return last, true
}

// frameCopied adds FPDUs with a copy of the payload, until the message ends or b is
// full.
func (s *session) frameCopied(b *batch) (last, ok bool) {
	t := &s.tx
	var held holder
	defer held.release()
	for !last && (!ok || !b.full(s.tuning.Batch)) {
		var hdr []byte
		var n int
		hdr, n, last = s.header()
		from := len(b.arena)
		b.arena = t.framer.AppendHead(b.arena, hdr, n)
		if ok = s.copyOut(b, uint64(n), &held); !ok {
			b.arena = b.arena[:from]
			return false, false
		}
		b.arena = t.framer.Finish(b.arena, from)
		b.copied(from)
		t.msg.off += uint64(n)
	}
	return last, true
}

// frameMarked adds an FPDU with markers in it.
func (s *session) frameMarked(b *batch) (last, ok bool) {
	t := &s.tx
	hdr, n, last := s.header()
	from := len(b.arena)
	if ok = s.hold(uint64(n)); ok {
		b.arena = t.framer.AppendFPDU(b.arena, hdr, t.parts...)
	}
	for _, r := range t.held {
		r.Release()
	}
	t.held = t.held[:0]
	clear(t.parts)
	t.parts = t.parts[:0]
	if !ok {
		return false, false
	}
	b.copied(from)
	t.msg.off += uint64(n)
	return last, true
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

// hold collects the next n octets of the message's memory in t.parts, held by
// t.held. It reports false if some of it was revoked.
func (s *session) hold(n uint64) bool {
	t := &s.tx
	for n > 0 {
		ref, off, k := t.take(n)
		if k > 0 {
			if !ref.Hold() {
				return false
			}
			t.held = append(t.held, ref)
			t.parts = ref.Append(t.parts, off, k)
		}
		n -= k
	}
	return true
}

// copyOut appends the next n octets of the message's memory to the arena of b. It
// reports false if some of it was revoked.
func (s *session) copyOut(b *batch, n uint64, held *holder) bool {
	for n > 0 {
		ref, off, k := s.tx.take(n)
		at := len(b.arena)
		b.arena = b.arena[:at+int(k)]
		if k > 0 && !(held.hold(ref) && ref.CopyHeld(b.arena[at:], off)) {
			return false
		}
		n -= k
	}
	return true
}

// pieces adds the next n octets of the message's memory to b, not copied.
func (s *session) pieces(b *batch, n uint64) bool {
	t := &s.tx
	for n > 0 {
		ref, off, k := t.take(n)
		if k > 0 && !b.memory(ref, off, k) {
			return false
		}
		n -= k
	}
	return true
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

// lost is the cause when memory of the message being framed was revoked. Its
// segment has not begun to go out, so the Terminate takes its place (draft 6.4).
func (s *session) lost() cause {
	t := &s.tx
	if t.msg.kind == fromIRRQ {
		return s.readCause(FaultReadSTag, t.msg.off)
	}
	return cause{fault: FaultSQSTag, sq: t.next, hasSQ: true}
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

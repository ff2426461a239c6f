package qp

import (
	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/stag"
	"github.com/softrnic/softrnic/wr"
)

// Most of what a busy program posts is alike: Sends and RDMA Writes of a few octets
// in one piece. run frames as many of them as come in a row. With anything else, or
// anything wrong, the usual way goes on (choose.go, frame.go), which does the same
// for one message at a time and knows what to make of a fault.

// shortLimit is the longest message, in octets, that run frames: it fits one segment
// and is copied. It is negative if there is none.
func (s *session) shortLimit() int64 {
	t := &s.tx
	if !t.framer.Plain() {
		return -1
	}
	n := min(t.mulpdu-ddp.UntaggedHeader, s.tuning.Short)
	if g := s.tuning.Gather; g >= 0 && t.framer.Gather() {
		n = min(n, g-1)
	}
	return int64(n)
}

// run frames short messages from the head of the Send Queue on, until one is not,
// the batch is full or an RDMA Read Request waits for its answer.
func (s *session) run(b *batch) {
	t, sq := &s.tx, &s.q.sq
	if t.short < 0 || t.rtr != 0 || s.gate.Load() {
		return
	}
	var held holder // from one message to the next: all this is one copy
	defer held.release()
	pos, tail := t.next, sq.tail.Load()
	for ; pos != tail && !b.full(s.tuning.Batch) && s.irrq.len() == 0; pos++ {
		e := sq.at(pos)
		if !e.plain || int64(e.length) > t.short {
			break
		}
		var ref stag.Ref
		if e.length > 0 {
			var f stag.Fault
			if ref, f = t.sources.Resolve(e.sgl[0].STag, e.sgl[0].TO, e.length); f != stag.OK || !held.hold(ref) {
				break
			}
		}
		if !s.frameShort(b, e, ref) {
			break
		}
	}
	if pos != t.next {
		t.next = pos
		sq.framed.Store(pos)
	}
}

// frameShort appends a message of one segment, whose memory is held. It reports
// false, having done nothing, if that has vanished.
func (s *session) frameShort(b *batch, e *sqe, ref stag.Ref) bool {
	t := &s.tx
	from, n, msn := len(b.arena), int(e.length), t.sendMSN
	if e.op == wr.OpWrite {
		b.arena = t.framer.AppendLength(b.arena, ddp.TaggedHeader+n)
		b.arena = ddp.AppendTagged(b.arena, true, rdmap.Control(rdmap.Write), uint32(e.remote.STag), e.remote.TO)
	} else {
		inv := uint32(0)
		if e.op.Invalidates() {
			inv = uint32(e.invalidate)
		}
		b.arena = t.framer.AppendLength(b.arena, ddp.UntaggedHeader+n)
		b.arena = ddp.AppendUntagged(b.arena, true, rdmap.Control(sendOpcodes[e.op]), inv, ddp.QNSend, t.sendMSN.Next(), 0)
	}
	at := len(b.arena)
	b.arena = b.arena[:at+n]
	if n > 0 && !ref.CopyHeld(b.arena[at:], 0) {
		b.arena, t.sendMSN = b.arena[:from], msn
		return false
	}
	b.arena = t.framer.Finish(b.arena, from)
	b.copied(from)
	t.pos += uint64(len(b.arena) - from)
	e.end = t.pos
	return true
}

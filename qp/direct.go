package qp

import (
	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/stag"
	"github.com/softrnic/softrnic/wr"
)

// directAhead is how many octets behind the segment are received with it: the next
// one's header, if it is large too.
const directAhead = 256

// divert makes the segment that has begun to arrive go straight to its memory, if
// that is worth while and nothing speaks against it.
func (r *receiver) divert() {
	in := &r.in
	part, size := in.Begun()
	if least := r.tuning.Direct; least < 0 || size-len(part) < least || r.loss != nil { // what is dropped has no place
		return
	}
	seg, code := ddp.Parse(part)
	if code != ddp.CodeOK {
		return
	}
	seg = seg.Of(size)
	op, term := r.check(seg)
	if term != rdmap.CodeNone {
		return
	}
	ref, ok := r.destination(op, seg)
	if !ok || ref.MayVanish() || !copyPayload(op == rdmap.Write, ref, seg) {
		return
	}
	t := &in.placement
	t.state = underWay
	t.hlen, t.size = copy(t.header[:], seg.Header()), seg.Size()
	t.ref, t.at = ref, uint64(len(seg.Payload()))
	in.Divert()
}

// destination is where all of a segment's payload will be placed, if it is in one
// piece and there is no doubt about it.
func (r *receiver) destination(op rdmap.Opcode, seg ddp.Segment) (ref stag.Ref, ok bool) {
	n := uint64(seg.Size())
	switch op {
	case rdmap.ReadResponse:
		if r.responseFault(r.reads.first(), seg) != noFault {
			return ref, false
		}
		if r.cfg.ReadIntoLocal && !r.outOfTurn(op, seg) {
			ref, f := r.answers.Resolve(wr.STag(seg.STag()), seg.TO(), n)
			return ref, f == stag.OK
		}
		fallthrough
	case rdmap.Write:
		if r.rights.noWrite.Load() || r.outOfTurn(op, seg) {
			return ref, false
		}
		ref, f := r.targets.Resolve(wr.STag(seg.STag()), seg.TO(), n)
		return ref, f == stag.OK
	case rdmap.Send, rdmap.SendSE, rdmap.SendInvalidate, rdmap.SendSEInvalidate:
		return r.recvDestination(op, seg)
	default: // what the ULP has no octets in
		return ref, false
	}
}

// recvDestination is where the payload of a segment of a Send goes, if it is within one
// element of the receive's list.
func (r *receiver) recvDestination(op rdmap.Opcode, seg ddp.Segment) (ref stag.Ref, ok bool) {
	n := uint64(seg.Size())
	l := &r.recv
	if seg.MSN() != r.send.MSN() || uint64(seg.MO()) != r.send.MO() {
		return ref, false
	}
	if !l.open {
		_, _ = r.takeReceive(op, false) // without asking for one: a receiver that is woken for it has to take it
	}
	if !l.open || l.op != op || l.sge == len(l.sgl) {
		return ref, false
	}
	g := &l.sgl[l.sge]
	if to := g.TO + l.off; n <= uint64(g.Length)-l.off && to >= g.TO {
		ref, f := r.sinks.Resolve(g.STag, to, n)
		return ref, f == stag.OK
	}
	return ref, false
}

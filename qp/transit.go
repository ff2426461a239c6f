package qp

import (
	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/stag"
	"github.com/softrnic/softrnic/wr"
)

// The payload of a large segment need not go through the receive buffer. Once its
// header is here and names memory that it may be placed in, the rest of the payload
// is read straight into that memory. All checks are made again when the FPDU is
// whole, and it is handled then like any other; only the copy is left out. A
// segment with anything wrong goes the usual way.
//
// That is for streams without CRC and markers: what a CRC covers is not placed
// before it has been checked (RFC 5044 6).

// directAhead is how many octets behind the segment are received with it: the next
// one's header, if it is large too.
const directAhead = 256

// transit is a segment whose payload is received where it belongs, and whether there
// is one. Owned by the receive side.
type transit struct {
	state  transitState
	header [ddp.UntaggedHeader]byte
	hlen   int
	size   int // octets of payload
	ref    stag.Ref
	at     uint64 // where in ref the next octet goes
}

// transitState is how far a segment in transit is.
type transitState uint8

const (
	// noTransit: there is none. The rest of a transit means nothing.
	noTransit transitState = iota
	// underWay: its FPDU is not whole.
	underWay
	// arrived: it is what Next has returned last.
	arrived
)

// next is what Next returns, given what the Deframer has: the header of the one in
// transit, if that has arrived now.
func (t *transit) next(ulpdu []byte, ok bool) []byte {
	switch {
	case t.state == arrived: // before, and this is another one
		t.state = noTransit
	case t.state == underWay && ok:
		t.state = arrived
		return t.header[:t.hlen]
	}
	return ulpdu
}

// segment is the one in transit, as if all its payload were placed.
func (t *transit) segment() ddp.Segment {
	seg, _ := ddp.Parse(t.header[:t.hlen])
	return seg.Placed(t.size)
}

// divert makes the segment that has begun to arrive go straight to its memory, if
// that is worth while and nothing speaks against it.
func (r *receiver) divert() {
	in := &r.in
	part, size := in.Begun()
	if least := r.tuning.Direct; least < 0 || size-len(part) < least || !r.llp.direct {
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
	if !ok || ref.MayVanish() || !placed(op == rdmap.Write, ref, seg) {
		return
	}
	t := &in.transit
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
		return r.landingFor(op, seg)
	default: // what the ULP has no octets in
		return ref, false
	}
}

// landingFor is where the payload of a segment of a Send goes, if it is within one
// element of the receive's list.
func (r *receiver) landingFor(op rdmap.Opcode, seg ddp.Segment) (ref stag.Ref, ok bool) {
	n := uint64(seg.Size())
	l := &r.landing
	if seg.MSN() != r.send.MSN() || uint64(seg.MO()) != r.send.MO() {
		return ref, false
	}
	if !l.open {
		_, _ = r.takeReceive(op) // without asking for one: who is woken for it has to take it
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

// parse is the segment that what Next has returned last is.
func (in *intake) parse(ulpdu []byte) (ddp.Segment, ddp.Code) {
	if in.transit.state == arrived {
		return in.transit.segment(), ddp.CodeOK
	}
	return ddp.Parse(ulpdu)
}

// scrap is where to receive when nothing is placed any more: the rest of the segment
// in transit is read over, by itself.
func (in *intake) scrap() []byte {
	p := in.space()
	if n := in.Diverted(); n > 0 && n < len(p) {
		p = p[:n]
	}
	return p
}

// strand ends the session: the memory that a segment was received into is gone.
func (r *receiver) strand() {
	seg := r.in.transit.segment()
	switch op, _ := r.check(seg); op {
	case rdmap.Write:
		r.s.halt(*inboundCause(faultTagSTag, seg))
	case rdmap.ReadResponse:
		r.s.halt(*r.placingCause(faultSinkSTag, seg))
	default:
		r.s.halt(cause{fault: faultRQSTag, recv: true})
	}
}

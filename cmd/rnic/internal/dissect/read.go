package dissect

import (
	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/rdmap"
)

// asked notes a Read or Atomic Request and judges how many are outstanding.
// What passed the capture point was sent before, and answers that reached the
// requester passed it before, so the count here is never above the requester's
// own: exceeding the limit is proven.
func (d *direction) asked(s ddp.Segment, op rdmap.Opcode) {
	if op == rdmap.ReadRequest {
		if h, ok := rdmap.ParseReadRequest(s.Payload()); ok {
			d.state.reads = append(d.state.reads, h)
		}
	} else if h, ok := rdmap.ParseAtomicRequest(s.Payload()); ok {
		d.state.atomics = append(d.state.atomics, h.RequestID)
	}
	limit := d.peerIRD()
	n := len(d.state.reads) + len(d.state.atomics) // RFC 7306 5.2: one limit
	if limit >= 0 && n > limit && !d.state.unsure && !d.peer.state.unsure && d.peer.tcp.whole() {
		d.report.violate(d.report.FPDUs, ruleDepth, "%d requests are outstanding, the peer's IRD is %d", n, limit) // R5040-6.1-M3
	}
}

// peerIRD is how many requests d's peer takes at once, -1 if not negotiated.
func (d *direction) peerIRD() int {
	req, rep := d.c.request, d.c.reply
	if req == nil || rep == nil || !req.Enhanced || !rep.Enhanced {
		return -1
	}
	ird := req.IRD
	if d == d.c.initiator {
		ird = rep.IRD
	}
	if ird == mpa.NotNegotiated {
		return -1
	}
	return int(ird)
}

// answered reports whether a Read Response that begins answers a Read, and
// judges the case that there is none.
func (d *direction) answered() bool {
	p := d.peer
	if d.state.unsure || p.state.unsure || p.phase != phaseFull || d.c.request == nil {
		return false
	}
	if len(p.state.reads) > 0 {
		return true
	}
	if p.tcp.whole() { // R5040-5.2-M1
		d.report.violate(d.report.FPDUs, ruleReadResponse, "no Read Request is outstanding")
	}
	d.state.unsure = true
	return false
}

// readSegment judges a segment of the answer to the peer's oldest Read.
func (d *direction) readSegment(s ddp.Segment) {
	h := &d.peer.state.reads[0]
	n := uint64(len(s.Payload()))
	if n == 0 {
		return // STag and TO of an empty segment mean nothing (R5041-5.2-M11)
	}
	out := d.report
	off := s.TO() - h.SinkTO
	switch {
	case s.STag() != h.SinkSTag: // R5040-4.4-M2
		out.violate(out.FPDUs, ruleReadResponse, "the STag is 0x%08x, asked was 0x%08x", s.STag(), h.SinkSTag)
	case off > uint64(h.Size) || n > uint64(h.Size)-off:
		out.violate(out.FPDUs, ruleReadResponse, "TO 0x%x and %d octets are not within the %d octets asked for at 0x%x",
			s.TO(), n, h.Size, h.SinkTO)
	default:
		return
	}
	d.state.unsure = true // one report is enough
	d.state.tagged.partial = true
}

// readEnd judges the length of a whole answer.
func (d *direction) readEnd() {
	h := &d.peer.state.reads[0]
	if got := d.state.tagged.octets; got != int64(h.Size) { // R5040-5.2.1-M12
		d.report.violate(d.report.FPDUs, ruleReadResponse, "the response has %d octets, asked were %d", got, h.Size)
	}
}

// atomicAnswer matches an Atomic Response with the peer's oldest request.
func (d *direction) atomicAnswer(s ddp.Segment) {
	p := d.peer
	h, ok := rdmap.ParseAtomicResponse(s.Payload())
	if !ok || d.state.unsure || p.state.unsure || p.phase != phaseFull || d.c.request == nil {
		return
	}
	n := d.report.FPDUs
	switch {
	case len(p.state.atomics) == 0:
		if p.tcp.whole() {
			d.report.violate(n, ruleAtomicResponse, "no Atomic Request is outstanding")
		}
		d.state.unsure = true
		return
	case p.state.atomics[0] != h.RequestID: // RFC 7306 5.2.2
		d.report.violate(n, ruleAtomicResponse, "the request identifier is 0x%x, asked was 0x%x", h.RequestID, p.state.atomics[0])
	}
	p.state.atomics = p.state.atomics[1:]
}

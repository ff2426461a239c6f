package dissect

import (
	"fmt"

	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/rdmap"
)

const (
	bufferSize = mpa.MinBuffer
	// keptBuffers is how many directions keep a buffer within an FPDU. Others keep what has come of it.
	keptBuffers = 64
)

// full takes octets of the FPDU stream.
func (d *direction) full(b []byte) {
	// R5044-7.1.2-M8. Proven if all the Initiator sent so far was captured.
	if d == d.c.responder && d.report.FPDUs == 0 && d.deframer.Buffered() == 0 &&
		d.peer.report.FPDUs == 0 && d.c.request != nil && d.peer.tcp.whole() {
		d.report.violate(1, ruleFirstFPDU, "the Responder sends before the Initiator's first FPDU")
	}
	if !d.lent {
		d.deframer.SetBuffer(d.c.t.borrow())
		d.lent = true
	}
	for len(b) > 0 && d.phase == phaseFull {
		b = b[d.deframer.Feed(b):]
		d.drain()
	}
	if d.deframer.Buffered() == 0 || d.phase == phaseOff || d.c.t.lent > keptBuffers {
		d.giveBack()
	}
}

// giveBack gives the buffer back, if there is one. The deframer keeps what is in it.
func (d *direction) giveBack() {
	if d.lent {
		d.c.t.giveBack(d.deframer.Park())
		d.lent = false
	}
}

// drain decodes the whole FPDUs received.
func (d *direction) drain() {
	for {
		f, ok, err := d.deframer.NextRaw()
		if err != nil {
			d.report.violate(d.report.FPDUs+1, ruleLength, "%v", err) // R5044-3-M4
			d.phase = phaseOff
			return
		}
		if !ok {
			return
		}
		d.fpdu(f)
	}
}

// fpdu judges one FPDU. Pad octets are not judged, though a sender must leave
// them zero (R5044-4.1-M2): receivers ignore them, and siw leaves old octets
// there.
func (d *direction) fpdu(f mpa.FPDU) {
	out := d.report
	out.FPDUs++
	line := FPDU{
		Connection: d.c.number, FromClient: d == d.c.initiator, Number: out.FPDUs,
		Octets: len(f.ULPDU), CRC: "bad", Packet: d.c.t.number, Time: d.c.t.at,
	}
	switch {
	case f.CRC == f.Computed:
		out.CRC.OK++
		line.CRC = "ok"
	case f.CRC == 0:
		out.CRC.Zero++
		line.CRC = "zero"
	default:
		out.CRC.Bad++
	}
	if len(f.ULPDU) >= 2 {
		line.Op = rdmap.OpcodeOf(f.ULPDU[1]).String()
		out.Ops[line.Op]++
	} else {
		line.Op = "none"
	}
	s, code := ddp.Parse(f.ULPDU)
	if code != ddp.CodeShort {
		line.Detail, line.Last = detail(s), s.Last()
		line.Payload = s.Payload()
		if d.c.t.visit != nil {
			line.Fields = headerFields(f.ULPDU)
		}
	}
	if d.state.terminated { // R5040-5.4-M8
		out.violate(out.FPDUs, ruleAfterTerminate, "a %s follows the Terminate", line.Op)
	}
	if !f.MarkersOK { // R5044-4.3-M3
		out.violate(out.FPDUs, ruleMarker, "a marker does not point at the FPDU's length field")
	}
	if d.crc && f.CRC != f.Computed { // R5044-7.1.1-M11
		out.violate(out.FPDUs, ruleCRC, "the CRC is 0x%08x, right is 0x%08x", f.CRC, f.Computed)
		d.state.distrust() // nothing it says can be relied on
	} else {
		d.message(s, code)
	}
	if d.c.t.visit != nil {
		d.c.t.visit(line)
	}
}

// message judges what the FPDU carries: first by itself, then against what went
// before.
func (d *direction) message(s ddp.Segment, code ddp.Code) {
	out := d.report
	n := out.FPDUs
	switch code {
	case ddp.CodeOK:
	case ddp.CodeShort: // R5041-4.4-M1
		out.violate(n, ruleShort, "the ULPDU is shorter than a DDP header")
		d.state.distrust()
		return
	default: // R5041-4.1-M9
		out.violate(n, ruleDDPVersion, "the DDP version is %d, not 1", s.Version())
		d.state.distrust()
		return
	}
	if b := s.Header()[0] & 0x3C; b != 0 { // R5041-4.1-M8
		out.violate(n, ruleDDPReserved, "reserved bits 0x%02x of the DDP control octet are set", b)
	}
	op, term := rdmap.CheckExtended(s)
	if term != rdmap.CodeVersion && s.RsvdULP()&0x30 != 0 { // R5040-4.1-M9
		out.violate(n, ruleRDMAPReserved, "reserved bits 0x%02x of the RDMAP control octet are set", s.RsvdULP()&0x30)
	}
	if term != rdmap.CodeNone {
		d.broken(s, op, term)
		return
	}
	if !s.Tagged() && !op.Invalidates() && s.RsvdULP32() != 0 { // R5040-4.1-M10
		out.violate(n, ruleInvalidateSTag, "a %v carries Invalidate STag 0x%08x", op, s.RsvdULP32())
	}
	if n == 1 && len(out.Gaps) == 0 {
		d.judgeRTR(op.String(), rtrKind(s, op))
	}
	d.sequence(s, op)
	if op == rdmap.Terminate {
		d.terminate(s.Payload())
	}
}

// broken names the rule that CheckExtended found broken.
func (d *direction) broken(s ddp.Segment, op rdmap.Opcode, term rdmap.TermCode) {
	const experimental = 0xF // RFC 6580 3.4
	out, n := d.report, d.report.FPDUs
	d.state.distrust()
	switch {
	case term == rdmap.CodeVersion:
		out.violate(n, ruleRDMAPVersion, "the RDMAP version is %d, not 1", s.RsvdULP()>>6)
	case !op.Known() && op != experimental:
		out.violate(n, ruleOpcode, "opcode %v is not defined", op)
	case !op.Known():
	case term == rdmap.CodeOpcode:
		out.violate(n, ruleTagged, "a %v with T=%d", op, digit(s.Tagged()))
	case term == rdmap.CodeInvalidQN:
		out.violate(n, ruleQueue, "a %v on queue %d, not %d", op, s.QN(), op.QN())
	case term == rdmap.CodeMSNRange:
		out.violate(n, ruleMSN, "a Terminate with MSN %d, not 1", s.MSN())
	case term == rdmap.CodeInvalidMO:
		out.violate(n, ruleMO, "a %v, which is one segment, with MO %d", op, s.MO())
	case term == rdmap.CodeStream:
		out.violate(n, ruleLast, "a %v, which is one segment, with L=0", op)
	default:
		least, most := op.HeaderSize()
		out.violate(n, ruleSize, "a %v with %d octets, not %d to %d", op, len(s.Payload()), least, most)
	}
	if op == rdmap.Terminate && term != rdmap.CodeVersion {
		d.state.terminated = true
	}
}

// terminate reports a Terminate and judges its control word.
func (d *direction) terminate(b []byte) {
	d.state.terminated = true
	h, ok := rdmap.ParseTerminate(b)
	if !ok {
		return // CheckExtended saw to the size
	}
	out := d.report
	n := out.FPDUs
	t := Terminate{
		FPDU: n, Raw: fmt.Sprintf("%08x", h.Raw),
		Layer: h.Code.Layer(), Type: h.Code.Type(), Code: h.Code.Code(), Text: h.Code.Text(),
	}
	switch {
	case h.LooksSwapped():
		t.Text += "; with layer and type swapped: " + h.SwappedCode().Text()
		out.violate(n, ruleTerminateLayout, // R5040-4.8-M2
			"the control word 0x%08x has layer and type, and the bits of each octet, in siw's order; meant is %v", h.Raw, h.SwappedCode())
	case !h.Code.Defined(): // R5040-4.8-M3
		out.violate(n, ruleTerminateCode, "layer %d, type %d, code 0x%02x is not defined", t.Layer, t.Type, t.Code)
	case h.Reserved() != 0: // R5040-4.8-M4
		out.violate(n, ruleTerminateReserved, "reserved bits 0x%04x are set", h.Reserved())
	case h.Truncated: // R5040-4.8-M5 to M8
		out.violate(n, ruleTerminateLength, "fewer octets (%d) than M, D and R announce", len(b))
	}
	out.Terminates = append(out.Terminates, t)
}

// rtrKind is which RTR message the segment is, 0 if none (RFC 6581 9.2).
func rtrKind(s ddp.Segment, op rdmap.Opcode) mpa.RTR {
	switch op {
	case rdmap.Send:
		if s.Last() && len(s.Payload()) == 0 {
			return mpa.RTRSend
		}
	case rdmap.Write:
		if s.Last() && len(s.Payload()) == 0 {
			return mpa.RTRWrite
		}
	case rdmap.ReadRequest:
		if h, ok := rdmap.ParseReadRequest(s.Payload()); ok && h.Size == 0 {
			return mpa.RTRRead
		}
	default:
	}
	return 0
}

// detail says in a few words what a segment is about.
func detail(s ddp.Segment) string {
	if s.Tagged() {
		return fmt.Sprintf("STag 0x%08x TO 0x%x", s.STag(), s.TO())
	}
	text := fmt.Sprintf("QN %d MSN %d MO %d", s.QN(), s.MSN(), s.MO())
	switch op := rdmap.OpcodeOf(s.RsvdULP()); op {
	case rdmap.SendInvalidate, rdmap.SendSEInvalidate:
		text += fmt.Sprintf(" invalidate 0x%08x", s.RsvdULP32())
	case rdmap.ReadRequest:
		if h, ok := rdmap.ParseReadRequest(s.Payload()); ok {
			text += fmt.Sprintf(" read %d from 0x%08x/0x%x to 0x%08x/0x%x",
				h.Size, h.SourceSTag, h.SourceTO, h.SinkSTag, h.SinkTO)
		}
	case rdmap.Terminate:
		if h, ok := rdmap.ParseTerminate(s.Payload()); ok {
			text += fmt.Sprintf(" word 0x%08x", h.Raw)
		}
	case rdmap.Immediate, rdmap.ImmediateSE:
		if v, ok := rdmap.ParseImmediate(s.Payload()); ok {
			text += fmt.Sprintf(" data 0x%016x", v)
		}
	case rdmap.AtomicRequest:
		if h, ok := rdmap.ParseAtomicRequest(s.Payload()); ok {
			text += fmt.Sprintf(" operation %d id 0x%x on 0x%08x/0x%x", h.Op, h.RequestID, h.STag, h.TO)
		}
	case rdmap.AtomicResponse:
		if h, ok := rdmap.ParseAtomicResponse(s.Payload()); ok {
			text += fmt.Sprintf(" id 0x%x value 0x%x", h.RequestID, h.Value)
		}
	default:
	}
	return text
}

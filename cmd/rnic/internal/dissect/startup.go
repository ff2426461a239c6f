package dissect

import (
	"encoding/binary"

	"github.com/softrnic/softrnic/mpa"
)

// judgeFrame checks what a startup frame says by itself. raw holds the frame.
func judgeFrame(out *StreamReport, raw []byte, s *mpa.Startup) {
	flags, rev := raw[16], raw[17]
	if rev == 0 { // R5044-7.1.1-M14, R6581-6-M3
		out.violate(0, ruleStartupRevision, "revision 0 is not MPA's of these documents")
	}
	reserved := flags & 0x0F
	if rev < 2 {
		reserved = flags & 0x1F // S is RFC 6581's
	}
	if reserved != 0 { // R5044-7.1.1-M13
		out.violate(0, ruleStartupReserved, "reserved flags 0x%02x are not zero (revision %d)", reserved, rev)
	}
	if !s.Enhanced {
		return
	}
	const modelA, rtrBCD = 0x80000000, 0x4000C000
	word := binary.BigEndian.Uint32(raw[20:])
	if word&modelA == 0 && word&rtrBCD != 0 { // R6581-9.2-M12
		out.violate(0, ruleStartupModel, "flag A is clear but B, C or D is set (word 0x%08x)", word)
	}
}

// judgePair checks a Reply against its Request.
func judgePair(out *StreamReport, req, rep *mpa.Startup) {
	if req.Enhanced != rep.Enhanced { // R6581-10-M5, M6
		out.violate(0, ruleStartupEnhanced, "the Request has S=%d, the Reply S=%d", digit(req.Enhanced), digit(rep.Enhanced))
		return
	}
	if !rep.Enhanced {
		return
	}
	if req.P2P != rep.P2P { // R6581-9.2-M4, M11
		out.violate(0, ruleStartupModel, "the Request has A=%d, the Reply A=%d", digit(req.P2P), digit(rep.P2P))
	}
	if rep.Reject {
		return // its depths say what would be needed (RFC 6581 9.1)
	}
	if req.P2P && rep.P2P && rep.RTR == 0 { // R6581-9.2-M5, M6
		out.violate(0, ruleStartupModel, "the Reply accepts peer-to-peer mode without an RTR message")
	}
	const open = mpa.NotNegotiated
	switch {
	case req.IRD == open && rep.ORD != open: // R6581-9.1-M10
		out.violate(0, ruleStartupDepth, "the Request leaves its IRD open, the Reply's ORD is %d", rep.ORD)
	case req.IRD != open && rep.ORD != open && rep.ORD > req.IRD: // R6581-9.1-M2
		out.violate(0, ruleStartupDepth, "the Reply's ORD %d exceeds the Request's IRD %d", rep.ORD, req.IRD)
	}
	if req.ORD == open && rep.IRD != open { // R6581-9.1-M8
		out.violate(0, ruleStartupDepth, "the Request leaves its ORD open, the Reply's IRD is %d", rep.IRD)
	}
}

func digit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// describe is a startup frame as the report has it.
func describe(s *mpa.Startup) *Startup {
	d := &Startup{
		Rev: s.Rev, Markers: s.Markers, CRC: s.CRC, Reject: s.Reject, Enhanced: s.Enhanced,
		P2P: s.P2P, RTR: []string{}, PrivateDataLen: len(s.PrivateData),
	}
	if s.Enhanced {
		d.IRD, d.ORD = &s.IRD, &s.ORD
	}
	for _, k := range []struct {
		kind mpa.RTR
		name string
	}{{mpa.RTRSend, "send"}, {mpa.RTRWrite, "write"}, {mpa.RTRRead, "read"}} {
		if s.RTR&k.kind != 0 {
			d.RTR = append(d.RTR, k.name)
		}
	}
	return d
}

// judgeRTR checks that the Initiator's first FPDU is an RTR message both sides
// agreed on, in peer-to-peer mode (R6581-9.2-M7, R6581-5-M1). A Terminate may
// come instead, if there is none it can send (R6581-9.2-M8).
func (d *direction) judgeRTR(op string, kind mpa.RTR) {
	req, rep := d.c.request, d.c.reply
	if d != d.c.initiator || req == nil || !req.P2P || !rep.P2P || rep.RTR == 0 {
		return
	}
	if op != "Terminate" && rep.RTR&kind == 0 {
		d.report.violate(1, ruleRTR, "the first message must be an empty %v, as the Reply asks; it is %s", rep.RTR, op)
	}
}

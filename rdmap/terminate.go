package rdmap

import (
	"encoding/binary"

	"github.com/softrnic/softrnic/ddp"
)

// Octets of a Terminate header: the control word alone, and with the length, an
// untagged DDP header and a Read Request header (RFC 5040 4.8).
const (
	TerminateMinSize = 4
	TerminateMaxSize = 4 + 2 + ddp.UntaggedHeader + ReadRequestSize
)

// TerminateHeader follows the untagged DDP header of a Terminate message
// (RFC 5040 4.8 figures 7 and 8).
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	| Layer | EType |  Error Code   |M|D|R|        Reserved         |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|  DDP Segment Length (M or D)  |                               |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+                               +
//	//        Terminated DDP Header, 14 or 18 octets (D)           //
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	//        Terminated Read Request Header, 28 octets (R)        //
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//
// RFC 5040 7.1 can be read as if absent fields were sent as zeros; here, as in
// known implementations, an absent field takes no octets.
type TerminateHeader struct {
	Code          TermCode
	HasLength     bool   // M
	SegmentLength uint16 // octets of the whole faulty segment, header included
	DDPHeader     []byte // of the faulty segment; empty: D clear
	ReadRequest   []byte // of the faulty Read Request; empty: R clear

	// Raw is the control word as received; Append ignores it.
	Raw uint32
	// Rest is what follows the announced fields on receipt. Append ignores it.
	Rest []byte
	// Truncated says, on receipt, that fewer octets came than M, D and R
	// announce. The fields that did come whole are set.
	Truncated bool
}

// The header control bits in the control word.
const (
	termM        = 1 << 15
	termD        = 1 << 14
	termR        = 1 << 13
	termReserved = termR - 1
)

// Append appends the header. The DDP header must be 14 or 18 octets as its own
// T flag says, the Read Request header 28; M is set whenever D is, and the
// length field is then present (R5040-4.8-M6).
func (t *TerminateHeader) Append(dst []byte) []byte {
	word := uint32(t.Code) << 16
	if t.HasLength || len(t.DDPHeader) > 0 {
		word |= termM
	}
	if len(t.DDPHeader) > 0 {
		word |= termD
	}
	if len(t.ReadRequest) > 0 {
		word |= termR
	}
	dst = binary.BigEndian.AppendUint32(dst, word)
	if word&termM != 0 {
		dst = binary.BigEndian.AppendUint16(dst, t.SegmentLength)
	}
	dst = append(dst, t.DDPHeader...)
	return append(dst, t.ReadRequest...)
}

// ParseTerminate reads a header; its slices borrow b. It reports false if b
// does not even hold the control word. It is lenient beyond that, as a
// Terminate ends the stream whatever else it says: absent fields may be absent
// or, where the length's two octets come as zeros, in Rest.
func ParseTerminate(b []byte) (TerminateHeader, bool) {
	if len(b) < TerminateMinSize {
		return TerminateHeader{}, false
	}
	word := binary.BigEndian.Uint32(b)
	t := TerminateHeader{Raw: word, Code: TermCode(word >> 16)}
	b = b[TerminateMinSize:]
	t.Rest, t.Truncated = t.fields(b)
	return t, true
}

// fields reads what M, D and R announce and returns what is left, and whether
// something was missing.
func (t *TerminateHeader) fields(b []byte) (rest []byte, truncated bool) {
	if t.Raw&(termM|termD) != 0 {
		if len(b) < 2 {
			return b, true
		}
		t.HasLength = t.Raw&termM != 0
		t.SegmentLength = binary.BigEndian.Uint16(b)
		b = b[2:]
	}
	if t.Raw&termD != 0 {
		n := headerLen(b)
		if len(b) < n {
			return b, true
		}
		t.DDPHeader, b = b[:n], b[n:]
	}
	if t.Raw&termR != 0 {
		if len(b) < ReadRequestSize {
			return b, true
		}
		t.ReadRequest, b = b[:ReadRequestSize], b[ReadRequestSize:]
	}
	return b, false
}

// headerLen is the length of the DDP header at b by its own T flag.
func headerLen(b []byte) int {
	if len(b) > 0 && b[0]&0x80 != 0 { // RFC 5041 4.1
		return ddp.TaggedHeader
	}
	return ddp.UntaggedHeader
}

// Reserved is the 13 reserved bits as received. A sender must leave them zero,
// a receiver must not look (R5040-4.8-M4).
func (t *TerminateHeader) Reserved() uint16 { return uint16(t.Raw & termReserved) }

// Include says what a Terminate with this code carries when a received message
// caused it (RFC 5040 4.8 figure 10): the DDP header with the segment length,
// and the RDMAP header. The RDMAP header is meant only when that message is a
// Read Request. A Local Catastrophic Error of any layer carries neither, by the
// text on the Terminated DDP Header.
func Include(code TermCode) (ddpHeader, rdmapHeader bool) {
	switch {
	case code.Type() == 0 || code.Layer() > LayerDDP:
		return false, false
	case code.Layer() == LayerDDP:
		return true, false
	default:
		return true, code.Type() == 1
	}
}

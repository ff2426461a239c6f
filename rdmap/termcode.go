package rdmap

import (
	"fmt"

	"github.com/softrnic/softrnic/ddp"
)

// TermCode is the cause in a Terminate message, layer<<12|type<<8|code
// (RFC 5040 4.8 figures 8 and 9). It is a protocol number, not a Go error. DDP
// and MPA codes keep their numbers in it.
type TermCode uint16

// Codes of the RDMAP layer (RFC 5040 4.8 figure 9).
const (
	CodeLocalCatastrophic TermCode = 0x0000 // any low octet means the same

	// Remote protection errors.
	CodeProtSTag          TermCode = 0x0100 // invalid STag
	CodeProtBounds        TermCode = 0x0101 // base or bounds violation
	CodeProtAccess        TermCode = 0x0102 // access rights violation
	CodeProtNotAssociated TermCode = 0x0103 // STag not associated with the stream
	CodeProtWrap          TermCode = 0x0104 // TO wrap
	CodeProtInvalidate    TermCode = 0x0109 // STag cannot be invalidated
	CodeProtUnspecified   TermCode = 0x01FF

	// Remote operation errors.
	CodeVersion       TermCode = 0x0205 // invalid RDMAP version
	CodeOpcode        TermCode = 0x0206 // unexpected opcode
	CodeStream        TermCode = 0x0207 // catastrophic, this stream
	CodeGlobal        TermCode = 0x0208 // catastrophic, global
	CodeOpInvalidate  TermCode = 0x0209 // STag cannot be invalidated
	CodeOpUnspecified TermCode = 0x02FF
)

// Codes of the DDP layer that a check of this package can yield.
const (
	CodeInvalidQN = TermCode(ddp.CodeInvalidQN)
	CodeMSNRange  = TermCode(ddp.CodeMSNRange)
	CodeInvalidMO = TermCode(ddp.CodeInvalidMO)
	CodeTooLong   = TermCode(ddp.CodeTooLong)
	// CodeShort is never sent, see ddp.CodeShort.
	CodeShort = TermCode(ddp.CodeShort)
)

// CodeNone says that nothing is wrong. It is never sent. It is not zero,
// because zero is CodeLocalCatastrophic.
const CodeNone TermCode = 0xFFFF

// Layers of a TermCode.
const (
	LayerRDMAP uint8 = 0
	LayerDDP   uint8 = 1
	LayerLLP   uint8 = 2
)

// MakeTermCode joins the three fields; layer and etype are 0 to 15.
func MakeTermCode(layer, etype, code uint8) TermCode {
	return TermCode(layer&0xF)<<12 | TermCode(etype&0xF)<<8 | TermCode(code)
}

// Layer is the layer that found the error: 0 RDMAP, 1 DDP, 2 LLP.
func (c TermCode) Layer() uint8 { return uint8(c >> 12) }

// Type is the error type within the layer, 0 to 15.
func (c TermCode) Type() uint8 { return uint8(c>>8) & 0xF }

// Code is the error code within the type.
func (c TermCode) Code() uint8 { return uint8(c) }

// Defined reports whether RFC 5040 figure 9 and the documents it points to
// (RFC 5041 7.2, RFC 5044 8, RFC 6581 8) give c a meaning.
func (c TermCode) Defined() bool { return c.name() != "" }

// Text is the meaning in words, for any value.
func (c TermCode) Text() string {
	if s := c.name(); s != "" {
		return s
	}
	switch c {
	case CodeNone:
		return "no error"
	case CodeShort:
		return ddp.CodeShort.String()
	default:
		return fmt.Sprintf("undefined: layer %d, type %d, code 0x%02x", c.Layer(), c.Type(), c.Code())
	}
}

// String is the number and its meaning.
func (c TermCode) String() string { return fmt.Sprintf("0x%04x (%s)", uint16(c), c.Text()) }

// name is the meaning of a defined code, else empty.
func (c TermCode) name() string {
	switch c.Layer() {
	case LayerRDMAP:
		if c.Type() == 0 { // figure 9: any code will do
			return "RDMAP local catastrophic error"
		}
		return rdmapNames[c]
	case LayerDDP:
		return ddpName(ddp.Code(c))
	case LayerLLP:
		return mpaNames[c]
	}
	return ""
}

var rdmapNames = map[TermCode]string{
	CodeProtSTag:          "RDMAP remote protection error: invalid STag",
	CodeProtBounds:        "RDMAP remote protection error: base or bounds violation",
	CodeProtAccess:        "RDMAP remote protection error: access rights violation",
	CodeProtNotAssociated: "RDMAP remote protection error: STag not associated with the stream",
	CodeProtWrap:          "RDMAP remote protection error: TO wrap",
	CodeProtInvalidate:    "RDMAP remote protection error: STag cannot be invalidated",
	CodeProtUnspecified:   "RDMAP remote protection error: unspecified",
	CodeVersion:           "RDMAP remote operation error: invalid RDMAP version",
	CodeOpcode:            "RDMAP remote operation error: unexpected opcode",
	CodeStream:            "RDMAP remote operation error: catastrophic, this stream",
	CodeGlobal:            "RDMAP remote operation error: catastrophic, global",
	CodeOpInvalidate:      "RDMAP remote operation error: STag cannot be invalidated",
	CodeOpUnspecified:     "RDMAP remote operation error: unspecified",
}

// mpaNames has the codes of RFC 5044 8 and RFC 6581 8. Package mpa owns the
// numbers; this table only reads them out.
var mpaNames = map[TermCode]string{
	0x2001: "MPA: TCP connection closed, terminated or lost",
	0x2002: "MPA: CRC mismatch",
	0x2003: "MPA: marker and length do not agree on the start of an FPDU",
	0x2004: "MPA: invalid Request or Reply frame",
	0x2005: "MPA: local catastrophic error",
	0x2006: "MPA: insufficient IRD resources",
	0x2007: "MPA: no matching RTR option",
}

func ddpName(c ddp.Code) string {
	switch c {
	case ddp.CodeLocal, ddp.CodeInvalidSTag, ddp.CodeBounds, ddp.CodeNotAssociated, ddp.CodeWrap,
		ddp.CodeTaggedVersion, ddp.CodeInvalidQN, ddp.CodeNoBuffer, ddp.CodeMSNRange,
		ddp.CodeInvalidMO, ddp.CodeTooLong, ddp.CodeUntaggedVersion:
		return c.String()
	default:
		return ""
	}
}

// Package rdmap is the Remote Direct Memory Access Protocol of RFC 5040: its
// opcodes, the Read Request and Terminate formats, the Terminate codes, and the
// checks a received message must pass before its contents matter. The messages of RFC 7306
// (Immediate Data, Atomic operations) are here too, for streams that speak it.
//
// It is pure: values and octets only. Package ddp carries its messages.
package rdmap

import (
	"strconv"

	"github.com/softrnic/softrnic/ddp"
)

// Opcode is the kind of an RDMAP message (RFC 5040 4.1 figure 4, RFC 7306 4.1).
type Opcode uint8

// The opcodes. Those from Immediate on are RFC 7306's.
const (
	Write            Opcode = 0x0
	ReadRequest      Opcode = 0x1
	ReadResponse     Opcode = 0x2
	Send             Opcode = 0x3
	SendInvalidate   Opcode = 0x4
	SendSE           Opcode = 0x5
	SendSEInvalidate Opcode = 0x6
	Terminate        Opcode = 0x7
	Immediate        Opcode = 0x8
	ImmediateSE      Opcode = 0x9
	AtomicRequest    Opcode = 0xA
	AtomicResponse   Opcode = 0xB
)

// opcodeInfo is a row of RFC 5040 figures 4 and 5 and RFC 7306 figures 2 and 3.
type opcodeInfo struct {
	name     string
	tagged   bool
	qn       uint32 // if not tagged
	payload  bool   // carries octets of the ULP
	min, max int    // octets of the RDMAP header, if no payload
	rfc5040  bool   // as opposed to RFC 7306
}

var opcodes = [...]opcodeInfo{
	Write:            {"Write", true, 0, true, 0, 0, true},
	ReadRequest:      {"ReadRequest", false, ddp.QNReadRequest, false, ReadRequestSize, ReadRequestSize, true},
	ReadResponse:     {"ReadResponse", true, 0, true, 0, 0, true},
	Send:             {"Send", false, ddp.QNSend, true, 0, 0, true},
	SendInvalidate:   {"SendInvalidate", false, ddp.QNSend, true, 0, 0, true},
	SendSE:           {"SendSE", false, ddp.QNSend, true, 0, 0, true},
	SendSEInvalidate: {"SendSEInvalidate", false, ddp.QNSend, true, 0, 0, true},
	Terminate:        {"Terminate", false, ddp.QNTerminate, false, TerminateMinSize, TerminateMaxSize, true},
	Immediate:        {"Immediate", false, ddp.QNSend, false, ImmediateSize, ImmediateSize, false},
	ImmediateSE:      {"ImmediateSE", false, ddp.QNSend, false, ImmediateSize, ImmediateSize, false},
	AtomicRequest:    {"AtomicRequest", false, ddp.QNReadRequest, false, AtomicRequestSize, AtomicRequestSize, false},
	AtomicResponse:   {"AtomicResponse", false, ddp.QNAtomicResponse, false, AtomicResponseSize, AtomicResponseSize, false},
}

// undefined is the row of an opcode without one.
var undefined opcodeInfo

func (op Opcode) info() *opcodeInfo {
	if op.Known() {
		return &opcodes[op]
	}
	return &undefined
}

// Known reports whether RFC 5040 or RFC 7306 defines op.
func (op Opcode) Known() bool { return int(op) < len(opcodes) }

// Basic reports whether RFC 5040 itself defines op.
func (op Opcode) Basic() bool { return op.info().rfc5040 }

// Tagged reports whether op travels in tagged segments.
func (op Opcode) Tagged() bool { return op.info().tagged }

// QN is the queue of an untagged op, 0 for others.
func (op Opcode) QN() uint32 { return op.info().qn }

// HasPayload reports whether op carries octets of the ULP. If not, its message
// is one segment holding an RDMAP header.
func (op Opcode) HasPayload() bool { return op.info().payload }

// HeaderSize is the least and the most octets of op's RDMAP header; both are 0
// for an op with payload.
func (op Opcode) HeaderSize() (least, most int) {
	i := op.info()
	return i.min, i.max
}

// IsSend reports whether op is one of the four Sends of RFC 5040.
func (op Opcode) IsSend() bool { return op >= Send && op <= SendSEInvalidate }

// IsImmediate reports whether op is Immediate Data, with a Solicited Event or without.
func (op Opcode) IsImmediate() bool { return op == Immediate || op == ImmediateSE }

// Invalidates reports whether op names an STag to invalidate (RFC 5040 5.3).
func (op Opcode) Invalidates() bool { return op == SendInvalidate || op == SendSEInvalidate }

// Solicited reports whether op asks for an event at the receiver (RFC 5040 5.3).
func (op Opcode) Solicited() bool {
	return op == SendSE || op == SendSEInvalidate || op == ImmediateSE
}

// String is the opcode's name, or its number in decimal if it has none.
func (op Opcode) String() string {
	if op.Known() {
		return opcodes[op].name
	}
	return strconv.Itoa(int(op))
}

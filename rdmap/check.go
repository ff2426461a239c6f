package rdmap

import "github.com/softrnic/softrnic/ddp"

// The RDMAP control octet, the second of every segment (RFC 5040 4.1 figure 3).
//
//	 0   1   2   3   4   5   6   7
//	+---+---+---+---+---+---+---+---+
//	|  RV   | Rsvd  |    Opcode     |
//	+---+---+---+---+---+---+---+---+
const (
	maskVersion = 0xC0
	version     = 0x40 // RV 01b; 00b is the RDMA Consortium's
	maskOpcode  = 0x0F
)

// Control is the control octet of a message of kind op, RV 01b, reserved bits
// zero.
func Control(op Opcode) byte { return version | byte(op)&maskOpcode }

// ControlImmediate is a reserved bit of the control octet of a Send, which other receivers do not look at (RFC 5040
// 4.1). Between softrnics that have agreed on it, it says that the Invalidate STag field holds 32 bits of Immediate Data
// (docs/decisions/0039-send-with-immediate.md).
const ControlImmediate byte = 0x10

// OpcodeOf is the opcode in a control octet, known or not.
func OpcodeOf(control byte) Opcode { return Opcode(control & maskOpcode) }

// Check makes the checks of a received segment that need no state, for a
// receiver that speaks RFC 5040 alone. It returns the opcode and CodeNone, or
// the first of these that applies (RFC 5040 7.2):
//
//  1. CodeVersion: RV is not 01b.
//  2. CodeOpcode: the opcode is not defined, or the T flag is not the one of
//     figure 4 for it.
//  3. CodeInvalidQN: the queue is not the one of figure 4.
//
// And for a message that is an RDMAP header only, so fits one segment:
//
//  4. CodeMSNRange: a Terminate whose MSN is not 1.
//  5. CodeInvalidMO: MO is not 0.
//  6. CodeStream: the L flag is clear (verbs draft figure 24, No 'L' bit).
//  7. CodeShort or CodeTooLong: it is not of its header's size.
//
// The opcode is returned in every case, so that a caller can tell an invalid
// Read Request from other faults with the same code.
func Check(s ddp.Segment) (Opcode, TermCode) {
	op, code := control(s)
	// RFC 7306 1.1: a peer that does not offer its messages treats them as unexpected.
	if code == CodeNone && !op.Basic() {
		code = CodeOpcode
	}
	if code != CodeNone {
		return op, code
	}
	return op, fit(s, op)
}

// CheckExtended is Check for a reader that also knows the messages of RFC 7306.
func CheckExtended(s ddp.Segment) (Opcode, TermCode) {
	op, code := control(s)
	if code != CodeNone {
		return op, code
	}
	return op, fit(s, op)
}

// control checks the control octet.
func control(s ddp.Segment) (Opcode, TermCode) {
	c := s.RsvdULP()
	op := OpcodeOf(c)
	if c&maskVersion != version { // R5040-7.2-M3
		return op, CodeVersion
	}
	if !op.Known() { // R5040-7.2-M2
		return op, CodeOpcode
	}
	return op, CodeNone
}

// fit checks that the segment is of a form that op, which is known, may have.
func fit(s ddp.Segment, op Opcode) TermCode {
	i := &opcodes[op]
	if s.Tagged() != i.tagged { // R5040-4.1-M5
		return CodeOpcode
	}
	if i.tagged {
		return CodeNone
	}
	if s.QN() != i.qn { // R5040-4.1-M7
		return CodeInvalidQN
	}
	if i.payload {
		return CodeNone
	}
	if op == Terminate && s.MSN() != 1 { // RFC 5040 5.4: one a direction
		return CodeMSNRange
	}
	if s.MO() != 0 {
		return CodeInvalidMO
	}
	if !s.Last() {
		return CodeStream
	}
	switch n := len(s.Payload()); {
	case n < i.min:
		return CodeShort
	case n > i.max:
		return CodeTooLong
	}
	return CodeNone
}

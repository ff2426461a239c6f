package mpa

import "strconv"

// Code says what went wrong, in the form a Terminate message carries it:
// layer (4 bits, 2 = LLP), error type (4 bits, 0 = MPA) and error code (8 bits)
// (RFC 5044 8, RFC 6581 8, RFC 6580 3.3).
type Code uint16

// The MPA errors.
const (
	// CodeLLPLost: the TCP connection was closed, reset or lost.
	CodeLLPLost Code = 0x2001
	// CodeCRC: the CRC of a received FPDU does not match its contents.
	CodeCRC Code = 0x2002
	// CodeFPDU: markers and ULPDU_Length disagree, or the length is not legal.
	CodeFPDU Code = 0x2003
	// CodeStartup: a Request or Reply frame is malformed, or of the wrong kind.
	CodeStartup Code = 0x2004
	// CodeLocal: a local error during enhanced startup that has no own code.
	CodeLocal Code = 0x2005
	// CodeIRD: the Initiator lacks the IRD that the Responder's ORD needs.
	CodeIRD Code = 0x2006
	// CodeRTR: no common connection model or ready-to-receive message.
	CodeRTR Code = 0x2007
)

func (c Code) String() string {
	switch c {
	case CodeLLPLost:
		return "TCP connection lost"
	case CodeCRC:
		return "CRC mismatch"
	case CodeFPDU:
		return "bad marker or ULPDU length"
	case CodeStartup:
		return "invalid startup frame"
	case CodeLocal:
		return "local catastrophic error"
	case CodeIRD:
		return "insufficient IRD resources"
	case CodeRTR:
		return "no matching RTR option"
	}
	return "Code(0x" + strconv.FormatUint(uint64(c), 16) + ")"
}

// Error is an MPA error found on this side. After one, its half connection
// delivers no further FPDU (RFC 5044 8).
type Error struct {
	Code   Code
	Detail string // what was seen, and where it helps, what to do
	Step   Step   // of a startup in which CodeLLPLost came, else 0
	Speaks string // the protocol that came where a startup frame was due: SpeaksHTTP, ...; "" if it is not known, or another fault
	Err    error  // the transport's error behind CodeLLPLost, else nil
}

func (e *Error) Error() string {
	s := "mpa: " + e.Code.String()
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the transport's error, if there is one.
func (e *Error) Unwrap() error { return e.Err }

package verbs

import (
	"github.com/softrnic/softrnic/qp"
	"github.com/softrnic/softrnic/rdmap"
)

// TermCode is the cause in a Terminate Message, as its first two octets have it:
// layer<<12 | error type<<8 | error code (RFC 5040 4.8). Package rdmap names the
// values.
type TermCode uint16

// Layer is where the error was found: 0 RDMAP, 1 DDP, 2 MPA.
func (c TermCode) Layer() uint8 { return rdmap.TermCode(c).Layer() }

// Type is the error type, of the layer: 0 to 15.
func (c TermCode) Type() uint8 { return rdmap.TermCode(c).Type() }

// Code is the error code, of the type.
func (c TermCode) Code() uint8 { return rdmap.TermCode(c).Code() }

// String is the number and what it means.
func (c TermCode) String() string { return rdmap.TermCode(c).String() }

// TerminateMessage is a Terminate Message as Query QP returns it.
type TerminateMessage struct {
	// Sent says whether this side composed it; else it was received.
	Sent bool
	Code TermCode
	// Raw is the Terminate header, from the control word on (RFC 5040 4.8).
	Raw []byte
}

func terminateOf(t *qp.TerminateMessage) *TerminateMessage {
	if t == nil {
		return nil
	}
	return &TerminateMessage{Sent: t.Sent, Code: TermCode(t.Code), Raw: t.Raw}
}

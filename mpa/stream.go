package mpa

import (
	"context"
	"fmt"
	"net"
)

// Role is a side of the startup, whichever of them opened the TCP connection
// (RFC 5044 7.1.2).
type Role uint8

// The roles. The verbs draft's 6.6.1 calls the Initiator passive and the
// Responder active.
const (
	Initiator Role = iota // sends the Request, and the first FPDU
	Responder             // sends the Reply, and nothing more until an FPDU came
)

func (r Role) String() string {
	switch r {
	case Initiator:
		return "Initiator"
	case Responder:
		return "Responder"
	}
	return fmt.Sprintf("Role(%d)", uint8(r))
}

// Stream is a connection that has finished MPA startup, and what was agreed.
// Both directions of Conn stand at the first octet of the FPDU stream, except
// for Early.
type Stream struct {
	Conn net.Conn
	Role Role

	CRC        bool // CRCs are made and checked, both ways
	MarkersOut bool // this side inserts markers
	MarkersIn  bool // the peer inserts markers

	Rev      uint8 // the lower of both sides' revisions
	Enhanced bool  // IRD, ORD and the connection model were negotiated

	IRD, ORD         int // this side's, as negotiated
	PeerIRD, PeerORD int // the peer's, as it stated them; -1 if it did not

	P2P bool // the Initiator sends an RTR message first
	RTR RTR  // with P2P, Initiator: the one to send; Responder: those it accepts

	// Nudge lets an Initiator send empty RDMA Writes to a peer that seems to have
	// missed its first FPDU (docs/decisions/0014-first-fpdu.md).
	Nudge bool

	// Request and Reply are the startup frames, for a tap; nil: unknown.
	Request, Reply *Startup

	PrivateData []byte // the peer's
	EMSS        int    // in octets; 0: what Conn states

	// Early holds octets of the FPDU stream that came to Initiate or Await in
	// Config.Early. They go ahead of what is read from Conn.
	Early []byte
}

// MULPDU returns the longest ULPDU to send on s at present, in octets (RFC 5044
// 4.5). It follows changes of the path MTU if asked again.
func (s *Stream) MULPDU() int {
	m := s.Meter()
	return m.MULPDU()
}

// Framer returns a Framer for what s sends.
func (s *Stream) Framer() Framer { return NewFramer(s.CRC, s.MarkersOut) }

// Deframer returns a Deframer, without a buffer, for what s receives.
func (s *Stream) Deframer() Deframer { return NewDeframer(s.CRC, s.MarkersIn) }

// Abort ends a stream that has not been used since its startup, because of an
// error that was found on this side: CodeLocal, CodeIRD or CodeRTR. An Initiator
// sends a Terminate with code as its first FPDU (RFC 6581 9.3); a Responder may
// not (R5044-7.1.2-M8). Then Conn is closed. The error says why the Terminate or
// the close failed, if so. Cancelling ctx, or DefaultTimeout, bounds the wait.
func (s *Stream) Abort(ctx context.Context, code Code) error {
	if s.Role == Responder {
		return s.Conn.Close()
	}
	x := begin(ctx, s.Conn, DefaultTimeout, nil)
	defer x.end()
	if err := x.write(StepWriteTerminate, s.terminate(code)); err != nil {
		return err // x has closed Conn
	}
	return s.Conn.Close()
}

// terminate is a whole FPDU with a Terminate message, the first of s. The ULPDU
// is fixed but for code: this package does not know RDMAP (RFC 5040 4.8), yet
// RFC 6581 9.1 and 9.2 have the startup send one.
func (s *Stream) terminate(code Code) []byte {
	ulpdu := [...]byte{
		0x41, 0x47, // DDP untagged, last; RDMAP Terminate
		0, 0, 0, 0, // reserved
		0, 0, 0, 2, // QN
		0, 0, 0, 1, // MSN
		0, 0, 0, 0, // MO
		byte(code >> 8), byte(code), // layer, type, code
		0, 0, // no headers follow
	}
	f := s.Framer()
	return f.AppendFPDU(nil, ulpdu[:])
}

// RejectedError is Initiate's when the Responder refused the connection. The
// connection stays open and is the ULP's again (R5044-7.1.2-M7).
type RejectedError struct {
	PrivateData []byte // from the Responder's ULP

	// PeerIRD and PeerORD are the depths that the Responder would have wanted;
	// -1 if it did not say.
	PeerIRD, PeerORD int

	// Early is what is left of Config.Early: octets of the ULP's own protocol.
	Early []byte
}

func (e *RejectedError) Error() string {
	return fmt.Sprintf("mpa: the peer rejected the connection (its IRD %d, ORD %d, %d octets of private data)",
		e.PeerIRD, e.PeerORD, len(e.PrivateData))
}

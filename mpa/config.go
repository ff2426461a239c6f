package mpa

import (
	"cmp"
	"fmt"
	"time"
)

const (
	// DefaultDepth is the IRD and ORD of a zero Config.
	DefaultDepth = 16

	// DefaultTimeout bounds a startup of a zero Config.
	DefaultTimeout = 10 * time.Second
)

// Config is what one side wants of a startup. The zero value is usable. Fields
// not marked with a role are for both.
type Config struct {
	// Rev is the highest protocol revision to use, 1 or 2. Default: 2.
	Rev uint8

	// NoCRC says that this side can do without CRCs. They are off only if both
	// sides say so. Default: CRCs on (R5044-4.4-M4). Set it on the
	// administrator's explicit wish alone.
	NoCRC bool

	// Markers asks the peer for markers. What the peer asks is always honoured.
	// Default: none.
	Markers bool

	// IRD and ORD are the most inbound and outbound Reads of this side, at most
	// 0x3FFE. Default: DefaultDepth; a negative value means none.
	IRD, ORD int

	// KeepIRD and KeepORD (Initiator) leave IRD and ORD out of the negotiation:
	// the ULPs see to them. Default: negotiated.
	KeepIRD, KeepORD bool

	// P2P (Initiator) asks for the peer-to-peer model: a ready-to-receive
	// message goes first, so that the Responder may send without waiting for
	// the ULP. It needs revision 2. Default: client-server.
	P2P bool

	// P2POptional (Initiator), with P2P, takes a Reply of the client-server model
	// too: this side's ULP has to send first then. RFC 6581 9.2 has a Responder
	// answer in the model of the Request (R6581-9.2-M4); some do not.
	// Default: such a Reply ends the startup.
	P2POptional bool

	// RTR is the set of ready-to-receive messages that this side can send
	// (Initiator) or accept (Responder). A Read counts only if it has the ORD or
	// IRD for it. Default: RTRWrite|RTRRead. Of several that both sides have, the
	// Initiator sends a Read, unless NoNudge is set: its answer shows that the
	// Responder reads.
	RTR RTR

	// NoNudge (Initiator) keeps a queue pair from sending empty RDMA Writes to a
	// peer that says nothing after its Reply (see Stream.Nudge). Default: it may.
	NoNudge bool

	// PrivateData is for the peer's ULP: at most MaxEnhancedPrivateData octets
	// in an enhanced frame, else MaxPrivateData. Default: none.
	PrivateData []byte

	// OnRequestSent (Initiator), if set, is called when the Request has been written.
	// Initiate waits for its return.
	OnRequestSent func()

	// Answer (Await), if set, is called when a peer has begun with another protocol: SpeaksHTTP,
	// SpeaksTLS or SpeaksSSH. The peer gets what it returns before the connection is closed, and a
	// second to read it. Default: nothing.
	Answer func(speaks string) []byte

	// Timeout bounds Initiate, Await or Accept as a whole. Default:
	// DefaultTimeout; a negative value means no bound but the context's.
	Timeout time.Duration

	// Early (Initiate, Await) holds octets that the ULP has read from the
	// connection already, past its own last streaming message. They are taken
	// before any from the connection. Default: none.
	Early []byte
}

// Check says what makes c unusable for role, as Initiate and Await would.
func (c Config) Check(role Role) error {
	_, err := c.resolved(role)
	return err
}

// resolved returns c with defaults filled in, checked for role.
func (c Config) resolved(role Role) (Config, error) {
	c.Rev = cmp.Or(c.Rev, MaxRev)
	if c.Rev > MaxRev {
		return c, fmt.Errorf("mpa: Config.Rev is %d: use 1 or 2", c.Rev)
	}
	var err error
	if c.IRD, err = depth("IRD", c.IRD); err != nil {
		return c, err
	}
	if c.ORD, err = depth("ORD", c.ORD); err != nil {
		return c, err
	}
	if c.RTR&^rtrAll != 0 {
		return c, fmt.Errorf("mpa: Config.RTR is %#x: use RTRSend, RTRWrite and RTRRead", uint8(c.RTR))
	}
	c.RTR = cmp.Or(c.RTR, RTRWrite|RTRRead)
	if role == Initiator && c.ORD == 0 || role == Responder && c.IRD == 0 {
		if c.RTR == RTRRead {
			return c, fmt.Errorf("mpa: Config.RTR is RTRRead alone: that needs an %s of 1", readDepth(role))
		}
		c.RTR &^= RTRRead
	}
	if c.P2P && role == Initiator && c.Rev < 2 {
		return c, fmt.Errorf("mpa: Config.P2P needs Config.Rev 2, not %d", c.Rev)
	}
	switch {
	case c.Timeout == 0:
		c.Timeout = DefaultTimeout
	case c.Timeout < 0:
		c.Timeout = 0
	}
	return c, nil
}

func depth(name string, n int) (int, error) {
	switch {
	case n == 0:
		return DefaultDepth, nil
	case n < 0:
		return 0, nil
	case n >= NotNegotiated:
		return 0, fmt.Errorf("mpa: Config.%s is %d: the most is %d", name, n, NotNegotiated-1)
	}
	return n, nil
}

// readDepth names the depth that a Read as RTR message needs of role.
func readDepth(role Role) string {
	if role == Initiator {
		return "ORD"
	}
	return "IRD"
}

// request is the Initiator's frame. It is enhanced only if that gains something
// (R6581-10-M3).
func (c *Config) request() Startup {
	s := Startup{
		Markers:     c.Markers,
		CRC:         !c.NoCRC,
		Rev:         c.Rev,
		Enhanced:    c.Rev >= 2 && (c.P2P || !c.KeepIRD || !c.KeepORD),
		PrivateData: c.PrivateData,
	}
	if !s.Enhanced {
		return s
	}
	s.IRD, s.ORD = uint16(c.IRD), uint16(c.ORD)
	if c.KeepIRD {
		s.IRD = NotNegotiated
	}
	if c.KeepORD {
		s.ORD = NotNegotiated
	}
	if c.P2P {
		s.P2P, s.RTR = true, c.RTR // R6581-9.2-M1, M2
	}
	return s
}

// reply is the Responder's frame in answer to req, and the depths it uses if
// the frame accepts (RFC 6581 9.1, 9.2, 10).
func (c *Config) reply(req *Startup) (Startup, depths) {
	local := depths{c.IRD, c.ORD}
	s := Startup{
		Reply:       true,
		Markers:     c.Markers,
		CRC:         !c.NoCRC,
		Rev:         min(c.Rev, req.Rev),
		Enhanced:    req.Enhanced, // R6581-10-M5, M6
		PrivateData: c.PrivateData,
	}
	if !s.Enhanced {
		return s, local
	}
	local, s.IRD, s.ORD = answerDepths(local, req.IRD, req.ORD)
	if req.P2P { // R6581-9.2-M4, M11
		s.P2P, s.RTR = true, answerRTR(c.RTR, req.RTR)
	}
	return s, local
}

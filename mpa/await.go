package mpa

import (
	"context"
	"errors"
	"net"
)

// Offer is a Request that waits for its answer: Accept or Reject. Its methods
// are for one goroutine at a time. Who answers neither closes the connection.
type Offer struct {
	// Request is what the Initiator sent. IRD and ORD may be NotNegotiated.
	Request Startup

	// Early is what is left of Config.Early behind the Request. After Reject it
	// is the ULP's.
	Early []byte

	conn     net.Conn
	cfg      Config  // Await's, resolved
	came     Startup // Request as it came
	answered bool
}

// Await runs the Responder's side of the startup on conn up to the Request, of
// which it reads the last octet and no further (RFC 5044 7.1.2). conn may have
// carried other data before. Of cfg it uses Rev, Timeout, Early and Answer, and
// what Reject states.
//
// An unusable Config leaves conn open. After any other error conn is closed and
// the peer has been sent nothing, but for what Config.Answer says:
//
//   - *Error with CodeStartup: the Request is malformed or of a revision that
//     is not spoken.
//   - *Error with CodeLLPLost: the connection failed.
//   - *InterruptedError: the context's error, or context.DeadlineExceeded after
//     Config.Timeout. This also ends the wait when the peer is a Responder too.
func Await(ctx context.Context, conn net.Conn, cfg Config) (*Offer, error) {
	cfg, err := cfg.resolved(Responder)
	if err != nil {
		return nil, err
	}
	x := begin(ctx, conn, cfg.Timeout, cfg.Early)
	defer x.end()
	x.answer = cfg.Answer
	req, err := x.read(request)
	if err != nil {
		return nil, err
	}
	if req.Enhanced && cfg.Rev < 2 { // R6581-10-M7
		return nil, x.refuse(malformed("the Request is enhanced, which Config.Rev 1 does not allow"))
	}
	return &Offer{Request: req, came: req, Early: x.early, conn: conn, cfg: cfg}, nil
}

// PeerIRD returns the Initiator's IRD; -1 if it did not state one
// (R6581-9.1-M1).
func (o *Offer) PeerIRD() int { return o.peer(o.Request.IRD) }

// PeerORD returns the Initiator's ORD; -1 if it did not state one.
func (o *Offer) PeerORD() int { return o.peer(o.Request.ORD) }

func (o *Offer) peer(depth uint16) int {
	if !o.Request.Enhanced {
		return -1
	}
	return stated(depth)
}

// errAnswered is returned for a second answer.
var errAnswered = errors.New("mpa: the Request has been answered already")

// Accept sends an accepting Reply. From then on what arrives are FPDUs, but this
// side sends none until it has validated one (RFC 5044 7.1.2, rule 4). The
// revision is Await's; cfg.Rev and cfg.Early are not used.
//
// An unusable Config sends nothing: the Offer stands. If the Reply could not be
// sent, conn is closed and the error is an *Error with CodeLLPLost, or wraps
// context.DeadlineExceeded after Config.Timeout.
func (o *Offer) Accept(cfg Config) (*Stream, error) {
	cfg.Rev = o.cfg.Rev
	cfg, err := cfg.resolved(Responder)
	if err != nil {
		return nil, err
	}
	rep, local, err := o.answer(&cfg, false)
	if err != nil {
		return nil, err
	}
	return &Stream{
		Conn:        o.conn,
		Role:        Responder,
		CRC:         o.Request.CRC || rep.CRC, // R5044-7.1.1-M11
		MarkersOut:  o.Request.Markers,        // R5044-7.1.1-M9
		MarkersIn:   rep.Markers,
		Rev:         rep.Rev,
		Enhanced:    rep.Enhanced,
		IRD:         local.ird,
		ORD:         local.ord,
		PeerIRD:     o.PeerIRD(),
		PeerORD:     o.PeerORD(),
		P2P:         rep.P2P,
		RTR:         rep.RTR,
		Request:     &o.came,
		Reply:       &rep,
		PrivateData: o.Request.PrivateData,
		Early:       o.Early,
	}, nil
}

// Reject sends a rejecting Reply with privateData for the Initiator's ULP, at
// most as Config.PrivateData. An enhanced one states the IRD and ORD of Await's
// Config as the depths this side would want (RFC 6581 9.1). The connection
// stays open and is the ULP's again (R5044-7.1.2-M4), unless there is an error
// as in Accept.
func (o *Offer) Reject(privateData []byte) error {
	cfg := o.cfg
	cfg.PrivateData = privateData
	_, _, err := o.answer(&cfg, true)
	return err
}

// answer sends the Reply that cfg makes.
func (o *Offer) answer(cfg *Config, reject bool) (Startup, depths, error) {
	if o.answered {
		return Startup{}, depths{}, errAnswered
	}
	rep, local := cfg.reply(&o.Request)
	rep.Reject = reject
	if reject && rep.ORD != NotNegotiated {
		rep.ORD = uint16(cfg.ORD) // the ORD wanted, above the peer's IRD as it may be
	}
	frame, err := rep.Append(nil)
	if err != nil {
		return Startup{}, depths{}, err
	}
	o.answered = true
	x := begin(context.Background(), o.conn, cfg.Timeout, nil)
	defer x.end()
	if err := x.write(StepWriteReply, frame); err != nil {
		return Startup{}, depths{}, err
	}
	return rep, local, nil
}

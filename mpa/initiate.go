package mpa

import (
	"context"
	"net"
)

// Initiate runs the Initiator's side of the startup on conn: it sends a Request
// and waits for the Reply, of which it reads the last octet and no further
// (RFC 5044 7.1.2, RFC 6581 9.3). conn may have carried other data before.
//
// A *RejectedError leaves conn open. So does an unusable Config, before
// anything is sent. After any other error conn is closed:
//
//   - *Error with CodeStartup: the Reply is malformed, or does not answer the
//     Request.
//   - *Error with CodeIRD or CodeRTR: the Responder accepted what this side
//     cannot do; it has been sent a Terminate.
//   - *Error with CodeLLPLost: the connection failed.
//   - *InterruptedError: the context's error, or context.DeadlineExceeded after
//     Config.Timeout.
func Initiate(ctx context.Context, conn net.Conn, cfg Config) (*Stream, error) {
	cfg, err := cfg.resolved(Initiator)
	if err != nil {
		return nil, err
	}
	req := cfg.request()
	frame, err := req.Append(nil)
	if err != nil {
		return nil, err
	}
	x := begin(ctx, conn, cfg.Timeout, cfg.Early)
	defer x.end()
	if err := x.write(StepWriteRequest, frame); err != nil {
		return nil, err
	}
	if cfg.OnRequestSent != nil {
		cfg.OnRequestSent()
	}
	rep, err := x.read(reply)
	if err != nil {
		return nil, err
	}
	if rep.Reject {
		return nil, rejected(&rep, x.early)
	}
	// A rejecting Reply may come from a Responder that knows nothing of S; an
	// accepting one mirrors it (R6581-10-M5, M6).
	if rep.Enhanced != req.Enhanced {
		return nil, x.refuse(malformed("the Request has S=%t, the Reply S=%t", req.Enhanced, rep.Enhanced))
	}
	s := &Stream{
		Conn:        conn,
		Role:        Initiator,
		CRC:         req.CRC || rep.CRC, // R5044-7.1.1-M11
		MarkersOut:  rep.Markers,
		MarkersIn:   req.Markers,
		Rev:         min(req.Rev, rep.Rev),
		Enhanced:    rep.Enhanced,
		IRD:         cfg.IRD,
		ORD:         cfg.ORD,
		PeerIRD:     -1,
		PeerORD:     -1,
		Nudge:       !cfg.NoNudge,
		Request:     &req,
		Reply:       &rep,
		PrivateData: rep.PrivateData,
		Early:       x.early,
	}
	if !s.Enhanced {
		return s, nil
	}
	if unfit := s.settle(&cfg, &rep); unfit != nil {
		// The Terminate tells the peer why; that it could not be sent would
		// add nothing for the caller.
		_ = x.write(StepWriteTerminate, s.terminate(unfit.Code))
		return nil, x.refuse(unfit)
	}
	return s, nil
}

// settle takes over the enhanced word of an accepting Reply.
func (s *Stream) settle(cfg *Config, rep *Startup) *Error {
	s.PeerIRD, s.PeerORD = stated(rep.IRD), stated(rep.ORD) // R6581-9.1-M7
	local, ok := settleDepths(depths{cfg.IRD, cfg.ORD}, rep.IRD, rep.ORD)
	if !ok { // R6581-9.1-M5, M6
		return &Error{Code: CodeIRD, Detail: "raise Config.IRD to the ORD of the peer, or lower that"}
	}
	s.IRD, s.ORD = local.ird, local.ord
	switch {
	case rep.P2P == cfg.P2P:
	case cfg.P2P && cfg.P2POptional:
		return nil
	default:
		return &Error{Code: CodeRTR, Detail: "the Reply has the other connection model"}
	}
	if !cfg.P2P {
		return nil
	}
	s.P2P = true
	if s.RTR = pickRTR(cfg.RTR, rep.RTR, s.ORD, !cfg.NoNudge); s.RTR == 0 { // R6581-9.2-M8, M9
		return &Error{Code: CodeRTR, Detail: "this side sends " + cfg.RTR.String() + ", the peer accepts " + rep.RTR.String()}
	}
	return nil
}

func rejected(rep *Startup, early []byte) *RejectedError {
	e := &RejectedError{PrivateData: rep.PrivateData, PeerIRD: -1, PeerORD: -1, Early: early}
	if rep.Enhanced {
		e.PeerIRD, e.PeerORD = stated(rep.IRD), stated(rep.ORD)
	}
	return e
}

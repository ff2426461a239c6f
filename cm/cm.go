// Package cm connects queue pairs: TCP, MPA startup, and the queue pair's way to
// RTS, in one call a side.
//
//	client                              server
//	Dial --------- TCP connect ------>  Listen
//	     --------- MPA Request ------>  Accept    -> *Request
//	     <-------- MPA Reply ---------  Request.Accept, or Reject
//	*Conn, QP in RTS                    *Conn, QP in RTS
//
// Either program may speak first. The side that dials is MPA's Initiator, and what a
// Responder posts waits until the Initiator's first FPDU has come (RFC 5044
// 7.1.2): in peer-to-peer mode, which Dial proposes, the Initiator sends an empty
// frame by itself (RFC 6581 9.2). With revision 1, and with a peer that does not
// know the mode, the program that dials has to speak first: see Model.
//
// A Listener is never full for one client because of others that connect and stay
// silent, and Shutdown ends it with regard to the connections that it gave.
//
// Any net.Conn will do (Connect, Await). A TCP connection is the fast way. What
// others lack costs something: without a half-close (net.Pipe) a close ends both
// directions at once, so a Terminate Message on its way may be lost; without a
// reset (net.Pipe) an abort looks like a close to the peer.
package cm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/softrnic/softrnic/internal/verbsinternal"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/verbs"
)

// RTR is a set of ready-to-receive frames of peer-to-peer mode.
type RTR = mpa.RTR

// The ready-to-receive frames (RFC 6581 9.2). An empty Send uses up one of the
// peer's receives.
const (
	RTRSend  RTR = mpa.RTRSend
	RTRWrite RTR = mpa.RTRWrite
	RTRRead  RTR = mpa.RTRRead
)

// Model is a connection model of RFC 6581: which program may speak first.
type Model uint8

// The models. A Responder answers in the model of the Request.
const (
	// AnyModel proposes peer-to-peer mode, with Rev 2, and takes a Reply without it: Conn.P2P says what has come of it.
	AnyModel Model = iota
	// PeerToPeer lets either program speak first; a peer that cannot is an *IncompatibleError.
	PeerToPeer
	// ClientServer has the program that dials speak first.
	ClientServer
)

// Config is what one side wants of a connection; what applies to listening is in
// ListenConfig. The zero value works: CRC on,
// MPA revision 2, the queue pair's IRD and ORD, peer-to-peer mode if the peer knows it.
type Config struct {
	// PrivateData goes to the peer's program with the Request or Reply: up to
	// 508 octets, 512 with Rev 1.
	PrivateData []byte
	// NoCRC offers to do without CRCs; they are off if both sides offer it.
	NoCRC bool
	// Markers asks the peer to insert markers.
	Markers bool
	// Rev is the MPA revision, 1 or 2; 0 stands for 2.
	Rev uint8
	// Model is the connection model that an Initiator asks for.
	Model Model
	// RTR is what this side can send or accept as the ready-to-receive frame; 0
	// stands for RTRWrite and RTRRead.
	RTR RTR
	// IRD and ORD, if not 0, are offered in place of the queue pair's; verbs.None offers none. A queue pair with NoInboundRead offers no IRD
	// but this. What is
	// agreed is never more than the queue pair has.
	IRD, ORD int
	// Extensions asks the peer's program to speak RFC 7306, Immediate Data and Atomic
	// Operations: it is spoken if both ask, whatever QPConfig.Extensions says. The offer takes 8
	// octets before the PrivateData, which only a peer that is known to understand it may be sent: the
	// programs of two softrnics see nothing of it. Conn.Extensions says what has come of it.
	Extensions bool
	// NoNudge keeps the Initiator from sending empty RDMA Writes to a peer that says
	// nothing behind its Reply, ten at most in 10 s. They wake a peer that has missed
	// what came first, as Linux siw does now and then, and mean nothing to any other,
	// unless it has closed already: set it if the peer may do so within 10 ms of the
	// first message, and the path is as long. In peer-to-peer mode with a Read as the
	// ready-to-receive frame, the default between two softrnics, the answer to that
	// frame ends them.
	NoNudge bool
	// Timeout bounds the MPA startup; 0 stands for 10 s.
	Timeout time.Duration
	// OnRequestSent, if set, is called by Dial and Connect when the Request is out, before they
	// wait for the Reply. Who begins the next Dial then has its Requests reach the peer's
	// program in that order, if it listens with ListenConfig.InOrder. It does not block.
	OnRequestSent func()
	// CloseTimeout bounds how long Conn.Close waits for the Send Queue; 0
	// stands for 5 s.
	CloseTimeout time.Duration
}

// mpaConfig is c for the MPA startup, with the queue pair's attributes.
func (c Config) mpaConfig(a *verbs.QPAttributes) mpa.Config {
	ird := a.IRD
	if a.NoInboundRead { // nor as the ready-to-receive frame
		c.RTR = cmp.Or(c.RTR, RTRWrite)
		if c.IRD <= 0 { // else it is for Atomics, or the right comes later
			ird = 0
		}
	}
	spare := 0
	if a.PlacedWrites {
		spare = 1
	}
	return mpa.Config{
		Rev: c.Rev, NoCRC: c.NoCRC, Markers: c.Markers,
		IRD: depth(c.IRD, ird, spare), ORD: depth(c.ORD, a.ORD, spare),
		P2P: c.Model == PeerToPeer || c.Model == AnyModel && c.Rev != 1, P2POptional: c.Model == AnyModel, RTR: c.RTR, NoNudge: c.NoNudge, PrivateData: c.PrivateData, Timeout: c.Timeout,
		OnRequestSent: c.OnRequestSent,
	}
}

// check finds what package mpa would take otherwise than it is written: a negative number is none there.
func (c *Config) check() error {
	for _, n := range []struct {
		name  string
		value int
	}{{"IRD", c.IRD}, {"ORD", c.ORD}} {
		if n.value < 0 && n.value != verbs.None {
			return fmt.Errorf("cm: Config.%s is %d: use 1 or more, verbs.None for none, or 0 for what the queue pair has", n.name, n.value)
		}
	}
	return nil
}

// depth is the IRD or ORD to offer, in mpa's manner: negative for none. spare is what there is
// beyond it for the queue pair itself.
func depth(want, have, spare int) int {
	switch {
	case want > 0:
		have = min(want, have)
	case want == verbs.None:
		have = 0
	}
	have += spare
	if have == 0 {
		return -1
	}
	return min(have, mpa.NotNegotiated-1)
}

// Dial connects to a TCP address and brings qp, which is Idle, to RTS as the
// Initiator. Receives that the peer's first Sends need should have been posted.
// Cancelling ctx ends it. Its error is a *ConnectError, which wraps a *RejectedError if the peer's program
// refused; a *TimeoutError; an *IncompatibleError; that of net.Dialer;
// ErrInvalidState of verbs if qp is not Idle, ErrInvalidQP if it is nil or
// destroyed, ErrInsufficientResources without descriptors. After an error qp is as before and the connection is closed.
func Dial(ctx context.Context, addr string, qp *verbs.QP, cfg Config) (*Conn, error) {
	c, err := dialOnce(ctx, addr, qp, cfg)
	var unfit *mpa.Error
	if cfg.Model == AnyModel && errors.As(err, &unfit) && unfit.Code == mpa.CodeRTR {
		cfg.Model = ClientServer // the peer knows the mode, but no ready-to-receive frame of ours
		return dialOnce(ctx, addr, qp, cfg)
	}
	return c, err
}

func dialOnce(ctx context.Context, addr string, qp *verbs.QP, cfg Config) (*Conn, error) {
	var d net.Dialer
	nc, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, connectError(Dialing, addr, StepTCP, err)
	}
	c, err := Connect(ctx, nc, qp, cfg)
	if err != nil {
		_ = nc.Close()
		return nil, err
	}
	return c, nil
}

// Connect is Dial over a connection that the caller made. After a
// *RejectedError nc is open and the caller's again; after any other error it is
// closed.
func Connect(ctx context.Context, nc net.Conn, qp *verbs.QP, cfg Config) (*Conn, error) {
	remote := fmt.Sprint(nc.RemoteAddr())
	a, err := idle(qp)
	if err != nil {
		_ = nc.Close()
		return nil, connectError(Dialing, remote, StepQP, err)
	}
	if err := cfg.check(); err != nil {
		_ = nc.Close()
		return nil, connectError(Dialing, remote, StepConfig, err)
	}
	mc := cfg.mpaConfig(&a)
	if cfg.Extensions {
		if mc.PrivateData, err = withOffer(offerRequest, cfg.PrivateData, cfg.Rev); err != nil {
			_ = nc.Close()
			return nil, connectError(Dialing, remote, StepConfig, err)
		}
	}
	st, err := mpa.Initiate(ctx, nc, mc)
	verbsinternal.Step(qp, "MPA startup, Initiator", err)
	if err != nil {
		countAttempt(qp, err)
		if !errors.As(err, new(*RejectedError)) {
			_ = nc.Close() // Initiate leaves it open if cfg is unusable
		}
		return nil, connectError(Dialing, remote, StepConfig, err)
	}
	agreed := false
	if cfg.Extensions {
		st.PrivateData, agreed = cutOffer(st.PrivateData, true)
	}
	return start(ctx, st, qp, a.IRD, agreed, cfg, Dialing)
}

// countAttempt tells the RNIC of qp that the startup has failed.
func countAttempt(qp *verbs.QP, err error) {
	what := verbsinternal.Failed
	if errors.As(err, new(*RejectedError)) {
		what = verbsinternal.Refused
	}
	verbsinternal.CountAttempt(qp, what)
}

// idle queries a queue pair, and reports early what Modify QP would report late.
func idle(qp *verbs.QP) (verbs.QPAttributes, error) {
	if qp == nil {
		return verbs.QPAttributes{}, &verbs.Reason{Operation: "Connect", Err: verbs.ErrInvalidQP, What: "it is nil", Remedy: "make one with RNIC.CreateQP"}
	}
	a, err := qp.Query()
	if err != nil {
		return a, err
	}
	if a.State != verbs.StateIdle {
		return a, &verbs.Reason{
			Operation: "Connect", QP: qp.ID(), Err: verbs.ErrInvalidState, What: fmt.Sprintf("the queue pair is in %v, not Idle", a.State),
			Rule: "verbs draft 6.2.1", Remedy: "take another, or Modify it to Idle when its connection is over",
		}
	}
	return a, nil
}

// start takes qp, which has that IRD, to RTS on a stream. agreed says that the peer has asked for
// RFC 7306 too, if cfg does. If qp is not to be had
// any more, an accepted Initiator tells the peer so before it closes (RFC 6581 9.3).
func start(ctx context.Context, st *mpa.Stream, qp *verbs.QP, ird int, agreed bool, cfg Config, doing Doing) (*Conn, error) {
	m := verbs.ModifyQP{Next: verbs.StateRTS, Stream: verbsStream(st)}
	if cfg.Extensions {
		m.Extensions = &agreed
	}
	if err := qp.Modify(m); err != nil {
		told := st.Abort(ctx, mpa.CodeLocal) == nil
		return nil, unstarted(doing, st, told, err)
	}
	if cfg.CloseTimeout <= 0 {
		cfg.CloseTimeout = 5 * time.Second
	}
	if st.Enhanced {
		ird = min(ird, st.IRD)
	}
	return &Conn{stream: st, qp: qp, ird: ird, extensions: cfg.Extensions && agreed, llp: qp.LLPStream(), timeout: cfg.CloseTimeout}, nil
}

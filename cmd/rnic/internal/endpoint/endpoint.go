// Package endpoint is one end of a connection as the commands of rnic use it: the RNIC, a queue pair and its memory,
// completions, the buffers that two processes name to each other, and the loop and the budget of a server.
package endpoint

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

// Endpoint is one end of one connection, with an RNIC of its own or a shared one.
type Endpoint struct {
	NIC  *verbs.RNIC
	PD   *verbs.PD
	srq  *verbs.SRQ // nil: the QP has a Receive Queue of its own
	QP   *verbs.QP
	Conn *cm.Conn // nil until Dial or Accept
	Over bool     // the connection has ended as it should, and is not to be closed
	Reaper

	shared bool        // the RNIC outlives this endpoint
	memory []*verbs.MR // of Register
}

// Limits size the queues of an endpoint.
type Limits struct {
	SendDepth, RecvDepth int
	IRD, ORD             int  // 0: the RNIC's default
	Shared               bool // Receives come from an S-RQ
	Extensions           bool // RFC 7306 is used
	Waiting              Waiting

	RNIC verbs.Config // of Open
}

// AllAccess are the rights of a buffer that is used in every way.
const AllAccess = verbs.LocalRead | verbs.LocalWrite | verbs.RemoteRead | verbs.RemoteWrite

// Open opens an RNIC and makes a QP with one CQ for both queues, large
// enough that it cannot overflow.
func Open(l Limits) (*Endpoint, error) {
	nic, err := verbs.Open(l.RNIC)
	if err != nil {
		return nil, fmt.Errorf("opening the RNIC: %w", err)
	}
	e := &Endpoint{NIC: nic}
	if err := e.create(l); err != nil {
		nic.Close()
		return nil, err
	}
	return e, nil
}

// New is Open on an RNIC that stays open when the endpoint closes.
func New(nic *verbs.RNIC, l Limits) (*Endpoint, error) {
	e := &Endpoint{NIC: nic, shared: true}
	if err := e.create(l); err != nil {
		return nil, errors.Join(err, e.free())
	}
	return e, nil
}

func (e *Endpoint) create(l Limits) (err error) {
	if e.PD, err = e.NIC.AllocatePD(); err != nil {
		return fmt.Errorf("allocating a protection domain: %w", err)
	}
	cq, err := e.NIC.CreateCQ(verbs.CQConfig{Entries: l.SendDepth + l.RecvDepth})
	if err != nil {
		return fmt.Errorf("creating a completion queue: %w", err)
	}
	e.Reaper = NewReaper(cq, l.Waiting, e.Lost)
	if l.Shared {
		if e.srq, err = e.NIC.CreateSRQ(verbs.SRQConfig{PD: e.PD, Depth: l.RecvDepth}); err != nil {
			return fmt.Errorf("creating a shared receive queue: %w", err)
		}
	}
	e.QP, err = e.NIC.CreateQP(verbs.QPConfig{
		PD: e.PD, SendCQ: cq, RecvCQ: cq, SRQ: e.srq,
		SendDepth: l.SendDepth, RecvDepth: l.RecvDepth,
		IRD: l.IRD, ORD: l.ORD, Extensions: l.Extensions,
		ReadIntoLocal: true, // the sink of a Read is not the peer's to write to
	})
	if err != nil {
		return fmt.Errorf("creating a queue pair: %w", err)
	}
	return nil
}

// Register makes n octets of memory known to the RNIC.
func (e *Endpoint) Register(n int, access verbs.Access) ([]byte, *verbs.MR, error) {
	buf := make([]byte, n)
	mr, err := e.PD.Register(buf, access)
	if err != nil {
		return nil, nil, fmt.Errorf("registering %d octets of memory: %w", n, err)
	}
	e.memory = append(e.memory, mr)
	return buf, mr, nil
}

// Deregister gives back memory of Register.
func (e *Endpoint) Deregister(mr *verbs.MR) error {
	e.memory = slices.DeleteFunc(e.memory, func(m *verbs.MR) bool { return m == mr })
	return mr.Deregister()
}

// PostSend posts. On a queue pair in the Error state its error is ErrDisconnected.
func (e *Endpoint) PostSend(reqs ...verbs.Request) error {
	_, err := e.QP.PostSend(reqs...)
	return e.posted(err)
}

// PostRecv is PostSend for receives. An S-RQ outlives the connection.
func (e *Endpoint) PostRecv(reqs ...verbs.Recv) error {
	if e.srq != nil {
		_, err := e.srq.PostRecv(reqs...)
		return err
	}
	_, err := e.QP.PostRecv(reqs...)
	return e.posted(err)
}

func (e *Endpoint) posted(err error) error {
	if err != nil && errors.Is(err, verbs.ErrInvalidState) {
		return e.Lost()
	}
	return err
}

// Dial connects to addr. Receives for the first Sends of the peer must have been
// posted.
func (e *Endpoint) Dial(ctx context.Context, addr string, cfg cm.Config) error {
	ctx, cancel := context.WithTimeout(ctx, cfg.Timeout)
	defer cancel()
	conn, err := cm.Dial(ctx, addr, e.QP, cfg)
	if err != nil {
		return unconnected("connecting to", err)
	}
	e.Conn = conn
	return nil
}

// Accept answers a connection request. Receives must have been posted.
func (e *Endpoint) Accept(ctx context.Context, req *cm.Request, cfg cm.Config) error {
	conn, err := req.Accept(ctx, e.QP, cfg)
	if err != nil {
		return unconnected("accepting", err)
	}
	e.Conn = conn
	return nil
}

// unconnected is why a connection was not made, in the sentence of cm.ConnectError, which errors.As finds. The private
// data of the peer's program come first.
func unconnected(doing string, err error) error {
	var failed *cm.ConnectError
	if !errors.As(err, &failed) {
		return fmt.Errorf("%s the peer: %w", doing, err)
	}
	text := fmt.Sprintf("%s %s: %s", doing, failed.Remote, failed.Sentence())
	if len(failed.PrivateData) > 0 {
		text = fmt.Sprintf("%s refused: %s", failed.Remote, failed.PrivateData)
	}
	return &inWords{text, []error{failed}}
}

// inWords is errors in other words.
type inWords struct {
	text string
	errs []error
}

func (e *inWords) Error() string   { return e.text }
func (e *inWords) Unwrap() []error { return e.errs }

// closeGrace is how long a peer has to close, too, when the user has stopped the command.
const closeGrace = 200 * time.Millisecond

// Close ends the connection, after what was posted has been sent, and frees
// everything. From the end of ctx on that takes no longer than closeGrace: a peer that does
// not answer is reset.
func (e *Endpoint) Close(ctx context.Context) error {
	if e.Conn == nil || e.Over {
		return e.free()
	}
	closed := make(chan error, 1)
	go func() { closed <- plainly(e.Conn.Close()) }()
	late := make(chan struct{})
	defer context.AfterFunc(ctx, func() { time.AfterFunc(closeGrace, func() { close(late) }) })()
	select {
	case err := <-closed:
		return errors.Join(err, e.free())
	case <-late:
		freed := e.free()
		return errors.Join(<-closed, freed)
	}
}

// Abort frees everything, and resets the connection if there still is one: for a peer that does not answer.
func (e *Endpoint) Abort() error { return e.free() }

// ErrStalled is a server that is connected, but does not answer.
var ErrStalled = errors.New("the server is connected but did not answer")

// Finish closes the endpoint of a client whose work has ended with err, and returns that or what closing adds to it.
func (e *Endpoint) Finish(ctx context.Context, err error) error {
	if errors.Is(err, ErrStalled) { // it will not answer a close either
		return errors.Join(err, e.Abort())
	}
	closeErr := e.Close(ctx)
	switch {
	case closeErr == nil || ctx.Err() != nil:
	case err == nil:
		return fmt.Errorf("closing the connection: %w", closeErr)
	case err == ErrDisconnected: //nolint:errorlint // with a reason it is wrapped
		if lost := e.Lost(); lost != err { //nolint:errorlint // as above
			return lost // requests are flushed before the stream is over, and its end known
		}
		return fmt.Errorf("%w: %w", err, closeErr)
	}
	return err
}

// free frees everything. An RNIC of the endpoint's own takes all that with it.
func (e *Endpoint) free() error {
	if !e.shared {
		return e.NIC.Close()
	}
	var errs []error
	if e.QP != nil {
		errs = append(errs, e.QP.Destroy())
	}
	for _, mr := range e.memory {
		errs = append(errs, mr.Deregister())
	}
	if e.srq != nil {
		errs = append(errs, e.srq.Destroy())
	}
	if e.CQ != nil {
		errs = append(errs, e.CQ.Destroy())
	}
	if e.PD != nil {
		errs = append(errs, e.PD.Deallocate())
	}
	return errors.Join(errs...)
}

// ErrDisconnected is the end of the connection.
var ErrDisconnected = errors.New("the peer ended the connection")

// Lost is ErrDisconnected, with the reason where there is one; it may be that this side found fault with the peer.
func (e *Endpoint) Lost() error {
	if e.Conn == nil {
		return ErrDisconnected
	}
	err := plainly(e.Conn.Err())
	if err == nil {
		return ErrDisconnected
	}
	who := ErrDisconnected.Error()
	var end *verbs.StreamError
	if errors.As(err, &end) && end.Terminate != nil && end.Terminate.Sent {
		who = "this side ended the connection"
	}
	return &inWords{who + ": " + err.Error(), []error{ErrDisconnected, err}}
}

// plainly is why a connection ended, without what only matters to a program: the sentence of the reason.
func plainly(err error) error {
	var end *verbs.StreamError
	if !errors.As(err, &end) {
		return err
	}
	return &inWords{end.Sentence(), []error{err}}
}

// WhileConnected returns a context that also ends when the connection does, its
// cause then being ErrDisconnected.
func (e *Endpoint) WhileConnected(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-e.Conn.Done():
			cancel(e.Lost())
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

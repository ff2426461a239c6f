// Package endpoint is one end of a connection as the commands of rnic have it: the RNIC, a queue pair and its
// memory, waiting for completions, and the buffers that two processes tell each other of.
package endpoint

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

// Endpoint is one end of one connection, with an RNIC of its own or with one that several share.
type Endpoint struct {
	NIC  *verbs.RNIC
	PD   *verbs.PD
	cq   *verbs.CQ
	srq  *verbs.SRQ // nil: the QP has a Receive Queue of its own
	QP   *verbs.QP
	Conn *cm.Conn // nil until dial or accept

	shared bool        // the RNIC outlives this endpoint
	memory []*verbs.MR // of Register
}

// Limits size the queues of an endpoint.
type Limits struct {
	SendDepth, RecvDepth int
	IRD, ORD             int  // 0: the RNIC's default
	Shared               bool // Receives come from an S-RQ
	Extensions           bool // RFC 7306 is spoken

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

// New is Open on an RNIC that is there, and that stays when the endpoint closes.
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
	if e.cq, err = e.NIC.CreateCQ(verbs.CQConfig{Entries: l.SendDepth + l.RecvDepth}); err != nil {
		return fmt.Errorf("creating a completion queue: %w", err)
	}
	if l.Shared {
		if e.srq, err = e.NIC.CreateSRQ(verbs.SRQConfig{PD: e.PD, Depth: l.RecvDepth}); err != nil {
			return fmt.Errorf("creating a shared receive queue: %w", err)
		}
	}
	e.QP, err = e.NIC.CreateQP(verbs.QPConfig{
		PD: e.PD, SendCQ: e.cq, RecvCQ: e.cq, SRQ: e.srq,
		SendDepth: l.SendDepth, RecvDepth: l.RecvDepth,
		IRD: l.IRD, ORD: l.ORD, Extensions: l.Extensions,
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

// PostSend posts, and calls a queue pair that takes nothing any more what it is:
// the end of the connection.
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

// Dial connects to addr. Receives for what the peer sends first must have been
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

// unconnected is why a connection did not come about, in the sentence of cm.ConnectError; what the peer's program said
// comes first.
func unconnected(doing string, err error) error {
	var failed *cm.ConnectError
	switch {
	case !errors.As(err, &failed):
		return fmt.Errorf("%s the peer: %w", doing, err)
	case len(failed.PrivateData) > 0:
		return fmt.Errorf("%s refused: %s", failed.Remote, failed.PrivateData)
	case failed.Remedy != "":
		return fmt.Errorf("%s %s: %w: %s", doing, failed.Remote, failed.Err, failed.Remedy)
	}
	return fmt.Errorf("%s %s: %w", doing, failed.Remote, failed.Err)
}

// parting is how long a peer has to close, too, when the user has stopped the command.
const parting = 200 * time.Millisecond

// Close ends the connection, after what was posted has been sent, and frees
// everything. From the end of ctx on that takes no longer than parting: a peer that does
// not answer is reset.
func (e *Endpoint) Close(ctx context.Context) error {
	if e.Conn == nil {
		return e.free()
	}
	closed := make(chan error, 1)
	go func() { closed <- plainly(e.Conn.Close()) }()
	late := make(chan struct{})
	defer context.AfterFunc(ctx, func() { time.AfterFunc(parting, func() { close(late) }) })()
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

// free frees everything. An RNIC of one's own takes all that with it.
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
	if e.cq != nil {
		errs = append(errs, e.cq.Destroy())
	}
	if e.PD != nil {
		errs = append(errs, e.PD.Deallocate())
	}
	return errors.Join(errs...)
}

// ErrDisconnected says that the connection is gone.
var ErrDisconnected = errors.New("the peer ended the connection")

// Lost is ErrDisconnected, with the reason where there is one.
func (e *Endpoint) Lost() error {
	if e.Conn == nil {
		return ErrDisconnected
	}
	err := plainly(e.Conn.Err())
	if err == nil {
		return ErrDisconnected
	}
	return fmt.Errorf("%w: %w", ErrDisconnected, err)
}

// plainly is why a connection ended, without what only matters to a program: the sentence of the reason.
func plainly(err error) error {
	var end *verbs.StreamError
	if !errors.As(err, &end) {
		return err
	}
	_, sentence, _ := strings.Cut(end.Error(), ": the stream ended: ")
	return errors.New(sentence)
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

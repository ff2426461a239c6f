// Package endpoint is one end of a connection as the commands of rnic have it: the RNIC, a queue pair and its
// memory, waiting for completions, and the buffers that two processes tell each other of.
package endpoint

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

// Endpoint is one end of one connection, with an RNIC of its own: to close the
// RNIC is then all the clearing up there is.
type Endpoint struct {
	NIC  *verbs.RNIC
	PD   *verbs.PD
	cq   *verbs.CQ
	srq  *verbs.SRQ // nil: the QP has a Receive Queue of its own
	QP   *verbs.QP
	Conn *cm.Conn // nil until dial or accept

	// event is the last asynchronous event that says why a connection
	// ended; written by the RNIC's event goroutine.
	event atomic.Uint32
}

// Limits size the queues of an endpoint.
type Limits struct {
	SendDepth, RecvDepth int
	IRD, ORD             int  // 0: the RNIC's default
	Shared               bool // Receives come from an S-RQ
}

// AllAccess are the rights of a buffer that is used in every way.
const AllAccess = verbs.LocalRead | verbs.LocalWrite | verbs.RemoteRead | verbs.RemoteWrite

// Open opens an RNIC and makes a QP with one CQ for both queues, large
// enough that it cannot overflow.
func Open(l Limits) (*Endpoint, error) {
	nic, err := verbs.Open(verbs.Config{})
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

func (e *Endpoint) create(l Limits) (err error) {
	err = e.NIC.SetEventHandler(func(ev verbs.Event) {
		if ev.ID != verbs.EventLLPCloseComplete {
			e.event.Store(uint32(ev.ID))
		}
	})
	if err != nil {
		return fmt.Errorf("setting the event handler: %w", err)
	}
	if e.PD, err = e.NIC.AllocPD(); err != nil {
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
		IRD: l.IRD, ORD: l.ORD,
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
	return buf, mr, nil
}

// PostSend and postRecv post, and call a queue pair that takes nothing any more
// what it is: the end of the connection. An S-RQ outlives that.
func (e *Endpoint) PostSend(reqs ...verbs.Send) error {
	_, err := e.QP.PostSend(reqs...)
	return e.posted(err)
}

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
		var rejected *cm.RejectedError
		if errors.As(err, &rejected) && len(rejected.PrivateData) > 0 {
			return fmt.Errorf("%s refused: %s", addr, rejected.PrivateData)
		}
		err = fmt.Errorf("connecting to %s: %w", addr, err)
		if errors.Is(err, syscall.ECONNREFUSED) {
			err = fmt.Errorf("%w; is a server listening there?", err)
		}
		return err
	}
	e.Conn = conn
	return nil
}

// Accept answers a connection request. Receives must have been posted.
func (e *Endpoint) Accept(ctx context.Context, req *cm.Request, cfg cm.Config) error {
	conn, err := req.Accept(ctx, e.QP, cfg)
	if err != nil {
		return fmt.Errorf("accepting %v: %w", req.RemoteAddr(), err)
	}
	e.Conn = conn
	return nil
}

// Close ends the connection, after what was posted has been sent, and frees
// everything.
func (e *Endpoint) Close() error {
	var err error
	if e.Conn != nil {
		err = e.Conn.Close()
	}
	return errors.Join(err, e.NIC.Close())
}

// ErrDisconnected says that the connection is gone.
var ErrDisconnected = errors.New("the peer ended the connection")

// Lost is ErrDisconnected, with the reason where there is one.
func (e *Endpoint) Lost() error {
	if id := verbs.EventID(e.event.Load()); id != 0 {
		return fmt.Errorf("%w: %v", ErrDisconnected, id)
	}
	return ErrDisconnected
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

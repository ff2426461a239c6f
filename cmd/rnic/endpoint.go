package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

// endpoint is one end of one connection, with an RNIC of its own: to close the
// RNIC is then all the clearing up there is.
type endpoint struct {
	nic  *verbs.RNIC
	pd   *verbs.PD
	cq   *verbs.CQ
	srq  *verbs.SRQ // nil: the QP has a Receive Queue of its own
	qp   *verbs.QP
	conn *cm.Conn // nil until dial or accept

	// event is the last asynchronous event that says why a connection
	// ended; written by the RNIC's event goroutine.
	event atomic.Uint32
}

// limits size the queues of an endpoint.
type limits struct {
	sendDepth, recvDepth int
	ird, ord             int  // 0: the RNIC's default
	shared               bool // Receives come from an S-RQ
}

// allAccess are the rights of a buffer that is used in every way.
const allAccess = verbs.LocalRead | verbs.LocalWrite | verbs.RemoteRead | verbs.RemoteWrite

// openEndpoint opens an RNIC and makes a QP with one CQ for both queues, large
// enough that it cannot overflow.
func openEndpoint(l limits) (*endpoint, error) {
	nic, err := verbs.Open(verbs.Config{})
	if err != nil {
		return nil, fmt.Errorf("opening the RNIC: %w", err)
	}
	e := &endpoint{nic: nic}
	if err := e.create(l); err != nil {
		nic.Close()
		return nil, err
	}
	return e, nil
}

func (e *endpoint) create(l limits) (err error) {
	err = e.nic.SetEventHandler(func(ev verbs.Event) {
		if ev.ID != verbs.EventLLPCloseComplete {
			e.event.Store(uint32(ev.ID))
		}
	})
	if err != nil {
		return fmt.Errorf("setting the event handler: %w", err)
	}
	if e.pd, err = e.nic.AllocPD(); err != nil {
		return fmt.Errorf("allocating a protection domain: %w", err)
	}
	if e.cq, err = e.nic.CreateCQ(verbs.CQConfig{Entries: l.sendDepth + l.recvDepth}); err != nil {
		return fmt.Errorf("creating a completion queue: %w", err)
	}
	if l.shared {
		if e.srq, err = e.nic.CreateSRQ(verbs.SRQConfig{PD: e.pd, Depth: l.recvDepth}); err != nil {
			return fmt.Errorf("creating a shared receive queue: %w", err)
		}
	}
	e.qp, err = e.nic.CreateQP(verbs.QPConfig{
		PD: e.pd, SendCQ: e.cq, RecvCQ: e.cq, SRQ: e.srq,
		SendDepth: l.sendDepth, RecvDepth: l.recvDepth,
		IRD: l.ird, ORD: l.ord,
	})
	if err != nil {
		return fmt.Errorf("creating a queue pair: %w", err)
	}
	return nil
}

// register makes n octets of memory known to the RNIC.
func (e *endpoint) register(n int, access verbs.Access) ([]byte, *verbs.MR, error) {
	buf := make([]byte, n)
	mr, err := e.pd.Register(buf, access)
	if err != nil {
		return nil, nil, fmt.Errorf("registering %d octets of memory: %w", n, err)
	}
	return buf, mr, nil
}

// postSend and postRecv post, and call a queue pair that takes nothing any more
// what it is: the end of the connection. An S-RQ outlives that.
func (e *endpoint) postSend(reqs ...verbs.Send) error {
	_, err := e.qp.PostSend(reqs...)
	return e.posted(err)
}

func (e *endpoint) postRecv(reqs ...verbs.Recv) error {
	if e.srq != nil {
		_, err := e.srq.PostRecv(reqs...)
		return err
	}
	_, err := e.qp.PostRecv(reqs...)
	return e.posted(err)
}

func (e *endpoint) posted(err error) error {
	if err != nil && errors.Is(err, verbs.ErrInvalidState) {
		return e.lost()
	}
	return err
}

// dial connects to addr. Receives for what the peer sends first must have been
// posted.
func (e *endpoint) dial(ctx context.Context, addr string, cfg cm.Config) error {
	ctx, cancel := context.WithTimeout(ctx, cfg.Timeout)
	defer cancel()
	conn, err := cm.Dial(ctx, addr, e.qp, cfg)
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
	e.conn = conn
	return nil
}

// accept answers a connection request. Receives must have been posted.
func (e *endpoint) accept(ctx context.Context, req *cm.Request, cfg cm.Config) error {
	conn, err := req.Accept(ctx, e.qp, cfg)
	if err != nil {
		return fmt.Errorf("accepting %v: %w", req.RemoteAddr(), err)
	}
	e.conn = conn
	return nil
}

// close ends the connection, after what was posted has been sent, and frees
// everything.
func (e *endpoint) close() error {
	var err error
	if e.conn != nil {
		err = e.conn.Close()
	}
	return errors.Join(err, e.nic.Close())
}

// errDisconnected says that the connection is gone.
var errDisconnected = errors.New("the peer ended the connection")

// lost is errDisconnected, with the reason where there is one.
func (e *endpoint) lost() error {
	if id := verbs.EventID(e.event.Load()); id != 0 {
		return fmt.Errorf("%w: %v", errDisconnected, id)
	}
	return errDisconnected
}

// whileConnected returns a context that also ends when the connection does, its
// cause then being errDisconnected.
func (e *endpoint) whileConnected(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-e.conn.Done():
			cancel(e.lost())
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

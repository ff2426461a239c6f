package cm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/verbs"
)

// Listener takes connections and runs the start of their MPA startups side by
// side, so that a slow or silent peer delays no other.
type Listener struct {
	net    net.Listener
	cfg    Config
	reqs   chan *Request
	ctx    context.Context // ends with Close
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup
	close  sync.Once
}

// Listen listens on a TCP address; port 0 picks a free one, see Addr. Of cfg it
// uses what concerns the Responder before Accept: Rev, Timeout, MaxHalfOpen,
// OnStartupError, and IRD and ORD for what Reject states.
func Listen(addr string, cfg Config) (*Listener, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("cm: %w", err)
	}
	return NewListener(l, cfg), nil
}

// NewListener is Listen over a net.Listener, which it owns.
func NewListener(nl net.Listener, cfg Config) *Listener {
	if cfg.MaxHalfOpen <= 0 {
		cfg.MaxHalfOpen = 128
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	l := &Listener{net: nl, cfg: cfg, reqs: make(chan *Request), ctx: ctx, cancel: cancel}
	l.wg.Add(1)
	go l.run()
	return l
}

// Addr is the address listened on.
func (l *Listener) Addr() net.Addr { return l.net.Addr() }

// Close stops listening and closes connections that no Accept returned. Closing
// twice is closing once.
func (l *Listener) Close() error {
	var err error
	l.close.Do(func() {
		l.cancel(net.ErrClosed)
		err = l.net.Close()
		l.wg.Wait()
	})
	return err
}

// run accepts TCP connections, as many at a time as may be half-open (RFC 5042
// 6.4, RFC 5044 7.1.2).
func (l *Listener) run() {
	defer l.wg.Done()
	open := semaphore.NewWeighted(int64(l.cfg.MaxHalfOpen))
	for {
		if open.Acquire(l.ctx, 1) != nil {
			return
		}
		nc, err := l.net.Accept()
		if err != nil {
			open.Release(1)
			if l.survives(err) {
				continue
			}
			l.cancel(err)
			return
		}
		l.wg.Go(func() {
			defer open.Release(1)
			l.offer(nc)
		})
	}
}

// acceptPause is how long to wait when the system is short of something.
const acceptPause = 100 * time.Millisecond

// survives reports whether to go on after an error of accept: a lack of files or
// memory passes, and a peer that gave up in the backlog concerns nobody else.
func (l *Listener) survives(err error) bool {
	passing := []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED}
	if !slices.ContainsFunc(passing, func(e error) bool { return errors.Is(err, e) }) {
		return false
	}
	if l.cfg.OnStartupError != nil {
		l.cfg.OnStartupError(nil, err)
	}
	select {
	case <-time.After(acceptPause):
		return true
	case <-l.ctx.Done():
		return false
	}
}

// offer reads a Request and hands it to Accept.
func (l *Listener) offer(nc net.Conn) {
	req, err := Await(l.ctx, nc, l.cfg)
	if err != nil {
		if l.cfg.OnStartupError != nil && l.ctx.Err() == nil {
			l.cfg.OnStartupError(nc.RemoteAddr(), err)
		}
		return
	}
	select {
	case l.reqs <- req:
	case <-l.ctx.Done():
		_ = nc.Close()
	}
}

// Accept returns the next connection request; answer it with its Accept or
// Reject. Errors: ctx's; net.ErrClosed after Close; what the net.Listener
// failed with.
func (l *Listener) Accept(ctx context.Context) (*Request, error) {
	select {
	case r := <-l.reqs:
		return r, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-l.ctx.Done():
		return nil, fmt.Errorf("cm: accept on %v: %w", l.Addr(), context.Cause(l.ctx))
	}
}

// Await is the Responder's side over a connection that the caller made: it
// reads the peer's MPA Request. After an error nc is closed.
func Await(ctx context.Context, nc net.Conn, cfg Config) (*Request, error) {
	o, err := mpa.Await(ctx, nc, mpa.Config{
		Rev: cfg.Rev, Timeout: cfg.Timeout, IRD: cfg.IRD, ORD: cfg.ORD, NoCRC: cfg.NoCRC, Markers: cfg.Markers,
	})
	if err != nil {
		_ = nc.Close()
		return nil, fmt.Errorf("cm: connection from %v: %w", nc.RemoteAddr(), startupError(err, ""))
	}
	return &Request{nc: nc, offer: o}, nil
}

// Request is a peer's wish to connect. It is for one goroutine at a time.
type Request struct {
	nc       net.Conn
	offer    *mpa.Offer
	answered bool
}

// errAnswered is returned for a second answer, which leaves the connection alone.
var errAnswered = errors.New("cm: the request has been accepted or rejected already")

// PrivateData is what the peer's program sent along.
func (r *Request) PrivateData() []byte { return r.offer.Request.PrivateData }

// PeerIRD and PeerORD are the peer's limits on RDMA Reads; -1 if it did not say.
func (r *Request) PeerIRD() int { return r.offer.PeerIRD() }

// PeerORD is the peer's limit on outbound RDMA Reads; -1 if it did not say.
func (r *Request) PeerORD() int { return r.offer.PeerORD() }

// P2P reports whether the peer asks for peer-to-peer mode.
func (r *Request) P2P() bool { return r.offer.Request.P2P }

// RemoteAddr is the peer's address.
func (r *Request) RemoteAddr() net.Addr { return r.nc.RemoteAddr() }

// Accept accepts: it sends the MPA Reply and brings qp, which is Idle, to RTS.
// Receives that the peer's first Sends need should have been posted. After an
// error the connection is closed, unless qp is not Idle or ctx is done: then the
// Request stands.
func (r *Request) Accept(ctx context.Context, qp *verbs.QP, cfg Config) (*Conn, error) {
	if r.answered {
		return nil, errAnswered
	}
	a, err := idle(qp)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("cm: accept %v: %w", r.nc.RemoteAddr(), err)
	}
	r.answered = true
	st, err := r.offer.Accept(cfg.mpaConfig(&a))
	if err != nil {
		_ = r.nc.Close()
		return nil, fmt.Errorf("cm: accept %v: %w", r.nc.RemoteAddr(), startupError(err, ""))
	}
	return start(ctx, st, qp, a.IRD, cfg)
}

// Reject refuses, with up to 508 octets for the peer's program, and closes the
// connection.
func (r *Request) Reject(privateData []byte) error {
	if r.answered {
		return errAnswered
	}
	r.answered = true
	err := r.offer.Reject(privateData)
	if cerr := r.nc.Close(); err == nil && !errors.Is(cerr, net.ErrClosed) {
		err = cerr
	}
	return err
}

package vitcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"
)

// ListenConfig is how a Listener treats connections that nobody has taken yet.
// The zero value works.
type ListenConfig struct {
	// IncomingTimeout bounds how long a peer may take for its ConnectRequest,
	// and then to take the answer if it is refused (figure 4.3). 0 stands for
	// 10 s.
	IncomingTimeout time.Duration
	// MatchTimeout is how long a request may wait for a Wait that matches it,
	// before it is answered with ConnectNoMatch: with 0 not at all, so that only
	// a Wait that is under way can match.
	MatchTimeout time.Duration
	// MaxPending is how many connections may be in Incoming and Matching. To
	// take another one, the Listener closes the oldest of the host that has the
	// most. 0 stands for 128.
	MaxPending int
	// OnRefused, if set, is told of connections that no Wait returned, and, with
	// remote nil, of errors of the system that the Listener survives. It is
	// called from several goroutines.
	OnRefused func(remote net.Addr, err error)
}

// Listener is the passive end for all discriminators on one port. Each connection
// has its own goroutine until a Wait has it, so that a slow or silent peer
// delays no other.
type Listener struct {
	net    net.Listener
	cfg    ListenConfig
	ctx    context.Context // ends with Close
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup
	once   sync.Once
	match  matcher
	crowd  crowd
}

// Listen listens on a TCP address such as ":22089"; see DefaultPort.
func Listen(addr string, cfg ListenConfig) (*Listener, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("vitcp: %w", err)
	}
	return NewListener(l, cfg), nil
}

// NewListener is Listen over a net.Listener, which it owns.
func NewListener(nl net.Listener, cfg ListenConfig) *Listener {
	if cfg.IncomingTimeout <= 0 {
		cfg.IncomingTimeout = 10 * time.Second
	}
	if cfg.MaxPending <= 0 {
		cfg.MaxPending = 128
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	l := &Listener{net: nl, cfg: cfg, ctx: ctx, cancel: cancel, crowd: crowd{most: cfg.MaxPending}}
	l.wg.Go(l.run)
	return l
}

// Addr is the address listened on.
func (l *Listener) Addr() net.Addr { return l.net.Addr() }

// Close stops listening and closes connections that no Wait returned. Closing
// twice is closing once.
func (l *Listener) Close() error {
	var err error
	l.once.Do(func() {
		l.cancel(net.ErrClosed)
		err = l.net.Close()
		l.wg.Wait()
	})
	return err
}

// Wait waits for a request that matches f. Several may wait, also for the same:
// each request goes to the one that has waited longest. Errors: ErrInvalid;
// ctx's; net.ErrClosed after Close; what the net.Listener failed with.
func (l *Listener) Wait(ctx context.Context, f Filter) (*Pending, error) {
	if err := valid(f.Called); err != nil {
		return nil, err
	}
	w, r := l.match.wait(f)
	if r == nil {
		var err error
		select {
		case r = <-w.found:
		case <-ctx.Done():
			r, err = l.match.leave(w), ctx.Err()
		case <-l.ctx.Done():
			r, err = l.match.leave(w), context.Cause(l.ctx)
		}
		if r == nil {
			return nil, fmt.Errorf("vitcp: wait for %v: %w", f.Called, err)
		}
	}
	return r, nil
}

// run accepts TCP connections.
func (l *Listener) run() {
	for {
		nc, err := l.net.Accept()
		if err == nil {
			ctx, leave := l.crowd.enter(l.ctx, hostOf(nc))
			l.wg.Go(func() {
				defer leave()
				l.serve(ctx, nc)
			})
			continue
		}
		if !l.survives(err) {
			l.cancel(err)
			return
		}
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
	l.refused(nil, err)
	return sleep(l.ctx, acceptPause)
}

// refused tells of a connection that no Wait returned.
func (l *Listener) refused(remote net.Addr, err error) {
	if l.cfg.OnRefused != nil && l.ctx.Err() == nil {
		l.cfg.OnRefused(remote, err)
	}
}

// serve takes one connection from Incoming to Pending Accept, or to its end.
func (l *Listener) serve(ctx context.Context, nc net.Conn) {
	in, cancel := context.WithTimeout(ctx, l.cfg.IncomingTimeout)
	r, err := await(in, nc)
	cancel()
	if err == nil {
		err = l.find(ctx, r)
	}
	if err != nil {
		l.refused(nc.RemoteAddr(), err)
	}
}

// find looks for a Wait that matches r, or tells the peer that there is none.
func (l *Listener) find(ctx context.Context, r *Pending) error {
	o, result := l.match.offer(r, l.cfg.MatchTimeout > 0)
	if result == searching {
		within, cancel := context.WithTimeout(ctx, l.cfg.MatchTimeout)
		defer cancel()
		select {
		case <-o.decided:
		case <-within.Done():
		case <-r.watch.done:
		}
		result = l.match.withdraw(o)
	}
	if result == given {
		return nil // r is another's now
	}
	if gone := r.watch.over(); gone != nil {
		_ = r.finish(stirred(gone))
		return fmt.Errorf("vitcp: gone before anybody waited for %v: %w", r.ce.Called, gone)
	}
	if ctx.Err() != nil {
		_ = r.finish(TrigTimeout)
		return context.Cause(ctx)
	}
	answer, cancel := context.WithTimeout(ctx, l.cfg.IncomingTimeout)
	defer cancel()
	return r.settle(answer, result == otherBit, !r.peerToPeer())
}

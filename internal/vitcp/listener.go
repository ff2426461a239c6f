package vitcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/softrnic/softrnic/internal/admission"
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
	// MaxStartups is how many connections may be in Incoming. To take another
	// one, the Listener resets the oldest of the host that has the most; an IPv6
	// host is a /64. 0 stands for 1024.
	MaxStartups int
	// Backlog is how many may be in Matching. None of them goes for another: a
	// host whose requests there are as many as places are free has its next one
	// answered with ConnectNoMatch, unless a Wait for it is under way. 0 stands
	// for 1024.
	Backlog int
	// OnRefused, if set, is told of connections that no Wait returned, and, with
	// remote nil, of errors of the system that the Listener survives. It is
	// called from several goroutines.
	OnRefused func(remote net.Addr, err error)
}

// Listener is the passive end for all discriminators on one port. Each connection
// has its own goroutine until a Wait has it; one that takes its time loses its
// place to others if there are too many (ListenConfig.MaxStartups).
type Listener struct {
	cfg   ListenConfig
	in    *admission.Listener
	match matcher
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
	l := &Listener{cfg: cfg}
	l.in = admission.New(nl, admission.Config{
		Package: "vitcp", MaxStartups: cfg.MaxStartups, Backlog: cfg.Backlog, Serve: l.serve, Failed: cfg.OnRefused,
	})
	return l
}

// Addr is the address listened on.
func (l *Listener) Addr() net.Addr { return l.in.Addr() }

// Close stops listening and closes connections that no Wait returned. Closing
// twice is closing once.
func (l *Listener) Close() error { return l.in.Close() }

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
		case <-l.in.Context().Done():
			r, err = l.match.leave(w), context.Cause(l.in.Context())
		}
		if r == nil {
			return nil, fmt.Errorf("vitcp: wait for %v: %w", f.Called, err)
		}
	}
	return r, nil
}

// serve takes one connection from Incoming to Pending Accept, or to its end.
func (l *Listener) serve(s *admission.Startup) error {
	in, cancel := context.WithTimeout(s.Context(), l.cfg.IncomingTimeout)
	r, err := await(in, s.Conn)
	cancel()
	if err != nil {
		return err
	}
	defer s.Leave()
	return l.find(s, r)
}

// find looks for a Wait that matches r, or tells the peer that there is none.
func (l *Listener) find(s *admission.Startup, r *Pending) error {
	ctx := s.Context()
	o, result := (*offer)(nil), nobody
	full := s.Queue()
	if full == nil || s.Leave() { // else it had to go
		o, result = l.match.offer(r, full == nil && l.cfg.MatchTimeout > 0)
	}
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
		_ = r.finish(trigTimeout)
		return context.Cause(ctx)
	}
	answer, cancel := context.WithTimeout(ctx, l.cfg.IncomingTimeout)
	defer cancel()
	err := r.settle(answer, result == otherBit, !r.peerToPeer())
	if errors.Is(err, ErrNoMatch) && full != nil {
		err = fmt.Errorf("vitcp: connection from %v: %w", r.RemoteAddr(), full)
	}
	return err
}

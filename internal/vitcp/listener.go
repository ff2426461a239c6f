package vitcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/softrnic/softrnic/internal/admission"
	"github.com/softrnic/softrnic/internal/inventory"
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
	// Inventory is the object that the Listener belongs to; nil for none.
	Inventory *inventory.Object
}

// Listener is the passive end for all discriminators on one port. Each connection
// has its own goroutine until a Wait has it; one that takes its time loses its
// place to others if there are too many (ListenConfig.MaxStartups).
type Listener struct {
	cfg    ListenConfig
	match  matcher
	within atomic.Int64            // MatchTimeout
	ctx    context.Context         // ends with Close, or for what accept failed with
	cancel context.CancelCauseFunc // of ctx

	mu     sync.Mutex
	in     *admission.Listener // guarded by mu, as closed; nil if nothing is accepted here
	closed bool
	passed sync.WaitGroup // requests of Offer; added to with mu

	counted *inventory.Object
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
	l := New(cfg)
	_ = l.Serve(nl) // nobody has closed it
	return l
}

// New is a Listener that accepts nothing before Serve, and has requests that another
// process accepts by Offer.
func New(cfg ListenConfig) *Listener {
	if cfg.IncomingTimeout <= 0 {
		cfg.IncomingTimeout = 10 * time.Second
	}
	l := &Listener{cfg: cfg}
	l.SetMatchTimeout(cfg.MatchTimeout)
	l.ctx, l.cancel = context.WithCancelCause(context.Background())
	l.counted = inventory.Open(cfg.Inventory, "vitcp listener", nil, l)
	return l
}

// Serve accepts from nl, which it owns, from now on: for a Listener that does not yet.
// Errors: net.ErrClosed.
func (l *Listener) Serve(nl net.Listener) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		_ = nl.Close()
		return net.ErrClosed
	}
	in := admission.New(nl, admission.Config{
		Inventory: l.counted,
		Package:   "vitcp", MaxStartups: l.cfg.MaxStartups, Backlog: l.cfg.Backlog, Serve: l.serve, Failed: l.cfg.OnRefused,
	})
	l.in = in
	context.AfterFunc(in.Context(), func() { l.cancel(context.Cause(in.Context())) })
	return nil
}

// SetMatchTimeout changes ListenConfig.MatchTimeout, for requests that come from now on.
func (l *Listener) SetMatchTimeout(d time.Duration) { l.within.Store(int64(d)) }

// Addr is the address listened on; nil for a Listener that accepts nothing.
func (l *Listener) Addr() net.Addr {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.in == nil {
		return nil
	}
	return l.in.Addr()
}

// Context ends when the Listener does; its cause is net.ErrClosed after Close, else what
// the net.Listener failed with.
func (l *Listener) Context() context.Context { return l.ctx }

// Close stops listening and closes connections that no Wait returned. Closing
// twice is closing once.
func (l *Listener) Close() error {
	l.mu.Lock()
	l.closed = true
	in := l.in
	l.mu.Unlock()
	l.cancel(net.ErrClosed)
	var err error
	if in != nil {
		err = in.Close()
	}
	l.passed.Wait()
	l.counted.Close()
	return err
}

// Count implements inventory.Counter.
func (l *Listener) Count(tell inventory.Tell) {
	l.match.mu.Lock()
	defer l.match.mu.Unlock()
	tell(len(l.match.waiters), "waiter")
	tell(len(l.match.offers), "request in Matching")
}

// Wait waits for a request that matches f. Several may wait, also for the same:
// each request goes to the one that has waited longest. Errors: ErrInvalid;
// ctx's; net.ErrClosed after Close; what the net.Listener failed with.
func (l *Listener) Wait(ctx context.Context, f Filter) (*Pending, error) {
	w, err := l.Begin(f)
	if err != nil {
		return nil, err
	}
	return w.Wait(ctx)
}

// Begin begins to wait for a request that matches f: it has its place among those who
// wait, and Wait of it returns what comes. Errors: ErrInvalid.
func (l *Listener) Begin(f Filter) (*Waiter, error) {
	if err := valid(f.Called); err != nil {
		return nil, err
	}
	return l.match.wait(l, f), nil
}

// Wait is Listener.Wait of what has begun. It is called once.
func (w *Waiter) Wait(ctx context.Context) (*Pending, error) {
	var r *Pending
	var err error
	select {
	case r = <-w.found: // also if ctx has ended: what is there is there
	default:
		select {
		case r = <-w.found:
		case <-ctx.Done():
			r, err = w.l.match.leave(w), ctx.Err()
		case <-w.l.ctx.Done():
			r, err = w.l.match.leave(w), context.Cause(w.l.ctx)
		}
	}
	if r == nil {
		return nil, fmt.Errorf("vitcp: wait for %v: %w", w.filter.Called, err)
	}
	return r, nil
}

// Offer takes a connection of which another process of this host has read the request,
// octet for octet: it goes to the Waiter to, if that one still waits, else it looks for
// another as if it had come in here. It owns nc. Errors, after which nc is closed: what
// Await has for a request that is none; net.ErrClosed.
func (l *Listener) Offer(nc net.Conn, request []byte, to *Waiter) error {
	r, err := adopt(nc, request, l.counted)
	if err != nil {
		return fmt.Errorf("vitcp: connection from %v: %w", nc.RemoteAddr(), err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		_ = r.watch.over()
		return errors.Join(net.ErrClosed, r.finish(trigVipDisconnect))
	}
	l.passed.Go(func() {
		if err := l.search(l.ctx, r, to, nil); err != nil && l.cfg.OnRefused != nil && l.ctx.Err() == nil {
			l.cfg.OnRefused(r.RemoteAddr(), err)
		}
	})
	return nil
}

// serve takes one connection from Incoming to Pending Accept, or to its end.
func (l *Listener) serve(s *admission.Startup) error {
	in, cancel := context.WithTimeout(s.Context(), l.cfg.IncomingTimeout)
	r, err := await(in, s.Conn, l.counted)
	cancel()
	if err != nil {
		return err
	}
	full := s.Queue()
	if full != nil && !s.Leave() { // it had to go
		_ = r.watch.over()
		_ = r.finish(trigTimeout)
		return context.Cause(s.Context())
	}
	r.leave = func() { s.Leave() } // before Wait returns: the peer's next request may be there at once
	return l.search(s.Context(), r, nil, full)
}

// search looks for a Wait that matches r, first of all to, or tells the peer that there
// is none. What is full is not held until one comes.
func (l *Listener) search(ctx context.Context, r *Pending, to *Waiter, full error) error {
	within := time.Duration(l.within.Load())
	o, result := l.match.offer(r, to, full == nil && within > 0)
	if result == searching {
		hold, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		select {
		case <-o.decided:
		case <-hold.Done():
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

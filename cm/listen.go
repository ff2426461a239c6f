package cm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/softrnic/softrnic/internal/admission"
	"github.com/softrnic/softrnic/internal/inventory"
	"github.com/softrnic/softrnic/internal/tcpsock"
	"github.com/softrnic/softrnic/mpa"
)

// ErrCrowded is matched by what OnStartupError is told of connections that a
// Listener gave up for others: see ListenConfig.
var ErrCrowded = admission.ErrCrowded

// ListenConfig is how a Listener treats connections that the program has not
// taken yet. The zero value works.
//
// A peer is a connection in startup until its MPA Request is complete, and waits
// in the backlog then. However many connect, or trickle, or stay silent, each has
// its place until MaxStartups others have come; and sources count: one source
// drives out its own first. A source is an IPv4 address or an IPv6 /64.
type ListenConfig struct {
	// Rev is the MPA revision, 1 or 2; 0 stands for 2.
	Rev uint8
	// Timeout bounds how long a peer may take for its Request; 0 stands for
	// 10 s.
	Timeout time.Duration
	// IRD and ORD are what a Reject states.
	IRD, ORD int
	// MaxStartups is how many connections may be in startup. For another one
	// the oldest of the source that has the most is reset; sources with no more
	// than a 32nd of the places count the same. 0 stands for 1024.
	MaxStartups int
	// Backlog is how many Requests may wait for Accept. None of them goes for
	// another. A source has as many as are left free at most, so one alone has
	// half; a Request beyond that is rejected, without private data. 0 stands
	// for 1024.
	Backlog int
	// InOrder makes Accept return the Requests of one source in the order in which their
	// connections came, for programs that tell connections apart by that: see
	// Config.OnRequestSent. A Request waits 100 ms at most for those that
	// have not come though their connections were earlier.
	InOrder bool
	// Answer, if set, is called when a peer speaks another protocol: "HTTP", "TLS" or "SSH". The peer
	// gets what it returns before it is closed, for it to tell its user. It is called from several goroutines, and may not
	// call Close or Shutdown, which wait for it.
	Answer func(speaks string) []byte
	// OnStartupError, if set, is told, by a *ConnectError, of connections that ended before Accept
	// had them, and, with remote nil, of errors of the system in accepting that
	// the Listener survives. It is called from several goroutines, and may not call Close or Shutdown, which wait for it.
	OnStartupError func(remote net.Addr, err error)
	// Logger, if set, gets a warning for each of them, ten a second at most; the
	// next one then says how many were left out.
	Logger *slog.Logger
}

// startup is what Await is to know.
func (c *ListenConfig) startup() Config {
	return Config{Rev: c.Rev, Timeout: c.Timeout, IRD: c.IRD, ORD: c.ORD}
}

// Listener takes connections and reads their MPA Requests side by side, so that a
// slow or silent peer neither delays another nor, in any number, keeps one out.
type Listener struct {
	cfg  ListenConfig
	in   *admission.Listener
	reqs chan waiting // has room for the backlog
	log  *slog.Logger
	out  handed
	// unfit is what makes cfg unusable, so that no peer would be taken; nil if nothing does.
	unfit error

	counted *inventory.Object
}

// waiting is a Request in the backlog, and its place there.
type waiting struct {
	req   *Request
	place *admission.Startup
}

// Listen listens on a TCP address; port 0 picks a free one, see Addr.
func Listen(addr string, cfg ListenConfig) (*Listener, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("cm: %w", tcpsock.Lack(err))
	}
	listener := NewListener(l, cfg)
	if listener.unfit != nil {
		_ = listener.Close()
		return nil, listener.unfit
	}
	return listener, nil
}

// NewListener is Listen over a net.Listener, which it owns. Of an unusable cfg Accept tells.
func NewListener(nl net.Listener, cfg ListenConfig) *Listener {
	if cfg.Backlog <= 0 {
		cfg.Backlog = admission.Default
	}
	l := &Listener{cfg: cfg, reqs: make(chan waiting, cfg.Backlog), log: LimitLogger(cfg.Logger)}
	startup := cfg.startup()
	if err := startup.awaits().Check(mpa.Responder); err != nil {
		l.unfit = fmt.Errorf("cm: listen on %v: %w", nl.Addr(), err)
	}
	order := time.Duration(0)
	if cfg.InOrder {
		order = inOrderWait
	}
	l.counted = inventory.Open(nil, "cm listener", nl.Addr(), inventory.CounterFunc(l.count))
	l.in = admission.New(nl, admission.Config{
		Inventory: l.counted,
		InOrder:   order, MaxStartups: cfg.MaxStartups, Backlog: cfg.Backlog, Serve: l.serve, Failed: l.failed,
	})
	return l
}

// Addr is the address listened on.
func (l *Listener) Addr() net.Addr { return l.in.Addr() }

// Close stops listening and closes connections that no Accept returned. Those
// that one did return go on. Closing twice is closing once.
func (l *Listener) Close() error {
	return l.stop(func(r *Request) { _ = r.nc.Close() })
}

// stop stops listening, and refuses what waits for Accept.
func (l *Listener) stop(refuse func(*Request)) error {
	err := l.in.Close()
	defer l.counted.Close()
	for {
		select {
		case w := <-l.reqs:
			w.place.Leave()
			refuse(w.req)
		default:
			return err
		}
	}
}

// count is an inventory.CounterFunc. When the Listener is closed, what it has handed out is to be answered, and to end.
func (l *Listener) count(tell inventory.Tell) {
	tell(len(l.reqs), "request in the backlog")
	requests, conns := l.out.count()
	tell(requests, "request without an answer")
	tell(conns, "connection")
}

// inOrderWait is how long a Request waits for those that have not come.
const inOrderWait = 100 * time.Millisecond

// serve reads a Request and puts it in the backlog.
func (l *Listener) serve(s *admission.Startup) error {
	req, err := await(s.Context(), s.Conn, l.cfg.startup(), l.cfg.Answer)
	if err != nil {
		if cause := context.Cause(s.Context()); errors.Is(cause, ErrCrowded) {
			err = connectError(Awaiting, fmt.Sprint(s.Conn.RemoteAddr()), StepReadRequest, cause)
		}
		return err
	}
	s.AwaitTurn()
	if err := s.Queue(); err != nil {
		defer context.AfterFunc(s.Context(), func() { _ = s.Conn.Close() })()
		_ = req.Reject(nil) // that it failed would add nothing
		return connectError(Awaiting, fmt.Sprint(s.Conn.RemoteAddr()), StepBacklog, err)
	}
	l.reqs <- waiting{req, s} // there is room for all that have a place
	return nil
}

// failed tells of a connection that Accept will not return.
func (l *Listener) failed(remote net.Addr, err error) {
	if remote == nil {
		l.log.Warn("accepting a connection failed", "error", err)
	} else {
		text := err.Error()
		if told := (*ConnectError)(nil); errors.As(err, &told) {
			text = told.Sentence()
		}
		l.log.Warn("a connection failed in its startup", "remote", remote, "error", text)
	}
	if l.cfg.OnStartupError != nil {
		l.cfg.OnStartupError(remote, err)
	}
}

// Accept returns the next connection request; answer it with its Accept or
// Reject. Errors: ctx's; net.ErrClosed after Close or Shutdown; what the
// net.Listener failed with.
func (l *Listener) Accept(ctx context.Context) (*Request, error) {
	if l.unfit != nil {
		return nil, l.unfit
	}
	over := l.in.Context()
	select {
	case w := <-l.reqs:
		w.place.Leave()
		if !l.out.request(w.req) {
			_ = w.req.nc.Close()
			return nil, fmt.Errorf("cm: accept on %v: %w", l.Addr(), net.ErrClosed)
		}
		return w.req, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-over.Done():
		return nil, fmt.Errorf("cm: accept on %v: %w", l.Addr(), context.Cause(over))
	}
}

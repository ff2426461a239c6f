// Package admission is what the listeners of cm, vitcp and lab/relay share: it accepts
// connections at once, whatever those that came before do, and bounds how many
// of them belong to nobody yet.
//
//	net.Listener -> Startup, in the table -- Queue --> in the backlog -- Leave --> the program's
//	                evicted for another               never evicted; each source has a share
//
// A Startup has not said what it wants. The table holds a number of them; one
// that comes beyond that takes the place of the oldest of the most crowded
// source. What has said so waits for the program in the backlog, from which
// nobody is driven out: who finds no place is refused. A source is an IPv4
// address or an IPv6 /64.
package admission

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/softrnic/softrnic/internal/inventory"
	"github.com/softrnic/softrnic/internal/tcpsock"
)

// Default is what 0 stands for in MaxStartups and in Backlog. At 2,000 silent
// connections a second a peer has half a second for its Request.
const Default = 1024

// ErrCrowded is matched by the error of a Startup that had to go for another, and
// of one that found no place in the backlog.
var ErrCrowded = errors.New("too many connections that nobody has taken yet")

var (
	errEvicted = fmt.Errorf("%w: the oldest of the most crowded source goes for a new one", ErrCrowded)
	errFull    = fmt.Errorf("%w: the program has to take some of this source first", ErrCrowded)
)

// Config is what a Listener needs to know.
type Config struct {
	// Package begins the errors of what had to go for others; if it is empty, they are Serve's.
	Package string
	// MaxStartups is how many connections may be in startup.
	MaxStartups int
	// Backlog is how many may wait for the program.
	Backlog int
	// InOrder, if it is not 0, makes AwaitTurn return in the order of accept, for the
	// Startups of one source: one that has not called it is waited for so long.
	InOrder time.Duration
	// Serve runs a startup in a goroutine of its own. It owns the connection, and
	// returns soon, without help from the peer, once s.Context has ended. With an
	// error the connection has been closed and its place is given back; with nil
	// the place is left to the caller of Leave.
	Serve func(s *Startup) error
	// Failed, if set, is told of Serve's errors, and, with remote nil, of errors
	// of accept that the Listener survives; not while it closes. It is called
	// from several goroutines.
	Failed func(remote net.Addr, err error)
	// Inventory is the object of the listener that it is for; nil for none.
	Inventory *inventory.Object
}

// Listener accepts.
type Listener struct {
	net    net.Listener
	cfg    Config
	ctx    context.Context // ends with Close, or for what accept failed with
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup
	once   sync.Once
	table  table
	order  *order // nil: none
	// room has a token for each goroutine of a Startup. Those in the table and in
	// the backlog leave many: a connection that waits for one waits for Startups that end.
	room    chan struct{}
	counted *inventory.Object
}

// New listens on nl, which it owns.
func New(nl net.Listener, cfg Config) *Listener {
	if cfg.MaxStartups <= 0 {
		cfg.MaxStartups = Default
	}
	if cfg.Backlog <= 0 {
		cfg.Backlog = Default
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	l := &Listener{
		net: nl, cfg: cfg, ctx: ctx, cancel: cancel,
		table: newTable(cfg.MaxStartups, cfg.Backlog),
		room:  make(chan struct{}, 2*cfg.MaxStartups+cfg.Backlog),
	}
	if cfg.InOrder > 0 {
		l.order = newOrder(cfg.InOrder)
	}
	l.counted = inventory.Open(cfg.Inventory, "admission listener", nl.Addr(), l)
	l.wg.Go(l.run)
	return l
}

// Addr is the address listened on.
func (l *Listener) Addr() net.Addr { return l.net.Addr() }

// Backlog is how many may wait for the program.
func (l *Listener) Backlog() int { return l.cfg.Backlog }

// Held is how many connections have a place: in startup, or in the backlog.
func (l *Listener) Held() int { return l.table.held() }

// Context ends when the Listener does; its cause is net.ErrClosed after Close,
// else what the net.Listener failed with.
func (l *Listener) Context() context.Context { return l.ctx }

// Close stops listening, ends the Context of every Startup and waits until their
// Serve has returned. Those that it left in the backlog are the caller's. Closing
// twice is closing once.
func (l *Listener) Close() error {
	var err error
	l.once.Do(func() {
		l.cancel(net.ErrClosed)
		err = l.net.Close()
		l.wg.Wait()
		l.counted.Close()
	})
	return err
}

// Count implements inventory.Counter.
func (l *Listener) Count(tell inventory.Tell) {
	tell(l.Held(), "place")
	l.table.mu.Lock()
	tell(len(l.table.sources), "source")
	l.table.mu.Unlock()
	if o := l.order; o != nil {
		o.mu.Lock()
		tell(len(o.lines), "line")
		o.mu.Unlock()
	}
	if l.ctx.Err() != nil { // else one is of the next connection
		tell(len(l.room), "token of a goroutine")
	}
}

// run accepts until there is an error that does not pass.
func (l *Listener) run() {
	for failures := 0; ; {
		select {
		case l.room <- struct{}{}:
		case <-l.ctx.Done():
			return
		}
		nc, err := l.net.Accept()
		if err == nil {
			failures = 0
			s := l.table.enter(l.ctx, nc)
			s.turn = l.order.enter(s.from.name)
			l.wg.Go(func() {
				defer func() { <-l.room }()
				l.serve(s)
			})
			continue
		}
		<-l.room
		if !l.survives(err, failures) {
			l.cancel(err)
			return
		}
		failures++
	}
}

// survives reports whether to go on after an error of accept, when it is time to.
// A lack may be ours: some Startups are given up to end it.
func (l *Listener) survives(err error, failures int) bool {
	var pause time.Duration
	switch kindOf(err) {
	case fatal:
		return false
	case lack:
		l.table.relieve()
		pause = growing(failures)
		err = tcpsock.Lack(err)
	case passing:
		pause = growing(failures - passingAtOnce)
	}
	l.failed(nil, err)
	select {
	case <-time.After(pause):
		return true
	case <-l.ctx.Done():
		return false
	}
}

// failed tells of a connection that came to nothing.
func (l *Listener) failed(remote net.Addr, err error) {
	if l.cfg.Failed != nil && l.ctx.Err() == nil {
		l.cfg.Failed(remote, err)
	}
}

// serve runs a Startup.
func (l *Listener) serve(s *Startup) {
	defer s.cancel(nil)
	err := l.cfg.Serve(s)
	s.turn.end()
	if err == nil {
		return
	}
	s.Leave()
	if cause := context.Cause(s.ctx); errors.Is(cause, ErrCrowded) && l.cfg.Package != "" {
		err = fmt.Errorf("%s: connection from %v: %w", l.cfg.Package, s.Conn.RemoteAddr(), cause)
	}
	l.failed(s.Conn.RemoteAddr(), err)
}

// Startup is a connection that nobody has taken yet.
type Startup struct {
	// Conn is the connection.
	Conn net.Conn

	ctx    context.Context
	cancel context.CancelCauseFunc
	table  *table
	turn   *turn
	// from and place are guarded by the table's lock, as state.
	from  *source
	place *list.Element // in the table's startups; nil once it is not there
	state state
}

// state says where a Startup is counted.
type state uint8

const (
	starting state = iota // in the table
	queued                // in the backlog
	gone                  // nowhere
)

// Context ends when the Startup has to go: for another, which its cause says
// (ErrCrowded), or with the Listener; and when Serve has returned.
func (s *Startup) Context() context.Context { return s.ctx }

// AwaitTurn returns when those that came before this one from the same source have returned
// from Serve, or take too long (Config.InOrder), and when Context ends. What Serve does behind
// it is done by one of a source at a time.
func (s *Startup) AwaitTurn() { s.turn.await(s.ctx) }

// Queue moves the Startup, which has said what it wants, to the backlog: from then
// on it does not have to go for others. The error is ErrCrowded if its source has
// its share of the backlog already, or if it had to go before; then it is where it
// was.
func (s *Startup) Queue() error { return s.table.queue(s) }

// Leave gives the Startup's place back: the connection is the program's, or has
// ended. It returns whether there was a place: else it had to go before, or has
// left.
func (s *Startup) Leave() bool { return s.table.leave(s) }

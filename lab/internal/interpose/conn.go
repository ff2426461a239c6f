// Package interpose stands between a program and a net.Conn: a plan's faults decide what becomes of the octets, and
// when; a capture observes them.
//
//	conn.go   the wrapped net.Conn          half.go    one direction of it, with what waits there
//	queue.go  pieces in order, with times   relay.go   two connections joined
//	frames.go one direction of MPA: its startup frame, its FPDUs
package interpose

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Direction is one direction of a connection, seen from the program.
type Direction int

// The directions.
const (
	In Direction = iota
	Out
)

// End is how a fault ends a connection.
type End uint8

// The ends: Cut ends both directions as if one end had closed, Reset as if the path had, HalfClose the one.
const (
	Open End = iota
	Cut
	Reset
	HalfClose
)

// Faults decide what is delivered of the octets of a connection.
type Faults interface {
	// Feed takes octets that have come, and returns what to deliver, in this order. It is called by one goroutine
	// at a time for each direction, and does not keep b.
	Feed(d Direction, b []byte) []Piece
	// Rest is what has come and was not delivered as yet, for the end of the direction.
	Rest(d Direction) []byte
	// Begin is called once, by the first Read or Write, and returns the clocks that the end of the connection stops.
	Begin() []*time.Timer
}

// Observer sees what a connection carries, below the faults.
type Observer interface {
	// Carry is of octets that have come, or are about to go.
	Carry(d Direction, b []byte)
	// End is that of a direction: by a FIN, or with an RST.
	End(d Direction, reset bool)
	// Close is the last call.
	Close()
}

// lower is the connection below, with its observer.
type lower struct {
	net.Conn
	observer Observer    // nil: none
	abrupt   atomic.Bool // SetLinger(0)
}

// Read implements net.Conn.
func (l *lower) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	if l.observer != nil {
		l.observer.Carry(In, b[:n])
		if reset := errors.Is(err, syscall.ECONNRESET); reset || errors.Is(err, io.EOF) {
			l.observer.End(In, reset)
		}
	}
	return n, err
}

// Write implements net.Conn. The observer has what goes out before its answer can come; of a write that fails it
// has all, and nothing behind it.
func (l *lower) Write(b []byte) (int, error) {
	if l.observer != nil {
		l.observer.Carry(Out, b)
	}
	return l.Conn.Write(b)
}

// half is the half-close of the connection, or nil.
func (l *lower) half() func() error {
	half, ok := l.Conn.(interface{ CloseWrite() error })
	if !ok {
		return nil
	}
	return func() error {
		err := half.CloseWrite()
		if err == nil && l.observer != nil {
			l.observer.End(Out, false)
		}
		return err
	}
}

// Close implements net.Conn.
func (l *lower) Close() error {
	if l.observer != nil {
		l.observer.End(Out, l.abrupt.Load())
		l.observer.Close()
	}
	return l.Conn.Close()
}

// SetLinger is that of the connection, if it has one.
func (l *lower) SetLinger(sec int) error {
	l.abrupt.Store(sec == 0)
	if c, ok := l.Conn.(interface{ SetLinger(int) error }); ok {
		return c.SetLinger(sec)
	}
	return nil
}

// NetConn is the connection at the bottom.
func (l *lower) NetConn() net.Conn {
	if over, ok := l.Conn.(interface{ NetConn() net.Conn }); ok {
		return over.NetConn()
	}
	return l.Conn
}

// reset drops the connection, as a program that ends a stream abruptly does.
func (l *lower) reset() {
	bottom := l.NetConn()
	_ = l.SetLinger(0)
	Drop(bottom) // TLS would write, and may wait
	_ = l.Close()
}

// lingerTime bounds how long Close lets octets go out that are held back.
const lingerTime = 5 * time.Second

// Conn is a net.Conn with faults, or an observer, or both. What ends it is in end, and seen by both directions.
type Conn struct {
	lower
	faults  Faults // nil: octets are delivered as they come
	in, out half

	begun  sync.Once
	timers []*time.Timer

	mu     sync.Mutex
	end    End // Reset or Cut: of both directions; guarded by mu, as below
	closed bool

	over chan struct{} // closed by either
	dead chan struct{} // closed when nothing is to be delivered any more

	sending bool // a goroutine delivers what is late; guarded by out.mu
}

// halves is a Conn that has a half-close.
type halves struct{ *Conn }

// CloseWrite ends the direction out.
func (c halves) CloseWrite() error { return c.closeWrite() }

// New puts faults, or an observer, between the program and nc; either may be nil.
func New(nc net.Conn, faults Faults, observer Observer) *Conn {
	c := &Conn{
		lower: lower{Conn: nc, observer: observer}, faults: faults, over: make(chan struct{}), dead: make(chan struct{}),
	}
	c.in = half{c: c, dir: In, changed: make(chan struct{})}
	c.out = half{c: c, dir: Out, changed: make(chan struct{})}
	return c
}

// Offered is c with CloseWrite, if the connection below has that.
func (c *Conn) Offered() net.Conn {
	if c.half() != nil {
		return halves{c}
	}
	return c
}

// begin starts the clocks of the faults.
func (c *Conn) begin() {
	c.begun.Do(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if !c.closed && c.end == Open {
			c.timers = c.faults.Begin()
		}
	})
}

// Over reports whether the connection has ended.
func (c *Conn) Over() bool { return done(c.over) }

func done(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// Take puts octets into the direction in, as if they had come.
func (c *Conn) Take(b []byte) { c.in.take(b) }

// Stall lets nothing through in a direction for d from now on.
func (c *Conn) Stall(dir Direction, d time.Duration) {
	h := c.direction(dir)
	h.mu.Lock()
	h.until = time.Now().Add(d)
	h.wake()
	h.mu.Unlock()
	_ = c.lower.SetReadDeadline(past) // a read that sleeps looks again
}

func (c *Conn) direction(d Direction) *half {
	if d == In {
		return &c.in
	}
	return &c.out
}

var past = time.Unix(1, 0)

// End carries out an end in a direction.
func (c *Conn) End(d Direction, end End) {
	if end != HalfClose {
		c.stop(end)
		return
	}
	h := c.direction(d)
	h.mu.Lock()
	h.ended = true
	h.wake()
	h.mu.Unlock()
	if d == In {
		_ = c.lower.SetReadDeadline(past)
	} else if closeWrite := c.half(); closeWrite != nil {
		_ = closeWrite()
	} else {
		c.stop(Cut)
	}
}

// stop ends both directions, and the connection below.
func (c *Conn) stop(end End) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.end != Open {
		return
	}
	c.end = end
	close(c.over)
	close(c.dead)
	c.halt()
	if end == Reset {
		c.reset()
		return
	}
	_ = c.lower.Close()
}

// halt stops the clocks; mu is held.
func (c *Conn) halt() {
	for _, t := range c.timers {
		t.Stop()
	}
}

// ended is the error of a Read or Write of a connection that is over, or nil.
func (c *Conn) ended(op string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := syscall.EPIPE
	switch {
	case c.closed:
		return net.ErrClosed
	case c.end == Open:
		return nil
	case c.end == Reset:
		err = syscall.ECONNRESET
	case op == "read":
		return io.EOF
	}
	return &net.OpError{Op: op, Net: "tcp", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: err}
}

// Read implements net.Conn.
func (c *Conn) Read(p []byte) (int, error) {
	if c.faults == nil {
		return c.lower.Read(p)
	}
	return c.in.read(p)
}

// Write implements net.Conn. What it holds back counts as written.
func (c *Conn) Write(p []byte) (int, error) {
	if c.faults == nil {
		return c.lower.Write(p)
	}
	return c.out.write(p)
}

// closeWrite ends the direction out, behind what is held back.
func (c *Conn) closeWrite() error {
	if c.faults == nil {
		return c.half()()
	}
	return c.out.finish()
}

// Close implements net.Conn. What is held back goes out yet, by a goroutine, unless SetLinger(0) came before.
func (c *Conn) Close() error {
	if c.faults == nil {
		return c.lower.Close()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	c.halt()
	if c.end != Open {
		return nil
	}
	close(c.over)
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	if c.sending && !c.abrupt.Load() {
		_ = c.lower.SetReadDeadline(past)
		_ = c.lower.SetWriteDeadline(time.Now().Add(max(time.Until(c.out.q.due), 0) + lingerTime))
		return nil
	}
	close(c.dead)
	return c.lower.Close()
}

// closeBelow closes the connection below, if the program has closed it while a goroutine was still delivering.
func (c *Conn) closeBelow() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		_ = c.lower.Close()
	}
}

// SetDeadline implements net.Conn.
func (c *Conn) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

// SetReadDeadline implements net.Conn.
func (c *Conn) SetReadDeadline(t time.Time) error {
	h := &c.in
	h.mu.Lock()
	defer h.mu.Unlock()
	h.deadline = t
	h.wake()
	if len(h.q.items) > 0 {
		if due := h.q.items[0].due; !due.IsZero() && (t.IsZero() || due.Before(t)) {
			t = due
		}
	}
	return c.lower.SetReadDeadline(t)
}

// SetWriteDeadline implements net.Conn. What is late is not bound by it.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	h := &c.out
	h.mu.Lock()
	defer h.mu.Unlock()
	h.deadline = t
	h.wake()
	if c.sending {
		return nil
	}
	return c.lower.SetWriteDeadline(t)
}

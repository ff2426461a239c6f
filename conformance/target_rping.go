package conformance

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/softrnic/softrnic/conformance/uppertester"
)

// Rping is somebody else's iWARP endpoint, of which is known only that it runs
// rping: as a server, which has to serve any number of clients (-P), or as a client
// that is started again and again.
type Rping struct {
	addr string
	role Role
	l    net.Listener // as Responder
}

// NewRping is the target that runs `rping -s -P` at addr, if cases play the
// Initiator, or `rping -c -a addr`, if they play the Responder: then it listens on
// addr, which is of this machine. It fails at once if nobody is there, or somebody
// else is.
func NewRping(ctx context.Context, addr string, role Role) (*Rping, error) {
	r := &Rping{addr: addr, role: role}
	if role == Responder {
		var lc net.ListenConfig
		var err error
		if r.l, err = lc.Listen(ctx, "tcp", addr); err != nil {
			return nil, fmt.Errorf("conformance: %w", err)
		}
		return r, nil
	}
	c, err := dialTCP(ctx, addr)
	if err != nil {
		return nil, err
	}
	_ = c.Close()
	return r, nil
}

// Name tells where it is.
func (r *Rping) Name() string { return "rping at " + r.addr }

// Lacks whatever needs a program that does as it is told.
func (r *Rping) Lacks(n Need) string {
	switch n {
	case NeedUpper:
		return "rping does only what rping does: there is no upper tester"
	case NeedAPI:
		return "this target has no verbs here"
	case NeedWire:
	}
	return ""
}

// Addr is where it waits for clients, if cases play the Responder, and otherwise the
// server's address.
func (r *Rping) Addr() string {
	if r.l != nil {
		return r.l.Addr().String()
	}
	return r.addr
}

// Role is the one that it was made for.
func (r *Rping) Role() Role {
	if r.role == Either {
		return Initiator
	}
	return r.role
}

// Here is not needed: its streams come from Stream.
func (r *Rping) Here() string { return "" }

// Upper fails.
func (r *Rping) Upper(context.Context) (uppertester.Tester, error) {
	return nil, errors.New("conformance: " + r.Lacks(NeedUpper))
}

// Stream connects, or takes the next client that is still there.
func (r *Rping) Stream(ctx context.Context, play Role) (net.Conn, error) {
	if play != Either && play != r.Role() {
		return nil, fmt.Errorf("%w: %s; this case plays the %s", ErrNoRole, r.Role(), play)
	}
	if r.l == nil {
		c, err := dialTCP(ctx, r.addr)
		if err != nil {
			return nil, err
		}
		return &patientConn{TCPConn: c}, nil
	}
	for {
		c, err := r.accept(ctx)
		if err != nil {
			return nil, err
		}
		if fresh := stillThere(c); fresh != nil {
			return fresh, nil
		}
		_ = c.Close()
	}
}

// accept takes the next client.
func (r *Rping) accept(ctx context.Context) (*net.TCPConn, error) {
	// A deadline would end other cases' waits too; a case that gives up leaves a
	// client for the next one.
	type taken struct {
		c   net.Conn
		err error
	}
	next := make(chan taken, 1)
	go func() {
		c, err := r.l.Accept()
		next <- taken{c, err}
	}()
	select {
	case n := <-next:
		if n.err != nil {
			return nil, fmt.Errorf("conformance: %w", n.err)
		}
		return n.c.(*net.TCPConn), nil
	case <-ctx.Done():
		go func() {
			if n := <-next; n.err == nil {
				_ = n.c.Close()
			}
		}()
		return nil, fmt.Errorf("conformance: no client came: %w", ctx.Err())
	}
}

// Close stops listening.
func (r *Rping) Close() error {
	if r.l == nil {
		return nil
	}
	return r.l.Close()
}

// settle is how long a patientConn waits. An Initiator may take that time (RFC 5044
// 7.1.2 sets no limit), and siw needs a part of it: its responder takes over the
// socket only after its Reply has gone out, and an FPDU that comes in between lies
// there until the next one arrives.
const settle = 50 * time.Millisecond

// patientConn is an Initiator's connection: it waits a moment between what it reads
// first and what it does next, which are the Reply and the first FPDU, or the end.
// (Linux 6.1 has a BUG in iw_cm if a connection ends while it is being accepted.)
type patientConn struct {
	*net.TCPConn

	mu    sync.Mutex
	ready time.Time // when the first FPDU may leave; zero before the Reply; guarded by mu
}

func (c *patientConn) Read(b []byte) (int, error) {
	n, err := c.TCPConn.Read(b)
	if n > 0 {
		c.mu.Lock()
		if c.ready.IsZero() {
			c.ready = time.Now().Add(settle)
		}
		c.mu.Unlock()
	}
	return n, err
}

func (c *patientConn) Write(b []byte) (int, error) {
	c.wait()
	return c.TCPConn.Write(b)
}

func (c *patientConn) CloseWrite() error {
	c.wait()
	return c.TCPConn.CloseWrite()
}

func (c *patientConn) Close() error {
	c.wait()
	return c.TCPConn.Close()
}

func (c *patientConn) wait() {
	c.mu.Lock()
	ready := c.ready
	c.mu.Unlock()
	if !ready.IsZero() {
		time.Sleep(time.Until(ready))
	}
}

// glance is how long stillThere looks.
const glance = 5 * time.Millisecond

// stillThere is c, if the client has not given up yet: one that waited long in the
// listener's queue may have ended.
func stillThere(c *net.TCPConn) net.Conn {
	var head [64]byte
	_ = c.SetReadDeadline(time.Now().Add(glance))
	n := 0
	for n < len(head) {
		got, err := c.Read(head[n:])
		n += got
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			_ = c.SetReadDeadline(time.Time{})
			return &headConn{c, head[:n]}
		case err != nil:
			return nil
		}
	}
	_ = c.SetReadDeadline(time.Time{})
	return &headConn{c, head[:n]}
}

// headConn is a connection of which some octets have been read. Reads are one at a
// time.
type headConn struct {
	*net.TCPConn
	head []byte
}

func (c *headConn) Read(b []byte) (int, error) {
	if len(c.head) > 0 {
		n := copy(b, c.head)
		c.head = c.head[n:]
		return n, nil
	}
	return c.TCPConn.Read(b)
}

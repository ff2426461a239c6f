//go:build conformance

package conformance

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/softrnic/softrnic/conformance/upper"
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
func (r *Rping) Upper(context.Context) (upper.Tester, error) {
	return nil, errors.New("conformance: " + r.Lacks(NeedUpper))
}

// Stream connects, or takes the next client.
func (r *Rping) Stream(ctx context.Context, play Role) (net.Conn, error) {
	if play != Either && play != r.Role() {
		return nil, fmt.Errorf("%w: %s; this case plays the %s", ErrNoRole, r.Role(), play)
	}
	if r.l == nil {
		return dialTCP(ctx, r.addr)
	}
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
		return n.c, nil
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

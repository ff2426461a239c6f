package vipl

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"github.com/softrnic/softrnic/internal/vitcp"
)

// passive is the end of a Nic that takes connections: its listener, and the requests that
// ConnectWait has handed out and nobody has answered.
type passive struct {
	nic   *Nic           // constant, as the next two
	given net.Listener   // of Config
	at    netip.AddrPort // where to listen otherwise

	mu       sync.Mutex
	listener *vitcp.Listener // guarded by mu, as all below; nil until listen
	conns    map[*Conn]struct{}
	closed   bool
}

func (p *passive) init(n *Nic, at netip.AddrPort, given net.Listener) {
	p.nic, p.at, p.given, p.conns = n, at, given, make(map[*Conn]struct{})
}

// listen makes the Nic listen if it does not yet. The port that it gets becomes the Nic's,
// if it was to have any: that is in OpenNic only.
func (p *passive) listen() (*vitcp.Listener, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return nil, errNicClosed
	case p.listener != nil:
		return p.listener, nil
	}
	nl := p.given
	if nl == nil {
		var err error
		if nl, err = net.Listen("tcp", p.at.String()); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrResource, err)
		}
	}
	p.listener = vitcp.NewListener(nl, vitcp.ListenConfig{MatchTimeout: p.nic.config.MatchTimeout})
	return p.listener, nil
}

// wait is ConnectWaitFrom.
func (p *passive) wait(ctx context.Context, f vitcp.Filter) (*Conn, error) {
	l, err := p.listen()
	if err != nil {
		return nil, err
	}
	pending, err := l.Wait(ctx, f)
	switch {
	case err == nil:
		return p.hand(pending)
	case errors.Is(err, net.ErrClosed):
		return nil, errNicClosed
	case ctx.Err() != nil:
		return nil, ended(ctx)
	}
	return nil, fmt.Errorf("%w: %w", ErrResource, err)
}

// hand makes a request a Conn of the program's.
func (p *passive) hand(r *vitcp.Pending) (*Conn, error) {
	c := newConn(p.nic, r)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		c.drop()
		return nil, errNicClosed
	}
	p.conns[c] = struct{}{}
	return c, nil
}

// forget is told of a Conn that has been answered.
func (p *passive) forget(c *Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

// close ends listening, and drops what nobody has answered.
func (p *passive) close() {
	p.mu.Lock()
	p.closed = true
	l, conns := p.listener, p.conns
	p.conns = nil
	p.mu.Unlock()
	if l != nil {
		_ = l.Close()
	} else if p.given != nil {
		_ = p.given.Close()
	}
	for c := range conns {
		c.drop()
	}
}

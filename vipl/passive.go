package vipl

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/softrnic/softrnic/internal/lockorder"
	"github.com/softrnic/softrnic/internal/vitcp"
	"github.com/softrnic/softrnic/internal/vitcp/port"
)

// passive is the end of a Nic that takes connections: its listener, and the requests that
// ConnectWait has handed out and nobody has answered.
type passive struct {
	nic   *Nic           // constant, as the next two
	given net.Listener   // of Config
	at    netip.AddrPort // where to listen otherwise

	mu       lockorder.Mutex[lockorder.VIPassive]
	listener *listener // guarded by mu, as all below; nil until listen
	opening  *opening  // nil if there is none under way of which nobody has been told
	conns    map[*Conn]struct{}
	closed   bool
	stale    int       // of conns at the close, had been answered
	told     time.Time // when the error handler was last told of the listener
}

// listener is where a Nic waits: a port, which it shares, or a Config.Listener.
type listener struct {
	vitcp.Passive
	close func()
}

func (p *passive) init(n *Nic, at netip.AddrPort, given net.Listener) {
	p.nic, p.at, p.given, p.conns = n, at, given, make(map[*Conn]struct{})
}

// opening is an attempt to listen, which may have to wait for another process that has the
// port. It goes on when the call that began it has ended: a program that asks again and again
// and waits for nothing (VIA 9.4.1) comes to listen too.
type opening struct {
	done chan struct{} // closed: the listener is there, or err
	err  error
}

// moment is what a call has for listening that has no time, or none left: most ports are there
// by then, and a client that comes next is not refused.
const moment = 50 * time.Millisecond

// listen makes the Nic listen if it does not yet, and waits for that until ctx ends. The port
// that it gets becomes the Nic's, if it was to have any: that is in OpenNic only.
func (p *passive) listen(ctx context.Context) (*listener, error) {
	p.mu.Lock()
	l, closed, o := p.listener, p.closed, p.opening
	fresh := l == nil && !closed && o == nil
	if fresh {
		o = &opening{done: make(chan struct{})}
		p.opening = o
	}
	p.mu.Unlock()
	switch {
	case closed:
		return nil, errNicClosed
	case l != nil:
		return l, nil
	case fresh && !p.nic.task(func() { p.begin(o) }):
		o.err = errNicClosed
		close(o.done)
	}
	select {
	case <-o.done:
	case <-ctx.Done():
		select {
		case <-o.done:
		case <-time.After(moment):
			return nil, fmt.Errorf("%w, and the process that has the port has not answered", ended(ctx))
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.opening == o { // the next call tries again
		p.opening = nil
	}
	if o.err != nil {
		return nil, o.err
	}
	if p.listener == nil {
		return nil, errNicClosed
	}
	return p.listener, nil
}

// begin is an opening.
func (p *passive) begin(o *opening) {
	defer close(o.done)
	l, err := p.open()
	p.mu.Lock()
	closed := p.closed || p.nic.life.Err() != nil
	if err == nil && !closed {
		p.listener = l
	}
	p.mu.Unlock()
	switch {
	case closed && err == nil:
		l.close()
		fallthrough
	case closed:
		o.err = errNicClosed
	default:
		o.err = err
	}
}

// open makes what listen returns.
func (p *passive) open() (*listener, error) {
	within := p.nic.config.MatchTimeout
	if p.given != nil {
		l := vitcp.NewListener(p.given, vitcp.ListenConfig{MatchTimeout: within, Inventory: p.nic.counted, OnRefused: func(remote net.Addr, err error) {
			if remote == nil {
				p.failed(err)
			}
		}})
		return &listener{l, func() { _ = l.Close() }}, nil
	}
	u, err := port.Open(p.nic.life, p.at, port.Config{MatchTimeout: within, Failed: p.failed})
	switch {
	case errors.Is(err, port.ErrInUse):
		return nil, fmt.Errorf("%w: %w", ErrInUse, err)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrResource, err)
	}
	return &listener{u, u.Close}, nil
}

// failed tells the error handler of what the listener survives, or does not: once a second
// at most.
func (p *passive) failed(err error) {
	p.mu.Lock()
	now := time.Now()
	silent := p.closed || now.Sub(p.told) < time.Second
	if !silent {
		p.told = now
	}
	p.mu.Unlock()
	if !silent {
		p.nic.report(ErrorDescriptor{ResourceCode: ResourceNic, ErrorCode: ErrorListen, Err: err})
	}
}

// wait is ConnectWaitFrom.
func (p *passive) wait(ctx context.Context, f vitcp.Filter) (*Conn, error) {
	l, err := p.listen(ctx)
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
		l.close()
	} else if p.given != nil {
		_ = p.given.Close()
	}
	stale := 0
	for c := range conns {
		if !c.drop() {
			stale++
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stale = stale
}

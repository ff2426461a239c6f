package rsocket

import (
	"context"
	"fmt"
	"log/slog"
	"net"

	"github.com/softrnic/softrnic/cm"
)

// Listener is a net.Listener of Conns.
type Listener struct {
	config Config
	l      *cm.Listener
	log    *slog.Logger
	closed context.Context
	close  context.CancelFunc
}

// Listen listens with the zero Config.
func Listen(network, address string) (*Listener, error) { return Config{}.Listen(network, address) }

// Listen listens. The network is "tcp", "tcp4" or "tcp6". Errors: those of net.Listen and verbs.Open.
func (c Config) Listen(network, address string) (*Listener, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := isTCP(network); err != nil {
		return nil, &net.OpError{Op: "listen", Net: network, Err: err}
	}
	nl, err := net.Listen(network, address)
	if err != nil {
		return nil, err
	}
	l := &Listener{config: c, log: cm.LimitLogger(c.Logger), l: cm.NewListener(nl, cm.ListenConfig{
		Timeout: c.Timeout, Logger: c.Logger, Answer: answer,
	})}
	l.closed, l.close = context.WithCancel(context.Background())
	return l, nil
}

// answer tells a client of HTTP, as people have who took the transport out of their program, what this port is.
func answer(speaks string) []byte {
	if speaks != "HTTP" {
		return nil
	}
	const text = "This port speaks iWARP (rsocket), not HTTP over TCP.\n"
	return fmt.Appendf(nil, "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s",
		len(text), text)
}

// Accept returns the next connection, a *Conn. A peer that is not one of rsockets is rejected, and Accept goes on. Its error is net.ErrClosed
// after Close, in a *net.OpError.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		r, err := l.l.Accept(l.closed)
		if err != nil {
			if l.closed.Err() != nil {
				err = net.ErrClosed
			}
			return nil, &net.OpError{Op: "accept", Net: "rsocket", Addr: l.Addr(), Err: err}
		}
		c, err := l.accept(r)
		if err == nil {
			return c, nil
		}
		l.log.Warn("rsocket: a connection was not set up", "remote", r.RemoteAddr(), "error", err)
	}
}

func (l *Listener) accept(r *cm.Request) (*Conn, error) {
	if _, err := parseHello(r.PrivateData()); err != nil {
		_ = r.Reject(nil)
		return nil, err
	}
	c, err := newConn(l.config)
	if err != nil {
		_ = r.Reject(nil)
		return nil, err
	}
	conn, err := r.Accept(l.closed, c.qp, l.config.connection(c.hello().append(nil)))
	if err != nil {
		_ = r.Reject(nil) // if it stands: the Listener closes
		c.release()
		return nil, err
	}
	if err := c.begin(conn, r.PrivateData()); err != nil {
		_ = conn.Abort()
		c.release()
		return nil, err
	}
	return c, nil
}

// Addr is the address listened on.
func (l *Listener) Addr() net.Addr { return l.l.Addr() }

// Close stops listening. Connections that Accept has returned go on.
func (l *Listener) Close() error {
	l.close()
	return l.l.Close()
}

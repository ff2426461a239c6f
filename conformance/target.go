package conformance

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/softrnic/softrnic/conformance/uppertester"
	"github.com/softrnic/softrnic/mpa"
)

// Role is the side of MPA's startup that a case plays.
type Role string

// The roles.
const (
	// Either: the case has none.
	Either    Role = ""
	Initiator Role = "initiator"
	Responder Role = "responder"
)

// Opposite is the target's side.
func (r Role) Opposite() mpa.Role {
	if r == Responder {
		return mpa.Initiator
	}
	return mpa.Responder
}

// Target is what cases run against. Its methods may be called from any goroutine.
type Target interface {
	// Name tells it to a person.
	Name() string
	// Lacks says why the target cannot support a need; "" if it can.
	Lacks(Need) string
	// Role is the side that cases play which do not care.
	Role() Role
	// Here is this machine's address, as the target sees it.
	Here() string
	// Upper begins a session with an upper tester, which ends with Close or with
	// ctx. Of a target that does not lack NeedUpper.
	Upper(ctx context.Context) (uppertester.Tester, error)
	// Stream is a TCP connection to the target on which no octet has been
	// exchanged, the case being MPA Initiator or Responder. At the other end is a
	// program that speaks rping's language: the other role of it. An error that
	// is ErrNoRole says that the target cannot be talked to in this way.
	Stream(ctx context.Context, play Role) (net.Conn, error)
	// Close frees what the target itself holds.
	Close() error
}

// ErrNoRole is Stream's: a case of that role cannot run.
var ErrNoRole = errors.New("the target is run in one role only")

// InProcess is the target in this process: an RNIC of softrnic for each case.
type InProcess struct{}

// Name is "softrnic in this process".
func (InProcess) Name() string { return "softrnic in this process" }

// Lacks nothing.
func (InProcess) Lacks(Need) string { return "" }

// Role is Initiator: so that the first octets are the case's.
func (InProcess) Role() Role { return Initiator }

// Here is the loopback.
func (InProcess) Here() string { return "127.0.0.1" }

// Upper opens an RNIC.
func (InProcess) Upper(ctx context.Context) (uppertester.Tester, error) {
	s, err := uppertester.New(InProcess{}.Here())
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Stream connects to a program that talks as rping does.
func (p InProcess) Stream(ctx context.Context, play Role) (net.Conn, error) {
	s, err := p.Upper(ctx)
	if err != nil {
		return nil, err
	}
	return pingStream(ctx, s, play, p.Here())
}

// Close does nothing.
func (InProcess) Close() error { return nil }

// pingStream has an upper tester talk as rping does, and is the stream to it. host
// is an address of this machine that it can reach.
func pingStream(ctx context.Context, u uppertester.Tester, play Role, host string) (net.Conn, error) {
	c, err := pingConnect(ctx, u, play, host)
	if err != nil {
		_ = u.Close()
		return nil, err
	}
	return &sessionConn{c, u}, nil
}

func pingConnect(ctx context.Context, u uppertester.Tester, play Role, host string) (*net.TCPConn, error) {
	var at uppertester.Listening
	if play != Responder {
		if err := u.Ping(uppertester.ConnectArgs{}, &at); err != nil {
			return nil, err
		}
		return dialTCP(ctx, at.Addr)
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, fmt.Errorf("conformance: %w", err)
	}
	defer func() { _ = l.Close() }()
	if err := u.Ping(uppertester.ConnectArgs{Addr: l.Addr().String()}, &at); err != nil {
		return nil, err
	}
	return acceptTCP(ctx, l)
}

// sessionConn is a connection whose other side ends with it.
type sessionConn struct {
	*net.TCPConn
	session uppertester.Tester
}

func (c *sessionConn) Close() error {
	err := c.TCPConn.Close()
	return errors.Join(err, c.session.Close())
}

func dialTCP(ctx context.Context, addr string) (*net.TCPConn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("conformance: %w", err)
	}
	return c.(*net.TCPConn), nil
}

// acceptTCP takes one connection from l, which is closed if ctx ends.
func acceptTCP(ctx context.Context, l net.Listener) (*net.TCPConn, error) {
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	c, err := l.Accept()
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, fmt.Errorf("conformance: %w", err)
	}
	return c.(*net.TCPConn), nil
}

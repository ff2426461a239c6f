//go:build linux && (amd64 || arm64)

package ucma

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/internal/tcpsock"
)

// options are those of an id that its sockets have.
type options struct {
	tos       int // -1 for the system's
	reuseAddr bool
	afOnly    bool
	// datagrams makes it a UDP socket: the id is of a port space for datagrams.
	datagrams bool
	// ackTimeout is told to the program's queue pair, for QUERY_QP; 0: it was not set.
	ackTimeout uint8
}

// port is a TCP or UDP port that belongs to an id before it listens or connects: a socket that is only bound.
// Nobody can connect to it, and another bind fails with EADDRINUSE.
type port struct {
	fd   int
	addr netip.AddrPort // as bound, with the port that the system chose
	tos  int
}

// reserve binds. Connections of before that wait for their end (TIME_WAIT) are in nobody's way. Errors: an
// errno of socket(2) or bind(2).
func reserve(a netip.AddrPort, o options) (*port, error) {
	// With SO_REUSEADDR two UDP sockets would share a port, and one would get what is the other's.
	p, err := bindTo(a, o, o.reuseAddr && !o.datagrams)
	if errors.Is(err, syscall.EADDRINUSE) && !o.reuseAddr && !o.datagrams {
		// Perhaps only because of connections that have ended, which SO_REUSEADDR forgives. With it as the first
		// choice a bound socket of another would be forgiven as well, if that had it too.
		p, err = bindTo(a, o, true)
		if err == nil {
			err = unix.SetsockoptInt(p.fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 0)
		}
	}
	if err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func bindTo(a netip.AddrPort, o options, reuse bool) (*port, error) {
	family, sa := socketAddr(a)
	kind := unix.SOCK_STREAM
	if o.datagrams {
		kind = unix.SOCK_DGRAM
	}
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	p := &port{fd: fd, tos: o.tos}
	if family == unix.AF_INET6 {
		err = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, number(o.afOnly))
	}
	if err == nil && reuse {
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	}
	if err == nil {
		err = unix.Bind(fd, sa)
	}
	var got unix.Sockaddr
	if err == nil {
		got, err = unix.Getsockname(fd)
	}
	if err != nil {
		p.close()
		return nil, err
	}
	switch s := got.(type) {
	case *unix.SockaddrInet4:
		p.addr = netip.AddrPortFrom(a.Addr(), uint16(s.Port))
	case *unix.SockaddrInet6:
		p.addr = netip.AddrPortFrom(a.Addr(), uint16(s.Port))
	}
	return p, nil
}

// socketAddr is an address for system calls, and its family.
func socketAddr(a netip.AddrPort) (family int, sa unix.Sockaddr) {
	if a.Addr().Is4() {
		return unix.AF_INET, &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
	}
	return unix.AF_INET6, &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16(), ZoneId: scope(a.Addr())}
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

// listen makes the port one that peers can connect to. It takes the port, also if it fails.
func (p *port) listen() (net.Listener, error) {
	defer p.close()
	if err := p.share(); err != nil {
		return nil, err
	}
	if err := unix.Listen(p.fd, unix.SOMAXCONN); err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(p.fd), "rdma_cm")
	p.fd = -1
	defer f.Close()
	return net.FileListener(f)
}

// share lets the port's connections be forgiven when they have ended, and lets dial bind to it once more.
func (p *port) share() error {
	if p.tos >= 0 {
		_ = setTOS(p.fd, p.tos) // a wish only
	}
	return unix.SetsockoptInt(p.fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
}

// close gives the port up; nil is none.
func (p *port) close() {
	if p != nil && p.fd >= 0 {
		_ = unix.Close(p.fd)
		p.fd = -1
	}
}

// setTOS sets the type of service of both families; a socket of IPv4 lacks one.
func setTOS(fd, tos int) error {
	return errors.Join(
		unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_TOS, tos),
		unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_TCLASS, tos),
	)
}

// dialer dials from src. own is told of its sockets, and find says which TCP port serves a number.
type dialer struct {
	src   netip.AddrPort
	tos   int
	own   func(int)
	find  func(ctx context.Context, src, dst netip.AddrPort) netip.AddrPort
	limit limits
	begun time.Time // rdma_connect
}

// dial connects to dst. A refused connection is tried again until limit.Refused from rdma_connect on: those whose turn comes later are
// tried once.
func (d dialer) dial(ctx context.Context, dst netip.AddrPort) (net.Conn, error) {
	nd := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(d.src), Control: func(_, _ string, c syscall.RawConn) (err error) {
		cerr := c.Control(func(fd uintptr) {
			d.own(int(fd))
			if d.tos >= 0 {
				_ = setTOS(int(fd), d.tos)
			}
			err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
		})
		if cerr != nil {
			return cerr
		}
		return err
	}}
	late := time.NewTimer(time.Until(d.begun.Add(d.limit.Refused)))
	defer late.Stop()
	for {
		nc, err := nd.DialContext(ctx, "tcp", d.find(ctx, d.src, dst).String())
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return nc, tcpsock.NoPort(err)
		}
		again := time.NewTimer(d.limit.Again)
		select {
		case <-ctx.Done():
			again.Stop()
			return nil, context.Cause(ctx)
		case <-late.C:
			again.Stop()
			return nil, err
		case <-again.C:
		}
	}
}

// sourceFor is the address that connections to dst come from.
func sourceFor(dst netip.Addr) (netip.Addr, error) {
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(dst, 1)))
	if err != nil {
		return netip.Addr{}, err
	}
	defer c.Close()
	a := c.LocalAddr().(*net.UDPAddr).AddrPort().Addr()
	if dst.Is4In6() {
		return netip.AddrFrom16(a.As16()), nil
	}
	if dst.Is4() {
		a = a.Unmap()
	}
	return a, nil
}

//go:build linux && (amd64 || arm64)

// Package portmap gives rdma_cm its own port space, as adapters have it: the number that a C program listens at by RDMA may be
// one that a TCP program has. Then the listener has another TCP port, and those who connect ask for it: on this host an
// abstract socket of the owner's, on another the iWARP port mapper, in the form of rdma-core's iwpmd.
//
//	rdma_bind_addr -> Space.Take -> Claim.Serve      Space.Find <- rdma_connect
//	                  abstract socket, "6379 is 40123" <- on this host
//	                  UDP 3935, of one process a host  <- from another
//
// No daemon has part in it, and nothing is left of a process that has died: the kernel has both names, per network namespace.
package portmap

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"
)

// Space is the port space as one process sees it.
type Space struct {
	own    func(fd int)
	report func(error)
	port   uint16 // of port mappers; tests have one of their own

	mu     sync.Mutex
	silent map[netip.Addr]time.Time // hosts whose mapper said nothing, and until when they are not asked again
}

// New is the space of a process. own is told of each descriptor, report why hosts cannot be told of a mapping; it may be
// called from any goroutine.
func New(own func(fd int), report func(error)) *Space {
	return &Space{own: own, report: report, port: Port, silent: map[netip.Addr]time.Time{}}
}

// control has descriptors owned as they are made; more sets what else a socket needs.
func (s *Space) control(more func(fd int) error) func(_, _ string, c syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) error {
		var err error
		wrong := c.Control(func(fd uintptr) {
			s.own(int(fd))
			if more != nil {
				err = more(int(fd))
			}
		})
		if wrong != nil {
			return wrong
		}
		return err
	}
}

// listen makes an abstract socket.
func (s *Space) listen(name string) (*net.UnixListener, error) {
	c := net.ListenConfig{Control: s.control(nil)}
	l, err := c.Listen(context.Background(), "unix", name)
	if err != nil {
		return nil, err
	}
	return l.(*net.UnixListener), nil
}

// dial connects to an abstract socket.
func (s *Space) dial(ctx context.Context, name string) (*net.UnixConn, error) {
	d := net.Dialer{Control: s.control(nil)}
	c, err := d.DialContext(ctx, "unix", name)
	if err != nil {
		return nil, err
	}
	return c.(*net.UnixConn), nil
}

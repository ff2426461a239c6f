//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package cases

import (
	"net"
	"syscall"
)

// offerSegments is a Dialer's Control, for a maximum segment size of TCP.
func offerSegments(mss int) func(string, string, syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) error {
		var err error
		if e := c.Control(func(fd uintptr) {
			err = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_MAXSEG, mss)
		}); e != nil {
			return e
		}
		return err
	}
}

// segments is the maximum segment size that a connection came to; 0 if the system
// does not tell.
func segments(c *net.TCPConn) (mss int) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) {
		mss, err = syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_MAXSEG)
	})
	if err != nil {
		return 0
	}
	return mss
}

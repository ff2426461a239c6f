package cases

import (
	"net"
	"syscall"
	"time"
)

// tcpUserTimeout is TCP_USER_TIMEOUT of linux/tcp.h, which package syscall lacks.
const tcpUserTimeout = 18

// givesUp has TCP give up a peer that takes nothing for so long, and reports whether the system lets a program choose
// that.
func givesUp(c *net.TCPConn, after time.Duration) bool {
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	e := raw.Control(func(fd uintptr) {
		err = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(after.Milliseconds()))
	})
	return e == nil && err == nil
}

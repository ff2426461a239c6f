package tcpsock

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// RTT is TCP's smoothed round-trip time of a connection, or of the one below TLS; 0 if there is
// none, or nothing tells.
func RTT(c net.Conn) (rtt time.Duration) {
	if over, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = over.NetConn()
	}
	sc, ok := c.(syscall.Conn)
	if !ok {
		return 0
	}
	rc, err := sc.SyscallConn()
	if err != nil {
		return 0
	}
	_ = rc.Control(func(fd uintptr) {
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			rtt = time.Duration(info.Rtt) * time.Microsecond
		}
	})
	return rtt
}

//go:build unix

package vitcp

import (
	"net"
	"syscall"
)

// nonblocking makes the socket of a connection that somebody else made a non-blocking
// one. A program that called os.File.Fd on a copy of it, to set an option say, has made
// it block, for the runtime too: then no deadline ends a read.
func nonblocking(nc net.Conn) {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return
	}
	if rc, err := sc.SyscallConn(); err == nil {
		_ = rc.Control(func(fd uintptr) { _ = syscall.SetNonblock(int(fd), true) })
	}
}

//go:build unix

// Package tcpsock is what softrnic wants of the sockets that it is handed.
package tcpsock

import (
	"net"
	"syscall"
)

// Prepare makes the socket of a connection, if it has one, ready for system calls of
// this module's own:
//
//   - It is a non-blocking one. A program that called os.File.Fd on a copy of it, to set
//     an option say, has made it block, for the runtime too: then no deadline ends a read.
//   - It takes no more than Unsent octets ahead of what the peer has room for, where the
//     system can be told so.
func Prepare(c net.Conn) {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return
	}
	rc, err := sc.SyscallConn()
	if err != nil {
		return
	}
	_ = rc.Control(func(fd uintptr) {
		_ = syscall.SetNonblock(int(fd), true)
		boundUnsent(int(fd))
	})
}

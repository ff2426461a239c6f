//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package mpa

import "syscall"

// maxSegment returns TCP_MAXSEG of a socket, 0 if it has none. On a connected
// socket that is the size in use, after MTU discovery and TCP options.
func maxSegment(fd uintptr) int {
	n, err := syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_MAXSEG)
	if err != nil {
		return 0
	}
	return n
}

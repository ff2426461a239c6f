//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package cases

import (
	"net"
	"syscall"
)

// offerSegments and segments: this system does not let a program choose or see the
// maximum segment size of TCP.
func offerSegments(int) func(string, string, syscall.RawConn) error { return nil }

func segments(*net.TCPConn) int { return 0 }

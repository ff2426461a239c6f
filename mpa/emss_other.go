//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package mpa

// maxSegment returns 0: this system does not tell the segment size of a socket.
func maxSegment(uintptr) int { return 0 }

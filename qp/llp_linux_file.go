//go:build linux && (386 || s390x)

package qp

import (
	"syscall"
	"unsafe"
)

// These systems have one call for everything about sockets, and its arguments in
// memory.

func recvOnce(fd uintptr, p []byte) (uintptr, syscall.Errno) {
	n, _, errno := syscall.RawSyscall(syscall.SYS_READ, fd, uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)))
	return n, errno
}

func sendOnce(fd uintptr, p []byte) (uintptr, syscall.Errno) {
	n, _, errno := syscall.RawSyscall(syscall.SYS_WRITE, fd, uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)))
	return n, errno
}

//go:build linux && (386 || s390x)

package sockio

import (
	"syscall"
	"unsafe"
)

// These systems have one call for everything about sockets, and its arguments in
// memory: the calls of any file are shorter.

// Recv receives into p, which is not empty, without sleeping and past the runtime.
func Recv(fd uintptr, p []byte) (n uintptr, errno syscall.Errno) {
	n, _, errno = syscall.RawSyscall(syscall.SYS_READ, fd, uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)))
	return n, errno
}

// Send sends what the socket takes of p, which is not empty, likewise.
func Send(fd uintptr, p []byte) (n uintptr, errno syscall.Errno) {
	n, _, errno = syscall.RawSyscall(syscall.SYS_WRITE, fd, uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)))
	return n, errno
}

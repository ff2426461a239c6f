//go:build !386 && !s390x

package sockio

import (
	"syscall"
	"unsafe"
)

// Of a socket, these are the shorter ways into the system than read and write.

// Recv receives into p, which is not empty, without sleeping and past the runtime.
func Recv(fd uintptr, p []byte) (n uintptr, errno syscall.Errno) {
	n, _, errno = syscall.RawSyscall6(syscall.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)), 0, 0, 0)
	return n, errno
}

// Send sends what the socket takes of p, which is not empty, likewise.
func Send(fd uintptr, p []byte) (n uintptr, errno syscall.Errno) {
	n, _, errno = syscall.RawSyscall6(syscall.SYS_SENDTO, fd, uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)), syscall.MSG_NOSIGNAL, 0, 0)
	return n, errno
}

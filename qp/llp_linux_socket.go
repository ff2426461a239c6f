//go:build linux && !386 && !s390x

package qp

import (
	"syscall"
	"unsafe"
)

// Of a socket, these are the shorter ways into the system than read and write.

func recvOnce(fd uintptr, p []byte) (uintptr, syscall.Errno) {
	n, _, errno := syscall.RawSyscall6(syscall.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)), 0, 0, 0)
	return n, errno
}

func sendOnce(fd uintptr, p []byte) (uintptr, syscall.Errno) {
	n, _, errno := syscall.RawSyscall6(syscall.SYS_SENDTO, fd, uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)), syscall.MSG_NOSIGNAL, 0, 0)
	return n, errno
}

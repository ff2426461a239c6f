package sockio

import (
	"syscall"
	"unsafe"
)

// The calls do not wait, whatever the descriptor says: whoever has another one of the
// same socket may make it block. They are past the runtime.

// Recv receives into p, which is not empty.
func Recv(fd uintptr, p []byte) (n uintptr, errno syscall.Errno) {
	n, _, errno = syscall.RawSyscall6(sysRecvfrom, fd, uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)), syscall.MSG_DONTWAIT, 0, 0)
	return n, errno
}

// Send sends what the socket takes of p, which is not empty.
func Send(fd uintptr, p []byte) (n uintptr, errno syscall.Errno) {
	const flags = syscall.MSG_DONTWAIT | syscall.MSG_NOSIGNAL
	n, _, errno = syscall.RawSyscall6(sysSendto, fd, uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)), flags, 0, 0)
	return n, errno
}

// RecvVec is Recv into several pieces.
func RecvVec(fd uintptr, v []syscall.Iovec) (n uintptr, errno syscall.Errno) {
	m := syscall.Msghdr{Iov: &v[0]}
	set(&m.Iovlen, len(v))
	n, _, errno = syscall.RawSyscall(sysRecvmsg, fd, uintptr(unsafe.Pointer(&m)), syscall.MSG_DONTWAIT)
	return n, errno
}

// SendVec is Send of several pieces, at most 1024.
func SendVec(fd uintptr, v []syscall.Iovec) (n uintptr, errno syscall.Errno) {
	const flags = syscall.MSG_DONTWAIT | syscall.MSG_NOSIGNAL
	m := syscall.Msghdr{Iov: &v[0]}
	set(&m.Iovlen, len(v))
	n, _, errno = syscall.RawSyscall(sysSendmsg, fd, uintptr(unsafe.Pointer(&m)), flags)
	return n, errno
}

// set sets a field whose type depends on the processor.
func set[T uint32 | uint64](p *T, n int) { *p = T(n) }

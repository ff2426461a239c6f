package tcpsock

import (
	"sync"
	"syscall"
	"unsafe"
)

// The calls do not wait, whatever the descriptor says: a holder of another one of the
// same socket may make it block. They are past the runtime, and begin again after a
// signal. A receive of 0 octets without an error is the end of the stream; see Dropped.

// Recv receives into p, which is not empty.
func Recv(fd uintptr, p []byte) (n int, errno syscall.Errno) {
	for {
		k, _, errno := syscall.RawSyscall6(sysRecvfrom, fd, uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)), syscall.MSG_DONTWAIT, 0, 0)
		if errno != syscall.EINTR {
			return received(k, errno)
		}
	}
}

// RecvPieces is Recv into MaxRecvPieces pieces at most, none of which is empty.
func RecvPieces(fd uintptr, pieces [][]byte) (n int, errno syscall.Errno) {
	var v [MaxRecvPieces]syscall.Iovec
	for i, p := range pieces {
		v[i].Base = &p[0]
		v[i].SetLen(len(p))
	}
	m := syscall.Msghdr{Iov: &v[0]}
	set(&m.Iovlen, len(pieces))
	for {
		k, _, errno := syscall.RawSyscall(sysRecvmsg, fd, uintptr(unsafe.Pointer(&m)), syscall.MSG_DONTWAIT)
		if errno != syscall.EINTR {
			return received(k, errno)
		}
	}
}

// MaxRecvPieces is into how many pieces RecvPieces receives.
const MaxRecvPieces = 9

func received(n uintptr, errno syscall.Errno) (int, syscall.Errno) {
	if errno != 0 {
		return 0, errno
	}
	if n > 0 {
		AfterRead()
	}
	return int(n), 0
}

const sendFlags = syscall.MSG_DONTWAIT | syscall.MSG_NOSIGNAL

// Send sends what the socket takes of p, which is not empty.
func Send(fd uintptr, p []byte) (n int, errno syscall.Errno) {
	BeforeWrite()
	for {
		k, _, errno := syscall.RawSyscall6(sysSendto, fd, uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)), sendFlags, 0, 0)
		if errno != syscall.EINTR {
			return sent(k, errno)
		}
	}
}

// SendPieces sends what the socket takes of the first limit octets of pieces, in one call:
// of as many pieces as that takes.
func SendPieces(fd uintptr, pieces [][]byte, limit int) (n int, errno syscall.Errno) {
	if p := pieces[0]; len(p) >= limit || len(pieces) == 1 && len(p) > 0 {
		return Send(fd, p[:min(limit, len(p))])
	}
	v := iovecs.Get().(*[maxIovecs]syscall.Iovec)
	k := 0
	for _, p := range pieces {
		if p = p[:min(limit, len(p))]; len(p) == 0 {
			continue
		}
		v[k].Base = &p[0]
		v[k].SetLen(len(p))
		limit -= len(p)
		if k++; k == maxIovecs || limit == 0 {
			break
		}
	}
	BeforeWrite()
	n, errno = sendVec(fd, v[:k])
	clear(v[:k]) // keep no memory of others alive
	iovecs.Put(v)
	return n, errno
}

func sendVec(fd uintptr, v []syscall.Iovec) (n int, errno syscall.Errno) {
	m := syscall.Msghdr{Iov: &v[0]}
	set(&m.Iovlen, len(v))
	for {
		k, _, errno := syscall.RawSyscall(sysSendmsg, fd, uintptr(unsafe.Pointer(&m)), sendFlags)
		if errno != syscall.EINTR {
			return sent(k, errno)
		}
	}
}

func sent(n uintptr, errno syscall.Errno) (int, syscall.Errno) {
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}

// maxIovecs is what Linux takes in one call (UIO_MAXIOV).
const maxIovecs = 1024

var iovecs = sync.Pool{New: func() any { return new([maxIovecs]syscall.Iovec) }}

// set sets a field whose type depends on the processor.
func set[T uint32 | uint64](p *T, n int) { *p = T(n) }

// Dropped reports whether no connection is left behind the end of a stream. Linux
// gives the error of a connection to one call only: if that was a write, a read
// finds the end of a stream that the peer has not closed.
func Dropped(fd uintptr) bool {
	const closed = 7 // TCP_CLOSE; after a FIN from the peer it is TCP_CLOSE_WAIT
	info, err := syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_INFO)
	start := int32(info)
	return err == nil && *(*uint8)(unsafe.Pointer(&start)) == closed // struct tcp_info begins with the state
}

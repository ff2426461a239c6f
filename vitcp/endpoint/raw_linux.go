package endpoint

import (
	"io"
	"net"
	"syscall"
	"unsafe"

	"github.com/softrnic/softrnic/internal/sockio"
)

// rawConn does non-blocking vectored input and output on a TCP socket, so that memory is
// held while a system call uses it and never while waiting. The closures it gives to the
// runtime are made once: no call allocates. What they need passes through its fields.
type rawConn struct {
	conn    syscall.RawConn // nil: not a TCP socket
	onRead  func(fd uintptr) bool
	onWrite func(fd uintptr) bool

	rd struct { // the reader's
		sink  *spans
		away  int
		space []byte
		n     int
		err   error
		vecs  [directPieces + 1]syscall.Iovec
		room  [directPieces][]byte
	}
	wr struct { // the writer's
		b    *batch
		err  error
		vecs []syscall.Iovec
	}
}

const (
	// directPieces is into how many pieces of memory one system call reads.
	directPieces = 8
	// directAhead is how much is read along behind a segment: the next header, or two.
	directAhead = 512
)

func (r *rawConn) init(c net.Conn) {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return
	}
	rc, err := tcp.SyscallConn()
	if err != nil {
		return
	}
	r.conn, r.onRead, r.onWrite = rc, r.tryRead, r.tryWrite
}

func (r *rawConn) usable() bool { return r.conn != nil }

// read reads into space, sleeping until there is something.
func (r *rawConn) read(space []byte) (int, error) { return r.readDirect(nil, 0, space) }

// readDirect reads up to away octets into sink, and what comes behind them into space.
// errRevoked says that the sink's memory is gone.
func (r *rawConn) readDirect(sink *spans, away int, space []byte) (int, error) {
	rd := &r.rd
	rd.sink, rd.away, rd.space, rd.n, rd.err = sink, away, space, 0, nil
	err := r.conn.Read(r.onRead)
	if err == nil {
		err = rd.err
	}
	return rd.n, err
}

// tryRead returns false to sleep until the socket is readable.
func (r *rawConn) tryRead(fd uintptr) bool {
	rd := &r.rd
	for {
		n, errno, ok := r.readOnce(fd)
		switch {
		case !ok:
			rd.err = errRevoked
		case errno == syscall.EAGAIN:
			return false
		case errno == syscall.EINTR:
			continue
		case errno != 0:
			rd.err = errno
		case n == 0:
			rd.err = io.EOF
		default:
			sockio.AfterRead()
			rd.n = n
			if rd.sink != nil {
				rd.sink.skip(uint64(min(n, rd.away)))
			}
		}
		return true
	}
}

// readOnce makes one system call.
func (r *rawConn) readOnce(fd uintptr) (n int, errno syscall.Errno, ok bool) {
	rd := &r.rd
	vecs := rd.vecs[:0]
	behind := rd.space
	if rd.sink != nil {
		ref, off, k := rd.sink.here(uint64(rd.away))
		if k == 0 || !ref.Hold() {
			return 0, 0, false
		}
		defer ref.Release()
		pieces := ref.Append(rd.room[:0], off, k)
		all := len(pieces) <= directPieces && int(k) == rd.away
		for _, p := range pieces[:min(len(pieces), directPieces)] {
			vecs = appendVec(vecs, p)
		}
		clear(rd.room[:])
		behind = behind[:min(len(behind), directAhead)]
		if !all {
			behind = nil
		}
	}
	if len(behind) > 0 {
		vecs = appendVec(vecs, behind)
	}
	got, _, errno := syscall.RawSyscall(syscall.SYS_READV, fd, uintptr(unsafe.Pointer(&vecs[0])), uintptr(len(vecs)))
	clear(vecs)
	return int(got), errno, true
}

func appendVec(vecs []syscall.Iovec, p []byte) []syscall.Iovec {
	vecs = append(vecs, syscall.Iovec{Base: &p[0]})
	vecs[len(vecs)-1].SetLen(len(p))
	return vecs
}

// write sends as much of b as the socket takes, but something: it sleeps if need be.
// EAGAIN says that more would have to wait, errRevoked that the memory of what is next
// is gone.
func (r *rawConn) write(b *batch) error {
	w := &r.wr
	w.b, w.err = b, nil
	err := r.conn.Write(r.onWrite)
	w.b = nil
	if err != nil {
		return err
	}
	return w.err
}

// tryWrite returns false to sleep until the socket takes more.
func (r *rawConn) tryWrite(fd uintptr) bool {
	w := &r.wr
	some := false
	for !w.b.empty() {
		n, errno, ok := r.writeOnce(fd, w.b)
		switch {
		case !ok:
			w.err = errRevoked
			return true
		case errno == 0:
			w.b.advance(n)
			some = true
		case errno == syscall.EINTR:
		case errno == syscall.EAGAIN && some:
			w.err = errno
			return true
		case errno == syscall.EAGAIN:
			return false
		default:
			w.err = errno
			return true
		}
	}
	return true
}

// writeOnce makes one system call, and holds the memory meanwhile. ok is false if that
// of the octets that are next is gone.
func (r *rawConn) writeOnce(fd uintptr, b *batch) (n int, errno syscall.Errno, ok bool) {
	limit, holds := b.hold()
	defer release(holds)
	limit = b.upTo(limit)
	if limit <= b.sent {
		return 0, 0, false
	}
	vecs, left := r.wr.vecs[:0], limit-b.sent
	for i := b.gone; left > 0 && len(vecs) < maxPieces; i++ {
		p := b.pieces[i]
		p = p[:min(left, len(p))]
		vecs = appendVec(vecs, p)
		left -= len(p)
	}
	r.wr.vecs = vecs
	sockio.BeforeWrite()
	sent, _, errno := syscall.RawSyscall(syscall.SYS_WRITEV, fd, uintptr(unsafe.Pointer(&vecs[0])), uintptr(len(vecs)))
	clear(vecs)
	return int(sent), errno, true
}

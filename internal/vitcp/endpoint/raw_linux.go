package endpoint

import (
	"io"
	"net"
	"syscall"

	"github.com/softrnic/softrnic/internal/netpoll"
	"github.com/softrnic/softrnic/internal/tcpsock"
)

// join gives a TCP connection its place in the group. The connection that it was is closed.
func (e *Endpoint) join() error {
	tcp, ok := e.conn.(*net.TCPConn)
	if !ok {
		return nil
	}
	o, err := netpoll.Own(tcp, nil)
	if err != nil {
		return err
	}
	g := e.c.Group
	if g == nil {
		g = new(netpoll.Group)
	}
	if e.sock, err = o.Join(g, (*member)(e)); err != nil {
		_ = o.Close()
		return err
	}
	raw, _ := o.SyscallConn() // it does not fail
	e.conn = o
	e.raw.init(raw)
	o.Take()
	return nil
}

// handToRuntime makes the connection one of the runtime again, for the end: deadlines work, and the
// two goroutines that it has then may wait. The caller has both sides.
func (e *Endpoint) handToRuntime() {
	c := e.conn.(*netpoll.Conn)
	c.HandToRuntime()
	raw, _ := c.SyscallConn() // it does not fail
	e.raw.init(raw)
	e.raw.waits = true
}

// rawConn does vectored input and output on a TCP socket, so that memory is
// held while a system call uses it and never while waiting. The closures it gives to the
// runtime are made once: no call allocates. What they need passes through its fields.
type rawConn struct {
	conn    syscall.RawConn // nil: not a TCP socket
	waits   bool            // write waits until the socket takes something
	onRead  func(fd uintptr)
	onWrite func(fd uintptr) bool
	onTry   func(fd uintptr)

	rd struct { // the reader's
		sink  *spans
		away  int
		space []byte
		n     int
		err   error
		room  [tcpsock.MaxRecvPieces][]byte
	}
	wr struct { // the writer's
		b   *batch
		err error
	}
}

const (
	// directPieces is into how many pieces of memory one system call reads.
	directPieces = tcpsock.MaxRecvPieces - 1
	// directAhead is how much is read along behind a segment: the next header, or two.
	directAhead = 512
)

func (r *rawConn) init(c syscall.RawConn) {
	r.conn, r.onRead, r.onWrite = c, r.tryRead, r.tryWrite
	r.onTry = func(fd uintptr) { r.tryWrite(fd) }
}

func (r *rawConn) usable() bool { return r.conn != nil }

// read reads into space once. EAGAIN says that there is nothing.
func (r *rawConn) read(space []byte) (int, error) { return r.readDirect(nil, 0, space) }

// readDirect reads up to away octets into sink, and what comes behind them into space.
// errRevoked says that the sink's memory is gone.
func (r *rawConn) readDirect(sink *spans, away int, space []byte) (int, error) {
	rd := &r.rd
	rd.sink, rd.away, rd.space, rd.n, rd.err = sink, away, space, 0, nil
	err := r.conn.Control(r.onRead)
	if err == nil {
		err = rd.err
	}
	return rd.n, err
}

func (r *rawConn) tryRead(fd uintptr) {
	rd := &r.rd
	n, errno, ok := r.readOnce(fd)
	switch {
	case !ok:
		rd.err = errRevoked
	case errno == syscall.EAGAIN:
		rd.err = errAgain
	case errno != 0:
		rd.err = errno
	case n == 0:
		rd.err = io.EOF
	default:
		rd.n = n
		if rd.sink != nil {
			rd.sink.skip(uint64(min(n, rd.away)))
		}
	}
}

// readOnce makes one system call.
func (r *rawConn) readOnce(fd uintptr) (n int, errno syscall.Errno, ok bool) {
	rd := &r.rd
	if rd.sink == nil {
		n, errno = tcpsock.Recv(fd, rd.space)
		return n, errno, true
	}
	ref, off, k := rd.sink.here(uint64(rd.away))
	if k == 0 || !ref.Hold() {
		return 0, 0, false
	}
	defer ref.Release()
	pieces := ref.Fill(rd.room[:0:directPieces], off, k)
	left := rd.away
	for _, p := range pieces {
		left -= len(p)
	}
	if left == 0 {
		pieces = append(rd.room[:len(pieces)], rd.space[:min(len(rd.space), directAhead)])
	}
	n, errno = tcpsock.RecvPieces(fd, pieces)
	clear(rd.room[:])
	return n, errno, true
}

// write sends as much of b as the socket takes. EAGAIN says that the rest would have to
// wait, errRevoked that the memory of what is next is gone.
func (r *rawConn) write(b *batch) error {
	w := &r.wr
	w.b, w.err = b, nil
	var err error
	if r.waits {
		err = r.conn.Write(r.onWrite)
	} else {
		err = r.conn.Control(r.onTry)
	}
	w.b = nil
	if err != nil {
		return err
	}
	return w.err
}

// tryWrite returns false to sleep until the socket takes more.
func (r *rawConn) tryWrite(fd uintptr) bool {
	w := &r.wr
	some := !r.waits
	for !w.b.empty() {
		n, errno, ok := r.writeOnce(fd, w.b)
		switch {
		case !ok:
			w.err = errRevoked
			return true
		case errno == 0:
			w.b.advance(n)
			some = true
		case errno == syscall.EAGAIN && some:
			w.err = errAgain
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
	n, errno = tcpsock.SendPieces(fd, b.pieces[b.gone:], limit-b.sent)
	return n, errno, true
}

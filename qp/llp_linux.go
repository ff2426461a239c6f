package qp

import (
	"net"
	"syscall"

	"github.com/softrnic/softrnic/internal/netpoll"
	"github.com/softrnic/softrnic/internal/tcpsock"
)

// rawIO does vectored I/O that does not block on a TCP socket. The closures it gives to
// the runtime are made once, so that no call allocates; arguments and results
// pass through its fields.
type rawIO struct {
	conn    syscall.RawConn
	onPoll  func(fd uintptr)
	onWrite func(fd uintptr) bool
	onTry   func(fd uintptr)

	// Of a read. Receive side.
	poll struct {
		in  *intake
		n   int
		out outcome
	}
	// Of the current write. Transmit side.
	wr struct {
		b    *batch
		n    int
		wait bool
		out  outcome
	}
}

func (r *rawIO) init(conn syscall.RawConn) {
	r.conn = conn
	r.onPoll = r.pollRead
	r.onWrite = r.tryWrite
	r.onTry = func(fd uintptr) { r.tryWrite(fd) }
}

// init takes c over. A TCP connection gets another descriptor, of which the runtime's
// poller does not know: what arrives wakes the poller of the session's group and no other goroutine.
// c itself is closed when the session begins (session.start).
func (l *llp) init(c net.Conn) error {
	l.conn = c
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return nil
	}
	o, err := netpoll.Own(tcp)
	if err != nil {
		return err
	}
	l.conn = o
	l.direct = true
	raw, _ := o.SyscallConn() // it does not fail
	l.raw.init(raw)
	return nil
}

// join gives the stream its place in a group.
func (l *llp) join(g *netpoll.Group, s netpoll.Member) (*netpoll.Socket, error) {
	return l.conn.(*netpoll.Conn).Join(g, s)
}

// handToRuntime makes a connection of package netpoll one of the runtime's again, for the end of the
// stream: deadlines work, and a goroutine may wait. The caller owns both sides.
func (l *llp) handToRuntime() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o, ok := l.conn.(*netpoll.Conn); ok {
		l.raw.conn = o.HandToRuntime()
	}
}

// tryPoll reads once without sleeping.
func (r *rawIO) tryPoll(in *intake) (int, outcome) {
	p := &r.poll
	p.in, p.n, p.out = in, 0, ioLost
	if err := r.conn.Control(r.onPoll); err != nil {
		return 0, outcomeOf(err)
	}
	return p.n, p.out
}

func (r *rawIO) pollRead(fd uintptr) {
	p := &r.poll
	p.n, p.out = readOnce(fd, p.in)
}

// look reads once into p, without sleeping, whatever deadline has passed. That a
// connection has ended in both directions, which Dropped looks for, is in order here:
// this half may be closed.
func (r *rawIO) look(p []byte) (n int, out outcome) {
	out = ioLost
	err := r.conn.Control(func(fd uintptr) {
		k, errno := tcpsock.Recv(fd, p)
		if k == 0 && errno == 0 {
			out = ioEOF
			return
		}
		n, out = readOutcome(fd, k, errno)
	})
	if err != nil {
		return 0, outcomeOf(err)
	}
	return n, out
}

// readOnce makes one system call.
func readOnce(fd uintptr, in *intake) (int, outcome) {
	if in.Diverted() > 0 {
		return readDirect(fd, in)
	}
	p := in.space()
	if len(p) == 0 { // deliver leaves room
		return 0, ioLost
	}
	n, errno := tcpsock.Recv(fd, p)
	return readOutcome(fd, n, errno)
}

// readDirect reads into the memory of the segment that is placed directly, which it holds
// meanwhile, and what comes next into the buffer.
func readDirect(fd uintptr, in *intake) (int, outcome) {
	t := &in.placement
	if !t.ref.Hold() {
		return 0, ioRevoked
	}
	defer t.ref.Release()
	var room [directPieces + 1][]byte
	want := in.Diverted()
	pieces := t.ref.Fill(room[:0:directPieces], t.at, uint64(want))
	for _, p := range pieces {
		want -= len(p)
	}
	if want == 0 {
		p := in.space()
		pieces = append(room[:len(pieces)], p[:min(len(p), directAhead)])
	}
	n, errno := tcpsock.RecvPieces(fd, pieces)
	if errno == 0 {
		t.at += min(uint64(n), uint64(in.Diverted()))
	}
	return readOutcome(fd, n, errno)
}

// directPieces is into how many pieces of memory one system call reads.
const directPieces = tcpsock.MaxRecvPieces - 1

func readOutcome(fd uintptr, n int, errno syscall.Errno) (int, outcome) {
	switch {
	case errno == syscall.EAGAIN:
		return 0, ioAgain
	case errno != 0:
		return 0, outcomeOf(errno)
	case n == 0 && tcpsock.Dropped(fd):
		return 0, ioReset
	case n == 0:
		return 0, ioEOF
	}
	return n, ioDone
}

func (r *rawIO) write(b *batch, wait bool) (int, outcome) {
	w := &r.wr
	w.b, w.wait, w.n, w.out = b, wait, 0, ioAgain
	var err error
	if wait {
		err = r.conn.Write(r.onWrite)
	} else {
		err = r.conn.Control(r.onTry) // cheaper: it gets no poller ready
	}
	w.b = nil
	if err != nil {
		return w.n, outcomeOf(err)
	}
	return w.n, w.out
}

// tryWrite returns false to sleep until the socket takes more.
func (r *rawIO) tryWrite(fd uintptr) bool {
	w := &r.wr
	for !w.b.empty() {
		n, errno, held := r.writev(fd, w.b)
		switch {
		case !held:
			w.out = ioRevoked
			return true
		case errno == 0:
			w.b.advance(n)
			w.n += n
		case errno == syscall.EAGAIN:
			if !w.wait {
				w.out = ioAgain
				return true
			}
			return false
		default:
			w.out = outcomeOf(errno)
			return true
		}
	}
	w.out = ioDone
	return true
}

// writev makes one system call, holding the memory that it reads.
func (r *rawIO) writev(fd uintptr, b *batch) (n int, errno syscall.Errno, held bool) {
	if !b.hold() {
		return 0, 0, false
	}
	defer b.release()
	n, errno = tcpsock.SendPieces(fd, b.pieces[b.gone:], b.size-b.sent)
	return n, errno, true
}

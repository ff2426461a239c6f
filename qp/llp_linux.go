package qp

import (
	"net"
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"github.com/softrnic/softrnic/internal/engine"
	"github.com/softrnic/softrnic/internal/sockio"
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
// poller does not know: what arrives wakes who serves the session's group and nobody else.
// c itself is closed when the session begins (session.start).
func (l *llp) init(c net.Conn) error {
	l.conn = c
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return nil
	}
	o, err := own(tcp)
	if err != nil {
		return err
	}
	l.conn = o
	l.direct = true
	l.raw.init(o.raw)
	return nil
}

// join gives the stream its place in a group.
func (l *llp) join(g *engine.Group, s engine.Stream) (*engine.Socket, error) {
	o := l.conn.(*owned)
	var err error
	if e := o.raw.Control(func(fd uintptr) { o.sock, err = g.Add(int(fd), s) }); e != nil {
		err = e
	}
	return o.sock, err
}

// settle makes an owned connection one of the runtime's again, for the end of the stream:
// deadlines work, and somebody may wait. Without a descriptor for that it is closed. Who
// calls it has both sides.
func (l *llp) settle() {
	l.mu.Lock()
	defer l.mu.Unlock()
	o, ok := l.conn.(*owned)
	if !ok {
		return
	}
	c, err := net.FileConn(o.file)
	_ = o.Close()
	if err != nil {
		return
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		if rc, err := tcp.SyscallConn(); err == nil {
			l.conn = c
			l.raw.init(rc)
		}
	}
}

// owned is a TCP connection of an engine. It can be closed; the rest is system calls.
type owned struct {
	net.Conn // the one it was, for its addresses; closed
	file     *os.File
	raw      syscall.RawConn
	sock     *engine.Socket // nil until join
}

// own makes another descriptor of c's socket.
func own(c *net.TCPConn) (*owned, error) {
	sockio.Prepare(c)
	rc, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	var fd uintptr
	var errno syscall.Errno
	err = rc.Control(func(old uintptr) {
		fd, _, errno = syscall.RawSyscall(syscall.SYS_FCNTL, old, syscall.F_DUPFD_CLOEXEC, 0)
	})
	if err == nil && errno != 0 {
		err = os.NewSyscallError("fcntl", errno)
	}
	if err != nil {
		return nil, err
	}
	// A file whose descriptor blocks is none that the runtime waits for.
	_ = syscall.SetNonblock(int(fd), false)
	o := &owned{Conn: c, file: os.NewFile(fd, "tcp")}
	if o.raw, err = o.file.SyscallConn(); err != nil {
		_ = o.file.Close()
		return nil, err
	}
	return o, nil
}

// SyscallConn implements syscall.Conn.
func (o *owned) SyscallConn() (syscall.RawConn, error) { return o.raw, nil }

// Close leaves the group first: the set keeps a socket that somebody else has open.
func (o *owned) Close() error {
	if o.sock != nil {
		o.sock.Remove()
	}
	return o.file.Close()
}

// SetLinger is that of net.TCPConn.
func (o *owned) SetLinger(sec int) error {
	l := syscall.Linger{Onoff: 1, Linger: int32(sec)}
	return o.raw.Control(func(fd uintptr) {
		_ = syscall.SetsockoptLinger(int(fd), syscall.SOL_SOCKET, syscall.SO_LINGER, &l)
	})
}

// Deadlines have nothing to end: nobody waits.

func (o *owned) SetDeadline(time.Time) error      { return nil }
func (o *owned) SetReadDeadline(time.Time) error  { return nil }
func (o *owned) SetWriteDeadline(time.Time) error { return nil }

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
	for {
		p.n, p.out = readOnce(fd, p.in)
		if p.out != ioInterrupted {
			return
		}
	}
}

// look reads once into p, without sleeping, whatever deadline has passed. That a
// connection has ended in both directions, which dropped looks for, is in order here:
// this half may be closed.
func (r *rawIO) look(p []byte) (n int, out outcome) {
	out = ioLost
	err := r.conn.Control(func(fd uintptr) {
		for out = ioInterrupted; out == ioInterrupted; {
			k, errno := sockio.Recv(fd, p)
			if k == 0 && errno == 0 {
				out = ioEOF
				return
			}
			n, out = readOutcome(fd, k, errno)
		}
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
	n, errno := sockio.Recv(fd, p)
	return readOutcome(fd, n, errno)
}

// readDirect reads into the memory of the segment in transit, which it holds
// meanwhile, and what comes next into the buffer.
func readDirect(fd uintptr, in *intake) (int, outcome) {
	t := &in.transit
	if !t.ref.Hold() {
		return 0, ioRevoked
	}
	defer t.ref.Release()
	var vecs [directPieces + 1]syscall.Iovec
	var room [directPieces][]byte
	want := in.Diverted()
	k := 0
	for _, p := range t.ref.Fill(room[:0], t.at, uint64(want)) {
		vecs[k].Base = &p[0]
		vecs[k].SetLen(len(p))
		want -= len(p)
		k++
	}
	if want == 0 {
		p := in.space()
		vecs[k].Base = &p[0]
		vecs[k].SetLen(min(len(p), directAhead))
		k++
	}
	n, errno := sockio.RecvVec(fd, vecs[:k])
	if errno == 0 {
		t.at += min(uint64(n), uint64(in.Diverted()))
	}
	return readOutcome(fd, n, errno)
}

// directPieces is into how many pieces of memory one system call reads.
const directPieces = 8

func readOutcome(fd, n uintptr, errno syscall.Errno) (int, outcome) {
	switch {
	case errno == syscall.EAGAIN:
		return 0, ioAgain
	case errno == syscall.EINTR:
		return 0, ioInterrupted
	case errno != 0:
		return 0, outcomeOf(errno)
	case n == 0 && dropped(fd):
		return 0, ioReset
	case n == 0:
		return 0, ioEOF
	}
	sockio.AfterRead()
	return int(n), ioDone
}

// dropped reports whether no connection is left behind the end of a stream. Linux
// gives the error of a connection to one call only: if that was a write, a read
// finds the end of a stream that the peer has not closed.
func dropped(fd uintptr) bool {
	const closed = 7 // TCP_CLOSE; after a FIN from the peer it is TCP_CLOSE_WAIT
	info, err := syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_INFO)
	start := int32(info)
	return err == nil && *(*uint8)(unsafe.Pointer(&start)) == closed // struct tcp_info begins with the state
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
		case errno == syscall.EINTR:
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
	if p := b.pieces[b.gone]; len(b.pieces) == b.gone+1 && len(p) > 0 {
		sockio.BeforeWrite()
		done, errno := sockio.Send(fd, p)
		return int(done), errno, true
	}
	iov := iovecs.Get().(*[maxIovecs]syscall.Iovec)
	k := 0
	for _, p := range b.pieces[b.gone:] {
		if len(p) == 0 {
			continue
		}
		iov[k].Base = &p[0]
		iov[k].SetLen(len(p))
		if k++; k == maxIovecs {
			break
		}
	}
	sockio.BeforeWrite()
	done, errno := sockio.SendVec(fd, iov[:k])
	clear(iov[:k]) // keep no memory of others alive
	iovecs.Put(iov)
	return int(done), errno, true
}

// maxIovecs is what Linux takes in one call (UIO_MAXIOV).
const maxIovecs = 1024

var iovecs = sync.Pool{New: func() any { return new([maxIovecs]syscall.Iovec) }}

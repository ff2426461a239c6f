package qp

import (
	"net"
	"sync"
	"syscall"
	"unsafe"

	"github.com/softrnic/softrnic/internal/sockio"
)

// lowWater is how many octets may wait in a socket that pollers read before
// anyone is woken.
const lowWater = 1 << 20

// rawIO does non-blocking vectored I/O on a TCP socket. The closures it gives to
// the runtime are made once, so that no call allocates; arguments and results
// pass through its fields.
type rawIO struct {
	conn    syscall.RawConn // nil: not a TCP socket
	onRead  func(fd uintptr) bool
	onPoll  func(fd uintptr)
	onSleep func(fd uintptr) bool
	onWrite func(fd uintptr) bool
	onTry   func(fd uintptr)
	// writeSpin is how often a waiting write tries again before it sleeps: waking
	// an idle thread costs more than a peer's receive usually takes.
	writeSpin int

	// Of the read that may sleep. Belongs to receiveLoop.
	rd struct {
		in    *intake
		l     *llp
		token *sync.Mutex
		owned bool // token is
		n     int
		spin  int
		out   outcome
	}
	// Of the read in which a program sleeps. Belongs to who has the berth.
	sl struct {
		in    *intake
		token *sync.Mutex
		owned bool // token is
		n     int
		out   outcome
	}
	// Of a poll. Receive side.
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

func (r *rawIO) init(c net.Conn, writeSpin int) {
	r.writeSpin = writeSpin
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return
	}
	rc, err := tcp.SyscallConn()
	if err != nil {
		return
	}
	r.conn = rc
	r.onRead = r.tryRead
	r.onPoll = r.pollRead
	r.onSleep = r.trySleep
	r.onWrite = r.tryWrite
	r.onTry = func(fd uintptr) { r.tryWrite(fd) }
	sockio.Prepare(c) // all calls here are raw
}

func (r *rawIO) usable() bool { return r.conn != nil }

// tryPoll reads once without sleeping. It goes past the lock that a sleeping
// reader has on the socket.
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

// setLowWater makes data that arrives on the socket wake nobody, or undoes that. While
// pollers read, a thread of the runtime that waits for timers or other sockets
// would be woken by each arrival. SO_RCVLOWAT keeps the socket from being
// readable for epoll; a read takes what is there all the same. The system makes
// the socket's receive buffer large enough for the mark, so that is not above
// what a busy connection comes to anyway.
func (r *rawIO) setLowWater(on bool) {
	lowat := 1
	if on {
		lowat = lowWater
	}
	_ = r.conn.Control(func(fd uintptr) {
		_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVLOWAT, lowat)
	})
}

// read reads, and sleeps if there is nothing after spin fruitless tries. The
// token, held on entry and return, is free during the sleep.
func (r *rawIO) read(in *intake, l *llp, token *sync.Mutex, spin int) (int, outcome) {
	rd := &r.rd
	rd.in, rd.l, rd.token, rd.spin, rd.owned, rd.n, rd.out = in, l, token, spin, true, 0, ioAgain
	err := r.conn.Read(r.onRead)
	l.parked.Store(false)
	if !rd.owned {
		token.Lock()
	}
	if err != nil {
		return 0, outcomeOf(err)
	}
	return rd.n, rd.out
}

// tryRead returns false to sleep until the socket is readable.
func (r *rawIO) tryRead(fd uintptr) bool {
	rd := &r.rd
	if !rd.owned { // woken
		if !rd.token.TryLock() {
			rd.out = ioAgain // a poller is at it
			return true
		}
		rd.owned = true
		rd.l.parked.Store(false)
		if rd.in.kept != nil { // a poller has paused the stream
			rd.out = ioAgain
			return true
		}
	}
	for tries := 0; ; {
		switch rd.n, rd.out = readOnce(fd, rd.in); rd.out {
		case ioInterrupted:
		case ioAgain:
			if tries++; tries > rd.spin {
				rd.in.rest() // a sleeper holds no buffer
				rd.l.parked.Store(true)
				rd.owned = false
				rd.token.Unlock()
				return false
			}
		default:
			return true
		}
	}
}

// sleep reads, and sleeps if there is nothing. It takes the token when there is
// something to read, and reports whether it holds it. Without it the outcome is
// ioAgain if a deadline has woken the sleeper, and else ioBusy.
func (r *rawIO) sleep(in *intake, token *sync.Mutex) (int, outcome, bool) {
	sl := &r.sl
	sl.in, sl.token, sl.owned, sl.n, sl.out = in, token, false, 0, ioBusy
	if err := r.conn.Read(r.onSleep); err != nil {
		if out := outcomeOf(err); out == ioAgain {
			return 0, out, false
		}
		return 0, ioBusy, false
	}
	return sl.n, sl.out, sl.owned
}

// trySleep returns false to sleep until the socket is readable.
func (r *rawIO) trySleep(fd uintptr) bool {
	sl := &r.sl
	if sl.owned = sl.token.TryLock(); !sl.owned || sl.in.kept != nil {
		if sl.owned {
			sl.token.Unlock()
		}
		sl.owned, sl.out = false, ioBusy
		return true
	}
	for {
		switch sl.n, sl.out = readOnce(fd, sl.in); sl.out {
		case ioInterrupted:
		case ioAgain:
			sl.in.rest()
			sl.token.Unlock()
			sl.owned = false
			return false
		default:
			return true
		}
	}
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
	n, _, errno := syscall.RawSyscall(syscall.SYS_READV, fd, uintptr(unsafe.Pointer(&vecs)), uintptr(k))
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
	for tries := 0; !w.b.empty(); {
		n, errno, held := r.writev(fd, w.b)
		switch {
		case !held:
			w.out = ioRevoked
			return true
		case errno == 0:
			w.b.advance(n)
			w.n += n
			tries = 0
		case errno == syscall.EINTR:
		case errno == syscall.EAGAIN:
			if !w.wait {
				w.out = ioAgain
				return true
			}
			if tries++; tries > r.writeSpin {
				return false
			}
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
	done, _, errno := syscall.RawSyscall(syscall.SYS_WRITEV, fd, uintptr(unsafe.Pointer(iov)), uintptr(k))
	clear(iov[:k]) // keep no memory of others alive
	iovecs.Put(iov)
	return int(done), errno, true
}

// maxIovecs is what Linux takes in one call (UIO_MAXIOV).
const maxIovecs = 1024

var iovecs = sync.Pool{New: func() any { return new([maxIovecs]syscall.Iovec) }}

// yieldThread lets another thread that is ready run on this processor.
func yieldThread() { _, _, _ = syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) }

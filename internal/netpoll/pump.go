package netpoll

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/softrnic/softrnic/internal/lockorder"
)

const (
	// pumpOctets bounds what a pump holds, in each direction.
	pumpOctets = 256 << 10
	// hearOut is how long a pump that cannot write goes on to read: the peer may have said why.
	hearOut = time.Second
)

// pump is the link of any net.Conn that is no socket of ours: TLS, a pipe, a capture; and TCP where there is no epoll. One
// goroutine reads the connection into a bounded buffer, and one writes from another to it, so that the stream is served
// like those of sockets.
//
//	conn --readLoop--> in --tryRead--> stream --tryWrite--> out --writeLoop--> conn
//
// What tryWrite has taken goes out before a half-close, and not after Close. A reader whose buffer is full reads no more. An
// idle pump has no buffer but the few octets that readLoop reads into.
type pump struct {
	conn net.Conn
	wear func(work string)

	mu      lockorder.Mutex[lockorder.Pump]
	changed sync.Cond // of what follows, guarded by mu
	sock    *Socket   // nil until join

	in, out    chunks
	readErr    error // behind what is in in
	writeErr   error
	timedOut   bool      // a read has, at deadline number deadlines
	deadlines  int       // of reads, that handToRuntime's goroutine has set
	writeBy    time.Time // deadline of writes; zero: none
	taken      bool      // conn is the pump's
	closed     bool
	dropping   bool // it was reset
	handedOver bool // from handToRuntime on
	loops      sync.WaitGroup
	writing    bool // there is a writeLoop
	inWrite    bool // it is in a Write
}

func newPump(c net.Conn, wear func(work string)) *pump {
	p := &pump{conn: c, wear: wear}
	if wear == nil {
		p.wear = func(string) {}
	}
	p.changed.L = &p.mu
	return p
}

// join gives the stream its place in g.
func (p *pump) join(g *Group, s Member) (*Socket, error) {
	sock, err := g.Add(none, s)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sock = sock
	sock.level.Store(uint32(Out))
	return sock, nil
}

// take begins to read, unless it has been closed already.
func (p *pump) take() {
	p.mu.Lock()
	p.taken = true
	closed := p.closed
	if !closed {
		p.loops.Add(1)
		go p.readLoop()
	}
	p.mu.Unlock()
	if closed {
		_ = p.shut()
	}
}

// readLoop reads the connection. One goroutine a pump.
func (p *pump) readLoop() {
	defer p.loops.Done()
	p.wear("read")
	var few [fewOctets]byte
	more := false // is likely to be there
	for {
		deadline, ok := p.mayRead()
		if !ok {
			return
		}
		space, c := few[:], (*chunk)(nil)
		if more {
			c = newChunk()
			space = c.octets[:]
		}
		n, err := p.conn.Read(space)
		more = n == len(space)
		p.mu.Lock()
		switch {
		case c == nil:
			p.in.write(space[:n])
		case n == 0:
			c.free()
		default:
			c.end = n
			p.in.append(c)
		}
		if err != nil {
			p.failRead(err, deadline)
		}
		p.tell()
	}
}

// mayRead waits until there is something to read, and room for it. It reports false at the end.
func (p *pump) mayRead() (deadline int, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.readErr == nil && !p.closed && (p.timedOut || p.in.count == maxChunks) {
		p.changed.Wait()
	}
	return p.deadlines, p.readErr == nil && !p.closed
}

// failRead takes the error of a read that began with that deadline. With mu held.
func (p *pump) failRead(err error, deadline int) {
	switch {
	case !errors.Is(err, os.ErrDeadlineExceeded):
		p.hearWriter(err)
		p.readErr = err
	case deadline != p.deadlines: // it is another one by now
	case p.handedOver:
		p.timedOut = true
	case p.writeErr != nil:
		p.readErr = p.writeErr
	default: // not ours
		_ = p.conn.SetReadDeadline(time.Time{})
	}
}

// hearWriter is for a read that has found the end of the stream: it gives a write that is under way some time. A system tells
// the error of a connection to one call only. If that is a write, a read finds the end of a stream that the peer has not
// closed. With mu held.
func (p *pump) hearWriter(err error) {
	if !p.inWrite || !errors.Is(err, io.EOF) || p.handedOver {
		return
	}
	late := false
	limit := time.AfterFunc(hearOut, func() {
		p.mu.Lock()
		late = true
		p.changed.Broadcast()
		p.mu.Unlock()
	})
	for p.inWrite && !late && !p.handedOver && !p.closed {
		p.changed.Wait()
	}
	limit.Stop()
}

// writeLoop writes to the connection. One goroutine a pump that has written something.
func (p *pump) writeLoop() {
	defer p.loops.Done()
	p.wear("write")
	p.mu.Lock()
	for {
		for p.out.empty() && p.writeErr == nil && !p.closed {
			p.changed.Wait()
		}
		if p.writeErr != nil || p.closed {
			p.out.drop()
			p.mu.Unlock()
			return
		}
		b := p.out.first.rest()
		p.inWrite = true
		p.mu.Unlock()
		n, err := p.conn.Write(b)
		p.mu.Lock()
		p.inWrite = false
		p.out.skip(n)
		if err != nil {
			p.failWrite(err)
		}
		p.tell()
		p.mu.Lock()
	}
}

// failWrite takes the error of a write. With mu held.
func (p *pump) failWrite(err error) {
	p.writeErr = err
	if !p.handedOver && p.readErr == nil {
		p.deadlines++
		_ = p.conn.SetReadDeadline(time.Now().Add(hearOut))
	}
}

// tell has the group serve the stream, if it has become ready for something. With mu held, which it gives up.
func (p *pump) tell() {
	var is Ready
	if !p.in.empty() || p.readErr != nil {
		is |= In
	}
	if p.out.roomy() || p.writeErr != nil {
		is |= Out
	}
	p.changed.Broadcast()
	sock := p.sock
	rises := sock != nil && is&^Ready(sock.level.Swap(uint32(is))) != 0
	p.mu.Unlock()
	if rises {
		sock.arrived()
	}
}

func (p *pump) tryRead(b []byte) (int, error) { return p.tryReadPieces([][]byte{b}) }

func (p *pump) tryReadPieces(pieces [][]byte) (n int, err error) {
	p.mu.Lock()
	full := p.in.count == maxChunks
	for _, b := range pieces {
		n += p.in.read(b)
	}
	switch {
	case p.closed:
		n, err = 0, net.ErrClosed
	case n > 0:
	case p.readErr != nil:
		err = p.readErr
	default:
		err = ErrAgain
	}
	if p.in.empty() && p.readErr == nil {
		p.lower(In)
	}
	if full && p.in.count < maxChunks {
		p.changed.Broadcast()
	}
	p.mu.Unlock()
	return n, err
}

func (p *pump) pending() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := p.in.first; c != nil; c = c.next {
		n += len(c.rest())
	}
	return n
}

func (p *pump) tryWrite(pieces [][]byte, limit int) (n int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return 0, net.ErrClosed
	case p.writeErr != nil:
		return 0, p.writeErr
	}
	idle := p.out.empty()
	for _, b := range pieces {
		b = b[:min(len(b), limit-n)]
		k := p.out.write(b)
		n += k
		if k < len(b) || n == limit {
			break
		}
	}
	if n < limit {
		p.lower(Out)
	}
	if n == 0 {
		return 0, ErrAgain
	}
	if !p.writing {
		p.writing = true
		p.loops.Add(1)
		go p.writeLoop()
	} else if idle {
		p.changed.Broadcast()
	}
	return n, nil
}

// lower says that the stream is not ready for that any more. With mu held.
func (p *pump) lower(what Ready) {
	if p.sock != nil {
		p.sock.level.Store(p.sock.level.Load() &^ uint32(what))
	}
}

// dropped: if a write has found the connection reset, a read of Linux finds an end.
func (p *pump) dropped() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Is(p.writeErr, syscall.ECONNRESET)
}

func (p *pump) handToRuntime() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.handedOver = true
	p.changed.Broadcast()
	if p.writeErr != nil && p.readErr == nil { // the deadline was failWrite's
		p.deadlines++
		_ = p.conn.SetReadDeadline(time.Time{})
	}
}

func (p *pump) awaitWrite(try func() bool) error {
	for !try() {
		p.mu.Lock()
		for p.out.full() && p.writeErr == nil && !p.closed {
			p.changed.Wait()
		}
		p.mu.Unlock()
	}
	return nil
}

// halfClose has what was taken written first.
func (p *pump) halfClose() (has bool, err error) {
	half, has := p.conn.(interface{ CloseWrite() error })
	p.mu.Lock()
	if by := p.writeBy; !by.IsZero() { // that of TLS is a write, with a deadline of its own
		limit := time.AfterFunc(time.Until(by), p.reset)
		defer limit.Stop()
	}
	for !p.out.empty() && p.writeErr == nil && !p.closed {
		p.changed.Wait()
	}
	err = p.writeErr
	if p.closed {
		err = net.ErrClosed
	}
	p.mu.Unlock()
	if has && err == nil {
		err = half.CloseWrite()
	}
	return has, err
}

// SyscallConn finds the socket below.
func (p *pump) SyscallConn() (syscall.RawConn, error) {
	below := p.conn
	if over, ok := below.(interface{ NetConn() net.Conn }); ok {
		below = over.NetConn()
	}
	if sc, ok := below.(syscall.Conn); ok {
		return sc.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}

// reset is Close with what drops the connection at once, where it has that.
func (p *pump) reset() {
	p.mu.Lock()
	p.dropping = true
	p.mu.Unlock()
	_ = p.Close()
}

func (p *pump) Close() error {
	p.mu.Lock()
	ours, again := p.taken, p.closed && !p.dropping
	p.closed = true
	if !p.writing {
		p.out.drop()
	}
	p.changed.Broadcast()
	p.mu.Unlock()
	switch {
	case again:
		return net.ErrClosed
	case !ours:
		return nil
	}
	return p.shut()
}

// shut closes the connection. One that is dropped, and is over another, is so behind that: to close TLS is to write, which
// may wait for the peer.
func (p *pump) shut() error {
	p.mu.Lock()
	drop := p.dropping
	p.mu.Unlock()
	if drop {
		if over, ok := p.conn.(interface{ NetConn() net.Conn }); ok {
			below := over.NetConn()
			abrupt(below)
			_ = below.Close()
		}
		abrupt(p.conn)
	}
	return p.conn.Close()
}

// abrupt has a Close of the connection reset it, if it can be reset.
func abrupt(c net.Conn) {
	if l, ok := c.(interface{ SetLinger(int) error }); ok {
		_ = l.SetLinger(0)
	}
}

// wait is for after Close.
func (p *pump) wait() {
	p.loops.Wait()
	p.mu.Lock()
	p.in.drop()
	p.mu.Unlock()
}

// Read waits. It is for after handToRuntime, as what follows.
func (p *pump) Read(b []byte) (int, error) {
	for {
		n, err := p.tryRead(b)
		if err != ErrAgain { //nolint:errorlint // it is made here and not wrapped
			return n, err
		}
		p.mu.Lock()
		for p.in.empty() && p.readErr == nil && !p.closed && !p.timedOut {
			p.changed.Wait()
		}
		if p.in.empty() && p.timedOut {
			p.mu.Unlock()
			return 0, os.ErrDeadlineExceeded
		}
		p.mu.Unlock()
	}
}

// Write waits.
func (p *pump) Write(b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		var k int
		e := p.awaitWrite(func() bool {
			k, err = p.tryWrite([][]byte{b[n:]}, len(b)-n)
			return err != ErrAgain //nolint:errorlint // it is made here and not wrapped
		})
		n += k
		err = errors.Join(err, e)
	}
	return n, err
}

func (p *pump) LocalAddr() net.Addr  { return p.conn.LocalAddr() }
func (p *pump) RemoteAddr() net.Addr { return p.conn.RemoteAddr() }

func (p *pump) SetDeadline(t time.Time) error {
	return errors.Join(p.SetReadDeadline(t), p.SetWriteDeadline(t))
}

func (p *pump) SetReadDeadline(t time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.handedOver {
		return nil
	}
	p.deadlines++
	p.timedOut = false
	err := p.conn.SetReadDeadline(t)
	p.changed.Broadcast()
	return err
}

func (p *pump) SetWriteDeadline(t time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.handedOver {
		return nil
	}
	p.writeBy = t
	return p.conn.SetWriteDeadline(t)
}

package qp

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/softrnic/softrnic/internal/tcpsock"
)

// outcome is how a read or a write of the LLP ended.
type outcome uint8

const (
	ioDone    outcome = iota
	ioAgain           // would block, or a deadline passed
	ioEOF             // the peer closed its half
	ioReset           // the peer reset the connection
	ioLost            // the connection failed otherwise, or was closed here
	ioRevoked         // memory to send from or receive into is no longer registered
)

// llp is the LLP stream of a session. A TCP connection is driven with system calls that do
// not wait (see llp_linux.go), and is its group's (package netpoll) while the stream is in RTS: then conn is
// an netpoll.Conn, which no goroutine of the runtime waits for. Any other net.Conn is driven
// with calls that block, from goroutines only.
//
// One goroutine at a time reads and one writes: the holders of the session's rx.mu
// and tx.mu.
type llp struct {
	direct bool       // reads and writes need not block; does not change
	mu     sync.Mutex // held to change conn, and to use it without a side
	conn   net.Conn
	raw    rawIO
}

// write sends what is left of b. If wait is false it stops when the LLP takes no
// more. Memory is held during system calls only, never while waiting.
func (l *llp) write(b *batch, wait bool) (int, outcome) {
	b.seal()
	if l.direct {
		return l.raw.write(b, wait)
	}
	total := 0
	for !b.empty() {
		n, err := l.conn.Write(b.pieces[b.gone])
		b.advance(n)
		total += n
		if err != nil {
			return total, outcomeOf(err)
		}
	}
	return total, ioDone
}

// read receives into in through a connection whose reads block.
func (l *llp) read(in *intake) (int, outcome) {
	n, err := l.conn.Read(in.space())
	if n > 0 {
		return n, ioDone
	}
	if err == nil {
		return 0, ioAgain
	}
	return 0, outcomeOf(err)
}

// push is a write that waits until the deadline. What the LLP takes at once goes out
// even if that has passed: a machine that was busy elsewhere meanwhile is no peer that
// does not read.
func (l *llp) push(b *batch) (int, outcome) {
	n, out := l.write(b, false)
	if out != ioAgain || !l.direct {
		return n, out
	}
	more, out := l.write(b, true)
	return n + more, out
}

// pull is a read that waits until the deadline. What has come by then counts, however
// late this side looks.
func (l *llp) pull(p []byte) (int, outcome) {
	n, err := l.conn.Read(p)
	switch out := outcomeOf(err); {
	case n > 0:
		return n, ioDone
	case out == ioAgain && l.direct:
		return l.raw.look(p)
	default:
		return 0, out
	}
}

// wakeReader makes a sleeping read return ioAgain, and all later ones until
// rearmReader.
func (l *llp) wakeReader() {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.conn.SetReadDeadline(tcpsock.Past)
}

func (l *llp) rearmReader() { _ = l.conn.SetReadDeadline(time.Time{}) }

// halfClose ends the sending half, if the connection has a half-close. The error
// is that of a connection that is not there any more.
func (l *llp) halfClose() (has bool, err error) {
	c, has := l.conn.(interface{ CloseWrite() error })
	if !has {
		return false, nil
	}
	return true, c.CloseWrite()
}

// reset drops the connection at once; TCP tells the peer with an RST. That below TLS is
// dropped first: to close TLS is to write, which may wait for the peer.
func (l *llp) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if over, ok := l.conn.(interface{ NetConn() net.Conn }); ok {
		dropConn(over.NetConn())
	}
	dropConn(l.conn)
}

func dropConn(conn net.Conn) {
	if c, ok := conn.(interface{ SetLinger(int) error }); ok {
		_ = c.SetLinger(0)
	}
	_ = conn.Close()
}

func outcomeOf(err error) outcome {
	switch {
	case errors.Is(err, io.EOF):
		return ioEOF
	case errors.Is(err, os.ErrDeadlineExceeded):
		return ioAgain
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE): // a second call is told EPIPE
		return ioReset
	}
	return ioLost
}

package qp

import (
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"

	"github.com/softrnic/softrnic/internal/netpoll"
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

// llp is the LLP stream of a session. It is its group's (package netpoll) while the stream is in RTS. Nobody waits with a
// side until finish hands it to the runtime, and memory is held while octets are moved and never while waiting.
//
// One goroutine at a time reads and one writes: the holders of the session's rx.mu
// and tx.mu.
type llp struct {
	conn *netpoll.Conn
	mute atomic.Bool // of an unreliable queue pair: what is written goes nowhere
	// before is what TCP counts as acknowledged at position 0 of the stream, if counts says that it can be known.
	before uint64
	counts bool
}

func (l *llp) init(c net.Conn, wear func(work string)) (err error) {
	l.conn, err = netpoll.Own(c, wear)
	return err
}

// count has acked work, from a position of the stream on. Nobody writes meanwhile.
func (l *llp) count(pos uint64) {
	var taken uint64
	taken, l.counts = l.conn.Taken()
	l.before = taken - pos
}

// acked is the position in the stream up to which the peer's system has acknowledged what was written.
func (l *llp) acked() (pos uint64, ok bool) {
	if !l.counts {
		return 0, false
	}
	n, ok := l.conn.Acked()
	return n - l.before, ok && n >= l.before // else octets of the startup are still on their way
}

// write sends what is left of b, and stops when the LLP takes no more.
func (l *llp) write(b *batch) (total int, out outcome) {
	b.Seal()
	for !b.Empty() {
		octets, held := b.Hold()
		if octets < b.Size() {
			held.Release()
			return total, ioRevoked
		}
		if l.mute.Load() {
			held.Release()
			n := b.Size() - b.Sent()
			b.Advance(n)
			return total + n, ioDone
		}
		n, err := l.conn.TryWrite(b.Next(), octets-b.Sent())
		held.Release()
		b.Advance(n)
		total += n
		switch {
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded): // of what was taken before
			return total, ioLost
		default:
			return total, outcomeOf(err)
		}
	}
	return total, ioDone
}

// push is a write that waits until the deadline. What the LLP takes at once goes out
// even if that has passed: a machine that was busy elsewhere meanwhile is no peer that
// does not read.
func (l *llp) push(b *batch) (total int, out outcome) {
	total, out = l.write(b)
	if out != ioAgain {
		return total, out
	}
	err := l.conn.AwaitWrite(func() bool {
		var n int
		n, out = l.write(b)
		total += n
		return out != ioAgain
	})
	if err != nil {
		out = outcomeOf(err)
	}
	return total, out
}

// read receives into in, once.
func (l *llp) read(in *intake) (int, outcome) {
	if in.Diverted() > 0 {
		return l.readDirect(in)
	}
	p := in.space()
	if len(p) == 0 { // deliver leaves room
		return 0, ioLost
	}
	return l.received(l.conn.TryRead(p))
}

// readDirect reads into the memory of the segment that is placed directly, which it holds
// meanwhile, and what comes next into the buffer.
func (l *llp) readDirect(in *intake) (int, outcome) {
	t := &in.placement
	in.borrow()
	if !t.ref.Hold() {
		return 0, ioRevoked
	}
	defer t.ref.Release()
	room := &in.buf.room
	defer clear(room[:])
	want := in.Diverted()
	pieces := t.ref.Fill(room[:0:len(room)-1], t.at, uint64(want))
	for _, p := range pieces {
		want -= len(p)
	}
	if want == 0 {
		p := in.space()
		k := len(pieces)
		room[k] = p[:min(len(p), directAhead)]
		pieces = room[:k+1]
	}
	n, err := l.conn.TryReadPieces(pieces)
	t.at += min(uint64(n), uint64(in.Diverted()))
	return l.received(n, err)
}

// received is the outcome of a read.
func (l *llp) received(n int, err error) (int, outcome) {
	switch {
	case err == nil:
		return n, ioDone
	case err == netpoll.ErrAgain: //nolint:errorlint // it is not wrapped
		return 0, ioAgain
	case errors.Is(err, io.EOF) && l.conn.Dropped():
		return 0, ioReset
	}
	return 0, outcomeOf(err)
}

// pull is a read that waits until the deadline. What has come by then counts, however
// late this side looks. That the connection has ended in both directions, as received sees, is in order
// here: this half may be closed.
func (l *llp) pull(p []byte) (int, outcome) {
	n, err := l.conn.Read(p)
	if n == 0 && outcomeOf(err) == ioAgain {
		n, err = l.conn.TryRead(p)
	}
	if n > 0 {
		return n, ioDone
	}
	return 0, outcomeOf(err)
}

// wakeReader makes a pull that waits return ioAgain, and all later ones until there is another deadline.
func (l *llp) wakeReader() { _ = l.conn.SetReadDeadline(tcpsock.Past) }

func outcomeOf(err error) outcome {
	switch {
	case err == netpoll.ErrAgain: //nolint:errorlint // it is not wrapped
		return ioAgain
	case errors.Is(err, io.EOF):
		return ioEOF
	case errors.Is(err, os.ErrDeadlineExceeded):
		return ioAgain
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE): // a second call is told EPIPE
		return ioReset
	}
	return ioLost
}

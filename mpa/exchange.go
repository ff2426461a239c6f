package mpa

import (
	"context"
	"errors"
	"net"
	"slices"
	"time"
)

// InterruptedError says in which step of the startup the context ended, or the time
// was up.
type InterruptedError struct {
	Step Step  // what this side was doing
	Err  error // the context's error, or context.DeadlineExceeded after Config.Timeout
}

func (e *InterruptedError) Error() string {
	return "mpa: startup: " + e.Step.String() + ": " + e.Err.Error()
}

// Unwrap returns Err.
func (e *InterruptedError) Unwrap() error { return e.Err }

// exchange is one side's I/O during startup, bounded by a context. Ending the
// context makes blocked reads and writes return.
type exchange struct {
	conn   net.Conn
	ctx    context.Context
	cancel context.CancelFunc
	stop   func() bool
	fired  chan struct{} // closed when the context's end has reached conn
	early  []byte
	answer func(speaks string) []byte // Config.Answer, or nil
}

// past is a deadline that has passed on any clock.
var past = time.Unix(1, 0)

// begin starts an exchange on conn. A timeout of 0 means none of its own. Call
// end when done.
func begin(ctx context.Context, conn net.Conn, timeout time.Duration, early []byte) *exchange {
	x := &exchange{conn: conn, fired: make(chan struct{}), early: early}
	if timeout > 0 {
		x.ctx, x.cancel = context.WithTimeout(ctx, timeout)
	} else {
		x.ctx, x.cancel = context.WithCancel(ctx)
	}
	x.stop = context.AfterFunc(x.ctx, func() {
		defer close(x.fired)
		if conn.SetDeadline(past) != nil {
			conn.Close() // nothing else unblocks it
		}
	})
	return x
}

// end detaches conn from the context. A deadline that the context's end has set
// is lifted: the ULP may own the connection again.
func (x *exchange) end() {
	if !x.stop() {
		<-x.fired
		_ = x.conn.SetDeadline(time.Time{}) // of no use if it has been closed
	}
	x.cancel()
}

// write sends b, in a step. On an error it closes conn.
func (x *exchange) write(step Step, b []byte) error {
	if x.ctx.Err() != nil {
		return x.fail(step, x.ctx.Err())
	}
	if _, err := x.conn.Write(b); err != nil {
		return x.fail(step, err)
	}
	return nil
}

// read reads a frame of the wanted kind, and not one octet past it. On an error
// it closes conn.
func (x *exchange) read(want frameKind) (Startup, error) {
	var buf []byte
	for {
		s, need, err := ParseStartup(buf)
		switch {
		case err == nil && s.Reply != bool(want):
			return s, x.refuse(malformed("a %v came where a %v was due: both sides have the same role",
				frameKind(s.Reply), want)) // R5044-7.1.2-M10
		case err == nil && (s.Rev == 0 || s.Rev > MaxRev): // R5044-7.1.1-M16
			return s, x.refuse(malformed("revision %d is not supported: 1 and 2 are", s.Rev))
		case err == nil:
			s.PrivateData = append([]byte(nil), s.PrivateData...) // not the frame's memory
			return s, nil
		case !errors.Is(err, ErrShort):
			return s, x.refuse(x.stranger(want, err))
		}
		buf = slices.Grow(buf, need-len(buf))
		n, err := x.fill(buf[len(buf):need])
		buf = buf[:len(buf)+n]
		if n == 0 && err != nil {
			return s, x.fail(want.step(), err)
		}
	}
}

// frameKind is a Startup's Reply field.
type frameKind bool

const (
	request frameKind = false
	reply   frameKind = true
)

// step is the one that reads such a frame.
func (k frameKind) step() Step {
	if k == reply {
		return StepReadReply
	}
	return StepReadRequest
}

func (k frameKind) String() string {
	if k == reply {
		return "Reply"
	}
	return "Request"
}

// fill reads into b from what came early, else from the connection.
func (x *exchange) fill(b []byte) (int, error) {
	if len(x.early) > 0 {
		n := copy(b, x.early)
		x.early = x.early[n:]
		return n, nil
	}
	if x.ctx.Err() != nil {
		return 0, x.ctx.Err()
	}
	return x.conn.Read(b)
}

// refuse closes conn because of err (R5044-8-M2) and returns err.
func (x *exchange) refuse(err error) error {
	x.conn.Close()
	return err
}

// fail is refuse for an error of the transport: the context's, if it has ended,
// as that makes the transport fail; else an *Error with CodeLLPLost.
func (x *exchange) fail(step Step, err error) error {
	if cause := x.ctx.Err(); cause != nil {
		return x.refuse(&InterruptedError{Step: step, Err: cause})
	}
	return x.refuse(&Error{Code: CodeLLPLost, Detail: step.String(), Step: step, Err: err})
}

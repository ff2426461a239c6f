package cm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"

	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/verbs"
)

// RejectedError is Dial's and Connect's when the peer's program refused.
type RejectedError = mpa.RejectedError

// TimeoutError says which step of connecting was not done in time. It is a
// context.DeadlineExceeded to errors.Is.
type TimeoutError struct {
	// Step is "the TCP connection", "writing the MPA Request", "reading the MPA
	// Reply", "reading the MPA Request" or "writing the MPA Reply".
	Step string
	Err  error // what ran out: the context's deadline, Config.Timeout, the system's own limit
}

func (e *TimeoutError) Error() string {
	s := fmt.Sprintf("timeout in %s (%v)", e.Step, e.Err)
	if e.Step == "reading the MPA Reply" || e.Step == "reading the MPA Request" {
		s += ": the peer is connected by TCP but silent; does an iWARP program listen there?"
	}
	return s
}

func (e *TimeoutError) Unwrap() error { return e.Err }

// Timeout reports true, as of a net.Error.
func (e *TimeoutError) Timeout() bool { return true }

// Is matches context.DeadlineExceeded, whatever ran out.
func (e *TimeoutError) Is(target error) bool { return errors.Is(target, context.DeadlineExceeded) }

// IncompatibleError says that this side cannot talk to the peer: what it sent is no
// MPA startup frame, of another revision or role, or asks for more than this side
// has. Another try meets the same.
type IncompatibleError struct {
	// Detail is what the peer sent, and where it helps, what to change.
	Detail string
	// Terminate is the code of the Terminate Message that told the peer so: 0x2006
	// (IRD) or 0x2007 (ready-to-receive frame), else 0 for none (RFC 6581 9.1, 9.2).
	Terminate verbs.TermCode
	err       error
}

func (e *IncompatibleError) Error() string {
	if e.Terminate == 0 {
		return "incompatible peer: " + e.Detail
	}
	return fmt.Sprintf("incompatible peer: %s; it was told by Terminate %v", e.Detail, e.Terminate)
}

func (e *IncompatibleError) Unwrap() error { return e.err }

// startupError makes the errors of this package of what mpa, or a Dialer, has
// returned; step is the Dialer's.
func startupError(err error, step string) error {
	var late *mpa.InterruptedError
	var bad *mpa.Error
	var timeout net.Error
	switch {
	case errors.As(err, &late):
		if errors.Is(late.Err, context.DeadlineExceeded) {
			return &TimeoutError{late.Step, late.Err}
		}
		return fmt.Errorf("%s: %w", late.Step, late.Err)
	case errors.As(err, &bad) && bad.Code == mpa.CodeLLPLost:
		return lost(bad)
	case errors.As(err, &bad):
		e := &IncompatibleError{Detail: bad.Code.String() + ": " + bad.Detail, err: bad}
		if bad.Code != mpa.CodeStartup { // RFC 5044 8: that one closes without a word
			e.Terminate = verbs.TermCode(bad.Code)
		}
		return e
	case step != "" && errors.As(err, &timeout) && timeout.Timeout():
		return &TimeoutError{step, err}
	}
	return err
}

// lost says in a person's words how the TCP connection was lost.
func lost(bad *mpa.Error) error {
	what := "the TCP connection was lost"
	switch {
	case errors.Is(bad.Err, io.EOF), errors.Is(bad.Err, io.ErrUnexpectedEOF):
		what = "the peer closed the TCP connection"
	case errors.Is(bad.Err, syscall.ECONNRESET), errors.Is(bad.Err, syscall.EPIPE):
		what = "the peer reset the TCP connection"
	}
	return fmt.Errorf("%s while this side was %s: %w", what, bad.Detail, bad)
}

package cm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"syscall"

	"github.com/softrnic/softrnic/internal/tcpsock"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/verbs"
)

// ConnectError says why a connection did not come about: so does every error of Dial, Connect,
// Await and Request.Accept, and what ListenConfig.OnStartupError is told of a connection. One that has
// come about ends with a *verbs.StreamError instead: see Conn.Err.
type ConnectError struct {
	// Doing is what this side was called for.
	Doing Doing
	// Remote is the peer: as Dial was given it, else as the connection tells.
	Remote string
	// Step is what it did not get over: one of those below.
	Step Step
	// Cause is what happened there.
	Cause Cause
	// PrivateData is what the peer's program said when it refused: of CauseRejected.
	PrivateData []byte
	// Terminate is the code of the Terminate Message that told the peer: 0x2006 (IRD), 0x2007
	// (ready-to-receive frame) or 0x2005 (the queue pair was not to be had), else 0 for none (RFC 6581 9.1
	// to 9.3). None comes from a peer before the connection stands.
	Terminate verbs.TermCode
	// Remedy is what can be done about it, in words; empty where there is nothing.
	Remedy string
	// Err has the details: a *RejectedError, *TimeoutError or *IncompatibleError of those causes,
	// of CauseLocal a *verbs.Reason if a verb refused, else that of the transport or the context.
	Err error
}

func (e *ConnectError) Error() string {
	return fmt.Sprintf("cm: %s %s: %s", e.Doing, e.Remote, e.Sentence())
}

// Sentence is Error without what this side was called for and the peer: what happened, and what to do.
func (e *ConnectError) Sentence() string {
	s := e.Err.Error()
	if e.Cause == CauseUnreachable || e.Cause == CauseCanceled && e.Step == StepTCP {
		s = withoutAddress(e.Err)
	}
	if e.Remedy != "" {
		s += ": " + e.Remedy
	}
	return s
}

// Unwrap returns Err.
func (e *ConnectError) Unwrap() error { return e.Err }

// RejectedError is in the error of Dial and Connect when the peer's program refused.
type RejectedError = mpa.RejectedError

// TimeoutError says which step of connecting was not done in time. It is a
// context.DeadlineExceeded to errors.Is.
type TimeoutError struct {
	Step Step  // as in ConnectError
	Err  error // what ran out: the context's deadline, Config.Timeout, the system's own limit
}

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("timeout in %s (%s)", e.Step, withoutAddress(e.Err))
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
	// Speaks is what the peer speaks instead, if that is known: "HTTP", "TLS" or "SSH".
	Speaks string
	// Terminate is the code of the Terminate Message that told the peer so: 0x2006
	// (IRD) or 0x2007 (ready-to-receive frame), else 0 for none (RFC 6581 9.1, 9.2).
	Terminate verbs.TermCode
	err       error
}

func (e *IncompatibleError) Error() string {
	if e.Speaks != "" {
		return e.Detail
	}
	if e.Terminate == 0 {
		return "incompatible peer: " + e.Detail
	}
	return fmt.Sprintf("incompatible peer: %s; sent Terminate 0x%04x", e.Detail, uint16(e.Terminate))
}

func (e *IncompatibleError) Unwrap() error { return e.err }

// connectError makes a ConnectError of err, which kept this side from connecting with remote in step, unless err knows
// that better.
func connectError(doing Doing, remote string, step Step, err error) error {
	e := &ConnectError{Doing: doing, Remote: remote, Step: step, Cause: CauseLocal, Err: err}
	var rejected *RejectedError
	var late *mpa.InterruptedError
	var bad *mpa.Error
	switch {
	case errors.As(err, &rejected):
		e.Step, e.Cause, e.PrivateData = StepReadReply, CauseRejected, rejected.PrivateData
	case errors.As(err, &late):
		e.interrupted(steps[late.Step], late.Err)
	case errors.As(err, &bad) && bad.Code == mpa.CodeLLPLost:
		e.lost(bad)
	case errors.As(err, &bad):
		e.incompatible(bad)
	case step == StepTCP:
		e.unconnected(err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		e.interrupted(step, err)
	case errors.Is(err, net.ErrClosed):
		e.Cause = CauseCanceled
	case errors.Is(err, ErrCrowded):
		e.Cause = CauseCrowded
	}
	e.Remedy = e.remedy()
	return e
}

// interrupted takes over that the context ended.
func (e *ConnectError) interrupted(step Step, err error) {
	e.Step, e.Cause, e.Err = step, CauseCanceled, fmt.Errorf("%v: %w", step, err)
	if errors.Is(err, context.DeadlineExceeded) {
		e.Cause, e.Err = CauseTimeout, &TimeoutError{step, err}
	}
}

// unconnected takes over what a Dialer has returned.
func (e *ConnectError) unconnected(err error) {
	var timeout net.Error
	switch {
	case tcpsock.IsLack(err):
		e.Err = tcpsock.Lack(err)
	case tcpsock.IsNoPort(err):
		e.Err = tcpsock.NoPort(err)
	case errors.Is(err, context.Canceled):
		e.Cause = CauseCanceled
	case errors.As(err, &timeout) && timeout.Timeout():
		e.Cause, e.Err = CauseTimeout, &TimeoutError{StepTCP, err}
	default:
		e.Cause = CauseUnreachable
	}
}

// incompatible takes over what was wrong with a frame of the peer's.
func (e *ConnectError) incompatible(bad *mpa.Error) {
	e.Step, e.Cause = StepReadReply, CauseIncompatible
	if e.Doing == Awaiting {
		e.Step = StepReadRequest
	}
	if bad.Code != mpa.CodeStartup { // RFC 5044 8: that one closes without a word
		e.Terminate = verbs.TermCode(bad.Code)
	}
	told := &IncompatibleError{Detail: bad.Code.String() + ": " + bad.Detail, Speaks: bad.Speaks, Terminate: e.Terminate, err: bad}
	if told.Speaks != "" {
		told.Detail = bad.Detail
	}
	e.Err = told
}

// lost takes over how the TCP connection was lost, in a person's words.
func (e *ConnectError) lost(bad *mpa.Error) {
	e.Step, e.Cause = steps[bad.Step], CauseLost
	what, because := "the TCP connection was lost", ": "+withoutAddress(bad.Err)
	switch {
	case errors.Is(bad.Err, io.EOF), errors.Is(bad.Err, io.ErrUnexpectedEOF):
		e.Cause, what, because = CauseClosed, "the peer closed the TCP connection", ""
	case errors.Is(bad.Err, syscall.ECONNRESET), errors.Is(bad.Err, syscall.EPIPE):
		e.Cause, what, because = CauseReset, "the peer reset the TCP connection", ""
	}
	e.Err = &inWords{what + " while this side was " + bad.Detail + because, bad}
}

// inWords is an error in other words.
type inWords struct {
	text string
	err  error
}

func (e *inWords) Error() string { return e.text }
func (e *inWords) Unwrap() error { return e.err }

// withoutAddress is what a system call of a connection failed with: the rest of a *net.OpError says whom, which the sentence does.
func withoutAddress(err error) string {
	var op *net.OpError
	if errors.As(err, &op) && op.Err != nil {
		return op.Err.Error()
	}
	return fmt.Sprint(err)
}

// remedy is what can be done.
func (e *ConnectError) remedy() string {
	switch e.Cause {
	case CauseRejected:
		if text := string(e.PrivateData); text != "" && strconv.CanBackquote(text) {
			return fmt.Sprintf("its program says %q", text)
		}
		return "ask its program why: it did not say so in words"
	case CauseTimeout:
		if e.Step == StepTCP {
			return "is the address right, and does no firewall drop it?"
		}
		return "the peer is connected by TCP but silent; does an iWARP program listen there, and accept?"
	case CauseUnreachable:
		return "is a server listening there? iWARP has no port of its own"
	case CauseClosed, CauseReset, CauseLost:
		return "its program has ended, speaks no MPA, or has no room"
	case CauseCrowded:
		return "accept faster, or raise MaxStartups or Backlog"
	case CauseIncompatible:
		switch e.Terminate {
		case 0:
			if text := e.elsewhere(); text != "" {
				return text
			}
			return "is an iWARP program at the other end, and which?"
		case verbs.TermCode(mpa.CodeRTR):
			return "agree on an RTR, or dial with Model ClientServer"
		}
	case CauseCanceled, CauseLocal: // the details have it
	}
	return ""
}

// elsewhere is what can be done about a peer that speaks another protocol; empty if that is not known.
func (e *ConnectError) elsewhere() string {
	var unfit *IncompatibleError
	switch {
	case !errors.As(e.Err, &unfit) || unfit.Speaks == "":
		return ""
	case unfit.Speaks == mpa.SpeaksTLS && e.Doing == Dialing:
		return "if iWARP is behind the TLS, give Connect a tls.Client; else find its port"
	case unfit.Speaks == mpa.SpeaksTLS:
		return "let it dial without TLS, or give NewListener a tls.NewListener"
	case e.Doing == Dialing:
		return "find the port on which the iWARP program listens"
	}
	return "the client has the wrong port, or the wrong address"
}

// unstarted is err of the queue pair that did not take the stream, about which the peer was told, or not.
func unstarted(doing Doing, st *mpa.Stream, told bool, err error) error {
	e := &ConnectError{Doing: doing, Remote: fmt.Sprint(st.Conn.RemoteAddr()), Step: StepQP, Cause: CauseLocal, Err: err}
	if told && st.Role == mpa.Initiator {
		e.Terminate = verbs.TermCode(mpa.CodeLocal)
	}
	return e
}

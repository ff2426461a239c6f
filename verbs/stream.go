package verbs

import (
	"context"
	"fmt"
	"net"
	"syscall"

	"github.com/softrnic/softrnic/qp"
)

// LLPStream is one LLP stream's time on a queue pair: from RTS until the stream is
// gone (verbs draft 6.6). It stays what it is when the queue pair gets another one.
type LLPStream struct {
	qp *QP
	l  qp.LLPStream
}

// LLPStream is the queue pair's current stream, or the last one if it has none. Of a
// queue pair that never had one Done is closed, and Err nil.
func (q *QP) LLPStream() *LLPStream { return &LLPStream{q, q.q.LLPStream()} }

// Done returns a channel that is closed when the stream is gone: the queue pair is
// in Idle or Error then, and the last event of the stream has been raised.
func (l *LLPStream) Done() <-chan struct{} { return l.l.Done() }

// Drain is QP.Drain, of this stream.
func (l *LLPStream) Drain(ctx context.Context) error { return l.l.Drain(ctx) }

// Close is Modify QP to Closing, of this stream: the queue pair's next one is not
// touched. It does not wait for the end. Errors: ErrInvalidState once it has left RTS.
func (l *LLPStream) Close() error { return l.l.Stop(StateClosing) }

// Reset is Modify QP to Error, of this stream, and waits until it is gone. Errors: those
// of Close.
func (l *LLPStream) Reset() error { return l.l.Stop(StateError) }

// Err says why the stream ended: nil while it is there, and after a close that both
// sides wanted, which leaves the queue pair in Idle; else a *StreamError.
func (l *LLPStream) Err() error {
	end, over := l.l.End()
	if !over || end.State == StateIdle {
		return nil
	}
	return streamError(l.qp, &end)
}

// StreamError says why an LLP stream ended otherwise than by a good close.
//
// errors.Is finds net.ErrClosed in it if the program itself ended the stream: by
// Modify QP to Error or Terminate, by destroying the queue pair (then ErrInvalidQP too)
// or by closing the RNIC (ErrInvalidRNIC); and syscall.ECONNRESET if the peer reset it in
// RTS or Closing: in Closing Then names that, and the event is EventLLPLost. errors.As
// finds a *CompletionError in it if a work request was at fault, and a *Reason if there is one.
type StreamError struct {
	QP QPID
	// Reason is what happened, as in the first column of docs/errors.md.
	Reason string
	// Why is the reason as data: with the operation, its octets, the right that was missing
	// and the rule. It is nil if the program itself ended the stream.
	Why *Reason
	// Then is what happened while the stream was closing, if that spoilt the close;
	// else it is empty.
	Then string
	// Event is the asynchronous event of Reason; 0 if it has none, or if a
	// completion told of it.
	Event EventID
	// Terminate is the Terminate Message that this side sent, or received; nil
	// without one.
	Terminate *TerminateMessage
	// Request is the completion of the work request at fault; its Status is
	// StatusSuccess if none was.
	Request Completion

	own, reset bool
	gone       ImmediateError // why there is no queue pair any more, or 0
}

func streamError(q *QP, end *qp.End) *StreamError {
	e := &StreamError{
		QP: q.ID(), Reason: end.Reason(), Why: end.Why, Then: end.Then(), Event: end.Event(),
		Terminate: terminateOf(end.Terminate), Request: end.Request,
		own: end.Modified(), reset: end.Reset(),
	}
	switch {
	case !end.Destroyed || !end.Aborted():
	case q.rnic.closedError() != nil:
		e.Reason, e.gone = "the RNIC was closed", ErrInvalidRNIC
	default:
		e.Reason, e.gone = "the queue pair was destroyed", ErrInvalidQP
	}
	return e
}

func (e *StreamError) Error() string {
	if e.reasoned() && e.Why.Operation != "" { // what was refused ended it
		return e.cited(fmt.Sprintf("QP %d: ", e.QP))
	}
	return e.cited(fmt.Sprintf("QP %d: the stream ended: ", e.QP))
}

// Sentence is Error without the queue pair: what happened, with which request if one was at fault; what to do; and the rule.
func (e *StreamError) Sentence() string { return e.cited("") }

// cited is the sentence behind prefix.
func (e *StreamError) cited(prefix string) string {
	what, remedy := e.Reason, ""
	if e.reasoned() {
		why := e.Why.WithoutQP()
		why.Remedy, why.Rule = "", ""
		what, remedy = why.String(), e.Why.Remedy
	}
	s := prefix + what
	if e.Request.Status != StatusSuccess {
		s += fmt.Sprintf(" (%v %d)", e.Request.Op, e.Request.ID)
	}
	if remedy != "" {
		s += ": " + remedy
	}
	if t := e.Terminate; t != nil && t.Sent && t.Code != 0 { // which says that it was about this side alone
		s += fmt.Sprintf("; sent Terminate 0x%04x", uint16(t.Code))
	} else if t != nil && !t.Sent && (e.Why == nil || !e.Why.ByPeer) {
		s += fmt.Sprintf("; the peer says %v", t.Code)
	}
	if e.Then != "" {
		s += "; then: " + e.Then
	}
	if e.reasoned() {
		return e.Why.Cite(s)
	}
	return s
}

// reasoned reports whether Why has what happened: else Reason does, where that is of what came before, as of the wish to close.
func (e *StreamError) reasoned() bool {
	return e.Why != nil && !e.own && (e.Then == "" || e.Why.What != e.Then)
}

// Unwrap returns the error of the work request at fault, or else Why, or nil.
func (e *StreamError) Unwrap() error {
	switch {
	case e.Request.Status != StatusSuccess:
		r := e.Request
		return &CompletionError{Op: r.Op, ID: r.ID, QP: r.QP, Status: r.Status, Why: e.Why}
	case e.Why != nil:
		return e.Why
	}
	return nil
}

// Is matches what StreamError says.
func (e *StreamError) Is(target error) bool {
	switch target {
	case net.ErrClosed:
		return e.own
	case syscall.ECONNRESET:
		return e.reset
	}
	return e.gone != 0 && target == e.gone
}

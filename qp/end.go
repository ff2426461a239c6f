package qp

import "github.com/softrnic/softrnic/wr"

// LLPStream is one LLP stream's time on a queue pair, from RTS until it is gone, as it
// is seen from outside. The zero value has ended.
type LLPStream struct{ s *session }

// LLPStream is the queue pair's current stream, or the one before.
func (q *QP) LLPStream() LLPStream {
	// Not q.session: that is gone before the state has changed.
	return LLPStream{q.last.Load()}
}

// Done returns a channel that is closed when the stream is over: the state is Idle
// or Error then, and its last event has been raised.
func (l LLPStream) Done() <-chan struct{} {
	if l.s == nil {
		return closedChan
	}
	return l.s.over
}

// Stop is Modify QP to Closing, Terminate or Error, for this stream alone: refused with
// wr.ErrInvalidState once it has left RTS, whatever the queue pair does by then.
func (l LLPStream) Stop(next wr.State) error {
	if l.s == nil {
		return wr.ErrInvalidState
	}
	l.s.uncork() // as in Modify
	return l.s.q.stop(l.s, next)
}

// End says how the stream ended; false if it has not, or never was.
func (l LLPStream) End() (End, bool) {
	if l.s == nil {
		return End{}, false
	}
	select {
	case <-l.s.over:
		return l.s.outcome, true
	default:
		return End{}, false
	}
}

// End is how a stream ended.
type End struct {
	// cause is why RTS was left. last is what ended Closing or Terminate after it;
	// noFault if the queue pair went to Error at once.
	cause, last fault
	// State is the one that followed: Idle or Error.
	State wr.State
	// Terminate is the Terminate Message that was sent or received, if one was.
	Terminate *TerminateMessage
	// Request is the completion of the work request at fault; its Status is
	// StatusSuccess if none was.
	Request wr.Completion
	// Destroyed says that the end was that of the queue pair.
	Destroyed bool
}

// Reason names what happened.
func (e *End) Reason() string { return faults[e.cause].Name }

// Event is the asynchronous event of what happened; 0 if it has none, or if a
// completion told of it.
func (e *End) Event() wr.EventID {
	if e.Request.Status != wr.StatusSuccess {
		return 0
	}
	return faults[e.cause].Event
}

// Then names what spoilt the close that followed; "" if nothing did.
func (e *End) Then() string {
	if e.last == noFault || e.last == faultClosed {
		return ""
	}
	return faults[e.last].Name
}

// Modified reports whether the program modified the queue pair to Terminate or Error,
// or destroyed it.
func (e *End) Modified() bool { return e.Aborted() || e.cause == faultModifyTerminate }

// Aborted is Modified without Terminate.
func (e *End) Aborted() bool { return e.cause == faultModifyError }

// Reset reports whether the peer reset the stream.
func (e *End) Reset() bool { return e.cause == faultLLPReset }

// blamed keeps the completion of the request at fault, which is about to be queued:
// that at pos of the Send Queue, or the current receive.
func (s *session) blamed(c *cause, pos uint64) {
	status := faults[c.fault].Status
	switch {
	case pos != noElement:
		s.outcome.Request = s.q.sq.entry(pos, status).Completion
	case c.recv && s.rx.landing.open:
		s.outcome.Request = wr.Completion{ID: s.rx.landing.id, QP: s.q.cfg.ID, Op: wr.OpRecv, Status: status, Context: s.q.cfg.Context}
	}
}

package qp

import (
	"context"
	"fmt"

	"github.com/softrnic/softrnic/internal/tcpsock"
	"github.com/softrnic/softrnic/wr"
)

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

// WhenOver calls f once, when Done is closed. It is for one caller; f does not block.
func (l LLPStream) WhenOver(f func()) {
	if l.s == nil {
		f()
		return
	}
	l.s.behind.Store(&f)
	select {
	case <-l.s.over: // finish may have looked before
		l.s.notifyOver()
	default:
	}
}

// notifyOver calls the functions that WhenOver was given: the stream is over.
func (s *session) notifyOver() {
	if f := s.behind.Swap(nil); f != nil {
		(*f)()
	}
}

// Stop is Modify QP to Closing, Terminate or Error, for this stream alone: refused with
// wr.ErrInvalidState once it has left RTS, whatever the queue pair does by then.
func (l LLPStream) Stop(next wr.State) error {
	if l.s == nil {
		return wr.ErrInvalidState
	}
	return l.s.q.stop(l.s, next)
}

// PeerGone reports whether RTS was left because the peer's end of the stream is gone, without a Terminate Message: it was closed,
// reset or lost. It is false again when the queue pair is modified behind the stream's end.
func (l LLPStream) PeerGone() bool {
	if l.s == nil || l.s.passed.Load() {
		return false
	}
	select {
	case <-l.s.decided:
	default:
		return false
	}
	switch l.s.outcome.cause {
	case faultPeerClosed, faultPeerClosedBusy, faultLLPReset, faultLLPLost:
		return true
	default:
		return false
	}
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

// keepAtFault keeps the completion of the request at fault, which is about to be queued:
// that at pos of the Send Queue, or the current receive.
func (s *session) keepAtFault(c *cause, pos uint64) {
	status := faults[c.fault].Status
	switch {
	case pos != noElement:
		s.outcome.Request = s.q.sq.entry(pos, status).Completion
	case c.recv && s.rx.recv.open:
		s.outcome.Request = wr.Completion{ID: s.rx.recv.id, QP: s.q.cfg.ID, Op: wr.OpRecv, Status: status, Context: s.q.cfg.Context}
	}
}

// Drain waits until the queue pair has nothing left to send: no element on the
// Send Queue, no RDMA Read Request to answer; and until the ready-to-receive frame of
// peer-to-peer mode and its answer, if it is a Read, have come. That is when a close is a
// good one (verbs draft 6.2.2.2). It returns nil then, and also if the stream ends, or
// ctx's error.
func (q *QP) Drain(ctx context.Context) error { return q.LLPStream().Drain(ctx) }

// Drain is that of the queue pair, for this stream.
func (l LLPStream) Drain(ctx context.Context) error {
	s := l.s
	if s == nil {
		return nil
	}
	s.draining.Store(true)
	s.tx.flushPosted()
	for {
		if s.tx.mu.TryLock() {
			busy := s.busy() || s.awaitsRTR()
			s.tx.mu.Unlock()
			if s.tx.more.Load() {
				s.tx.tryTransmit() // a poster found the side taken just now
			}
			if !busy {
				signal(s.drained) // another Drain may wait for the same token
				return nil
			}
		}
		select {
		case <-s.drained:
		case <-s.over:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Done returns a channel that is closed when the current session is over: the
// state is Idle or Error then, and its last event has been raised. Without a session
// it is closed.
func (q *QP) Done() <-chan struct{} { return q.LLPStream().Done() }

var closedChan = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// Reset resets the stream, if there is one, ahead of Destroy, which bound Memory
// Windows refuse: LLPStream.End tells of a queue pair that was destroyed.
func (q *QP) Reset() {
	q.leaving.Store(true)
	_ = q.Modify(Modify{Next: wr.StateError})
}

// Destroy ends the queue pair in whatever state it is; a stream that is still
// there is reset. When it returns, nothing touches the memory of its work
// requests, and no further completion comes from it (verbs draft 6.1.4). It fails
// with wr.ErrWindowsBound, and changes nothing, while Memory Windows are bound to
// the queue pair; a second call fails with wr.ErrInvalidQP.
func (q *QP) Destroy() error {
	q.mu.Lock()
	if q.destroyed.Load() {
		q.mu.Unlock()
		return errGone
	}
	// From here on no Bind of this queue pair succeeds (RV-6.1.4-M5).
	if err := q.cfg.STags.Retire(&q.windows); err != nil {
		q.mu.Unlock()
		return fmt.Errorf("destroy QP %d: %w", q.cfg.ID, err)
	}
	q.destroyed.Store(true)
	q.leaving.Store(true)
	if q.starting != nil {
		_ = q.starting.SetWriteDeadline(tcpsock.Past) // see lastMessage
	}
	q.mu.Unlock()
	if s := q.session.Load(); s != nil {
		if !s.halt(cause{fault: faultModifyError}) {
			s.llp.conn.Reset() // it is closing: do not wait for the peer
		}
		<-s.over
	}
	q.awaitOver()
	q.mu.Lock()
	q.setState(wr.StateError) // refuses posts
	q.mu.Unlock()
	q.counted.Close()
	return nil
}

// Failures that software has no natural cause for. Programs provoke them to see
// how they would cope.

// Fail makes the queue pair fail as by a Local QP Catastrophic Error (verbs draft
// figure 24), and returns at once. In RTS it goes to Terminate, with code 0x0207; in
// Idle, and in Closing without a Terminate Message, to Error. In Terminate and in
// Error nothing happens.
func (q *QP) Fail() { q.fail(faultLocal) }

// FailGlobal ends the stream because the whole RNIC fails (verbs draft figure 25):
// the same with code 0x0208, and without an event of the queue pair. The RNIC
// raises its own.
func (q *QP) FailGlobal() { q.fail(faultGlobal) }

func (q *QP) fail(f streamFault) {
	q.mu.Lock()
	if s := q.session.Load(); s != nil {
		q.mu.Unlock()
		if !s.halt(cause{fault: f}) {
			s.failAgain(f)
		}
		return
	}
	c := cause{fault: f}
	t := step(q.State(), c.trigger())
	q.enter(t, c.trigger())
	q.mu.Unlock()
	if t.Actions&actEvent != 0 {
		q.raise(c.event(), f.reason(q.cfg.ID))
	}
}

// failAgain tells finish of a failure after the one, or the verb, that ended the
// session. It may find finish asleep, and wakes it.
func (s *session) failAgain(f streamFault) {
	s.laterFault.Store(uint32(f))
	s.llp.wakeReader()
}

package qp

import (
	"context"
	"fmt"

	"github.com/softrnic/softrnic/wr"
)

// Drain waits until the queue pair has nothing left to send: no element on the
// Send Queue, no RDMA Read Request to answer. That is when a close is a good one
// (verbs draft 6.2.2.2). It returns nil then, and also if the stream ends, or
// ctx's error.
func (q *QP) Drain(ctx context.Context) error { return q.LLPStream().Drain(ctx) }

// Drain is that of the queue pair, for this stream.
func (l LLPStream) Drain(ctx context.Context) error {
	s := l.s
	if s == nil {
		return nil
	}
	s.draining.Store(true)
	s.uncork()
	for {
		if s.tx.mu.TryLock() {
			busy := s.busy()
			s.tx.mu.Unlock()
			if s.tx.more.Load() {
				s.kick() // somebody found the side taken just now
			}
			if !busy {
				signal(s.quiet) // another Drain may wait for the same token
				return nil
			}
		}
		select {
		case <-s.quiet:
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
		return fmt.Errorf("destroy QP %d: %w", q.cfg.ID, wr.ErrInvalidQP)
	}
	// From here on no Bind of this queue pair succeeds (RV-6.1.4-M5).
	if err := q.cfg.STags.Retire(&q.windows); err != nil {
		q.mu.Unlock()
		return fmt.Errorf("destroy QP %d: %w", q.cfg.ID, err)
	}
	q.destroyed.Store(true)
	q.leaving.Store(true)
	if q.starting != nil {
		_ = q.starting.SetWriteDeadline(past) // see lastMessage
	}
	q.mu.Unlock()
	if s := q.session.Load(); s != nil {
		if !s.halt(cause{fault: faultModifyError}) {
			s.llp.reset() // it is closing: do not wait for the peer
		}
		<-s.over
	}
	q.settle()
	q.mu.Lock()
	q.setState(wr.StateError) // refuses posts
	q.mu.Unlock()
	return nil
}

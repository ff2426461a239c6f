package qp

import (
	"fmt"
	"math"
	"time"

	"github.com/softrnic/softrnic/wr"
)

// start goes from Idle to next, which is RTS, with mu held, but not while the last message of
// streaming mode is written. All or nothing: what shrinks does so before and what
// grows after it, so that the way back, and the rest of the way, only grow.
func (q *QP) start(next wr.State, m *Modify) error {
	was := q.sizes()
	want := was.with(m)
	if err := q.resize(was.min(want)); err != nil {
		return err
	}
	s, err := q.prepare(m)
	if err == nil {
		err = q.lastMessage(m)
	}
	if err != nil {
		s.rx.in.drop()
		_ = q.resize(was) // grows
		return err
	}
	_ = q.resize(want) // grows
	q.set(m)
	q.terminate = nil
	q.session.Store(s)
	q.last.Store(s)
	q.setState(next)
	s.joinShared()
	s.start()
	return nil
}

// prepare makes the session that start is to begin.
func (q *QP) prepare(m *Modify) (*session, error) {
	st, ird, ord, maxORD := m.Stream, q.ird, q.ord, math.MaxInt32
	if m.IRD != nil {
		ird = *m.IRD
	}
	if m.ORD != nil {
		ord = *m.ORD
	}
	if st.Enhanced { // RFC 6581 9.1: what the two sides agreed on
		ird, ord, maxORD = min(ird, st.IRD), min(ord, st.ORD), st.ORD
	}
	s := newSession(q, st, ird, ord)
	s.maxORD = maxORD
	// A connection that is closed here is not established (draft 6.2.1.2). What
	// deadlines it has were the startup's.
	if err := st.Conn.SetDeadline(time.Time{}); err != nil {
		return s, fmt.Errorf("%w: %w", wr.ErrInvalidLLPStream, err)
	}
	if len(st.Early) > 0 && !s.rx.in.early(st.Early) {
		return s, fmt.Errorf("%w: %d early octets are too many", wr.ErrInvalidLLPStream, len(st.Early))
	}
	return s, nil
}

// lastMessage writes the last message of streaming mode, if there is one, with mu
// free: Query answers, posts are queued, and Destroy ends it. The peer cannot
// answer with FPDUs before it has the message; whatever comes meanwhile waits in
// the LLP (verbs draft 6.2.1.2).
func (q *QP) lastMessage(m *Modify) error {
	if len(m.LastMessage) == 0 {
		return nil
	}
	conn := m.Stream.Conn
	_ = conn.SetWriteDeadline(time.Now().Add(q.cfg.CloseTimeout))
	q.starting = conn
	q.mu.Unlock()
	_, err := conn.Write(m.LastMessage)
	q.mu.Lock()
	q.starting = nil
	_ = conn.SetWriteDeadline(time.Time{})
	switch {
	case q.destroyed.Load():
		return wr.ErrInvalidQP
	case q.State() != wr.StateIdle:
		return fmt.Errorf("%w: it has failed meanwhile", wr.ErrInvalidState)
	case err != nil:
		return fmt.Errorf("%w: the last streaming message: %w", wr.ErrInvalidLLPStream, err)
	}
	return nil
}

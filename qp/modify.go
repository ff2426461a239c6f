package qp

import (
	"context"
	"fmt"
	"time"

	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/wr"
)

// Modify are the input modifiers of Modify QP (verbs draft 9.2.5.3).
type Modify struct {
	// Next is the state to enter; it may be the current one.
	Next State
	// Stream is the LLP stream, needed for Idle to RTS. The queue pair owns
	// its connection from then on.
	Stream *mpa.Stream
	// LastMessage is sent in streaming mode before iWARP starts (6.6.1.1);
	// only for Idle to RTS.
	LastMessage []byte
	// ORD, if not nil, is the new limit on outbound RDMA Reads, 0 to what the
	// queue pair was created with, in RTS to what was agreed with the peer; only
	// in Idle and RTS.
	ORD *int
}

var modifyTriggers = [...]Trigger{
	Idle: TrigModifyIdle, RTS: TrigModifyRTS, Closing: TrigModifyClosing,
	Terminate: TrigModifyTerminate, Error: TrigModifyError,
}

// Modify changes state and attributes, all or nothing. It returns once the
// change has happened: for Closing and Terminate when processing has stopped and
// the LLP Close has begun, for Error when everything is flushed and the LLP
// stream is gone. Errors: wr.ErrInvalidState, wr.ErrInvalidLLPStream,
// wr.ErrInvalidModifier, wr.ErrORDExceeded, wr.ErrStillFlushing,
// wr.ErrInvalidQP.
func (q *QP) Modify(m Modify) error {
	if m.Next >= numStates {
		return fmt.Errorf("modify QP: %w: there is no state %d", wr.ErrInvalidState, m.Next)
	}
	if m.Next == RTS {
		q.settle()
	}
	q.mu.Lock()
	if err := q.checkModify(m); err != nil {
		defer q.mu.Unlock()
		return fmt.Errorf("modify QP %d from %v to %v: %w", q.cfg.ID, q.State(), m.Next, err)
	}
	from := q.State()
	switch {
	case from == Idle && m.Next == RTS:
		defer q.mu.Unlock()
		return q.start(m)
	case from == RTS && m.Next != RTS:
		s := q.session.Load()
		q.mu.Unlock()
		return q.stop(s, m.Next)
	case m.Next == Error: // from Idle
		q.setState(Error)
		q.sq.flush(^uint64(0), wr.StatusFlushed)
		q.rq.flush(wr.StatusFlushed)
	default:
		if m.ORD != nil {
			q.setORD(*m.ORD)
		}
		q.setState(m.Next)
	}
	q.mu.Unlock()
	return nil
}

// checkModify finds the Immediate Errors, with mu held.
func (q *QP) checkModify(m Modify) error {
	if q.destroyed.Load() {
		return wr.ErrInvalidQP
	}
	from := q.State()
	if t := Step(from, modifyTriggers[m.Next]); t.Err != 0 {
		return t.Err
	}
	if from == Error && q.session.Load() != nil { // RV-6.2.4-M10
		return wr.ErrStillFlushing
	}
	starts := from == Idle && m.Next == RTS
	if !starts && (m.Stream != nil || m.LastMessage != nil) {
		return fmt.Errorf("%w: a stream goes with Idle to RTS only", wr.ErrInvalidModifier)
	}
	if starts && (m.Stream == nil || m.Stream.Conn == nil) {
		return wr.ErrInvalidLLPStream
	}
	if m.ORD != nil {
		if starts || from == m.Next && from != Error {
			most := q.cfg.ORD
			if s := q.session.Load(); s != nil {
				most = s.maxORD // RFC 6581 9.1: at most the peer's IRD
			}
			if *m.ORD < 0 || *m.ORD > most {
				return fmt.Errorf("%w: %d, at most %d", wr.ErrORDExceeded, *m.ORD, most)
			}
		} else {
			return fmt.Errorf("%w: figure 4 has no ORD for this transition", wr.ErrInvalidModifier)
		}
	}
	return nil
}

// setORD changes the limit, with mu held.
func (q *QP) setORD(ord int) {
	q.ord = ord
	if s := q.session.Load(); s != nil {
		s.tx.ord.Store(int32(ord))
		s.kick()
	}
}

// start goes from Idle to RTS, with mu held.
func (q *QP) start(m Modify) error {
	st := m.Stream
	if len(m.LastMessage) > 0 {
		// The peer cannot answer with FPDUs before it has this; whatever
		// comes meanwhile waits in the LLP (draft 6.2.1.2).
		_ = st.Conn.SetWriteDeadline(time.Now().Add(q.cfg.CloseTimeout))
		if _, err := st.Conn.Write(m.LastMessage); err != nil {
			return fmt.Errorf("modify QP: %w: the last streaming message: %w", wr.ErrInvalidLLPStream, err)
		}
		_ = st.Conn.SetWriteDeadline(time.Time{})
	}
	ird, ord := q.cfg.IRD, q.ord
	if m.ORD != nil {
		ord = *m.ORD
		q.ord = ord
	}
	if st.Enhanced { // RFC 6581 9.1: what the two sides agreed on
		ird, ord = min(ird, st.IRD), min(ord, st.ORD)
	}
	s := newSession(q, st, ird, q.cfg.ORD)
	s.tx.ord.Store(int32(ord))
	s.maxORD = q.cfg.ORD
	if st.Enhanced {
		s.maxORD = min(s.maxORD, st.ORD)
	}
	if len(st.Early) > 0 && !s.rx.in.early(st.Early) {
		return fmt.Errorf("modify QP: %w: %d early octets are too many", wr.ErrInvalidLLPStream, len(st.Early))
	}
	q.terminate = nil
	q.session.Store(s)
	q.last.Store(s)
	q.setState(RTS)
	s.start()
	return nil
}

// stop leaves RTS by verb.
func (q *QP) stop(s *session, next State) error {
	if s == nil {
		return fmt.Errorf("modify QP %d: %w", q.cfg.ID, wr.ErrInvalidState)
	}
	c := cause{verb: modifyTriggers[next]}
	if next == Terminate {
		c = cause{fault: FaultModifyTerminate}
	}
	if !s.halt(c) {
		<-s.decided // something else ended it first
		return fmt.Errorf("modify QP %d to %v: %w: it is in state %v", q.cfg.ID, next, wr.ErrInvalidState, q.State())
	}
	<-s.decided
	if next == Error {
		<-s.over
	}
	return nil
}

// Drain waits until the queue pair has nothing left to send: no element on the
// Send Queue, no RDMA Read Request to answer. That is when a close is a good one
// (verbs draft 6.2.2.2). It returns nil then, and also if the stream ends, or
// ctx's error.
func (q *QP) Drain(ctx context.Context) error {
	s := q.session.Load()
	if s == nil {
		return nil
	}
	s.draining.Store(true)
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
// state is Idle or Error then. Without a session it is closed.
func (q *QP) Done() <-chan struct{} {
	if s := q.session.Load(); s != nil {
		return s.over
	}
	return closedChan
}

var closedChan = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// Destroy ends the queue pair in whatever state it is; a stream that is still
// there is reset. When it returns, nothing touches the memory of its work
// requests, and no further completion comes from it (verbs draft 6.1.4). A
// second call fails with wr.ErrInvalidQP.
func (q *QP) Destroy() error {
	q.mu.Lock()
	if q.destroyed.Load() {
		q.mu.Unlock()
		return fmt.Errorf("destroy QP %d: %w", q.cfg.ID, wr.ErrInvalidQP)
	}
	q.destroyed.Store(true)
	q.mu.Unlock()
	if s := q.session.Load(); s != nil {
		if !s.halt(cause{verb: TrigModifyError}) {
			s.llp.reset() // it is closing: do not wait for the peer
		}
		<-s.over
	}
	q.settle()
	q.mu.Lock()
	q.setState(Error) // refuses posts
	q.mu.Unlock()
	return nil
}

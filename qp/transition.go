package qp

import (
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/wr"
)

// keepTerminate keeps the Terminate Message that a transition comes with for Query
// QP: the one that arrived, or the one to be sent, which it composes. With mu held.
func (q *QP) keepTerminate(t transition, c *cause) {
	sends := t.Actions&actSendTerminate != 0
	if sends {
		c.composeTerminate()
	}
	if sends || t.Actions&actKeepTerminate != 0 {
		term, _ := rdmap.ParseTerminate(c.terminate)
		q.terminate = &TerminateMessage{Sent: sends, Code: term.Code, Raw: c.terminate}
	}
}

// setState enters a state with every post either before or after it, and with mu
// held.
func (q *QP) setState(s wr.State) {
	q.sq.postMu.Lock()
	q.rq.postMu.Lock()
	q.state.store(s)
	q.sq.extensions = q.extensionsUsed()
	q.rq.postMu.Unlock()
	q.sq.postMu.Unlock()
}

// extensionsUsed reports whether operations of RFC 7306 may be used: on the stream, if there is one.
func (q *QP) extensionsUsed() bool {
	if s := q.session.Load(); s != nil {
		return s.extensions
	}
	return q.cfg.Extensions
}

// enter takes the transition of why, for which no LLP stream matters, with mu held.
func (q *QP) enter(t transition, why trigger) {
	if q.cfg.Trace != nil {
		q.traceState(q.State(), t.Next, why.String(), nil)
	}
	if s := q.last.Load(); s != nil {
		s.passed.Store(true)
	}
	q.setState(t.Next)
	if t.Actions&actFlush != 0 { // Idle to Error: not through Terminate (6.1.1)
		q.terminate = nil
		q.sq.flush(noElement, wr.StatusFlushed, 0)
		q.rq.flush(wr.StatusFlushed, 0)
	}
}

// leaveRTS takes the transition that c means, and completes c.
func (q *QP) leaveRTS(s *session, c *cause) transition {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sq.postMu.Lock()
	q.rq.postMu.Lock()
	if c.fault == faultPeerClosed && s.busy() { // draft 6.2.2.2
		c.fault = faultPeerClosedBusy
	}
	from := q.State()
	t := step(from, c.trigger())
	q.state.store(t.Next)
	q.rq.postMu.Unlock()
	q.sq.postMu.Unlock()
	q.keepTerminate(t, c) // before anyone can ask in the new state (draft 8.3.2)
	if q.cfg.Trace != nil {
		q.traceState(from, t.Next, c.trigger().String(), q.terminate)
	}
	return t
}

// endSession takes the last transition of a session, because of c.
func (q *QP) endSession(t transition, c *cause) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.keepTerminate(t, c)
	s := q.last.Load()
	s.outcome.State, s.outcome.Terminate, s.outcome.Destroyed = t.Next, q.terminate, q.leaving.Load()
	s.fold()
	if t.Next == wr.StateIdle { // else what was under way has ended with the stream
		q.kept.irrq += s.irrq.len()
		s.reads.each(func(o *outboundRead) bool {
			if !o.rtr { // that is no request of the program's: a peer may close without an answer
				q.kept.reads++
			}
			return true
		})
	}
	if t.Actions&actRelease != 0 {
		q.session.Store(nil)
	}
	if q.cfg.Trace != nil {
		q.traceState(q.State(), t.Next, c.trigger().String(), q.terminate)
	}
	q.setState(t.Next)
}

// awaitOver waits until the last session, if its stream is gone, has raised its last
// event.
func (q *QP) awaitOver() {
	if s := q.last.Load(); s != nil && q.session.Load() == nil {
		<-s.over
	}
}

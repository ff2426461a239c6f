package qp

import "github.com/softrnic/softrnic/wr"

// Failures that software has no natural cause for. Programs provoke them to see
// how they would cope.

// Fail makes the queue pair fail as by a Local QP Catastrophic Error (verbs draft
// figure 24), and returns at once. In RTS it goes to Terminate, with code 0x0207; in
// Idle to Error. In the other states a stream has ended, or is about to, and
// nothing happens.
func (q *QP) Fail() { q.fail(FaultLocal) }

// FailGlobal ends the stream because the whole RNIC fails (verbs draft figure 25):
// the same with code 0x0208, and without an event of the queue pair. The RNIC
// raises its own.
func (q *QP) FailGlobal() { q.fail(FaultGlobal) }

func (q *QP) fail(f Fault) {
	q.mu.Lock()
	if s := q.session.Load(); s != nil {
		q.mu.Unlock()
		s.fail(f)
		return
	}
	t := Step(q.State(), faults[f].Trigger)
	if t.Actions&ActFlush == 0 {
		q.mu.Unlock()
		return
	}
	q.enterError()
	q.mu.Unlock()
	q.raise((&cause{fault: f}).event())
}

// event is what c raises: nothing if a completion reports it (RV-6.2.3-M14), or if
// it is the event of something else than the queue pair.
func (c *cause) event() wr.EventID {
	if c.hasSQ || c.recv || faults[c.fault].Of != OfQP {
		return 0
	}
	return faults[c.fault].Event
}

// blame finds the request that a failure of the queue pair hits while it is
// processed, if there is one: a completion tells then (9.5.2), else the event of
// figure 24. It is the oldest one that cannot complete any more: an outstanding
// Read, or what is sent only in part. Others are not begun, or go out ahead of the
// Terminate. The caller owns both sides.
func (s *session) blame(c *cause) {
	if c.fault != FaultLocal || c.hasSQ {
		return
	}
	if s.tx.msg.kind == fromSQ {
		c.sq, c.hasSQ = s.tx.next, true
	}
	s.reads.each(func(o *outboundRead) bool {
		if !o.rtr {
			c.sq, c.hasSQ = o.pos, true
		}
		return o.rtr
	})
}

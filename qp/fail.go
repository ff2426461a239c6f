package qp

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

func (q *QP) fail(f fault) {
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
	q.enter(t)
	q.mu.Unlock()
	if t.Actions&actEvent != 0 {
		q.raise(c.event())
	}
}

// failAgain tells finish of a failure after the one, or the verb, that ended the
// session. It may find finish asleep, and wakes it.
func (s *session) failAgain(f fault) {
	s.again.Store(uint32(f))
	s.llp.wakeReader()
}

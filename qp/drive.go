package qp

import (
	"runtime"

	"github.com/softrnic/softrnic/internal/engine"
)

// A session with a TCP connection is served by the engine's group of its receive CQ: who
// polls or waits there drives it, and the group's keeper does otherwise.

// join gives the session its place in the group.
func (s *session) join() (err error) {
	if s.llp.direct {
		if s.sock, err = s.llp.join(s.q.cfg.RecvCQ.Group(), s); err == nil {
			s.tx.cork.hold = s.sock.Hold
		}
	}
	return err
}

// serve begins to receive.
func (s *session) serve() {
	if s.sock == nil {
		go s.rx.receiveLoop()
		go s.tx.transmitLoop()
		return
	}
	if s.q.cfg.Tuning.Drive >= 0 {
		s.q.sq.cq.Attach(s.q.cfg.RecvCQ.Group())
		s.q.rq.cq.Attach(s.q.cfg.RecvCQ.Group())
		s.attached = true
	}
	early := s.rx.in.Buffered() > 0 // what was read before the session began
	s.rx.early = early
	s.sock.Begin()
	if early {
		s.sock.Soon()
	}
}

// leave undoes serve.
func (s *session) leave() {
	if s.attached {
		s.q.sq.cq.Detach(s.q.cfg.RecvCQ.Group())
		s.q.rq.cq.Detach(s.q.cfg.RecvCQ.Group())
	}
}

// Drive implements engine.Stream.
func (s *session) Drive(ready engine.Ready) (got bool) {
	if ready&engine.Lost != 0 {
		s.fail(faultLLPLost)
		return true
	}
	if ready&engine.Out != 0 {
		got = s.tx.unstall()
	}
	if ready&engine.In != 0 {
		got = s.rx.drive() || got
	}
	return got
}

// Flush implements engine.Stream.
func (s *session) Flush(looked bool) {
	if looked {
		s.tx.looked()
	} else {
		s.tx.burst()
	}
}

// drive receives once.
func (r *receiver) drive() bool {
	for !r.mu.TryLock() {
		if r.s.stopping.Load() { // finish has it, for long maybe
			return false
		}
		runtime.Gosched()
	}
	defer r.mu.Unlock()
	if r.s.stopping.Load() {
		return false
	}
	if r.in.kept == nil {
		if r.early {
			r.early = false
			if r.deliver(); r.in.kept != nil { // nothing may be received then
				return true
			}
		}
		return r.received(r.llp.raw.tryPoll(&r.in)) == ioDone
	}
	r.deliver() // paused: only a receive lets it go on
	if r.in.kept != nil {
		return false
	}
	r.s.sock.Resume()
	return true
}

// unstall sends on what the LLP did not take at once, and sees to it that the group asks
// for room as long as some is wanted.
func (t *transmitter) unstall() (got bool) {
	sock := t.s.sock
	if !sock.WantsOutput() {
		return false
	}
	if t.stalled.CompareAndSwap(true, false) {
		before := t.written.Load()
		t.kick()
		got = t.written.Load() != before
	}
	if !t.stalled.Load() {
		sock.WantOutput(false)
		if t.stalled.Load() { // by another just now
			sock.WantOutput(true)
		}
	}
	return got
}

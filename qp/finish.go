package qp

import (
	"time"

	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/wr"
)

// The end of a session, from halt to the state that follows. finish runs in a
// goroutine of its own; once it owns both sides nothing else of the session runs,
// so the rest is one thing after another:
//
//  1. take over the receive and the transmit side;
//  2. leave RTS: from here on posts are refused;
//  3. do what the state table says, and in Closing and Terminate wait for what
//     comes, until the state is Idle or Error (ending.go);
//  4. let go of the LLP stream.
//
// A write through a plain net.Conn cannot be woken to be taken up again (TLS would be
// broken by it), and has until the close timeout, which counts from here. A verb does not
// wait for it: 2 comes before the transmit side is taken over then.
func (s *session) finish() {
	c, by := s.cause, time.Now().Add(s.q.cfg.CloseTimeout)
	s.interrupt(c, by)
	s.ownReceive()
	early := c.byVerb() && !s.llp.direct()
	if !early {
		s.ownTransmit()
	}
	s.blame(&c)
	t := s.q.leaveRTS(s, &c)
	s.outcome.cause = c.fault
	close(s.decided)
	if early {
		s.ownTransmit()
	}
	s.detach()
	s.noFeed()
	s.leaveShared()
	e := newEnding(s, by)
	for e.act(t, c); e.state == wr.StateClosing || e.state == wr.StateTerminate; e.act(t, c) {
		c = e.await()
		s.outcome.last = c.fault
		t = step(e.state, c.trigger())
	}
	if s.tx.batch != nil {
		s.tx.batch.free()
		s.tx.batch = nil
	}
	s.rx.in.drop()
	s.tx.mu.Unlock()
	s.rx.mu.Unlock()
	s.q.endSession(t, &c)
	if t.Actions&actEvent != 0 { // draft 6.2.5: behind the change of state
		s.q.raise(c.event())
	}
	close(s.over)
}

// interrupt makes both sides stop: who sleeps in a read or a write of the LLP wakes up,
// or does by then.
func (s *session) interrupt(c cause, by time.Time) {
	switch {
	case step(wr.StateRTS, c.trigger()).Actions&actReset != 0:
		s.llp.reset()
	case s.llp.direct():
		_ = s.llp.conn.SetWriteDeadline(past)
	default:
		_ = s.llp.conn.SetWriteDeadline(by)
	}
	s.llp.wakeReader()
}

// ownReceive takes the receive side, which has nothing to wait for.
func (s *session) ownReceive() {
	s.receiving.Wait()
	s.rx.berth.Lock() // a program that slept here has left, and none stays any more
	defer s.rx.berth.Unlock()
	s.rx.mu.Lock() // pollers may still be about to leave
}

// ownTransmit takes the transmit side.
func (s *session) ownTransmit() {
	s.transmitting.Wait()
	s.tx.mu.Lock() // posters may still be about to leave
}

// busy reports whether work is left on the Send Queue or the IRRQ, as the LLP
// Close rules count it (draft 6.2.2.2). Posts are locked out by the caller.
func (s *session) busy() bool {
	return !s.q.sq.empty() || s.irrq.len() > 0 || s.tx.batch != nil
}

// sendTerminate ends the stream of FPDUs: the batch in flight, then the
// Terminate Message. It reports false if the LLP did not take them. A Responder
// that has seen no good FPDU may send none itself (RFC 5044 7.1.2 rule 4).
func (s *session) sendTerminate(c cause) bool {
	t := &s.tx
	if b := t.batch; b != nil {
		n, out := s.llp.push(b)
		t.written.Add(uint64(n))
		s.completeSQ()
		switch {
		case out == ioDone:
		case out == ioRevoked && b.boundary(): // the Terminate takes its place
		default:
			return false // draft 6.4: in mid-segment only a reset is left
		}
	}
	if s.gate.Load() {
		return true
	}
	hdr := ddp.AppendUntagged(nil, true, rdmap.Control(rdmap.Terminate), 0, ddp.QNTerminate, 1, 0)
	b := newBatch()
	defer b.free()
	from := len(b.arena)
	b.arena = t.framer.AppendFPDU(b.arena, hdr, c.terminate)
	b.copied(from)
	_, out := s.llp.push(b)
	return out == ioDone
}

// composeTerminate makes the Terminate Message for c.
func (c *cause) composeTerminate() {
	term := rdmap.TerminateHeader{
		Code: faults[c.fault].Code, SegmentLength: c.segment, DDPHeader: c.ddpHeader, ReadRequest: c.readReq,
	}
	c.terminate = term.Append(nil)
}

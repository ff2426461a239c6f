package qp

import (
	"errors"
	"io"
	"time"

	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/wr"
)

// The end of a session, from halt to the state that follows RTS. finish runs in
// a goroutine of its own; once it owns both sides nothing else of the session
// runs, so the rest is one thing after another:
//
//  1. take over the transmit and the receive side;
//  2. leave RTS: from here on posts are refused;
//  3. Closing, Terminate or straight to Error, as the state table says;
//  4. flush, let go of the LLP stream, enter Idle or Error.
func (s *session) finish() {
	q, c := s.q, s.cause
	s.takeOver(c)
	s.blame(&c)
	t := q.leaveRTS(s, &c)
	close(s.decided)
	s.detach()
	s.noFeed()
	var end State
	var event wr.EventID
	switch t.Next {
	case Closing:
		end, event = s.closing(c)
	case Terminate:
		s.keepTerminate(&c)
		if t.Actions&ActEvent != 0 {
			q.raise(c.event())
		}
		end, event = s.terminating(c, t.Actions)
	default:
		end = t.Next
		event = s.carryOut(t, c)
	}
	if s.tx.batch != nil {
		s.tx.batch.free()
		s.tx.batch = nil
	}
	s.rx.in.drop()
	s.rx.mu.Unlock()
	s.tx.mu.Unlock()
	q.endSession(end)
	q.raise(event)
	close(s.over)
}

// takeOver makes both sides stop and owns them. A writer that sleeps is woken if
// the write can be taken up again; through a plain net.Conn it cannot (TLS
// would be broken by it), so such a writer gets until the close timeout.
func (s *session) takeOver(c cause) {
	switch {
	case s.aborts(c):
		s.llp.reset()
	case s.llp.direct():
		_ = s.llp.conn.SetWriteDeadline(past)
	default:
		_ = s.llp.conn.SetWriteDeadline(time.Now().Add(s.q.cfg.CloseTimeout))
	}
	s.llp.wakeReader()
	s.wg.Wait()
	s.tx.mu.Lock() // pollers and posters may still be about to leave
	s.rx.mu.Lock()
}

func (s *session) aborts(c cause) bool {
	return c.verb == TrigModifyError || faults[c.fault].Trigger == TrigLLPFailure
}

// busy reports whether work is left on the Send Queue or the IRRQ, as the LLP
// Close rules count it (draft 6.2.2.2). Posts are locked out by the caller.
func (s *session) busy() bool {
	return !s.q.sq.empty() || s.irrq.len() > 0 || s.tx.batch != nil
}

// trigger says what the state machine sees of c; with the peer's close it
// completes c.
func (s *session) trigger(c *cause) Trigger {
	switch {
	case c.verb != 0:
		return c.verb
	case c.peerClosed && s.busy():
		c.fault = FaultPeerClosedBusy
		return TrigPeerCloseBusy
	case c.peerClosed:
		return TrigPeerClose
	}
	return faults[c.fault].Trigger
}

// closing is the Closing state (draft 6.2.5).
func (s *session) closing(c cause) (State, wr.EventID) {
	f := s.closeLLP(c)
	if f == NoFault {
		return Step(Closing, TrigClosed).Next, wr.EventLLPCloseComplete
	}
	t := Step(Closing, faults[f].Trigger)
	return t.Next, s.carryOut(t, cause{fault: f})
}

// carryOut does what a transition into Error asks for, and returns the event to
// raise.
func (s *session) carryOut(t Transition, c cause) (event wr.EventID) {
	if t.Actions&ActReset != 0 {
		s.llp.reset()
	}
	if t.Actions&ActFlush != 0 {
		s.flush(c)
	}
	if t.Actions&ActEvent != 0 {
		event = c.event()
	}
	return event
}

// closeLLP closes this half and waits for the peer's.
func (s *session) closeLLP(c cause) Fault {
	if s.busy() || s.rx.in.Buffered() > 0 {
		return FaultBadClose
	}
	// RV-6.2.5: bounded by a timeout, whose passing is an LLP failure.
	_ = s.llp.conn.SetDeadline(time.Now().Add(s.q.cfg.CloseTimeout))
	s.flushReceives(wr.StatusFlushed) // all there will be: posts are refused
	has, failed := s.llp.halfClose()
	if has && !c.peerClosed {
		var b [1]byte
		n, err := s.llp.conn.Read(b[:]) // tells also why the half-close failed
		switch {
		case n > 0:
			return FaultBadClose
		case outcomeOf(err) == ioReset:
			return FaultLLPReset
		case failed != nil || outcomeOf(err) != ioEOF:
			return FaultLLPLost
		}
	}
	_ = s.llp.conn.Close()
	return NoFault
}

// terminating is the Terminate state (draft 6.2.3).
func (s *session) terminating(c cause, do Action) (State, wr.EventID) {
	deadline := time.Now().Add(s.q.cfg.CloseTimeout)
	_ = s.llp.conn.SetDeadline(deadline)
	sent := do&ActSendTerminate == 0 || s.sendTerminate(c)
	s.flush(c) // nothing touches the program's memory from here on
	if !sent {
		return s.lostTerminating(c)
	}
	has, failed := s.llp.halfClose()
	if has && !c.peerClosed && (failed != nil || !s.drain()) {
		return s.lostTerminating(c)
	}
	_ = s.llp.conn.Close()
	return Step(Terminate, TrigClosed).Next, 0
}

// lostTerminating is the LLP's failure in the Terminate state. It is reported
// unless the fault itself was, as an event (draft 6.2.3).
func (s *session) lostTerminating(c cause) (State, wr.EventID) {
	s.llp.reset()
	end := Step(Terminate, TrigLLPFailure).Next
	if c.fault == FaultModifyTerminate || c.hasSQ || c.recv {
		return end, wr.EventBadClose
	}
	return end, 0
}

// sendTerminate ends the stream of FPDUs: the batch in flight, then the
// Terminate Message. It reports false if the LLP did not take them. A Responder
// that has seen no good FPDU may send none itself (RFC 5044 7.1.2 rule 4).
func (s *session) sendTerminate(c cause) bool {
	t := &s.tx
	if b := t.batch; b != nil {
		n, out := s.llp.write(b, true)
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
	_, err := s.llp.conn.Write(t.framer.AppendFPDU(nil, hdr, c.terminate))
	return err == nil
}

// keepTerminate composes the Terminate Message, if this side sends one, and
// keeps it, or the one received, for Query QP: before the event that tells the
// program to look.
func (s *session) keepTerminate(c *cause) {
	if f := &faults[c.fault]; f.Sends {
		term := rdmap.TerminateHeader{
			Code: f.Code, SegmentLength: c.segment, DDPHeader: c.ddpHeader, ReadRequest: c.readReq,
		}
		c.terminate = term.Append(nil)
		s.q.keepTerminate(c.terminate, true)
		return
	}
	s.q.keepTerminate(c.terminate, false)
}

// drain reads until the peer has closed its half too, so that the Terminate is
// not lost to a TCP reset. It reports false if the peer does not close in time.
func (s *session) drain() bool {
	buf := recvBuffers.Get().(*recvBuffer)
	defer recvBuffers.Put(buf)
	for {
		if _, err := s.llp.conn.Read(buf[:]); err != nil {
			return errors.Is(err, io.EOF)
		}
	}
}

// flush completes what is on both queues: what c says is at fault with its
// status, the rest as Flushed.
func (s *session) flush(c cause) {
	status := faults[c.fault].Status
	pos := ^uint64(0)
	if c.hasSQ {
		pos = c.sq
	}
	if c.fault == FaultTerminateReceived {
		status = wr.StatusRemoteTermination
		if p, ok := s.terminated(c.terminate); ok {
			pos = p
		}
	}
	s.q.sq.flush(pos, status)
	if c.recv {
		s.flushReceives(faults[c.fault].Status)
	} else {
		s.flushReceives(wr.StatusFlushed)
	}
}

// terminated finds the Send Queue element that the peer's Terminate Message
// complains about: only an RDMA Read can still be there (draft 9.5.2, Remote
// Termination Error).
func (s *session) terminated(received []byte) (pos uint64, ok bool) {
	term, parsed := rdmap.ParseTerminate(received)
	if !parsed || len(term.DDPHeader) == 0 {
		return 0, false
	}
	seg, code := ddp.Parse(term.DDPHeader)
	if code != ddp.CodeOK || seg.Tagged() || seg.QN() != ddp.QNReadRequest {
		return 0, false
	}
	s.reads.each(func(o *outboundRead) bool {
		if o.msn == seg.MSN() && !o.rtr {
			pos, ok = o.pos, true
		}
		return !ok
	})
	return pos, ok
}

package qp

import (
	"bytes"
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
//     comes, until the state is Idle or Error (ending);
//  4. let go of the LLP stream.
//
// Nobody waits with a side, so a verb does not wait for the peer: 1 and 2 come at once.
func (s *session) finish() {
	s.q.wear("end")
	c, by := s.cause, time.Now().Add(s.q.cfg.CloseTimeout)
	s.interrupt(c)
	s.rx.own()
	s.rx.forgetRecvRequest() // a receive is for others, however long the peer makes this take
	s.tx.own()
	s.llp.conn.HandToRuntime()
	s.findAtFault(&c)
	t := s.q.leaveRTS(s, &c)
	s.outcome.cause = c.fault
	s.explain(&c)
	close(s.decided)
	s.leave()
	s.rx.leaveShared()
	e := newEnding(s, by)
	for e.act(t, c); e.state == wr.StateClosing || e.state == wr.StateTerminate; e.act(t, c) {
		c = e.await()
		s.outcome.last = c.fault
		s.explain(&c)
		t = step(e.state, c.trigger())
	}
	if s.tx.batch != nil {
		s.tx.batch.free()
		s.tx.batch = nil
	}
	s.rx.in.drop()
	s.llp.conn.Wait()
	s.tx.mu.Unlock()
	s.rx.mu.Unlock()
	s.q.endSession(t, &c)
	if t.Actions&actEvent != 0 { // draft 6.2.5: behind the change of state
		s.q.raise(c.event(), c.why)
	}
	close(s.over)
	s.notifyOver()
}

// explain has c and the outcome say why, if there is something to say.
func (s *session) explain(c *cause) {
	c.why = s.reason(c)
	if s.outcome.Why == nil {
		s.outcome.Why = c.why
	}
}

// interrupt makes both sides stop.
func (s *session) interrupt(c cause) {
	s.sock.Remove()
	if step(wr.StateRTS, c.trigger()).Actions&actReset != 0 {
		s.llp.conn.Reset()
	}
	s.tx.batching.left.Stop()
}

// own takes the receive side, for good.
func (r *receiver) own() {
	r.mu.Lock() // the poller may still be about to leave
	r.final.Store(&finalIn{r.count, r.rq.statuses.Clone()})
}

// own takes the transmit side, for good.
func (t *transmitter) own() {
	t.mu.Lock() // posters may still be about to leave
	c := t.sum()
	t.final.Store(&c)
	if t.keepalive.timer != nil {
		t.keepalive.timer.Stop()
	}
}

// busy reports whether work is left on the Send Queue or the IRRQ, as the LLP
// Close rules count it (draft 6.2.2.2). Posts are locked out by the caller.
func (s *session) busy() bool {
	return !s.q.sq.empty() || s.irrq.len() > 0 || s.tx.batch != nil
}

// sendTerminate ends the stream of FPDUs: the batch in flight, then the
// Terminate Message. It reports false if the LLP did not take them. A Responder
// that has seen no good FPDU may send none itself (RFC 5044 7.1.2 rule 4).
func (t *transmitter) sendTerminate(c cause) bool {
	if b := t.batch; b != nil {
		n, out := t.llp.push(b)
		t.written.Add(uint64(n))
		t.s.completeSQ()
		switch {
		case out == ioDone:
		case out == ioRevoked && b.boundary(): // the Terminate takes its place
		default:
			return false // draft 6.4: in mid-segment only a reset is left
		}
	}
	if t.s.gate.Load() {
		return true
	}
	hdr := ddp.AppendUntagged(nil, true, rdmap.Control(rdmap.Terminate), 0, ddp.QNTerminate, 1, 0)
	b := newBatch()
	defer b.free()
	from := len(b.Arena)
	b.Arena = t.framer.AppendFPDU(b.Arena, hdr, c.terminate)
	b.framed(from)
	if t.traced {
		t.traceSent(hdr, len(c.terminate))
	}
	n, out := t.llp.push(b)
	t.count.terminated += uint64(n)
	t.count.ops.segment(rdmap.Terminate, 0, true)
	return out == ioDone
}

// ending is how a session gets from RTS to Idle or Error: it does what the state
// table says, and tells what comes while the LLP stream closes. finish owns it,
// and both sides of the session.
type ending struct {
	*session
	state wr.State
	// by is when Closing and Terminate end at the latest: the LLP's final
	// timeout (RV-6.2.5: the state is bounded).
	by       time.Time
	half     bool // this side's half of the stream is closed
	closed   bool // all of it is
	lost     bool // the LLP did not take the Terminate Message
	fresh    bool // there are octets that have not been looked at
	timedOut bool // the last ones came when the time was up: a peer cannot draw it out
	reported bool // an event has said why RTS was left
}

// newEnding gives the LLP stream the time until by.
func newEnding(s *session, by time.Time) *ending {
	_ = s.llp.conn.SetDeadline(by)
	return &ending{session: s, state: wr.StateRTS, by: by, fresh: s.rx.in.Buffered() > 0}
}

// act takes a transition: all of its actions but to keep a Terminate Message and
// to release the LLP stream, which go with the state (leaveRTS, endSession), and
// the event that finish raises last of all.
func (e *ending) act(t transition, c cause) {
	s, do := e.session, t.Actions
	e.state = t.Next
	if do&actEvent != 0 && e.state == wr.StateTerminate { // before what may take its time
		e.reported = !c.completes()
		s.q.raise(c.event(), c.why)
	}
	if do&actSendTerminate != 0 {
		e.lost = !s.tx.sendTerminate(c)
	}
	if do&actReset != 0 {
		s.resets = true
		s.llp.conn.Reset()
	}
	if do&actFlush != 0 { // nothing touches the program's memory from here on
		s.flush(c)
	}
	if do&actFlushRQ != 0 { // all there will be: posts are refused
		s.rx.flushReceives(wr.StatusFlushed, 0)
	}
	if do&actClose != 0 && !e.spoilt() {
		e.close()
	}
}

// spoilt reports whether there will be no good LLP Close, so that none begins
// (draft 6.2.3, 6.2.5): await tells why.
func (e *ending) spoilt() bool {
	return e.lost || e.state == wr.StateClosing && (e.busy() || e.fresh)
}

// close closes this half of the stream; a connection that has no halves is closed
// with that.
func (e *ending) close() {
	if e.llp.mute.Load() { // nobody is there
		_ = e.llp.conn.Close()
		e.closed = true
		return
	}
	has, err := e.llp.conn.HalfClose()
	e.half = has && err == nil
	switch {
	case has:
	case err != nil: // the peer did not read what was sent
		e.lost = true
	default:
		_ = e.llp.conn.Close()
		e.closed = true
	}
}

// await returns what comes next in Closing or Terminate.
func (e *ending) await() cause {
	in := &e.rx.in
	switch {
	case e.closed:
		return cause{fault: faultClosed}
	case e.lost:
		return e.failure(ioLost)
	case e.state == wr.StateClosing && e.busy():
		return cause{fault: faultClosingWork}
	}
	for !e.fresh {
		if f := streamFault(e.laterFault.Swap(0)); f != noFault {
			return cause{fault: f}
		}
		n, out := e.llp.pull(in.scrap())
		in.Advance(n)
		e.rx.count.octets += uint64(n)
		switch {
		case n > 0 && !e.timedOut:
			e.fresh, e.timedOut = true, !time.Now().Before(e.by)
		case out == ioEOF && e.half:
			_ = e.llp.conn.Close()
			return cause{fault: faultClosed}
		case out == ioAgain && time.Now().Before(e.by): // woken by failAgain
			_ = e.llp.conn.SetReadDeadline(e.by)
		default:
			return e.failure(out)
		}
	}
	return e.arrival()
}

// failure is the LLP's. In Terminate an event tells of it, unless one has told of the end (RV-6.2.3-M13, M15).
func (e *ending) failure(out outcome) cause {
	switch {
	case e.state == wr.StateClosing && out == ioReset:
		return cause{fault: faultClosingReset}
	case e.state == wr.StateClosing:
		return cause{fault: faultLLPLost}
	}
	return cause{fault: faultLLPTerminating, reported: e.reported}
}

// arrival is what the octets that have come are: a Terminate Message, or
// something else.
func (e *ending) arrival() cause {
	ulpdu, ok, _ := e.rx.in.Next()
	e.fresh = ok && e.rx.in.Buffered() > 0
	if !ok {
		return cause{fault: faultClosingSegment}
	}
	seg, code := e.rx.in.parse(ulpdu)
	if code == ddp.CodeOK {
		if op, bad := rdmap.Check(seg); op == rdmap.Terminate && bad == rdmap.CodeNone {
			if !e.rx.leftOver { // else it has been counted
				e.rx.count.ops.segment(op, 0, true)
			}
			return cause{fault: faultClosingTerminate, terminate: bytes.Clone(seg.Payload())}
		}
	}
	return cause{fault: faultClosingSegment}
}

// What becomes of the work that a session leaves behind.

// findAtFault finds the request that a failure of the queue pair hits while it is
// processed, if there is one: a completion tells then (9.5.2), else the event of
// figure 24. It is the oldest one that cannot complete any more: an outstanding
// Read, or what is sent only in part. Others are not begun, or go out ahead of the
// Terminate. The caller owns both sides.
func (s *session) findAtFault(c *cause) {
	if c.fault != faultLocal || c.hasSQ {
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

// flush completes what is on both queues: what c says is at fault with its
// status, the rest as Flushed.
func (s *session) flush(c cause) {
	status, pos := faults[c.fault].Status, uint64(noElement)
	if c.hasSQ {
		pos = c.sq
	} else if c.fault == faultTerminateReceived {
		pos = s.terminated(c.terminate)
	}
	number := uint64(0)
	if c.why != nil && (pos != noElement || c.recv) {
		number = c.why.Number()
	}
	s.keepAtFault(&c, pos)
	s.q.sq.flush(pos, status, number)
	if !c.recv {
		status, number = wr.StatusFlushed, 0
	}
	s.rx.flushReceives(status, number)
}

// flush completes everything left: the element at fault, if any, with status
// and the number of its reason, the others as Flushed (verbs draft 6.2.4). No new element can come in, and
// neither side runs.
func (s *sendQueue) flush(faulty uint64, status wr.Status, number uint64) {
	s.doneMu.Lock()
	defer s.doneMu.Unlock()
	tail := s.tail.Load()
	for pos := s.done.Load(); pos < tail; pos++ {
		e := s.entry(pos, wr.StatusFlushed)
		if pos == faulty {
			e.Status, e.Value = status, number
		}
		if s.spans != nil {
			s.spans.end(pos)
		}
		s.queue(e) // no room: the loss is the consumer's, 8.1.3.1
		s.done.Store(pos + 1)
	}
	s.framed.Store(tail)
}

// flush completes everything left: the first with status and the number of its
// reason, the others as Flushed. No new element can come in, and the receive side does not run.
func (r *recvQueue) flush(status wr.Status, number uint64) {
	for r.current() != nil {
		if e := r.complete(wr.Completion{Status: status, Value: number}, false); !r.cq.Push(e) {
			r.refused(e.Pos)
		}
		status, number = wr.StatusFlushed, 0
	}
	r.handed()
}

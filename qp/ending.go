package qp

import (
	"bytes"
	"time"

	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/wr"
)

// ending is how a session gets from RTS to Idle or Error: it does what the state
// table says, and tells what comes while the LLP stream closes. finish owns it,
// and both sides of the session.
type ending struct {
	*session
	state wr.State
	// by is when Closing and Terminate end at the latest: the LLP's final
	// timeout (RV-6.2.5: the state is bounded).
	by     time.Time
	half   bool // this side's half of the stream is closed
	closed bool // all of it is
	lost   bool // the LLP did not take the Terminate Message
	fresh  bool // there are octets that nobody has looked at
	late   bool // the last ones came when the time was up: a peer cannot draw it out
	told   bool // an event has said why RTS was left
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
		e.told = !c.completes()
		s.q.raise(c.event())
	}
	if do&actSendTerminate != 0 {
		e.lost = !s.sendTerminate(c)
	}
	if do&actReset != 0 {
		s.llp.reset()
	}
	if do&actFlush != 0 { // nothing touches the program's memory from here on
		s.flush(c)
	}
	if do&actFlushRQ != 0 { // all there will be: posts are refused
		s.flushReceives(wr.StatusFlushed)
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
// with that. That of TLS is a write, with a deadline of its own.
func (e *ending) close() {
	if !e.llp.direct() {
		limit := time.AfterFunc(time.Until(e.by), e.llp.reset)
		defer limit.Stop()
	}
	has, err := e.llp.halfClose()
	e.half = has && err == nil
	if !has {
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
		return e.failure()
	case e.state == wr.StateClosing && e.busy():
		return cause{fault: faultClosingWork}
	}
	for !e.fresh {
		if f := fault(e.again.Swap(0)); f != noFault {
			return cause{fault: f}
		}
		n, out := e.llp.pull(in.scrap())
		in.Advance(n)
		switch {
		case n > 0 && !e.late:
			e.fresh, e.late = true, !time.Now().Before(e.by)
		case out == ioEOF && e.half:
			_ = e.llp.conn.Close()
			return cause{fault: faultClosed}
		case out == ioAgain && time.Now().Before(e.by): // woken by failAgain
			_ = e.llp.conn.SetReadDeadline(e.by)
		default:
			return e.failure()
		}
	}
	return e.arrival()
}

// failure is the LLP's. In Closing it is a connection lost, an RST too (draft
// 6.2.5, figure 11). In Terminate it is told to who was not told of the end by an
// event (RV-6.2.3-M13, M15).
func (e *ending) failure() cause {
	if e.state == wr.StateClosing {
		return cause{fault: faultLLPLost}
	}
	return cause{fault: faultLLPTerminating, told: e.told}
}

// arrival is what the octets that have come are: a Terminate Message, or
// something else.
func (e *ending) arrival() cause {
	ulpdu, ok, _ := e.rx.in.Next()
	e.fresh = ok && e.rx.in.Buffered() > 0
	if !ok {
		return cause{fault: faultClosingSegment}
	}
	seg, code := ddp.Parse(ulpdu)
	if code == ddp.CodeOK {
		if op, bad := rdmap.Check(seg); op == rdmap.Terminate && bad == rdmap.CodeNone {
			return cause{fault: faultClosingTerminate, terminate: bytes.Clone(seg.Payload())}
		}
	}
	return cause{fault: faultClosingSegment}
}

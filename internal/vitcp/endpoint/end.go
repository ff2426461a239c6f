package endpoint

import (
	"time"

	"github.com/softrnic/softrnic/internal/vitcp/segment"
)

// The end of an endpoint goes by steps:
//
//	end       a goroutine finds a cause; finish begins, in one of its own
//	finish    takes both sides, for good, and sends the rest of a segment that has begun to leave
//	quiesce   no memory is used any more
//	flush     all that is posted completes
//	drain     sends what the peer is still to know, and closes this half; meanwhile another goroutine reads until the
//	          peer closes its own: else TCP might drop what was sent
//	leave     closes the connection
//
// Linger after the end a timer closes the connection, whatever is waited for; an error
// code for the peer has codeLinger at least.

// codeLinger is the least time for an error code, which the peer cannot have otherwise
// (VT-3.2-M15): to be told after an end, and to be heard after a write has failed.
const codeLinger = time.Second

// lingers is how long the end may take. The caller has mu.
func (e *Endpoint) lingers() time.Duration {
	if e.badCode != 0 {
		return max(e.c.Linger, codeLinger)
	}
	return e.c.Linger
}

// end ends the data transfer phase, if nothing has yet. The caller has mu.
func (e *Endpoint) end(cause Cause, err error) {
	if e.ended {
		return
	}
	e.ended = true
	e.over.Store(true)
	e.cause = cause
	if e.sq.len() == 0 { // so no RDMA Read waits for its answer
		e.kept = e.reads.len()
	}
	*e.items.push() = item{kind: itemEnded, end: &EndError{Cause: cause, Op: e.flawedOp(), Err: err}}
	if !e.started {
		return
	}
	e.draining = cause != CausePeerClosed && cause != CauseLost
	e.sock.Remove()
	go e.finish()
}

// finish winds up. The sides stay taken.
func (e *Endpoint) finish() {
	e.rx.own.Lock()
	e.tx.own.Lock()
	t := &e.tx
	if t.impatient != nil {
		t.impatient.Stop()
	}
	e.mu.Lock()
	draining, closed := e.draining, e.cause == CauseClosed
	e.conn.HandToRuntime()
	e.lingerTimer = time.AfterFunc(e.lingers(), func() { _ = e.conn.Close() })
	_ = e.conn.SetWriteDeadline(time.Now().Add(e.lingers()))
	e.mu.Unlock()
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		if draining {
			e.discard()
		}
	}()
	if !draining {
		t.torn = true
	}
	if b := t.b; b != nil {
		if draining && !t.dead {
			e.writeRest(b, !closed)
		}
		t.b = nil
		b.free()
	}
	e.quiesce()
	e.drain()
	<-heard
	e.leave()
}

// flawedOp is the operation of the request or receive that has a flaw: OpSend if none
// has. The caller has mu.
func (e *Endpoint) flawedOp() Op {
	if e.rq.len() > 0 && (*e.rq.front()).flaws != 0 {
		return (*e.rq.front()).op
	}
	for i := e.sq.head; i != e.sq.tail; i++ {
		if r := *e.sq.at(i); r.flaws != 0 {
			return r.Op
		}
	}
	return OpSend
}

// quiesce says that no memory is used any more, and has all that is posted completed.
func (e *Endpoint) quiesce() {
	e.mu.Lock()
	e.quiet = true
	e.mu.Unlock()
	e.deliver()
}

// leave is the last that there is of an endpoint.
func (e *Endpoint) leave() {
	if e.lingerTimer != nil {
		e.lingerTimer.Stop()
	}
	_ = e.conn.Close() // VT-2.2.2.2.2-M1
	e.conn.Wait()
	e.counted.Close()
	close(e.done)
}

// flush makes results of all that is posted. The caller has mu, and nobody uses their
// memory.
func (e *Endpoint) flush() {
	// Whether the oldest request in flight took effect is not known if it is the
	// connection that failed it, and not this end or a request (VI Architecture table 1).
	lost := e.cause != CauseClosed && e.cause != CauseRequest
	for e.sq.len() > 0 {
		r := *e.sq.front()
		f := r.flaws
		if !r.done && f == 0 {
			f = r.cutOff(e.c.Level, lost)
		}
		lost = lost && f == 0
		e.sendResult(r, f)
	}
	for e.rq.len() > 0 {
		r := *e.rq.front()
		f := r.flaws
		switch {
		case f != 0:
		case r.inUse && e.cause != CauseClosed:
			f = FlawTransport | FlawPartial
		case r.inUse:
			f = FlawFlushed | FlawPartial
		default:
			f = FlawFlushed
		}
		e.receiveResult(r, Result{Op: r.op, Flaws: f, HasImmediate: r.hasImmediate, Immediate: r.immediate})
	}
}

// cutOff are the flaws of a request that the end of the connection met. Transport
// errors are for the first that may have had an effect, and at Reliable Delivery for
// RDMA Reads alone (VI Architecture 10.2, bit 6).
func (r *request) cutOff(l segment.Level, lost bool) Flaws {
	f := FlawFlushed
	if lost && r.begun && (l == segment.ReliableReception || r.Op == OpRead) {
		f = FlawTransport
	}
	if r.begun && !r.sentAll {
		f |= FlawPartial
	}
	return f
}

package endpoint

import (
	"time"

	"github.com/softrnic/softrnic/internal/tcpsock"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
)

// goroutines is how many an endpoint has, one that reads and one that writes, when no group serves it: from its
// beginning if none does, else from its end on (finish).
const goroutines = 2

// The end of an endpoint goes by steps:
//
//	end       a goroutine finds a cause; both goroutines are woken, or if a group served it,
//	          started (finish, drive.go)
//	quiesced  each of them says that it uses no memory any more
//	flush     the second one has all that is posted completed
//	draining  meanwhile the writer sends what the peer is still to know, closes its
//	          half, and the reader reads until the peer closes its own: else TCP might
//	          drop what was sent
//	leave     the second one out closes the connection
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
	e.work.Broadcast()
	e.calm.Broadcast()
	if !e.started {
		return
	}
	e.draining = cause != CausePeerClosed && cause != CauseLost
	if e.sock == nil {
		e.limit()
		return
	}
	e.sock.Remove()
	go e.finish()
}

// limit bounds the time that the end takes, and ends what waits. The caller has mu.
func (e *Endpoint) limit() {
	conn := e.conn
	e.lingerTimer = time.AfterFunc(e.lingers(), func() { _ = conn.Close() })
	until := tcpsock.Past
	if e.draining && e.cause != CauseClosed {
		until = time.Now().Add(e.lingers())
	}
	_ = conn.SetWriteDeadline(until)
	_ = conn.SetReadDeadline(tcpsock.Past)
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

// quiesce says that the calling goroutine uses no memory any more.
func (e *Endpoint) quiesce() {
	e.mu.Lock()
	e.quiet++
	e.mu.Unlock()
	e.deliver()
	e.mu.Lock()
	e.work.Broadcast()
	e.mu.Unlock()
}

// leave is the last thing a goroutine does.
func (e *Endpoint) leave() {
	e.mu.Lock()
	e.left++
	last := e.left == goroutines
	e.mu.Unlock()
	if last {
		if e.lingerTimer != nil {
			e.lingerTimer.Stop()
		}
		_ = e.conn.Close() // VT-2.2.2.2.2-M1
		e.counted.Close()
		close(e.done)
	}
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

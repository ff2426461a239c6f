package qp

import (
	"bytes"
	"errors"
	"runtime"

	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/internal/netpoll"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/wr"
)

// The way of a segment to a completion.
//
//  1. Drive, called by the poller of the group (package netpoll), owns the receive side for one
//     read that does not block.
//  2. received: take FPDUs from what has arrived. A CRC is checked before any
//     octet is handed on.
//  3. segment: parse and check, hand to the handler of its opcode (inbound_send.go, place.go).

// Drive implements netpoll.Member.
func (s *session) Drive(ready netpoll.Ready) (got bool) {
	if ready&netpoll.Lost != 0 {
		s.fail(faultLLPLost)
		return true
	}
	if ready&netpoll.Out != 0 && s.sock.WantsOutput() {
		got = s.tx.unstall()
	}
	if ready&netpoll.In != 0 {
		got = s.rx.drive() || got
	}
	return got
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
	if r.s.stopping.Load() || r.mute() {
		return false
	}
	if r.loss != nil && r.loss.stalled.Swap(false) {
		r.fail(faultStalled)
		return true
	}
	if r.in.kept == nil && !r.ended {
		if r.early || r.in.aside.octets > 0 {
			r.early = false
			if r.deliver(); r.in.kept != nil { // nothing may be received then
				return true
			}
		}
		return r.received(r.llp.read(&r.in)) == ioDone
	}
	r.deliver() // paused: only a receive lets it go on
	if r.in.kept != nil || r.ended && r.in.aside.octets > 0 {
		return false
	}
	r.ended = false // it is read once more
	r.s.sock.Resume()
	return true
}

// received handles what a read brought. The caller owns the side.
func (r *receiver) received(n int, out outcome) outcome {
	switch out {
	case ioDone:
		r.in.Advance(n)
		r.count.octets += uint64(n)
		r.deliver()
	case ioEOF:
		if r.in.aside.octets > 0 { // not before what came before has its receives
			r.ended = true
			r.s.sock.Pause()
			break
		}
		r.peerClosed()
	case ioReset:
		r.fail(faultLLPReset)
	case ioAgain:
		r.in.rest()
	case ioRevoked:
		r.failRevoked()
	default:
		r.fail(faultLLPLost)
	}
	if r.mute() {
		r.in.drop()
	}
	return out
}

// failRevoked ends the session: the memory that a segment was received into is gone.
func (r *receiver) failRevoked() {
	seg := r.in.placement.segment()
	f := faultRQSTag
	switch op, _ := r.check(seg); op {
	case rdmap.Write:
		f = faultTagSTag
	case rdmap.ReadResponse:
		f = faultSinkSTag
	default: // a Send
	}
	r.s.halt(r.cause(f, seg))
}

// deliver handles every FPDU that is here, in a state that is for it.
func (r *receiver) deliver() {
	if r.s.q.spans != nil {
		defer region(r.s.q.spans.receive).End()
	}
	r.in.aside.past = false
	process := step(r.s.q.state.load(), trigSegment).Actions&actProcess != 0
	for process && !r.s.stopping.Load() && !r.mute() {
		ulpdu, ok, err := r.in.Next()
		if err != nil {
			r.fail(framingFault(err))
			break
		}
		if !ok {
			if !r.in.aside.past {
				r.divert()
			}
			break
		}
		if r.firstFPDU.Load() == 0 {
			r.firstFPDU.Store(r.s.tx.offered.Load() + 1)
			r.s.openGate()
		}
		if r.in.aside.past && r.overtake(ulpdu) {
			continue
		}
		if r.in.aside.past || !r.segment(ulpdu) {
			if !r.setAside(ulpdu) {
				break
			}
			continue
		}
		if r.leftOver {
			r.in.keep(ulpdu)
		}
	}
	if r.in.kept == nil && r.in.aside.octets == 0 && r.paused.Load() != 0 {
		r.paused.clear()
	}
	r.handCompleted()
	if r.cfg.SRQ != nil {
		r.noteFilling()
	}
	r.in.rest()         // this may have been the last for long
	if r.flushPending { // for all that has come together
		r.flushPending = false
		r.s.tx.tryTransmit()
	}
}

// openGate lets a Responder send: a first FPDU came and was found good
// (RFC 5044 7.1.2 rule 4).
func (s *session) openGate() {
	if s.gate.CompareAndSwap(true, false) {
		s.tx.tryTransmit()
		s.tx.rested()
	}
}

// peerClosed handles the end of what the peer sends. Whether work is left can be
// told only when the transmit side rests, so finish decides.
func (r *receiver) peerClosed() {
	if r.in.Buffered() > 0 { // within an FPDU
		r.fail(faultLLPLost)
		return
	}
	r.fail(faultPeerClosed)
}

func framingFault(err error) streamFault {
	var e *mpa.Error
	if errors.As(err, &e) && e.Code == mpa.CodeCRC {
		return faultCRC
	}
	return faultFPDU
}

// end ends the session for what a segment brought. If something else has ended it
// just now, a verb say, the segment has come in the state that follows: it is left
// for finish (draft 6.2.5, figure 11).
func (r *receiver) end(c cause) {
	r.acknowledge() // what came before it
	if !r.s.halt(c) {
		r.leftOver = true
	}
}

// fail ends the session for what the receive side has met, and no segment has brought.
func (r *receiver) fail(f streamFault) {
	if c := (cause{fault: f}); !r.outlives(&c) {
		r.s.halt(c)
	}
}

// segment handles what Next has returned, and ends the session for what is wrong
// with it. It reports false if that has to wait for a receive.
func (r *receiver) segment(ulpdu []byte) bool { return r.handle(r.in.parse(ulpdu)) }

// handle is segment for a segment as package ddp reads it.
func (r *receiver) handle(seg ddp.Segment, code ddp.Code) bool {
	f, wait := r.process(seg, code)
	if f != noFault {
		if c := r.cause(f, seg); !r.outlives(&c) {
			r.end(c)
		}
	}
	return !wait
}

// cause is why the session ends with a fault that a segment brought.
func (r *receiver) cause(f streamFault, seg ddp.Segment) cause {
	c := cause{fault: f}
	switch f {
	case faultRQSTag, faultRQBounds, faultRQAccess, faultRQPD, faultRQWrap: // not the segment's: it is not repeated
		c.recv = true
	case faultSRQ: // nor is this
	case faultInvalidateLocalSTag, faultInvalidateLocalPD, faultInvalidateLocalWindows: // RDMA Read with Invalidate
		c.sq, c.hasSQ = r.reads.first().pos, true
	case faultSinkSTag, faultSinkBounds, faultSinkAccess, faultSinkPD: // the Read's whose answer it is (draft 6.2.2.3)
		c.seg, c.sq, c.hasSQ = seg.Head(keptPayload), r.reads.first().pos, true
	case faultSendTooLong, faultSendInvSTag, faultSendInvGone, faultSendInvAccess, faultSendInvPD, faultSendInvWindows:
		c.seg, c.recv = seg.Head(keptPayload), true
	case faultTerminateReceived:
		c.terminate = bytes.Clone(seg.Payload())
	default:
		c.seg = seg.Head(keptPayload)
	}
	return c
}

// process checks a segment and hands it on. It returns what is wrong with it. wait says that
// nothing has been done: there is no receive for it yet.
func (r *receiver) process(seg ddp.Segment, code ddp.Code) (f streamFault, wait bool) {
	if code != ddp.CodeOK {
		return parseFault(code), false
	}
	op, term := r.check(seg)
	if term != rdmap.CodeNone {
		return checkFault(op, term), false
	}
	r.count.ops.segment(op, uint64(seg.Size()), seg.Last())
	if !r.noted {
		r.note(op, seg)
	}
	if r.cfg.Trace != nil && !r.shown {
		r.s.q.traceSegment(wr.RecordReceived, seg, seg.Size())
	}
	if r.loss != nil {
		return r.handOnLossy(op, seg), false
	}
	f, wait = r.handOn(op, seg)
	r.shown = wait
	return f, wait
}

// handOn hands a segment to the handler of its opcode.
func (r *receiver) handOn(op rdmap.Opcode, seg ddp.Segment) (f streamFault, wait bool) {
	switch op {
	case rdmap.Write:
		return r.inWrite(seg), false
	case rdmap.ReadResponse:
		return r.inReadResponse(seg), false
	case rdmap.ReadRequest, rdmap.AtomicRequest:
		return r.inRequest(op, seg), false
	case rdmap.Terminate:
		return faultTerminateReceived, false
	case rdmap.AtomicResponse:
		return r.inAtomicResponse(seg), false
	default: // what takes a receive
		f, wait = r.inSend(op, seg)
		if wait {
			r.count.ops.takeBack(op, uint64(seg.Size()), seg.Last())
		}
		return f, wait
	}
}

// check makes the checks that need no state. The messages of RFC 7306 pass if it is
// spoken on this stream; otherwise they are unexpected (RFC 7306 1.1).
func (r *receiver) check(seg ddp.Segment) (rdmap.Opcode, rdmap.TermCode) {
	if r.s.extensions {
		return rdmap.CheckExtended(seg)
	}
	return rdmap.Check(seg)
}

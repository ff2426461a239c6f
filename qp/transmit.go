package qp

import (
	"runtime"
	"time"
)

// The way of a work request to the wire; the functions stand in this order.
//
//  1. tryTransmit: something may be there to send. A poster that finds the transmit side free
//     becomes its owner and sends, without blocking; one that finds it busy leaves a
//     mark for its owner. Posting never waits.
//  2. pump: write the batch in flight, complete what has gone out with it, fill
//     the next one. It ends when there is nothing to send, when the LLP takes no
//     more, or when the poster has done enough for others. After the last two,
//     handOver leaves the rest to the group's poller, which comes back when the socket takes
//     more.
//  3. fill: frame messages until the batch is full.
//  4. nextMessage (schedule.go): the RTR, then RDMA Read Responses and Send Queue
//     elements in turn. Fences and ORD may hold the Send Queue back. Memory
//     operations are executed here.
//  5. frame (frame.go): cut the next segment of the message and add its FPDU to the batch.
//
// A message is finished before the next one starts: a tagged message has
// nothing but its STag to be known by (RFC 5041 5.2).

// inlineBudget is about how many octets a poster sends before it hands over: one
// batch.
const inlineBudget = batchBytes

// maxRounds is how often a poster looks again for what others have posted
// meanwhile.
const maxRounds = 8

// maxMemory is how many memory operations are executed in a row, and memoryCost
// what one is to inlineBudget.
const (
	maxMemory  = 64
	memoryCost = inlineBudget / maxMemory
)

// measureAfter is how many octets of the stream are framed until the LLP is asked
// for its MULPDU again.
const measureAfter = batchBytes

// measure asks the LLP for its MULPDU, by which segments are cut from here on. Those
// that are framed stay as they are (R5041-3-M3).
func (t *transmitter) measure() {
	t.mulpdu, t.metered = min(t.meter.MULPDU(), t.tuning.Segment), t.pos
	t.short, t.traced = t.shortLimit(), t.s.q.cfg.Trace != nil
}

// tryTransmit sends what there is to send, or leaves that to the owner of the side.
func (t *transmitter) tryTransmit() {
	if t.tryOwn() {
		t.transmit()
	}
}

// transmit sends what there is to send, with the side in the caller's hands, and gives the side up.
func (t *transmitter) transmit() {
	for rounds := 0; ; rounds++ {
		if rounds == maxRounds && !t.llp.mute.Load() { // for others, which keep posting
			t.mu.Unlock()
			t.handOver()
			return
		}
		left := t.pump(inlineBudget)
		t.mu.Unlock()
		t.rested()
		if left && !t.llp.mute.Load() {
			t.handOver()
			return
		}
		if !left && !t.more.Load() { // a poster may have found the side taken just before Unlock
			return
		}
		if !t.tryOwn() {
			return
		}
	}
}

// tryOwn makes the caller the owner of the transmit side, or leaves a mark for
// the owner. It stores nothing where there is nothing to change: a store that others see
// costs as much as a lock.
func (t *transmitter) tryOwn() bool {
	if !t.mu.TryLock() {
		t.more.Store(true)
		if !t.mu.TryLock() {
			return false
		}
	}
	if t.more.Load() {
		t.more.Store(false)
	}
	return true
}

// awaitSide makes the caller the owner of the transmit side when whoever has it, as a poster, is about to leave. It does not wait for
// finish, which has the side for good, and reports false when the stream ends.
func (t *transmitter) awaitSide() bool {
	for !t.mu.TryLock() {
		if t.s.stopping.Load() {
			return false
		}
		runtime.Gosched()
	}
	return true
}

// handOver sees to it that what is left gets sent, when the socket takes more.
func (t *transmitter) handOver() {
	t.stalled.Store(true)
	t.s.sock.WantOutput(true)
}

// unstall sends on what the LLP did not take at once, and sees to it that the group asks
// for room as long as some is wanted.
func (t *transmitter) unstall() (got bool) {
	sock := t.s.sock
	if t.stalled.CompareAndSwap(true, false) {
		before := t.written.Load()
		t.tryTransmit()
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

// rested tells Drain that the transmit side has just been given up.
func (t *transmitter) rested() {
	if t.s.draining.Load() {
		signal(t.s.drained)
	}
}

// pump sends about budget octets, and reports whether something is left to send. The caller owns the side.
func (t *transmitter) pump(budget int) (left bool) {
	if t.traced {
		defer region(t.s.q.spans.transmit).End()
	}
	for !t.s.stopping.Load() {
		if t.batch == nil {
			ran, filled := t.fill()
			if ran > 0 {
				t.s.completeSQ() // nothing is written for them
			}
			if budget -= ran * memoryCost; budget <= 0 {
				return true
			}
			if !filled && ran == 0 {
				return false
			}
			if !filled { // a Local Fence may have waited for them
				continue
			}
		}
		t.writing.Store(true)
		n, out := t.llp.write(t.batch)
		t.written.Add(uint64(n))
		if n > 0 {
			t.s.completeSQ()
		}
		t.writing.Store(false)
		switch out {
		case ioDone:
			t.batch.free()
			t.batch = nil
		case ioAgain:
			return true
		case ioRevoked:
			t.revoked()
		case ioReset:
			t.broke(faultLLPReset)
		default:
			t.broke(faultLLPLost)
		}
		if budget -= n; budget <= 0 {
			return true
		}
	}
	return false
}

// completeSQ reports the Send Queue elements that are finished.
func (s *session) completeSQ() {
	if !s.q.sq.complete(s.tx.written.Load()) {
		s.fail(faultSQCompletion)
	}
}

// settle completes what the peer's system has acknowledged, before what the peer has sent later is told of. Who writes may not be
// back from that: on a busy machine the peer's program can have answered by then. The order is none of the draft's (8.2.2 rule 3), but
// that of adapters, on which programs rely.
func (s *session) settle() {
	if !s.tx.writing.Load() {
		return
	}
	if acked, ok := s.llp.acked(); ok && !s.q.sq.complete(acked) {
		s.fail(faultSQCompletion)
	}
}

// nothing reports whether there is nothing to send, fences and ORD apart.
func (t *transmitter) nothing() bool {
	return t.msg.kind == noMessage && t.next == t.sq.tail.Load() && t.irrq.len() == 0 && t.rtr == 0 &&
		!t.writeAck.wants() && t.notReady.Load() == 0
}

// revoked ends the session because memory of the batch in flight is gone: that of an answer to an RDMA Read, or of a Send or
// RDMA Write. Its STag may name other memory by now.
func (t *transmitter) revoked() {
	gone := t.batch.gone()
	if c, ok := t.batch.answerAt(gone); ok {
		t.s.halt(c)
		return
	}
	at, sq := t.pos-uint64(t.batch.Size()-gone), t.sq
	sq.doneMu.Lock() // no element from done on is given back meanwhile
	defer sq.doneMu.Unlock()
	pos, framed := sq.done.Load(), sq.framed.Load()
	for pos < framed && sq.at(pos).end <= at {
		pos++
	}
	t.s.halt(cause{fault: faultSQSTag, sq: pos, hasSQ: true})
}

// fails ends the session while a batch is made. What is in it already goes out first, see
// finish; but not if memory of an RDMA Read's answer is gone there too: then that has got no
// further.
func (t *transmitter) fails(b *batch, f streamFault) {
	c := t.cause(f)
	if gone, ok := b.answerAt(b.gone()); ok && c.readReq != nil {
		c = gone
	}
	t.s.halt(c)
}

// cause is why the session ends with a fault in what was to be sent next: the answer to the oldest RDMA Read
// Request, or a request of the program's.
func (t *transmitter) cause(f streamFault) cause {
	switch f {
	case faultReadSTag, faultReadBounds, faultReadAccess, faultReadPD, faultReadWrap, faultAtomicOpcode, faultAtomicMisaligned:
		sent := uint64(0)
		if t.msg.kind == fromIRRQ {
			sent = t.msg.off
		}
		return t.irrq.first().cause(f, sent)
	default:
		return cause{fault: f, sq: t.next, hasSQ: true}
	}
}

// fill makes a batch of what may be sent now, and executes the memory operations
// between: ran of them. filled is false, and there is no batch, if there is
// nothing to send.
func (t *transmitter) fill() (ran int, filled bool) {
	if t.nothing() {
		return 0, false
	}
	if t.pos-t.metered >= measureAfter {
		t.measure()
	}
	b := newBatch()
	for !b.Full(t.tuning.Batch) && ran < maxMemory {
		if t.msg.kind == noMessage {
			if t.frameShorts(b); t.nothing() {
				break
			}
			ok, f := t.nextMessage()
			if f != noFault {
				t.fails(b, f)
				break
			}
			if !ok {
				break
			}
			if t.msg.kind == noMessage { // a memory operation
				ran++
				continue
			}
		}
		if f := t.frame(b); f != noFault {
			t.fails(b, f)
			break
		}
	}
	if b.Size() == 0 {
		b.free()
		return ran, false
	}
	t.batch = b
	if t.s.rx.firstFPDU.Load() == 0 {
		if t.offered.Load() == 0 {
			t.began = time.Now()
		}
		t.offered.Store(t.pos)
	}
	return ran, true
}

package qp

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/stag"
	"github.com/softrnic/softrnic/wr"
)

// The way of a work request to the wire; the functions stand in this order.
//
//  1. kick: something may be there to send. Who finds the transmit side free
//     becomes its owner and sends, without blocking; who finds it busy leaves a
//     mark for its owner. Posting never waits.
//  2. pump: write the batch in flight, complete what has gone out with it, fill
//     the next one. It ends when there is nothing to send, when the LLP takes no
//     more, or when the poster has done enough for others. After the last two,
//     handOver leaves the rest to who polls the CQs or, if nobody does, to
//     transmitLoop, which may sleep.
//  3. fill: frame messages until the batch is full.
//  4. nextMessage (choose.go): the RTR, then RDMA Read Responses and Send Queue
//     elements in turn. Fences and ORD may hold the Send Queue back. Memory
//     operations are executed here (memory.go).
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

// transmitter is the transmit side of a session. Who calls a method that does more than
// try for the side, or leave a mark for its owner, owns it: has mu.
type transmitter struct {
	s      *session
	cfg    *Config // the queue pair's, as tuning and sq
	tuning *Tuning
	sq     *sendQueue
	llp    *llp                // the session's, as irrq and reads
	irrq   *ring[inboundRead]  // from the receive side, bounded by IRD
	reads  *ring[outboundRead] // to the receive side, bounded by ORD

	running sync.WaitGroup // transmitLoop

	mu   sync.Mutex // the token; see docs/memory-model.md
	more atomic.Bool
	wake chan struct{} // one token, for transmitLoop
	// stalled is set while something is left for whoever comes next.
	stalled atomic.Bool

	// written counts the stream octets that the LLP has taken. Written by the
	// owner.
	written atomic.Uint64
	// offered counts those that it was given to take, until an FPDU has arrived.
	offered atomic.Uint64
	began   time.Time // when the first of them were; the owner's
	cork    cork
	nudger  nudger
	ord     atomic.Int32 // limit on outstanding RDMA Reads; Modify QP changes it

	// The rest belongs to the owner.
	framer  mpa.Framer
	meter   mpa.Meter
	mulpdu  int    // as the LLP said
	metered uint64 // pos when it did
	sendMSN ddp.Outbound
	readMSN ddp.Outbound // of RDMA Reads and Atomics
	atomics atomics
	placing placing
	rtr     mpa.RTR // to send before anything else
	batch   *batch  // in flight, or nil
	pos     uint64  // stream octets framed
	next    uint64  // Send Queue position of the next element
	// settling is set while an Invalidate waits until the batch has been
	// written; nothing more is framed for that.
	settling bool
	readsUp  bool // the next choice is an RDMA Read Response
	msg      message
	refs     []stag.Ref // of the scatter/gather list of msg
	traced   bool       // Config.Trace is set
	short    int64      // the longest message that frameShorts frames
	sources  stag.Resolver
	count    outCount
	told     told[outCount]
	hdr      [ddp.UntaggedHeader + rdmap.AtomicRequestSize]byte
}

// message is the one being framed.
type message struct {
	kind   messageKind
	op     rdmap.Opcode
	inv    uint32 // Invalidate STag
	msn    uint32
	stag   uint32
	to     uint64
	length uint64
	off    uint64 // octets framed
	vanish bool   // some of its memory may
	sge    int    // element that off is in
	sgeOff uint64 // and where
}

type messageKind uint8

const (
	noMessage messageKind = iota
	fromSQ
	fromIRRQ
	fromRTR
)

func (t *transmitter) init(s *session) {
	t.s, t.cfg, t.tuning, t.sq = s, &s.q.cfg, &s.q.cfg.Tuning, &s.q.sq
	t.llp, t.irrq, t.reads = &s.llp, s.irrq, s.reads
	if !t.llp.direct { // as in receiver.init
		t.running.Add(1)
		t.wake = make(chan struct{}, 1)
	}
	t.cork.init(t.tuning.Eager, t.leftovers)
	t.framer = s.stream.Framer()
	t.meter = s.stream.Meter()
	t.measure()
	t.sources = t.cfg.STags.Resolver(s.user, wr.LocalRead)
	t.sendMSN, t.readMSN = ddp.NewOutbound(), ddp.NewOutbound()
	t.atomics.msn = ddp.NewOutbound()
	t.next = t.sq.done.Load()
	if s.stream.Role == mpa.Initiator && s.stream.P2P {
		t.rtr = s.stream.RTR
	}
}

// measure asks the LLP for its MULPDU, by which segments are cut from here on. Those
// that are framed stay as they are (R5041-3-M3).
func (t *transmitter) measure() {
	t.mulpdu, t.metered = min(t.meter.MULPDU(), t.tuning.Segment), t.pos
	t.short, t.traced = t.shortLimit(), t.s.q.cfg.Trace != nil
}

// kick sends what there is to send, or sees to it that somebody does.
func (t *transmitter) kick() {
	if !t.llp.direct {
		t.more.Store(true)
		signal(t.wake)
		return
	}
	for rounds := 0; t.tryOwn(); rounds++ {
		if rounds == maxRounds { // for others, who keep posting
			t.mu.Unlock()
			t.handOver()
			return
		}
		left := t.pump(inlineBudget, false)
		t.mu.Unlock()
		t.rested()
		if left {
			t.handOver()
			return
		}
		if !t.more.Load() { // a poster may have found the side taken just before Unlock
			return
		}
	}
}

// tryOwn makes the caller the owner of the transmit side, or leaves a mark for
// who is. It stores nothing where there is nothing to change: a store that others see
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

// handOver sees to it that what is left gets sent, when the socket takes more.
func (t *transmitter) handOver() {
	t.stalled.Store(true)
	t.s.sock.WantOutput(true)
}

// transmitLoop sends through a connection whose writes block. One goroutine a session.
func (t *transmitter) transmitLoop() {
	defer t.running.Done()
	t.s.q.wear("transmit")
	for {
		select {
		case <-t.wake:
		case <-t.s.stop:
			return
		}
		for {
			t.mu.Lock()
			t.more.Store(false)
			t.pump(0, true)
			t.mu.Unlock()
			t.rested()
			if !t.more.Load() || t.s.stopping.Load() {
				break
			}
		}
	}
}

// rested tells Drain that the transmit side has just been given up.
func (t *transmitter) rested() {
	if t.s.draining.Load() {
		signal(t.s.quiet)
	}
}

// pump reports whether something is left to send. The caller owns the side. If
// wait is set it may sleep and has no budget.
func (t *transmitter) pump(budget int, wait bool) (left bool) {
	if t.traced {
		defer region(t.s.q.spans.transmit).End()
	}
	for !t.s.stopping.Load() {
		if t.batch == nil {
			ran, filled := t.fill()
			if ran > 0 {
				t.s.completeSQ() // nothing is written for them
			}
			if budget -= ran * memoryCost; budget <= 0 && !wait {
				return true
			}
			if !filled && ran == 0 {
				return false
			}
			if !filled { // a Local Fence may have waited for them
				continue
			}
		}
		if wait {
			t.tell()
		}
		n, out := t.llp.write(t.batch, wait)
		t.written.Add(uint64(n))
		if n > 0 {
			t.s.completeSQ()
		}
		switch out {
		case ioDone:
			t.batch.free()
			t.batch = nil
		case ioAgain: // while waiting: woken by finish
			return true
		case ioRevoked:
			t.revoked()
		case ioReset:
			t.s.fail(faultLLPReset)
		default:
			t.s.fail(faultLLPLost)
		}
		if budget -= n; budget <= 0 && !wait {
			return true
		}
	}
	return false
}

// nothing reports whether there is nothing to send, fences and ORD apart.
func (t *transmitter) nothing() bool {
	return t.msg.kind == noMessage && t.next == t.sq.tail.Load() && t.irrq.len() == 0 && t.rtr == 0 &&
		!t.placing.wants()
}

// revoked ends the session because memory of the batch in flight is gone. At
// fault is the first Send or RDMA Write, not all sent, whose memory is no longer
// there; if there is none, the answer to an RDMA Read.
func (t *transmitter) revoked() {
	sq, written := t.sq, t.written.Load()
	sq.doneMu.Lock() // no element from done on is given back meanwhile
	defer sq.doneMu.Unlock()
	framed := sq.framed.Load()
	for pos := sq.done.Load(); pos <= framed; pos++ {
		if pos == framed && t.msg.kind != fromSQ {
			break // none is framed in part
		}
		e := sq.at(pos)
		if pos < framed && e.end <= written {
			continue
		}
		for _, g := range e.sgl {
			if _, f := t.resolve(g, wr.LocalRead); f != stag.OK {
				t.s.halt(cause{fault: faultSQSTag, sq: pos, hasSQ: true})
				return
			}
		}
	}
	c, _ := t.batch.lostAnswer()
	t.s.halt(c)
}

// fails ends the session while a batch is made. What is in it already goes out first, see
// finish; but not if memory of an RDMA Read's answer is gone there too: then that has got no
// further.
func (t *transmitter) fails(b *batch, c cause) {
	if lost, ok := b.lostAnswer(); ok && c.readReq != nil {
		c = lost
	}
	t.s.halt(c)
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
	for !b.full(t.tuning.Batch) && ran < maxMemory {
		if t.msg.kind == noMessage {
			if t.frameShorts(b); t.nothing() {
				break
			}
			ok, c := t.nextMessage()
			if c.fault != noFault {
				t.fails(b, c)
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
		if c := t.frame(b); c.fault != noFault {
			t.fails(b, c)
			break
		}
	}
	if b.size == 0 {
		b.free()
		return ran, false
	}
	t.batch = b
	if t.s.rx.heard.Load() == 0 {
		if t.offered.Load() == 0 {
			t.began = time.Now()
		}
		t.offered.Store(t.pos)
	}
	return ran, true
}

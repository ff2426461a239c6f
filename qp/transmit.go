package qp

import (
	"sync"
	"sync/atomic"

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

// maxRun is how many memory operations are executed in a row, and memoryCost
// what one is to inlineBudget.
const (
	maxRun     = 64
	memoryCost = inlineBudget / maxRun
)

// measureAfter is how many octets of the stream are framed until the LLP is asked
// for its MULPDU again.
const measureAfter = batchBytes

// txSide is the transmit side of a session.
type txSide struct {
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
	cork    cork
	ord     atomic.Int32 // limit on outstanding RDMA Reads; Modify QP changes it

	// The rest belongs to the owner.
	framer  mpa.Framer
	meter   mpa.Meter
	mulpdu  int    // as the LLP said
	metered uint64 // pos when it did
	sendMSN ddp.Outbound
	readMSN ddp.Outbound
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
	short    int64      // the longest message that run frames
	sources  stag.Resolver
	hdr      [ddp.UntaggedHeader + rdmap.ReadRequestSize]byte
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

func (t *txSide) init(s *session) {
	t.wake = make(chan struct{}, 1)
	t.cork.init(s.tuning.Eager)
	t.framer = s.stream.Framer()
	t.meter = s.stream.Meter()
	s.measure()
	t.sources = s.q.cfg.STags.Resolver(s.user, wr.LocalRead)
	t.sendMSN, t.readMSN = ddp.NewOutbound(), ddp.NewOutbound()
	t.next = s.q.sq.done.Load()
	if s.stream.Role == mpa.Initiator && s.stream.P2P {
		t.rtr = s.stream.RTR
	}
}

// measure asks the LLP for its MULPDU, by which segments are cut from here on. Those
// that are framed stay as they are (R5041-3-M3).
func (s *session) measure() {
	t := &s.tx
	t.mulpdu, t.metered = min(t.meter.MULPDU(), s.tuning.Segment), t.pos
	t.short = s.shortLimit()
}

// kick sends what there is to send, or sees to it that somebody does.
func (s *session) kick() {
	t := &s.tx
	if !s.llp.direct() {
		t.more.Store(true)
		signal(t.wake)
		return
	}
	for rounds := 0; s.takeTransmit(); rounds++ {
		if rounds == maxRounds { // for others, who keep posting
			t.mu.Unlock()
			s.handOver()
			return
		}
		left := s.pump(inlineBudget, false)
		t.mu.Unlock()
		s.rested()
		if left {
			s.handOver()
			return
		}
		if !t.more.Load() { // a poster may have found the side taken just before Unlock
			return
		}
	}
}

// takeTransmit makes the caller the owner of the transmit side, or leaves a mark for
// who is. It stores nothing where there is nothing to change: a store that others see
// costs as much as a lock.
func (s *session) takeTransmit() bool {
	t := &s.tx
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

// handOver sees to it that what is left gets sent. While the program polls, its
// polls do it (Drive): a second thread would only take the processor from it.
func (s *session) handOver() {
	t := &s.tx
	t.stalled.Store(true)
	if !s.rx.polled.Load() {
		s.wakeTransmit()
	}
}

// wakeTransmit hands what is left, if anything is, to transmitLoop.
func (s *session) wakeTransmit() {
	if s.tx.stalled.CompareAndSwap(true, false) {
		signal(s.tx.wake)
	}
}

// transmitLoop sends what posters could not. One goroutine a session.
func (s *session) transmitLoop() {
	defer s.transmitting.Done()
	t := &s.tx
	n := s.newNudger()
	for {
		select {
		case <-t.wake:
		case <-n.due:
			s.nudge(&n)
		case <-t.cork.company:
			s.accompany()
			continue
		case <-s.stop:
			return
		}
		for {
			t.mu.Lock()
			t.more.Store(false)
			left := s.pump(0, true)
			t.mu.Unlock()
			s.rested()
			if left { // to pollers: they have come meanwhile
				s.handOver()
				break
			}
			if !t.more.Load() || s.stopping.Load() {
				break
			}
		}
	}
}

// rested tells Drain that the transmit side has just been given up.
func (s *session) rested() {
	if s.draining.Load() {
		signal(s.quiet)
	}
}

// pump reports whether something is left to send. The caller owns the side. If
// wait is set it may sleep and has no budget, but leaves the work to pollers if
// there are some.
func (s *session) pump(budget int, wait bool) (left bool) {
	t := &s.tx
	for !s.stopping.Load() {
		if wait && s.rx.polled.Load() {
			return true
		}
		if t.batch == nil {
			ran, filled := s.fill()
			if ran > 0 {
				s.completeSQ() // nothing is written for them
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
		n, out := s.llp.write(t.batch, wait)
		t.written.Add(uint64(n))
		if n > 0 {
			s.completeSQ()
		}
		switch out {
		case ioDone:
			t.batch.free()
			t.batch = nil
		case ioAgain: // while waiting: woken by finish
			return true
		case ioRevoked:
			s.revoked()
		case ioReset:
			s.fail(faultLLPReset)
		default:
			s.fail(faultLLPLost)
		}
		if budget -= n; budget <= 0 && !wait {
			return true
		}
	}
	return false
}

// nothing reports whether there is nothing to send, fences and ORD apart.
func (s *session) nothing() bool {
	t := &s.tx
	return t.msg.kind == noMessage && t.next == s.q.sq.tail.Load() && s.irrq.len() == 0 && t.rtr == 0
}

// revoked ends the session because memory of the batch in flight is gone. At
// fault is the first Send or RDMA Write, not all sent, whose memory is no longer
// there; if there is none, the answer to an RDMA Read.
func (s *session) revoked() {
	sq, written := &s.q.sq, s.tx.written.Load()
	sq.doneMu.Lock() // no element from done on is given back meanwhile
	defer sq.doneMu.Unlock()
	framed := sq.framed.Load()
	for pos := sq.done.Load(); pos <= framed; pos++ {
		if pos == framed && s.tx.msg.kind != fromSQ {
			break // none is framed in part
		}
		e := sq.at(pos)
		if pos < framed && e.end <= written {
			continue
		}
		for _, g := range e.sgl {
			if _, f := s.resolve(g, wr.LocalRead); f != stag.OK {
				s.halt(cause{fault: faultSQSTag, sq: pos, hasSQ: true})
				return
			}
		}
	}
	s.fail(faultReadSTag)
}

// fill makes a batch of what may be sent now, and executes the memory operations
// between: ran of them. filled is false, and there is no batch, if there is
// nothing to send.
func (s *session) fill() (ran int, filled bool) {
	t := &s.tx
	if s.nothing() {
		return 0, false
	}
	if t.pos-t.metered >= measureAfter {
		s.measure()
	}
	b := newBatch()
	for !b.full(s.tuning.Batch) && ran < maxRun {
		if t.msg.kind == noMessage {
			if s.run(b); s.nothing() {
				break
			}
			ok, c := s.nextMessage()
			if c.fault != noFault {
				s.halt(c) // what is in the batch already goes out first, see finish
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
		if c := s.frame(b); c.fault != noFault {
			s.halt(c)
			break
		}
	}
	if b.size == 0 {
		b.free()
		return ran, false
	}
	t.batch = b
	if s.rx.heard.Load() == 0 {
		t.offered.Store(t.pos)
	}
	return ran, true
}

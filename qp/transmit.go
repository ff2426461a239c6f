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
//  4. next: choose a message: the RTR, then RDMA Read Responses and Send Queue
//     elements in turn. Fences and ORD may hold the Send Queue back.
//  5. frame: cut the next segment of the message and add its FPDU to the batch.
//
// A message is finished before the next one starts: a tagged message has
// nothing but its STag to be known by (RFC 5041 5.2).

// inlineBudget is about how many octets a poster sends before it hands over: one
// batch.
const inlineBudget = batchBytes

// maxULPDU bounds segments below MULPDU: on a loopback, where MULPDU is 64 KiB,
// smaller segments are received faster, and a real path has a smaller MULPDU
// anyway.
const maxULPDU = 32 << 10

// copyBelow is the payload, in octets, that is copied beside its header rather
// than named as a piece of its own.
const copyBelow = 1 << 10

// txSide is the transmit side of a session.
type txSide struct {
	mu   sync.Mutex // the token; TryLock or Lock by kick, transmitLoop, finish
	more atomic.Bool
	wake chan struct{} // one token, for transmitLoop
	// stalled is set while something is left for whoever comes next.
	stalled atomic.Bool

	// written counts the stream octets that the LLP has taken. Written by the
	// owner.
	written atomic.Uint64
	ord     atomic.Int32 // limit on outstanding RDMA Reads; Modify QP changes it

	// The rest belongs to the owner.
	framer  mpa.Framer
	mulpdu  int
	sendMSN ddp.Outbound
	readMSN ddp.Outbound
	rtr     mpa.RTR // to send before anything else
	batch   *batch  // in flight, or nil
	pos     uint64  // stream octets framed
	next    uint64  // Send Queue position of the next element
	readsUp bool    // the next choice is an RDMA Read Response
	msg     message
	refs    []stag.Ref // of the scatter/gather list of msg
	held    []stag.Ref // scratch of frame
	parts   [][]byte   // scratch of frame
	hdr     [ddp.UntaggedHeader + rdmap.ReadRequestSize]byte
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
	t.framer = s.stream.Framer()
	t.mulpdu = min(s.stream.MULPDU(), maxULPDU)
	t.sendMSN, t.readMSN = ddp.NewOutbound(), ddp.NewOutbound()
	t.next = s.q.sq.done.Load()
	if s.stream.Role == mpa.Initiator && s.stream.P2P {
		t.rtr = s.stream.RTR
	}
}

// kick sends what there is to send, or sees to it that somebody does.
func (s *session) kick() {
	t := &s.tx
	t.more.Store(true)
	if !s.llp.direct() {
		signal(t.wake)
		return
	}
	for t.more.Load() && t.mu.TryLock() {
		t.more.Store(false)
		left := s.pump(inlineBudget, false)
		t.mu.Unlock()
		s.rested()
		if left {
			s.handOver()
			return
		}
		// A poster may have found the side taken just before Unlock.
	}
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
	defer s.wg.Done()
	t := &s.tx
	for {
		select {
		case <-t.wake:
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
		if t.batch == nil && !s.fill() {
			return false
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
			s.fail(FaultLLPReset)
		default:
			s.fail(FaultLLPLost)
		}
		if budget -= n; budget <= 0 && !wait {
			return true
		}
	}
	return false
}

// revoked ends the session because memory of the batch in flight is gone. At
// fault is the first Send or RDMA Write, not all sent, whose memory is no longer
// there; if there is none, the answer to an RDMA Read.
func (s *session) revoked() {
	sq, written := &s.q.sq, s.tx.written.Load()
	framed := sq.framed.Load()
	for pos := sq.done.Load(); pos <= framed; pos++ {
		if pos == framed && s.tx.msg.kind != fromSQ {
			break // none is framed in part
		}
		e := sq.at(pos)
		if pos < framed && e.end <= written {
			continue
		}
		for _, g := range sq.list(pos) { // empty of an RDMA Read
			if _, f := s.resolve(g, wr.LocalRead); f != stag.OK {
				s.halt(cause{fault: FaultSQSTag, sq: pos, hasSQ: true})
				return
			}
		}
	}
	s.fail(FaultReadSTag)
}

// fill makes a batch of what may be sent now. It reports false, leaving no
// batch, if that is nothing.
func (s *session) fill() bool {
	t := &s.tx
	b := newBatch()
	for !b.full() {
		if t.msg.kind == noMessage {
			if ok, c := s.nextMessage(); c.fault != NoFault {
				s.halt(c) // what is in the batch already goes out first, see finish
				break
			} else if !ok {
				break
			}
		}
		if c := s.frame(b); c.fault != NoFault {
			s.halt(c)
			break
		}
	}
	if b.size == 0 {
		b.free()
		return false
	}
	t.batch = b
	return true
}

// nextMessage starts a message. ok is false if there is none, or none that may
// go now.
func (s *session) nextMessage() (ok bool, c cause) {
	t := &s.tx
	if t.rtr != 0 {
		s.startRTR()
		return true, c
	}
	if s.gate.Load() { // RFC 5044 7.1.2 rule 4
		return false, c
	}
	if t.readsUp {
		t.readsUp = false
		if ok, c = s.nextResponse(); ok || c.fault != NoFault {
			return ok, c
		}
		return s.nextRequest()
	}
	t.readsUp = true
	if ok, c = s.nextRequest(); ok || c.fault != NoFault {
		return ok, c
	}
	return s.nextResponse()
}

// startRTR starts the ready-to-receive frame of peer-to-peer mode, an empty
// message of the kind that was agreed (RFC 6581 9.2).
func (s *session) startRTR() {
	t := &s.tx
	t.msg = message{kind: fromRTR}
	switch t.rtr {
	case mpa.RTRSend:
		t.msg.op, t.msg.msn = rdmap.Send, t.sendMSN.Next()
	case mpa.RTRRead:
		t.msg.op, t.msg.msn = rdmap.ReadRequest, t.readMSN.Next()
		t.msg.stag = rtrSTag
		s.reads.push(outboundRead{stag: rtrSTag, msn: t.msg.msn, rtr: true})
	default:
		t.msg.op, t.msg.stag = rdmap.Write, rtrSTag
	}
	t.rtr = 0
}

// rtrSTag stands in empty RTR frames, where nobody looks at it; some hardware
// dislikes an STag of zero there.
const rtrSTag = 1

// nextResponse starts the answer to the oldest RDMA Read Request.
func (s *session) nextResponse() (bool, cause) {
	t := &s.tx
	r := s.irrq.first()
	if r == nil {
		return false, cause{}
	}
	t.refs = t.refs[:0]
	if r.req.Size > 0 { // an empty Read looks at no STag, RFC 5040 5.2.1
		ref, f := s.q.cfg.STags.Resolve(wr.STag(r.req.SourceSTag), r.req.SourceTO, uint64(r.req.Size), s.user, wr.RemoteRead)
		if f != stag.OK {
			return false, s.readCause(memoryFault(sideRead, f), 0)
		}
		t.refs = append(t.refs, ref)
	}
	t.msg = message{
		kind: fromIRRQ, op: rdmap.ReadResponse,
		stag: r.req.SinkSTag, to: r.req.SinkTO, length: uint64(r.req.Size),
	}
	return true, cause{}
}

// readCause is a fault in answering the oldest RDMA Read Request after sent
// octets of the answer: the Terminate repeats its headers, moved on by as much
// (RFC 5040 4.8).
func (s *session) readCause(f Fault, sent uint64) cause {
	r := s.irrq.first()
	return cause{
		fault: f, segment: ddp.UntaggedHeader + rdmap.ReadRequestSize,
		ddpHeader: ddp.AppendUntagged(nil, true, rdmap.Control(rdmap.ReadRequest), 0, ddp.QNReadRequest, r.msn, 0),
		readReq:   r.req.Advanced(uint32(sent)).Append(nil),
	}
}

// nextRequest starts the next Send Queue element, if it may run.
func (s *session) nextRequest() (bool, cause) {
	t, sq := &s.tx, &s.q.sq
	if t.next == sq.tail.Load() {
		return false, cause{}
	}
	e := sq.at(t.next)
	if e.flags&wr.ReadFence != 0 && !e.op.IsRead() && s.reads.len() > 0 {
		return false, cause{} // RV-8.2.2.2: all earlier Reads first
	}
	if f := s.admit(e); f != NoFault {
		return false, cause{fault: f, sq: t.next, hasSQ: true}
	}
	if e.op.IsRead() && s.reads.len() >= int(t.ord.Load()) {
		return false, cause{} // draft 6.5: wait for an earlier Read
	}
	if f := s.gather(e); f != NoFault {
		return false, cause{fault: f, sq: t.next, hasSQ: true}
	}
	t.msg = message{kind: fromSQ, length: e.length}
	m := &t.msg
	switch e.op {
	case wr.OpWrite:
		m.op, m.stag, m.to = rdmap.Write, uint32(e.remote.STag), e.remote.TO
	case wr.OpRead:
		m.op, m.msn, m.length = rdmap.ReadRequest, t.readMSN.Next(), 0
		s.reads.push(outboundRead{
			pos: t.next, stag: uint32(e.local.STag), to: e.local.TO, size: e.local.Length, msn: m.msn,
		})
	default:
		m.op, m.msn = sendOpcodes[e.op], t.sendMSN.Next()
		if e.op.Invalidates() {
			m.inv = uint32(e.invalidate)
		}
	}
	return true, cause{}
}

var sendOpcodes = [...]rdmap.Opcode{
	wr.OpSend: rdmap.Send, wr.OpSendSE: rdmap.SendSE,
	wr.OpSendInvalidate: rdmap.SendInvalidate, wr.OpSendSEInvalidate: rdmap.SendSEInvalidate,
}

// admit makes the checks of an element that need no memory.
func (s *session) admit(e *sqe) Fault {
	switch {
	case e.length > wr.MaxMessage:
		return FaultSQLength
	case e.op.IsRead() && s.tx.ord.Load() == 0:
		return FaultZeroORD // draft 8.2.2 rule 18
	case e.length > 0 && (e.op.IsRead() || e.op == wr.OpWrite) && e.remote.STag == 0:
		return FaultSQSTag // draft 8.1.3.2.1
	case e.length > 0 && e.op.IsRead() && e.local.STag == 0:
		return FaultSQSTag
	}
	return NoFault
}

// gather resolves the memory of an element: that of a Send or Write to read from
// it, that of a Read to see that it is there. The rights on the sink of a Read
// are those of the response's tagged segments, checked when they come (draft
// 7.5.2).
func (s *session) gather(e *sqe) Fault {
	t := &s.tx
	t.refs = t.refs[:0]
	if e.op.IsRead() {
		_, f := s.resolve(e.local, 0)
		return memoryFault(sideSQ, f)
	}
	for _, g := range s.q.sq.list(t.next) {
		ref, f := s.resolve(g, wr.LocalRead)
		if f != stag.OK {
			return memoryFault(sideSQ, f)
		}
		t.refs = append(t.refs, ref)
	}
	return NoFault
}

// frame adds the next FPDU of the message to b and, behind the last one, moves
// on.
func (s *session) frame(b *batch) cause {
	t, m := &s.tx, &s.tx.msg
	hdr, n, last := s.header()
	from, before := len(b.arena), b.mark()
	if s.llp.direct() && t.framer.Gather() && n >= copyBelow {
		b.arena = t.framer.AppendHead(b.arena, hdr, n)
		b.size += len(b.arena) - from
		if !s.pieces(b, uint64(n)) {
			b.rollback(before)
			return s.lost()
		}
		from = len(b.arena)
		b.arena = mpa.AppendTail(b.arena, len(hdr)+n)
		b.copied(from)
	} else {
		ok := s.hold(uint64(n))
		if ok {
			b.arena = t.framer.AppendFPDU(b.arena, hdr, t.parts...)
		}
		for _, r := range t.held {
			r.Release()
		}
		t.held = t.held[:0]
		clear(t.parts)
		t.parts = t.parts[:0]
		if !ok {
			return s.lost()
		}
		b.copied(from)
	}
	t.pos += uint64(b.size - before.size)
	m.off += uint64(n)
	if last {
		s.framed()
	}
	return cause{}
}

// header makes the DDP and RDMAP headers of the next segment, which takes n
// octets of payload.
func (s *session) header() (hdr []byte, n int, last bool) {
	t, m := &s.tx, &s.tx.msg
	hdr = t.hdr[:0]
	ctrl := rdmap.Control(m.op)
	switch {
	case m.op == rdmap.ReadRequest:
		hdr = ddp.AppendUntagged(hdr, true, ctrl, 0, ddp.QNReadRequest, m.msn, 0)
		req := rdmap.ReadRequestHeader{SinkSTag: m.stag}
		if m.kind == fromSQ {
			e := s.q.sq.at(t.next)
			req = rdmap.ReadRequestHeader{
				SinkSTag: uint32(e.local.STag), SinkTO: e.local.TO, Size: e.local.Length,
				SourceSTag: uint32(e.remote.STag), SourceTO: e.remote.TO,
			}
		}
		return req.Append(hdr), 0, true
	case m.op.Tagged():
		n, last = ddp.Cut(m.length-m.off, t.mulpdu, ddp.TaggedHeader)
		return ddp.AppendTagged(hdr, last, ctrl, m.stag, m.to+m.off), n, last
	default:
		n, last = ddp.Cut(m.length-m.off, t.mulpdu, ddp.UntaggedHeader)
		return ddp.AppendUntagged(hdr, last, ctrl, m.inv, ddp.QNSend, m.msn, uint32(m.off)), n, last
	}
}

// hold collects the next n octets of the message's memory in t.parts, held by
// t.held. It reports false if some of it was revoked.
func (s *session) hold(n uint64) bool {
	t := &s.tx
	for n > 0 {
		ref, off, k := t.take(n)
		if k > 0 {
			if !ref.Hold() {
				return false
			}
			t.held = append(t.held, ref)
			t.parts = ref.Append(t.parts, off, k)
		}
		n -= k
	}
	return true
}

// pieces adds the next n octets of the message's memory to b, not copied.
func (s *session) pieces(b *batch, n uint64) bool {
	t := &s.tx
	for n > 0 {
		ref, off, k := t.take(n)
		if k > 0 && !b.memory(ref, off, k) {
			return false
		}
		n -= k
	}
	return true
}

// take moves over up to n octets of one element of the scatter/gather list.
func (t *txSide) take(n uint64) (ref stag.Ref, off, k uint64) {
	m := &t.msg
	ref = t.refs[m.sge]
	off = m.sgeOff
	k = min(n, ref.Len()-off)
	if m.sgeOff += k; m.sgeOff == ref.Len() {
		m.sge++
		m.sgeOff = 0
	}
	return ref, off, k
}

// lost is the cause when memory of the message being framed was revoked. Its
// segment has not begun to go out, so the Terminate takes its place (draft 6.4).
func (s *session) lost() cause {
	t := &s.tx
	if t.msg.kind == fromIRRQ {
		return s.readCause(FaultReadSTag, t.msg.off)
	}
	return cause{fault: FaultSQSTag, sq: t.next, hasSQ: true}
}

// framed ends the message.
func (s *session) framed() {
	t := &s.tx
	switch t.msg.kind {
	case fromSQ:
		s.q.sq.at(t.next).end = t.pos
		t.next++
		s.q.sq.framed.Store(t.next)
	case fromIRRQ:
		s.irrq.pop()
	}
	t.msg.kind = noMessage
}

package qp

import (
	"slices"

	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/stag"
	"github.com/softrnic/softrnic/wr"
)

// nextMessage starts a message, or executes a memory operation, which leaves
// none. ok is false if there is neither, or none that may go now.
func (t *transmitter) nextMessage() (ok bool, f streamFault) {
	if t.rtr != 0 {
		t.startRTR()
		return true, noFault
	}
	if t.flushBeforeInvalidate { // this is the next batch: all that was framed is out
		t.flushBeforeInvalidate, t.readsUp = false, false
	}
	if t.s.gate.Load() {
		return t.nextLocal()
	}
	if t.tellNotReady() {
		return true, noFault
	}
	if t.writeAck.wants() {
		t.startWriteAck()
		return true, noFault
	}
	if t.readsUp || t.acknowledges() {
		t.readsUp = false
		if ok, f = t.nextResponse(); ok || f != noFault {
			return ok, f
		}
		return t.nextRequest()
	}
	t.readsUp = true
	if ok, f = t.nextRequest(); ok || t.flushBeforeInvalidate || f != noFault {
		return ok, f
	}
	return t.nextResponse()
}

// acknowledges reports whether the oldest RDMA Read Request is one by whose answer the peer's requests complete: it goes first, as
// those of adapters do.
func (t *transmitter) acknowledges() bool {
	r := t.irrq.first()
	return r != nil && r.acknowledges(t.cfg)
}

// nextLocal is all that a Responder may do before the first FPDU has come: what
// sends nothing (RFC 5044 7.1.2 rule 4).
func (t *transmitter) nextLocal() (bool, streamFault) {
	sq := t.sq
	if t.next == sq.tail.Load() || !sq.at(t.next).op.IsMemory() {
		return false, noFault
	}
	return t.nextRequest()
}

// startRTR starts the ready-to-receive frame of peer-to-peer mode, an empty
// message of the kind that was agreed (RFC 6581 9.2).
func (t *transmitter) startRTR() {
	t.msg = message{kind: fromRTR}
	switch t.rtr {
	case mpa.RTRSend:
		t.msg.op, t.msg.msn = rdmap.Send, t.sendMSN.Next()
	case mpa.RTRRead:
		t.msg.op, t.msg.msn = rdmap.ReadRequest, t.readMSN.Next()
		t.msg.stag = rtrSTag
		t.reads.push(outboundRead{stag: rtrSTag, msn: t.msg.msn, rtr: true})
	default:
		t.msg.op, t.msg.stag = rdmap.Write, rtrSTag
	}
	t.rtr = 0
}

// rtrSTag stands in empty RTR frames, where no peer looks at it; some hardware
// dislikes an STag of zero there.
const rtrSTag = 1

// nextResponse starts the answer to the oldest RDMA Read Request.
func (t *transmitter) nextResponse() (bool, streamFault) {
	r := t.irrq.first()
	if r == nil {
		return false, noFault
	}
	t.refs = t.refs[:0]
	if r.op == rdmap.AtomicRequest {
		return t.answerAtomic(r)
	}
	if r.req.Size > 0 { // an empty Read looks at no STag, RFC 5040 5.2.1
		ref, f := t.cfg.STags.Resolve(wr.STag(r.req.SourceSTag), r.req.SourceTO, uint64(r.req.Size), t.s.user, wr.RemoteRead)
		if f != stag.OK {
			return false, memoryFault(sideRead, f)
		}
		t.refs = append(t.refs, ref)
	}
	t.msg = message{
		kind: fromIRRQ, op: rdmap.ReadResponse,
		stag: r.req.SinkSTag, to: r.req.SinkTO, length: uint64(r.req.Size), vanish: t.mayVanish(),
	}
	return true, noFault
}

// mayVanish reports whether memory of the message to be framed may.
func (t *transmitter) mayVanish() bool { return slices.ContainsFunc(t.refs, stag.Ref.MayVanish) }

// nextRequest starts the next Send Queue element, if it may run.
func (t *transmitter) nextRequest() (bool, streamFault) {
	sq := t.sq
	if t.next == sq.tail.Load() {
		return false, noFault
	}
	e := sq.at(t.next)
	if e.op.IsMemory() {
		return t.execute(e)
	}
	if e.flags&wr.ReadFence != 0 && !e.op.Reads() && t.ownReads() > 0 {
		return false, noFault // RV-8.2.2.2: all earlier Reads first
	}
	if f := t.admit(e); f != noFault {
		return false, f
	}
	if e.op.Reads() && t.ownReads() >= int(t.ord.Load()) {
		return false, noFault // draft 6.5: wait for an earlier Read
	}
	if f := t.gather(e); f != noFault {
		return false, f
	}
	t.msg = message{kind: fromSQ, length: e.length, vanish: t.mayVanish()}
	m := &t.msg
	switch e.op {
	case wr.OpWrite, wr.OpWriteImmediate, wr.OpWriteImmediateSE:
		m.op, m.stag, m.to = rdmap.Write, uint32(e.remote.STag), e.remote.TO
	case wr.OpRead, wr.OpReadInvalidate:
		m.op, m.msn, m.length = rdmap.ReadRequest, t.readMSN.Next(), 0
		g := &e.sgl[t.asked.sinks]
		t.reads.push(outboundRead{
			pos: t.next, stag: uint32(g.STag), to: g.TO, size: g.Length, msn: m.msn, part: t.asked.sinks+1 < len(e.sgl),
		})
	case wr.OpFetchAdd, wr.OpSwap, wr.OpCompareSwap:
		t.startAtomic()
	default:
		m.op, m.msn = sendOpcodes[e.op], t.sendMSN.Next()
		m.field, m.imm = e.untaggedField(), e.flags&wr.WithImmediate != 0
		e.msn = m.msn
	}
	return true, noFault
}

// untaggedField is what the Invalidate STag field of a Send says.
func (e *sqe) untaggedField() uint32 {
	switch {
	case e.op.Invalidates():
		return uint32(e.invalidate)
	case e.flags&wr.WithImmediate != 0:
		return uint32(e.immediate)
	}
	return 0
}

// sendControl is the RDMAP control octet of a Send.
func sendControl(op rdmap.Opcode, immediate bool) byte {
	c := rdmap.Control(op)
	if immediate {
		c |= rdmap.ControlImmediate
	}
	return c
}

// sendOpcodes are those of the messages of queue 0: that of a Write with Immediate is the
// second.
var sendOpcodes = [...]rdmap.Opcode{
	wr.OpSend: rdmap.Send, wr.OpSendSE: rdmap.SendSE,
	wr.OpSendInvalidate: rdmap.SendInvalidate, wr.OpSendSEInvalidate: rdmap.SendSEInvalidate,
	wr.OpImmediate: rdmap.Immediate, wr.OpImmediateSE: rdmap.ImmediateSE,
	wr.OpWriteImmediate: rdmap.Immediate, wr.OpWriteImmediateSE: rdmap.ImmediateSE,
}

// admit makes the checks of an element that need no memory.
func (t *transmitter) admit(e *sqe) streamFault {
	switch {
	case e.op.IsExtension() && !t.s.extensions:
		return faultSQNotAgreed // posted in Idle, and not agreed since
	case e.length > wr.MaxMessage:
		return faultSQLength
	case e.op.Reads() && t.ord.Load() == 0:
		return faultZeroORD // draft 8.2.2 rule 18
	case e.intoZero():
		return faultSQSTag
	case e.length > 0 && e.op.IsRead() && slices.ContainsFunc(e.sgl, func(g wr.SGE) bool { return g.STag == 0 }):
		return faultSQSTag
	case e.op == wr.OpReadInvalidate && e.sgl[0].STag.Index() == 0:
		return faultInvalidateLocalSTag // RV-7.2.1-M13
	}
	return noFault
}

// gather resolves the memory of an element: that of a Send or Write to read from
// it, that of a Read to see that it is there. The rights on the sink of a Read
// are those of the response's tagged segments, checked when they come (draft
// 7.5.2); with Config.ReadIntoLocal here too, so that the request is not sent.
func (t *transmitter) gather(e *sqe) streamFault {
	t.refs = t.refs[:0]
	need := e.needs(t.cfg)
	for _, g := range e.sgl {
		ref, f := t.resolve(g, need)
		if f != stag.OK {
			return memoryFault(sideSQ, f)
		}
		if !e.op.IsRead() {
			t.refs = append(t.refs, ref)
		}
	}
	return noFault
}

// needs is the right that an element's list has to have when its message begins.
func (e *sqe) needs(c *Config) wr.Access {
	switch {
	case !e.op.IsRead():
		return wr.LocalRead
	case c.ReadIntoLocal:
		return wr.LocalWrite
	}
	return 0
}

// resolve finds the memory of an element of this side's own requests.
func (t *transmitter) resolve(e wr.SGE, need wr.Access) (stag.Ref, stag.AccessFault) {
	return t.cfg.STags.Resolve(e.STag, e.TO, uint64(e.Length), t.s.user, need)
}

// mayExecute reports whether the next element, a memory operation, may be executed.
func (t *transmitter) mayExecute(e *sqe) bool {
	switch {
	case e.op != wr.OpInvalidate:
		return true // NA-1 of figure 22: an Invalidate comes before it
	case e.flags&wr.LocalFence != 0 && t.sq.done.Load() != t.next:
		return false // draft 8.2.2.2: all prior ones complete first
	case t.pos != t.written.Load():
		// An earlier Send or Write, or the answer to a Read, may still read
		// from the region. Without the fence only earlier Reads of this side
		// are not waited for.
		t.flushBeforeInvalidate = true
		return false
	}
	return true
}

// execute does the next element, a memory operation, if it may.
func (t *transmitter) execute(e *sqe) (bool, streamFault) {
	if !t.mayExecute(e) {
		return false, noFault
	}
	tab := t.cfg.STags
	var f streamFault
	switch e.op {
	case wr.OpBind:
		f = memoryFault(sideBind, t.bind(&e.memory.bind))
	case wr.OpFastRegister:
		f = t.fastRegisterFault(tab.FastRegister(&e.memory.fastRegister, t.s.user))
	default:
		f = memoryFault(sideInvalidate, tab.InvalidateLocal(e.invalidate, t.s.user))
	}
	if f != noFault {
		return false, f
	}
	t.count.executed(e.op)
	t.advance(e)
	return true, noFault
}

func (t *transmitter) bind(b *wr.BindRequest) stag.AccessFault {
	if t.cfg.NoBind { // RV-7.10.6.1
		return stag.FaultAccess
	}
	return t.cfg.STags.Bind(b, t.s.user)
}

// fastRegisterFault maps what Fast-Register refuses. A size that is not supported
// has a status for each mode of the RNIC (figure 36).
func (t *transmitter) fastRegisterFault(f stag.AccessFault) streamFault {
	if f == stag.FaultBufferSize && t.cfg.BlockMode {
		return faultFastBlockSize
	}
	return memoryFault(sideFastRegister, f)
}

// startWriteAck starts the empty Read.
func (t *transmitter) startWriteAck() {
	p := &t.writeAck
	p.asked = p.due
	p.outstanding.Store(true)
	t.msg = message{kind: fromRTR, op: rdmap.ReadRequest, msn: t.readMSN.Next(), stag: rtrSTag}
	t.reads.push(outboundRead{pos: p.asked, stag: rtrSTag, msn: t.msg.msn, rtr: true, placed: true})
}

// ownReads is how many Reads and Atomics of the program are outstanding, or more.
func (t *transmitter) ownReads() int {
	asking := t.writeAck.outstanding.Load() // first: it is cleared before the Read is dropped
	n := t.reads.len()
	if asking && n > 0 {
		n--
	}
	return n
}

// advance moves on behind the next Send Queue element, all of which is framed, or
// executed.
func (t *transmitter) advance(e *sqe) {
	e.end = t.pos
	t.next++
	t.asked = asked{}
	t.writeAck.framedUpTo(t.next, e)
	t.sq.framed.Store(t.next)
}

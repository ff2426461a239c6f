package qp

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/stag"
	"github.com/softrnic/softrnic/wr"
)

// Why a stream ends, as data (wr.Reason). A cause keeps only what would be gone afterwards: the headers of the
// segment. The rest is made by finish, which owns both sides: nothing of it is on the way of a good message.

// wireWords are the operations of the wire as a Reason calls them.
var wireWords = [...]string{
	rdmap.Write: "RDMA Write", rdmap.ReadRequest: "RDMA Read", rdmap.ReadResponse: "RDMA Read Response",
	rdmap.Send: "Send", rdmap.SendInvalidate: "Send with Invalidate", rdmap.SendSE: "Send with Solicited Event",
	rdmap.SendSEInvalidate: "Send with Solicited Event and Invalidate", rdmap.Terminate: "Terminate Message",
	rdmap.Immediate: "Immediate Data", rdmap.ImmediateSE: "Immediate Data with Solicited Event",
	rdmap.AtomicRequest: "Atomic", rdmap.AtomicResponse: "Atomic Response",
}

// segmentReason is what a segment tells, with n octets behind its DDP header.
func segmentReason(seg ddp.Segment, n int) *wr.Reason {
	op := rdmap.OpcodeOf(seg.RsvdULP())
	w := &wr.Reason{Operation: "message with RDMAP opcode " + op.String()}
	if op.Known() {
		w.Operation = wireWords[op]
	}
	switch {
	case seg.Tagged():
		w.STag, w.HasSTag, w.Asked = wr.STag(seg.STag()), true, wr.Tagged(seg.TO(), uint64(n))
	case op.HasPayload():
		w.MSN, w.Asked = seg.MSN(), wr.Untagged(uint64(seg.MO())+uint64(n))
	default:
		w.MSN = seg.MSN()
		requestReason(w, op, seg.Payload())
	}
	return w
}

// requestReason adds what a Read or Atomic Request asks for, if its header is here.
func requestReason(w *wr.Reason, op rdmap.Opcode, header []byte) {
	if op == rdmap.ReadRequest {
		if h, ok := rdmap.ParseReadRequest(header); ok {
			w.STag, w.HasSTag, w.Asked = wr.STag(h.SourceSTag), true, wr.Tagged(h.SourceTO, uint64(h.Size))
		}
		return
	}
	if h, ok := rdmap.ParseAtomicRequest(header); ok && op == rdmap.AtomicRequest {
		w.STag, w.HasSTag, w.Asked = wr.STag(h.STag), true, wr.Tagged(h.TO, atomicSize)
	}
}

// reason is why the session ends, or has ended otherwise than by a wish: nil for that. The
// caller owns both sides.
func (s *session) reason(c *cause) *wr.Reason {
	switch c.fault {
	case faultModifyClosing, faultModifyTerminate, faultModifyError, faultPeerClosed, faultClosed:
		return nil
	default:
	}
	w := c.fault.reason(s.q.cfg.ID)
	if _, after, ok := strings.Cut(w.What, ": "); ok {
		w.What = after // it says on which side; the operation does that too
	}
	if c.seg.Len() > 0 {
		met := segmentReason(c.seg, c.seg.Size())
		met.QP, met.What, met.Rule = w.QP, w.What, w.Rule
		w = met
	}
	s.specify(w, c)
	w.Remedy = cmp.Or(w.Remedy, remedies[c.fault])
	return w
}

// specify adds what is known of the memory, by the kind of fault.
func (s *session) specify(w *wr.Reason, c *cause) {
	if of, f, ok := memoryCause(c.fault); ok {
		s.specifyMemory(w, c, of, f)
		return
	}
	switch c.fault {
	case faultTerminateReceived:
		s.peerReason(w, c.terminate)
	case faultSendTooLong:
		room := s.rx.recv.length
		w.Allowed, w.What = wr.Untagged(room), fmt.Sprintf("the receive posted for it has room for %d", room)
	case faultNoReceive:
		w.What = "no receive is posted for it"
	case faultOpcode:
		w.What = "unexpected opcode"
	case faultZeroORD:
		s.elementReason(w, s.q.sq.at(c.sq))
		w.What, w.Rule = "ORD is 0, by QPConfig or the peer's IRD", "verbs draft 8.2.2 rule 18"
	case faultWriteNotEnabled:
		w.Missing, w.What = wr.RemoteWrite, "the queue pair takes no RDMA Writes"
	case faultReadNotEnabled:
		w.Missing, w.What = wr.RemoteRead, "the queue pair answers no RDMA Reads"
	case faultAtomicNotEnabled:
		w.Missing, w.What = wr.RemoteAtomic, "the queue pair carries out no Atomics"
	default:
		if c.hasSQ {
			s.elementReason(w, s.q.sq.at(c.sq))
		}
	}
}

// memoryCause is what the STag table said, and on which side, if f is that.
func memoryCause(f streamFault) (side, stag.AccessFault, bool) {
	if f == faultFastBlockSize {
		return sideFastRegister, stag.FaultBufferSize, true
	}
	for of := range memoryFaults {
		for said, row := range memoryFaults[of] {
			if row == f {
				return side(of), said, true
			}
		}
	}
	return 0, stag.OK, false
}

// specifyMemory is specify where the STag table said f.
func (s *session) specifyMemory(w *wr.Reason, c *cause, of side, f stag.AccessFault) {
	t, u := s.q.cfg.STags, s.user
	switch of {
	case sideSQ:
		s.sourceReason(w, s.q.sq.at(c.sq), f)
	case sideRQ:
		s.sinkReason(w, f)
	case sideTagged:
		if w.Operation == wireWords[rdmap.ReadResponse] {
			s.answerReason(w)
			return
		}
		t.Explain(w, f, u, wr.RemoteWrite)
	case sideSink:
		need := wr.RemoteWrite
		if s.q.cfg.ReadIntoLocal {
			need = wr.LocalWrite
		}
		t.Explain(w, f, u, need)
	case sideRead:
		need := wr.RemoteRead
		if w.Operation == wireWords[rdmap.AtomicRequest] {
			need = wr.RemoteAtomic
		}
		t.Explain(w, f, u, need)
	case sideInvalidateRemote:
		w.STag, w.HasSTag, w.Asked = wr.STag(c.seg.RsvdULP32()), true, wr.Octets{}
		if s.rx.rights.noRead.Load() && s.rx.rights.noWrite.Load() { // as in receiver.invalidate
			w.Missing, w.What = wr.RemoteRead|wr.RemoteWrite, "the queue pair has no remote access right"
			return
		}
		t.ExplainInvalidate(w, f, u, true)
	default:
		s.memoryOpReason(w, s.q.sq.at(c.sq), of, f)
	}
}

// elementReason is what a request asks for: of the peer's memory, if it names that.
func (s *session) elementReason(w *wr.Reason, e *sqe) {
	w.Operation = e.op.Words()
	switch {
	case e.op.Reads(), e.op.IsWrite():
		w.STag, w.HasSTag, w.Asked = e.remote.STag, true, wr.Tagged(e.remote.TO, e.length)
	case e.op.IsSend():
		w.Asked = wr.Untagged(e.length)
	}
}

// sourceReason is for memory of a request: the first element of its list that is refused
// so, of a Read its sink.
func (s *session) sourceReason(w *wr.Reason, e *sqe, f stag.AccessFault) {
	s.elementReason(w, e)
	if e.intoZero() {
		w.What, w.Remedy = "the peer's address has the STag of zero", "use the one that it has told"
		return
	}
	need := e.needs(&s.q.cfg)
	for _, g := range e.sgl {
		_, now := s.tx.resolve(g, need)
		zero := e.op.IsRead() && g.STag == 0 && g.Length > 0 // refused before it is looked up
		if now != f && !zero {
			continue
		}
		w.STag, w.HasSTag, w.Asked = g.STag, true, wr.Tagged(g.TO, uint64(g.Length))
		if zero {
			w.What, w.Rule, w.Remedy = "the sink of an RDMA Read cannot be the STag of zero", "RV-7.2.1-M13", "name a region"
			return
		}
		s.q.cfg.STags.Explain(w, f, s.user, need)
		return
	}
}

// answerReason is for a segment of the answer to an RDMA Read that is not as it was asked
// for: what is allowed is the rest of that (see responseFault).
func (s *session) answerReason(w *wr.Reason) {
	if o := s.reads.first(); o != nil {
		w.Allowed = wr.Tagged(o.to+uint64(s.rx.readGot), uint64(o.size-s.rx.readGot))
		w.What = fmt.Sprintf("what is due are %d octets at TO %#x of STag %v",
			w.Allowed.Length, w.Allowed.TO, wr.STag(o.stag))
	}
}

// sinkReason is for memory of the receive that is filled: the element that comes next.
func (s *session) sinkReason(w *wr.Reason, f stag.AccessFault) {
	l, u := &s.rx.recv, s.user
	w.Operation = wr.OpRecv.Words()
	if !l.open || l.sge == len(l.sgl) {
		return
	}
	if shared := s.q.cfg.SRQ; shared != nil {
		u.PD = shared.PD() // as in receiver.init
	}
	g := &l.sgl[l.sge]
	w.STag, w.HasSTag, w.Asked = g.STag, true, wr.Tagged(g.TO, uint64(g.Length))
	s.q.cfg.STags.Explain(w, f, u, wr.LocalWrite)
}

// memoryOpReason is for a memory operation, and for an RDMA Read with Invalidate.
func (s *session) memoryOpReason(w *wr.Reason, e *sqe, of side, f stag.AccessFault) {
	t := s.q.cfg.STags
	w.Operation, w.HasSTag = e.op.Words(), true
	switch of {
	case sideBind:
		b := &e.memory.bind
		w.STag, w.Asked = b.Window, wr.Tagged(b.VA, b.Length)
		if s.q.cfg.NoBind {
			w.What, w.Missing, w.Rule = "the queue pair may not bind", wr.BindWindow, "RV-7.10.6.1"
			w.Remedy = "create it without QPConfig.NoBind"
			return
		}
		t.ExplainBind(w, f, b, s.user)
	case sideFastRegister:
		r := &e.memory.fastRegister
		w.STag, w.Asked = r.STag, wr.Tagged(r.VA, r.Buffers.Length)
		t.ExplainFastRegister(w, f, r, s.user)
	default:
		w.STag = e.invalidate
		if e.op == wr.OpReadInvalidate {
			w.STag = e.sgl[0].STag
		}
		t.ExplainInvalidate(w, f, s.user, false)
	}
}

// peerReason is what a Terminate Message says: the code, and of the headers that it repeats
// what was asked for.
func (s *session) peerReason(w *wr.Reason, received []byte) {
	term, ok := rdmap.ParseTerminate(received)
	if !ok {
		return
	}
	if len(term.DDPHeader) > 0 {
		if seg, code := ddp.Parse(term.DDPHeader); code == ddp.CodeOK {
			n := max(int(term.SegmentLength)-len(term.DDPHeader), 0)
			*w = *segmentReason(seg, n)
			w.QP = s.q.cfg.ID
		}
	}
	if len(term.ReadRequest) > 0 {
		requestReason(w, rdmap.ReadRequest, term.ReadRequest)
	} else if pos := s.terminated(received); pos != noElement {
		s.elementReason(w, s.q.sq.at(pos))
	}
	w.ByPeer = true
	w.Terminate = wr.TerminateReason{Layer: term.Code.Layer(), Type: term.Code.Type(), Code: term.Code.Code(), Text: term.Code.Text()}
	w.What, w.Rule = fmt.Sprintf("the peer says %v", term.Code), "RFC 5040 4.8"
	w.Remedy = remedyAfar(term.Code)
}

// terminated finds the Send Queue element that the peer's Terminate Message
// complains about: only an RDMA Read can still be there (draft 9.5.2, Remote
// Termination Error), and an RDMA Write that waits to be placed.
func (s *session) terminated(received []byte) (pos uint64) {
	pos = noElement
	term, parsed := rdmap.ParseTerminate(received)
	if !parsed || len(term.DDPHeader) == 0 {
		return pos
	}
	seg, code := ddp.Parse(term.DDPHeader)
	if code == ddp.CodeOK && seg.Tagged() {
		return s.terminatedWrite(seg)
	}
	if code != ddp.CodeOK || seg.QN() != ddp.QNReadRequest {
		return pos
	}
	s.reads.each(func(o *outboundRead) bool {
		found := o.msn == seg.MSN() && !o.rtr
		if found {
			pos = o.pos
		}
		return !found
	})
	return pos
}

// terminatedWrite finds the Write, not known to be placed, that a segment is of.
func (s *session) terminatedWrite(seg ddp.Segment) (pos uint64) {
	sq := &s.q.sq
	for pos := sq.done.Load(); s.tx.writeAck.granted && pos < sq.framed.Load(); pos++ {
		e := sq.at(pos)
		if e.placing && e.op.IsWrite() && uint32(e.remote.STag) == seg.STag() && seg.TO()-e.remote.TO < e.length {
			return pos
		}
	}
	return noElement
}

package qp

import (
	"sync/atomic"

	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/wr"
)

// What a Send that finds no receive may tell, for the devices of C programs (package verbsinternal, decision 0037). An
// InfiniBand adapter answers such a Send with "receiver not ready". iWARP has no such message. Its place takes an empty RDMA Write,
// which a peer that knows nothing of it ignores, as it looks at no STag of it (RFC 5040 5.1): the STag is
// notReadySTag, and the TO the MSN of the Send that waits.
//
// The sender has to know which Send it is about: with placedSends each Send and each Immediate Data waits to be placed before it completes,
// as RDMA Writes do with Config.PlacedWrites (reads.go).

// notReadySTag is "SRNR" in ASCII.
const notReadySTag = 'S'<<24 | 'R'<<16 | 'N'<<8 | 'R'

// Readiness are what a device of C programs wants to hear. The functions may not block and call no verb; the receive side is held.
type Readiness struct {
	// Waits is called when a message begins to wait for a receive, with its MSN.
	Waits func(msn uint32)
	// NotReady is called when the peer says that the Send of that MSN, which is not known to be placed, waits there.
	NotReady func(msn uint32)
	// Arrived is called once a stream, with the first message that has something in it: no ready-to-receive frame has.
	Arrived func()
}

// note tells of the first message.
func (r *receiver) note(op rdmap.Opcode, seg ddp.Segment) {
	tell := r.s.q.readiness.Arrived
	switch {
	case tell == nil:
	case seg.Size() == 0:
		return
	case op == rdmap.ReadRequest:
		if h, ok := rdmap.ParseReadRequest(seg.Payload()); ok && h.Size == 0 {
			return
		}
		fallthrough
	default:
		tell()
	}
	r.noted = true
}

// msnWord is an MSN, or none.
type msnWord struct{ atomic.Uint64 }

const msnIs = 1 << 32

func (m *msnWord) set(msn uint32) (was bool) { return m.Swap(msnIs|uint64(msn)) == msnIs|uint64(msn) }
func (m *msnWord) clear()                    { m.Store(0) }
func (m *msnWord) get() (msn uint32, ok bool) {
	v := m.Load()
	return uint32(v), v&msnIs != 0
}

// SetReadiness is called before the first stream.
func (q *QP) SetReadiness(r Readiness) { q.readiness = r }

// PlaceSends has each Send that is posted from here on wait to be placed by the peer before it completes, or not; a stream without
// Config.PlacedWrites, or whose peer does not grant the place for it, completes them when they are sent.
func (q *QP) PlaceSends(on bool) {
	q.sq.postMu.Lock()
	q.sq.placeSends = on
	q.sq.postMu.Unlock()
}

// WaitsForReceive is the MSN of the peer's message that waits for a receive, if one does.
func (q *QP) WaitsForReceive() (msn uint32, ok bool) {
	if s := q.session.Load(); s != nil {
		return s.rx.paused.get()
	}
	return 0, false
}

// TellNotReady tells the peer that its message of that MSN waits for a receive.
func (q *QP) TellNotReady(msn uint32) {
	if s := q.session.Load(); s != nil {
		s.tx.notReady.set(msn)
		s.tx.tryTransmit()
	}
}

// tellNotReady starts what tells the peer so, if there is anything.
func (t *transmitter) tellNotReady() bool {
	msn, ok := t.notReady.get()
	if ok {
		t.notReady.clear()
		t.msg = message{kind: fromRTR, op: rdmap.Write, stag: notReadySTag, to: uint64(msn)}
	}
	return ok
}

// toldNotReady takes what the peer says of the Send of an MSN: all before it are placed.
func (r *receiver) toldNotReady(msn uint32) {
	tell := r.s.q.readiness.NotReady
	if tell == nil || !r.s.tx.writeAck.granted || !r.s.q.sq.notReady(msn) {
		return
	}
	r.s.settle()
	r.s.completeSQ()
	tell(msn)
}

// takesReceive reports whether the element is a message, or ends with one, that takes a receive.
func (e *sqe) takesReceive() bool { return e.op.IsSend() || e.op.IsImmediate() }

// notReady marks what is before the Send of that MSN as placed, and reports whether that waits to be: it does not if
// its answer has overtaken the word of the peer's.
func (s *sendQueue) notReady(msn uint32) bool {
	s.doneMu.Lock()
	defer s.doneMu.Unlock()
	before := s.passed
	pos, framed := s.done.Load(), s.framed.Load()
	for ; pos < framed && before+1 != msn; pos++ {
		if e := s.at(pos); e.takesReceive() {
			before = e.msn
		}
	}
	if before+1 != msn {
		return false
	}
	for pos < framed && !s.at(pos).takesReceive() { // a Write, say, which is in front of it
		pos++
	}
	if pos < s.placed || pos < framed && !s.at(pos).placing {
		return false
	}
	s.placed = pos
	return true
}

// place has an element that is pushed wait to be placed, or not; postMu is held.
func (s *sendQueue) place(e *sqe) {
	e.placing = e.op.IsWrite() && e.flags&wr.Unsignaled == 0 || s.placeSends && e.takesReceive()
}

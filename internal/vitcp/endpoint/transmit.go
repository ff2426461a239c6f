package endpoint

import (
	"sync/atomic"
	"time"

	"github.com/softrnic/softrnic/internal/lockorder"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
)

// transmitter is the state of the writer, and its own but for the atomic parts.
type transmitter struct {
	own       lockorder.Mutex[lockorder.EndpointTransmit] // the writer's
	more      atomic.Bool                                 // there may be something to send
	stalled   atomic.Bool                                 // until the socket takes more
	dead      bool                                        // it cannot be written to
	impatient *time.Timer                                 // ends it then

	crc  bool
	b    *batch // nil while there is nothing to send
	turn bool   // an answer to an RDMA Read was framed last
	torn bool   // the stream ends within a segment
}

// segKind says whose segment one is.
type segKind uint8

const (
	segNone    segKind = iota // a NOP
	segRequest                // of a request
	segAnswer                 // of the answer to an RDMA Read
)

// outgoing is one segment to send.
type outgoing struct {
	segment.Header
	rdma segment.RDMA
	mem  *spans // where the payload is
	n    int    // octets of payload
	kind segKind
	idx  uint64 // of a request, in sq
	told bool   // of an answer that fails: its event has been raised
}

// abandon makes s the end of a message that cannot go on: its memory is gone
// (VT-2.2.2.2.5-S2, 3.2 Transmit Error).
func (s *outgoing) abandon() {
	s.n = 0
	s.Flags |= segment.EndOfMessage | segment.TransmitError
}

// wake has the next call of TryTransmit look for something to send. The caller has mu.
func (e *Endpoint) wake() {
	if !e.tx.more.Load() {
		e.tx.more.Store(true)
	}
}

// busy reports whether there is something to send. The caller has mu.
func (e *Endpoint) busy() bool {
	return !e.stopped && (e.inReads.len() > 0 || e.sendable() != nil || e.nopDue())
}

// sendable is the request whose next segment can be sent, nil if there is none. The
// caller has mu.
func (e *Endpoint) sendable() *request {
	for e.next < e.sq.tail && !e.ended {
		r, at := *e.sq.at(e.next), e.next
		if r.started || e.startable(r) {
			return r
		}
		if e.next == at {
			return nil
		}
		// It has completed with a flaw, at Unreliable: the next one.
	}
	return nil
}

// fill frames what there is to send, until the batch is full.
func (e *Endpoint) fill(b *batch) {
	var s outgoing
	e.mu.Lock()
	for !e.ended && e.choose(&s) {
		e.mu.Unlock()
		b.add(&s, e.tx.crc)
		e.mu.Lock()
		e.framed(&s)
		if len(b.octets) >= batchOctets {
			break
		}
	}
	e.mu.Unlock()
}

// choose makes s the next segment, and reports whether there is one. A message is sent
// whole before the next, but the answers to RDMA Reads go in between (2.2.2.2.3): by
// turns, so that neither waits for the end of the other. The caller has mu.
func (e *Endpoint) choose(s *outgoing) bool {
	if e.stopped {
		return false
	}
	r := e.sendable()
	switch {
	case e.ended:
		return false
	case e.inReads.len() > 0 && (r == nil || !e.tx.turn):
		e.tx.turn = true
		e.answer(s)
	case r != nil:
		e.tx.turn = false
		e.carry(r, s)
	case e.nopDue():
		*s = outgoing{Header: segment.Header{Type: segment.NOP, Flags: segment.EndOfMessage, Number: e.number}}
	default:
		return false
	}
	e.inform(&s.Header)
	return true
}

// inform puts into h what the peer is to know. The caller has mu.
func (e *Endpoint) inform(h *segment.Header) {
	h.RxPosted, e.told = e.posted, e.posted     // VT-3.3-M3, VT-3.3-O1
	if e.c.Level == segment.ReliableReception { // VT-3.2-S4, VT-3.2-S5: zero at the others
		h.Ack, e.ackTold = e.ack, e.ack
	}
}

// nopDue reports whether the peer has to be told something that no other segment
// tells it. Receives are told when they would at least double what the peer knows to
// be there: one alone at once, many by and by (VT-3.2-S2). The caller has mu.
func (e *Endpoint) nopDue() bool {
	if e.c.Level == segment.ReliableReception && e.ack != e.ackTold && !e.ackHeld {
		return true
	}
	if !e.c.PeerFlowControl {
		return false
	}
	news, left := e.posted-e.told, e.told-e.consumed
	return news > 0 && left <= news
}

// holdACK keeps an ACK that is due until the program looks for completions again, or nobody looks: what it posts meanwhile, the
// answer maybe, carries it, and no NOP has to. The caller has mu.
func (e *Endpoint) holdACK() {
	if !e.ackHeld {
		e.ackHeld = true
		e.sock.HoldAwake()
	}
}

// Flush implements netpoll.Member: an ACK waits no longer.
func (s *member) Flush(bool) {
	e := (*Endpoint)(s)
	e.mu.Lock()
	e.ackHeld = false
	if e.nopDue() {
		e.wake()
	}
	e.mu.Unlock()
	e.TryTransmit()
}

// carry makes s the next segment of request r, which begins it if need be. The caller
// has mu.
func (e *Endpoint) carry(r *request, s *outgoing) {
	if !r.started {
		e.number++ // sequential (3.2)
		r.started, r.number = true, e.number
		if r.consumes() {
			e.spent++
		}
	}
	*s = outgoing{kind: segRequest, idx: e.next, mem: &r.mem, Header: segment.Header{Number: r.number, Offset: r.sent}}
	s.rdma = segment.RDMA{Address: r.RemoteAddr, Handle: uint32(r.RemoteHandle), Length: r.total}
	switch r.Op {
	case OpRead:
		s.Type, s.Flags = segment.RDMAReadRequest, segment.EndOfMessage
		return
	case OpWrite:
		s.Type = segment.RDMAWrite
	default:
		s.Type = segment.Send
	}
	if r.HasImmediate { // VT-3.2-M1, VT-3.2-M5, VT-3.2-M6: in every segment, else zero
		s.Flags, s.Immediate = segment.ImmediateValid, r.Immediate
	}
	s.cut(r.total, e.c.Segment, e.c.CRC)
}

// answer makes s the next segment of the answer to the oldest RDMA Read. The caller has
// mu.
func (e *Endpoint) answer(s *outgoing) {
	a := *e.inReads.front()
	*s = outgoing{kind: segAnswer, mem: &a.mem}
	s.Header = segment.Header{Type: segment.RDMAReadResponse, Number: a.number, Offset: a.sent}
	if a.refused {
		s.abandon()
		s.told = true
		return
	}
	s.cut(a.length, e.c.Segment, e.c.CRC)
}

// cut gives s as much payload as fits, of a message of so many octets.
func (s *outgoing) cut(total uint32, longest int, crc bool) {
	most := s.Type.MaxPayload(crc) - (segment.MaxSegment - longest)
	left := int(total - s.Offset)
	s.n = min(left, most)
	if s.n == left {
		s.Flags |= segment.EndOfMessage
	}
}

// framed says that s is in the batch. The caller has mu.
func (e *Endpoint) framed(s *outgoing) {
	switch s.kind {
	case segRequest:
		e.framedRequest(*e.sq.at(s.idx), s)
	case segAnswer:
		a := *e.inReads.front()
		a.sent += uint32(s.n)
		if s.Last() {
			e.inReads.pop() // it is out of the window before the peer can know
		}
		if s.Failed() {
			e.stopped = true
		}
	default:
	}
}

func (e *Endpoint) framedRequest(r *request, s *outgoing) {
	r.sent += uint32(s.n)
	if s.Failed() {
		r.flaws, r.cause = FlawProtection|FlawPartial, CauseRequest
		e.stopped = e.reliable()
	}
	if !s.Last() {
		return
	}
	if r.Op == OpRead {
		*e.reads.push() = s.idx
	}
	e.next++
}

package endpoint

import (
	"github.com/softrnic/softrnic/internal/vitcp/segment"
	"github.com/softrnic/softrnic/wr"
)

// admitRequest takes an RDMA Read Request of the peer: the writer will answer it. It
// reports false at the end.
func (e *Endpoint) admitRequest(s *segment.Segment) bool {
	in := &e.rx.in
	if !e.reliable() {
		return true // there are none (VI Architecture 2.5.1)
	}
	rdma := s.RDMA()
	switch {
	case in.open || s.Number != in.number+1: // one message after the other (2.2.2.2.3)
		return e.malformed(outOfTurn(s.Header))
	case rdma.Length > e.c.MTU:
		return e.malformed(errLength)
	}
	e.mu.Lock()
	if e.inReads.len() >= int(e.c.InboundReads) { // VT-2.2.2.2.6-M2
		e.mu.Unlock()
		return e.malformed(errWindow)
	}
	in.number = s.Number
	a := slot(&e.inReads)
	*a = inboundRead{mem: a.mem, number: s.Number, length: rdma.Length}
	if rdma.Length > 0 {
		a.refused = !e.c.AllowRead ||
			!a.mem.one(rdma.Address, wr.STag(rdma.Handle), rdma.Length, e.c.STags, e.c.User, wr.RemoteRead)
	}
	if a.refused {
		e.raise(EventReadProtection)
	}
	e.unsent++
	e.wake()
	e.mu.Unlock()
	e.deliver()
	return true
}

// admitAnswer takes a segment of the answer to the oldest outstanding RDMA Read. It
// reports false at the end.
func (e *Endpoint) admitAnswer(s *segment.Segment) bool {
	if !e.reliable() {
		return true
	}
	e.mu.Lock()
	if e.reads.len() == 0 {
		e.mu.Unlock()
		return e.malformed(errSequence)
	}
	r := *e.sq.at(*e.reads.front())
	end := uint64(r.got) + uint64(s.Size())
	switch {
	case s.Number != r.number || s.Offset != r.got || end > uint64(r.total) || !s.Failed() && s.Last() != (end == uint64(r.total)):
		e.mu.Unlock()
		return e.malformed(outOfTurn(s.Header))
	case s.Failed(): // VT-3.2-M3
		e.failRead(FlawRemoteProtection, CauseAborted)
		e.mu.Unlock()
		e.deliver()
		return false
	}
	e.mu.Unlock()
	e.rx.sink = &r.mem
	return true
}

// finishAnswer says that all payload of a segment of an answer is placed.
func (e *Endpoint) finishAnswer(h *segment.Header, size uint32) {
	e.mu.Lock()
	if !e.reliable() || e.reads.len() == 0 {
		e.mu.Unlock()
		return
	}
	r := *e.sq.at(*e.reads.front())
	r.got += size
	if h.Last() {
		r.done = true
		e.reads.pop()
		e.advance()
	}
	e.mu.Unlock()
	e.deliver()
}

// failRead fails the oldest outstanding RDMA Read, if there is one, and ends the
// connection. The caller has mu.
func (e *Endpoint) failRead(f Flaws, cause Cause) {
	if e.reads.len() > 0 {
		r := *e.sq.at(*e.reads.front())
		r.flaws, r.cause, r.done = f, cause, true
	}
	e.end(cause, nil)
}

// hear takes what every segment tells: receives posted, and at Reliable Reception the
// ACK. The caller has mu.
func (e *Endpoint) hear(h *segment.Header) {
	if h.RxPosted != e.peerPosted {
		e.peerPosted = h.RxPosted
		e.wake()
	}
	if e.c.Level != segment.ReliableReception { // VT-3.2-M13, VT-3.2-M16
		return
	}
	if code := h.Code.VI(); code != 0 {
		e.hearError(h.Ack, code)
		return
	}
	if n, ok := e.outstanding(h.Ack); ok {
		e.acknowledge(n + 1)
	}
}

// outstanding finds message number among the requests without an ACK: it is the n-th,
// from zero on. Other numbers are old news, or none at all. The caller has mu.
func (e *Endpoint) outstanding(number uint32) (n uint64, ok bool) {
	e.acked = max(e.acked, e.sq.head)
	end := e.next
	if end < e.sq.tail && (*e.sq.at(end)).started {
		end++ // on its way: it can have met an error
	}
	if e.acked == end {
		return 0, false
	}
	n = uint64(number - (*e.sq.at(e.acked)).number)
	return n, n < end-e.acked
}

// acknowledge completes the next n requests without an ACK, RDMA Reads apart
// (VT-3.2-M12), unless the last one is not whole yet. The caller has mu.
func (e *Endpoint) acknowledge(n uint64) {
	for ; n > 0 && e.acked < e.next; n-- {
		if r := *e.sq.at(e.acked); r.Op != OpRead {
			r.done = true
		}
		e.acked++
	}
	e.advance()
}

// hearError takes the peer's word that a message met an error there (VT-3.2-M15). Those
// before it did not. A number that is none of a message in flight tells nothing of any:
// then it is as if the connection were lost. The caller has mu.
func (e *Endpoint) hearError(number uint32, code segment.ErrorCode) {
	n, ok := e.outstanding(number)
	if ok {
		e.acknowledge(n)
		if !e.ended && e.acked < e.sq.tail {
			r := *e.sq.at(e.acked)
			if r.flaws == 0 { // else it was aborted here, and that is what the peer has heard of
				r.flaws, r.cause = r.remoteFlaws(code), CauseRemote
			}
			r.done = true
			e.end(r.cause, nil)
		}
	}
	e.end(CauseRemote, nil)
}

// remoteFlaws are the flaws that an error code means for request r (VI Architecture
// 10.2, bits 6 to 8). One that cannot be is an error of the transport.
func (r *request) remoteFlaws(code segment.ErrorCode) (f Flaws) {
	if code&segment.RDMAProtection != 0 && r.Op != OpSend {
		f |= FlawRemoteProtection
	}
	if code&segment.DescriptorError != 0 && r.consumes() {
		f |= FlawRemoteDescriptor
	}
	if code&segment.TransportError != 0 || f == 0 {
		f |= FlawTransport
	}
	return f
}

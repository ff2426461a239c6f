package endpoint

import (
	"github.com/softrnic/softrnic/internal/vitcp/segment"
)

// rejection is why an inbound Send or RDMA Write is not taken.
type rejection struct {
	flaws Flaws             // of the receive that it uses up
	event Event             // of an RDMA Write without immediate data
	code  segment.ErrorCode // for the peer, at Reliable Reception
	cause Cause             // of the end, at the reliable levels
	err   error             // and what the peer did
	blind bool              // what the segment says cannot be trusted
}

// reject fails the message that is arriving. At the reliable levels that is the end;
// at Unreliable the rest of the message is dropped (VI Architecture 2.5). It reports
// false at the end.
func (e *Endpoint) reject(j rejection) bool {
	in := &e.rx.in
	e.rx.sink = nil
	if in.drop {
		return true
	}
	in.drop = true
	if in.recv == nil && in.flags != 0 {
		in.recv = e.takeReceive() // an RDMA Write with immediate data
	}
	e.mu.Lock()
	e.blame(in.number, j.code)
	r := in.recv
	in.recv = nil
	switch {
	case r == nil:
		if in.kind == segment.RDMAWrite {
			e.raise(j.event)
		}
	case e.reliable():
		r.flaws = j.flaws
		e.markReceive(r, j.blind)
	default:
		e.markReceive(r, j.blind)
		e.receiveResult(r, Result{Op: r.op, Flaws: j.flaws, HasImmediate: r.hasImmediate, Immediate: r.immediate})
	}
	if e.reliable() {
		e.end(j.cause, j.err)
	}
	e.mu.Unlock()
	e.deliver()
	return !e.reliable()
}

// markReceive puts down what consumed a receive. The caller has mu.
func (e *Endpoint) markReceive(r *postedRecv, blind bool) {
	in := &e.rx.in
	if in.kind == segment.RDMAWrite {
		r.op = OpRemoteWrite
	}
	if in.flags != 0 && !blind { // VT-3.2-M9
		r.hasImmediate, r.immediate = true, in.data
	}
}

// failNoReceive fails the message that found no receive (VI Architecture 2.3.1, 2.3.2).
func (e *Endpoint) failNoReceive() bool {
	in := &e.rx.in
	in.drop = true
	e.mu.Lock()
	e.raise(EventReceiveQueueEmpty)
	e.blame(in.number, segment.DescriptorError)
	if e.reliable() {
		e.end(CauseInbound, nil)
	}
	e.mu.Unlock()
	e.deliver()
	return !e.reliable()
}

// loseMemory is for memory that went away while a segment was placed in it. It reports
// false at the end.
func (e *Endpoint) loseMemory() bool {
	in := &e.rx.in
	h := e.rx.sink
	e.rx.sink = nil
	switch {
	case h == &in.target:
		return e.reject(rejection{flaws: FlawProtection, event: EventWriteProtection, code: segment.RDMAProtection, cause: CauseInbound})
	case in.recv != nil && h == &in.recv.mem:
		return e.reject(rejection{flaws: FlawProtection, code: segment.DescriptorError, cause: CauseInbound})
	}
	// The sink of an RDMA Read.
	e.mu.Lock()
	e.failRead(FlawProtection, CauseRequest)
	e.mu.Unlock()
	e.deliver()
	return false
}

// cutInbound tells of an RDMA Write that the end of the connection is about to cut off:
// by the receive that its immediate data would have used up, or else by an event (VI
// Architecture 9.9.1). A Send has its receive already. The caller has mu.
func (e *Endpoint) cutInbound() {
	in := &e.rx.in
	switch {
	case e.ended || !in.open || in.drop || in.kind != segment.RDMAWrite:
	case in.flags != 0 && e.rq.len() > 0:
		r := *e.rq.front()
		r.inUse = true
		e.markReceive(r, false)
	default:
		e.raise(EventWriteAbort)
	}
}

// malformed ends the connection because of what the peer sent; at Unreliable a segment
// whose end is known is passed over. It reports false at the end.
func (e *Endpoint) malformed(err error) bool {
	fault, lost := err.(segment.ParseFault) //nolint:errorlint // it is made here and not wrapped
	if !e.reliable() && !(lost && fault.Lost()) {
		return true
	}
	e.mu.Lock()
	e.blame(e.rx.in.current(), segment.TransportError)
	e.cutInbound()
	e.end(CauseMalformed, err)
	e.mu.Unlock()
	e.deliver()
	return false
}

// takeBad takes a segment with a fault. It reports false at the end.
func (e *Endpoint) takeBad(s *segment.Segment, fault segment.ParseFault) bool {
	if fault != segment.FaultCRC {
		return e.malformed(fault)
	}
	// VT-3.6-M5, the second way: the application is told by a transport error. None
	// of the data is placed: even where it belongs is in doubt. The message that is
	// arriving is taken to be the one that suffered; if there is none, the header is
	// believed as to what has begun.
	in := &e.rx.in
	j := rejection{flaws: FlawTransport, event: EventWriteData, code: segment.TransportError, cause: CauseCRC, blind: true}
	switch {
	case in.open && !in.drop && s.Type != segment.RDMAReadResponse:
		return e.reject(j)
	case s.Type == segment.RDMAReadResponse && e.reliable():
		e.mu.Lock()
		e.blame(in.current(), segment.TransportError)
		e.failRead(FlawTransport, CauseCRC)
		e.mu.Unlock()
		e.deliver()
		return false
	case !in.open && (s.Type == segment.Send || s.Type == segment.RDMAWrite) && (s.Offset == 0 || e.reliable()):
		return e.beginBad(s, j)
	}
	return e.endBad()
}

// beginBad takes a corrupt segment that begins a message, as it seems.
func (e *Endpoint) beginBad(s *segment.Segment, j rejection) bool {
	in := &e.rx.in
	in.open, in.drop, in.kind, in.number, in.got = true, false, s.Type, in.current(), uint32(max(s.Size(), 0))
	in.flags, in.data, in.rdma, in.recv = s.Flags&segment.ImmediateValid, s.Immediate, s.RDMA(), nil
	if s.ConsumesReceive() {
		in.recv = e.takeReceive()
		if in.recv == nil && e.reliable() {
			return e.endBad()
		}
		if in.recv == nil {
			return e.failNoReceive()
		}
	}
	in.open = false // what is left of it begins nowhere, and is dropped
	return e.reject(j)
}

// endBad ends a reliable connection over a corrupt segment that is nobody's.
func (e *Endpoint) endBad() bool {
	if e.reliable() { // VT-3.6-M6
		e.mu.Lock()
		e.blame(e.rx.in.current(), segment.TransportError) // VT-3.6-M7
		e.end(CauseCRC, nil)
		e.mu.Unlock()
		e.deliver()
	}
	return !e.reliable()
}

package endpoint

import (
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/internal/vitcp/segment"
	"github.com/softrnic/softrnic/wr"
)

// Violations of the protocol by the peer.
var (
	errSequence = errors.New("segment out of sequence")
	errType     = errors.New("segment of a type that does not belong here")
	errWindow   = errors.New("more RDMA Reads than allowed")
	errLength   = errors.New("RDMA length above the maximum transfer size")
)

// outOfTurn is an errSequence about a header, of which it takes a copy: none of those
// that are in turn must escape to the heap.
func outOfTurn(h segment.Header) error { return fmt.Errorf("%w: %v", errSequence, &h) }

// inbound is the Send or RDMA Write that is arriving. The reader's.
type inbound struct {
	open   bool
	drop   bool // it has failed, at Unreliable: what is left of it goes nowhere
	kind   segment.Type
	number uint32        // of it, or of the last message
	begun  uint32        // number of the last message that a segment without faults began
	got    uint32        // octets
	room   uint64        // there are for it
	flags  segment.Flags // of its first segment: ImmediateValid
	data   uint32        // immediate
	rdma   segment.RDMA
	target spans       // of an RDMA Write
	recv   *postedRecv // of a Send; the oldest one
}

// continues reports whether s is the next segment of the message (3.2: Data Offset,
// Message Number; VT-3.2-M1, VT-3.2-M5).
func (in *inbound) continues(s *segment.Segment) bool {
	return s.Type == in.kind && s.Number == in.number && s.Offset == in.got && s.Flags&segment.ImmediateValid == in.flags &&
		(in.flags == 0 || s.Immediate == in.data) && s.RDMA() == in.rdma
}

// current is the number of the message that is arriving, or would be next: all before it
// have come.
func (in *inbound) current() uint32 {
	if in.open {
		return in.number
	}
	return in.number + 1
}

// admit looks at a segment without faults and decides where its payload goes. It
// reports false at the end.
func (e *Endpoint) admit(s *segment.Segment) bool {
	e.rx.sink = nil
	e.mu.Lock()
	e.hear(&s.Header)
	ended, told := e.ended, e.items.len() > 0
	e.mu.Unlock()
	if told {
		e.deliver()
	}
	if ended {
		return false
	}
	switch s.Type {
	case segment.NOP:
		return true
	case segment.Send, segment.RDMAWrite:
		return e.admitMessage(s)
	case segment.RDMAReadRequest:
		return e.admitRequest(s)
	case segment.RDMAReadResponse:
		return e.admitAnswer(s)
	default:
		return e.malformed(errType)
	}
}

// admitMessage is admit for a Send or RDMA Write.
func (e *Endpoint) admitMessage(s *segment.Segment) bool {
	in := &e.rx.in
	if in.open && !in.continues(s) {
		if e.reliable() {
			return e.malformed(outOfTurn(s.Header))
		}
		e.reject(rejection{flaws: FlawPartial, event: EventWriteAbort})
		in.open = false
	}
	if !in.open && !e.begin(s) {
		return false
	}
	size := uint64(s.Size())
	switch {
	case in.drop:
	case s.Failed(): // VT-3.2-M3
		return e.reject(rejection{flaws: FlawPartial, event: EventWriteAbort, code: segment.TransportError, cause: CauseAborted})
	case uint64(in.got)+size > in.room: // VI Architecture 6.4.1, data overrun
		return e.reject(rejection{flaws: FlawLength, code: segment.DescriptorError, cause: CauseInbound})
	case in.kind == segment.Send:
		e.rx.sink = &in.recv.mem
	default:
		e.rx.sink = &in.target
	}
	return true
}

// begin begins a message with its first segment.
func (e *Endpoint) begin(s *segment.Segment) bool {
	in := &e.rx.in
	inTurn := s.Number == in.number+1 && s.Offset == 0
	if !inTurn && e.reliable() {
		return e.malformed(outOfTurn(s.Header))
	}
	if e.c.Level == segment.ReliableReception && !e.awaitAnswers() {
		e.rx.kept = *s // for when it goes on
		return false
	}
	again := s.Number == in.begun // more of what has failed, or ended (3.2)
	data, _ := s.ImmediateData()
	in.begun = s.Number
	in.open, in.drop, in.kind, in.number, in.got, in.recv = true, false, s.Type, s.Number, s.Offset, nil
	in.flags, in.data, in.rdma = s.Flags&segment.ImmediateValid, data, s.RDMA()
	if s.Offset != 0 || again {
		in.drop = true // Unreliable: its beginning is lost, or was there (PA-2.5.1-M1)
		return true
	}
	if s.Type == segment.Send {
		return e.beginSend()
	}
	if in.rdma.Length > e.c.MTU {
		return e.reject(rejection{
			flaws: FlawTransport | FlawPartial, event: EventWriteAbort, code: segment.TransportError, cause: CauseMalformed, err: errLength,
		})
	}
	in.room = uint64(in.rdma.Length)
	if in.room > 0 && !(e.c.AllowWrite && in.target.one(in.rdma.Address, wr.STag(in.rdma.Handle), in.rdma.Length,
		e.c.STags, e.c.User, wr.RemoteWrite)) { // VA-6.3.2-M1: all of it, before anything is placed
		return e.reject(rejection{flaws: FlawProtection, event: EventWriteProtection, code: segment.RDMAProtection, cause: CauseInbound}) &&
			e.guessed(in.rdma.Handle)
	}
	return true
}

// beginSend gives a Send the oldest receive.
func (e *Endpoint) beginSend() bool {
	in := &e.rx.in
	r := e.takeReceive()
	if r == nil {
		return e.failNoReceive()
	}
	in.recv = r
	in.room = min(r.mem.room(), uint64(e.c.MTU))
	switch {
	case r.Flaws != 0:
		return e.reject(rejection{flaws: r.Flaws, code: segment.DescriptorError, cause: CauseInbound})
	case !r.mem.resolve(e.c.STags, e.c.User, wr.LocalWrite):
		return e.reject(rejection{flaws: FlawProtection, code: segment.DescriptorError, cause: CauseInbound})
	}
	return true
}

// takeReceive uses the oldest receive up, nil if there is none. It stays in the queue
// until its result.
func (e *Endpoint) takeReceive() *postedRecv {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.rq.len() == 0 {
		return nil
	}
	r := *e.rq.front()
	r.inUse = true
	e.consumed++
	return r
}

// awaitAnswers reports whether all inbound RDMA Reads are answered: at Reliable Reception
// nothing behind a Read has an effect before it (VA-6.3.1.1-M1, VA-6.3.1.1-M2), or ever
// if it fails (VA-6.3.1.1-M3). If they are not, the reader has to wait for that, or that is
// the end.
func (e *Endpoint) awaitAnswers() bool {
	e.mu.Lock()
	if e.unsent > 0 && e.broken != nil {
		e.end(CauseLost, e.broken)
	}
	wait := e.unsent > 0 && !e.ended
	if wait {
		e.held = waitAnswers
	}
	e.rx.waits = wait
	ended := e.ended
	e.mu.Unlock()
	e.deliver() // the ACKs of the Reads
	return !wait && !ended
}

// complete is for when all payload of a segment is placed. It reports false at the end.
func (e *Endpoint) complete(h *segment.Header) bool {
	in := &e.rx.in
	size := uint32(h.PayloadLen(e.c.CRC))
	switch h.Type {
	case segment.Send, segment.RDMAWrite:
		in.got += size
		if h.Last() {
			in.open = false
			if !in.drop {
				return e.completeMessage()
			}
		}
	case segment.RDMAReadResponse:
		e.finishAnswer(h, size)
	default:
	}
	return true
}

// completeMessage completes the message: all of it is in its memory.
func (e *Endpoint) completeMessage() bool {
	in := &e.rx.in
	res := Result{Op: OpReceive, Length: in.got, HasImmediate: in.flags != 0, Immediate: in.data} // VT-3.2-M9
	if in.kind == segment.RDMAWrite && in.flags != 0 {
		// Only now is a receive used up (VI Architecture 2.3.2).
		res.Op, res.Length = OpRemoteWrite, 0
		in.recv = e.takeReceive()
		if in.recv == nil {
			return e.failNoReceive()
		}
		if f := in.recv.Flaws; f != 0 {
			return e.reject(rejection{flaws: f, code: segment.DescriptorError, cause: CauseInbound})
		}
	}
	e.mu.Lock()
	if in.recv != nil {
		it := e.receiveResult(in.recv, res)
		it.acks, it.number = e.c.Level == segment.ReliableReception, in.number
	} else if e.c.Level == segment.ReliableReception {
		*e.items.push() = item{kind: itemAck, acks: true, number: in.number}
	}
	e.mu.Unlock()
	in.recv = nil
	e.deliver()
	return true
}

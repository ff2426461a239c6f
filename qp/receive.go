package qp

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/stag"
	"github.com/softrnic/softrnic/trace"
	"github.com/softrnic/softrnic/wr"
)

// The way of a segment to a completion.
//
//  1. Drive, called by who has the turn of the engine's group, owns the receive side for one
//     read that does not block. Where reads block, receiveLoop owns it.
//  2. received: take FPDUs from what has arrived. A CRC is checked before any
//     octet is handed on.
//  3. segment: parse and check, hand to the handler of its opcode (place.go).

// receiver is the receive side of a session. Who calls a method that handles what was
// received owns it: has mu.
type receiver struct {
	s      *session
	cfg    *Config // the queue pair's, as tuning and rq
	rights *rights
	tuning *Tuning
	rq     *recvQueue
	llp    *llp                // the session's, as irrq and reads
	irrq   *ring[inboundRead]  // to the transmit side, bounded by IRD
	reads  *ring[outboundRead] // from the transmit side, bounded by ORD

	running sync.WaitGroup // receiveLoop

	mu sync.Mutex // the token; see docs/memory-model.md
	// heard is 0 until an FPDU has arrived, and from then on 1 more than the stream
	// octets that were offered to the LLP by then.
	heard atomic.Uint64
	// feed has a token for receiveLoop when receives were posted that a paused session
	// waits for; hungry asks PostRecv for it.
	feed   chan struct{}
	hungry atomic.Bool

	// single says that GOMAXPROCS was 1 when the session began: no post is held back. It
	// does not change.
	single bool

	// The rest belongs to the owner.
	in       intake
	early    bool // there is something from before the session in it
	leftOver bool // see end
	owes     bool // there may be something to send now
	shown    bool // who traces knows of the segment that waits

	send   ddp.Inbound // QN 0
	read   ddp.Inbound // QN 1
	answer ddp.Inbound // QN 3

	landing landing       // of the Send being received
	filling atomic.Uint64 // how far it is, for the S-RQ's watchdog: see Filling
	sinks   stag.Resolver // of the memory of receives
	targets stag.Resolver // of RDMA Writes, and RDMA Read Responses unless answers is for those
	answers stag.Resolver // of RDMA Read Responses with Config.ReadIntoLocal
	readGot uint32        // octets placed of the oldest outbound RDMA Read

	count inCount
	told  told[inCount]

	// The tagged message being received, if its last segment has not come.
	tagOpen bool
	tagOp   rdmap.Opcode
	tagSTag uint32
}

func (r *receiver) init(s *session) {
	r.s, r.cfg, r.rights, r.tuning, r.rq = s, &s.q.cfg, &s.q.rights, &s.q.cfg.Tuning, &s.q.rq
	r.llp, r.irrq, r.reads = &s.llp, s.irrq, s.reads
	lander := s.user // on whose behalf receives are filled
	if shared := r.cfg.SRQ; shared != nil {
		lander.PD = shared.PD() // RV-6.3.5-M11, M12
	}
	r.sinks = r.cfg.STags.Resolver(lander, wr.LocalWrite)
	r.targets = r.cfg.STags.Resolver(s.user, wr.RemoteWrite)
	r.answers = r.cfg.STags.Resolver(s.user, wr.LocalWrite)
	if !r.llp.direct { // here: a post may find a fault before start is done
		r.running.Add(1)
		r.feed = make(chan struct{}, 1)
	}
	r.single = runtime.GOMAXPROCS(0) == 1
	r.in.Deframer = s.stream.Deframer()
	r.send, r.read, r.answer = ddp.NewInbound(), ddp.NewInbound(), ddp.NewInbound()
}

// receiveLoop receives what comes through a connection whose reads block. One goroutine a
// session.
func (r *receiver) receiveLoop() {
	defer r.running.Done()
	r.s.q.wear("receive")
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deliver() // what was read before the session began
	for !r.s.stopping.Load() {
		if r.in.kept != nil {
			r.mu.Unlock()
			r.awaitFeed()
			r.mu.Lock()
			r.deliver()
			continue
		}
		if r.received(r.llp.read(&r.in)) == ioAgain { // finish's deadline
			r.llp.rearmReader()
		}
	}
}

// received handles what a read brought. The caller owns the side.
func (r *receiver) received(n int, out outcome) outcome {
	switch out {
	case ioDone:
		r.in.Advance(n)
		r.count.octets += uint64(n)
		r.deliver()
	case ioEOF:
		r.peerClosed()
	case ioReset:
		r.s.fail(faultLLPReset)
	case ioAgain:
		r.in.rest()
	case ioRevoked:
		r.strand()
	default:
		r.s.fail(faultLLPLost)
	}
	return out
}

// deliver handles every FPDU that is here, in a state that is for it.
func (r *receiver) deliver() {
	if r.s.q.spans != nil {
		defer region(r.s.q.spans.receive).End()
	}
	process := step(r.s.q.State(), trigSegment).Actions&actProcess != 0
	for process && !r.s.stopping.Load() {
		ulpdu, ok, err := r.in.Next()
		if err != nil {
			r.s.halt(cause{fault: framingFault(err)})
			break
		}
		if !ok {
			r.divert()
			break
		}
		if r.heard.Load() == 0 {
			r.heard.Store(r.s.tx.offered.Load() + 1)
			r.s.openGate()
		}
		if !r.segment(ulpdu) {
			r.pause(ulpdu)
			break
		}
		if r.leftOver {
			r.in.keep(ulpdu)
		}
	}
	r.handCompleted()
	r.tell()
	r.noteFilling()
	r.in.rest() // this may have been the last for long
	if r.owes { // for all that has come together
		r.owes = false
		r.s.tx.kick()
	}
}

// peerClosed handles the end of what the peer sends. Whether work is left can be
// told only when the transmit side rests, so finish decides.
func (r *receiver) peerClosed() {
	if r.in.Buffered() > 0 { // within an FPDU
		r.s.fail(faultLLPLost)
		return
	}
	r.s.fail(faultPeerClosed)
}

func framingFault(err error) fault {
	var e *mpa.Error
	if errors.As(err, &e) && e.Code == mpa.CodeCRC {
		return faultCRC
	}
	return faultFPDU
}

// end ends the session for what a segment brought. If something else has ended it
// just now, a verb say, the segment has come in the state that follows: it is left
// for finish (draft 6.2.5, figure 11).
func (r *receiver) end(c cause) {
	if !r.s.halt(c) {
		r.leftOver = true
	}
}

// segment handles what Next has returned, and ends the session for what is wrong
// with it. It reports false if that has to wait for a receive.
func (r *receiver) segment(ulpdu []byte) bool {
	c, wait := r.handle(r.in.parse(ulpdu))
	if c != nil {
		r.end(*c)
	}
	return !wait
}

// handle checks a segment and hands it on. It returns why the session is to end, or nil. wait says that
// nothing has been done: there is no receive for it yet.
func (r *receiver) handle(seg ddp.Segment, code ddp.Code) (c *cause, wait bool) {
	if code == ddp.CodeShort {
		return &cause{fault: faultSegmentSize}, false // no header to repeat
	}
	if code != ddp.CodeOK {
		return inboundCause(parseFault(code), seg), false
	}
	op, term := r.check(seg)
	if term != rdmap.CodeNone {
		return inboundCause(checkFault(op, term), seg), false
	}
	r.count.ops.segment(op, uint64(seg.Size()), seg.Last())
	if r.cfg.Trace == nil {
		return r.handOn(op, seg)
	}
	if !r.shown {
		r.s.q.tellSegment(trace.Received, seg, seg.Size())
	}
	c, wait = r.handOn(op, seg)
	r.shown = wait
	return c, wait
}

// handOn hands a segment to the handler of its opcode.
func (r *receiver) handOn(op rdmap.Opcode, seg ddp.Segment) (c *cause, wait bool) {
	switch op {
	case rdmap.Write:
		return r.inWrite(seg), false
	case rdmap.ReadResponse:
		return r.inReadResponse(seg), false
	case rdmap.ReadRequest:
		return r.inReadRequest(seg), false
	case rdmap.Terminate:
		return r.inTerminate(seg), false
	case rdmap.AtomicRequest:
		return r.inAtomicRequest(seg), false
	case rdmap.AtomicResponse:
		return r.inAtomicResponse(seg), false
	default: // what takes a receive
		c, wait = r.inSend(op, seg)
		if wait {
			r.count.ops.takeBack(op, uint64(seg.Size()), seg.Last())
		}
		return c, wait
	}
}

// check makes the checks that need no state. The messages of RFC 7306 pass if it is
// spoken on this stream; otherwise they are unexpected (RFC 7306 1.1).
func (r *receiver) check(seg ddp.Segment) (rdmap.Opcode, rdmap.TermCode) {
	if r.s.extensions {
		return rdmap.CheckExtended(seg)
	}
	return rdmap.Check(seg)
}

package qp

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/rdmap"
)

// The way of a segment to a completion, and who walks it.
//
//  1. receiveLoop owns the receive side and sleeps in the network poller, or
//     Drive, called by a program that polls an empty CQ, owns it for one
//     non-blocking read.
//  2. received: take FPDUs from what has arrived. A CRC is checked before any
//     octet is handed on.
//  3. segment: parse and check, hand to the handler of its opcode (place.go).
//
// A loop that sleeps in the network poller has left the side to whoever comes
// first. But it wakes whenever something arrives, and is then in the way: pollers
// that meet it there several times ask it to step aside. It sleeps on a channel
// then, and takes over again when the consumer arms the CQ (Yield), or when
// pollers come too rarely: one-sided traffic has to progress though nobody polls.

const (
	// readSpin is how often the loop looks again before it sleeps.
	readSpin = 100
	// askAfter is how many polls make the loop step aside.
	askAfter = 64
	// watchTick is how often a loop that stepped aside looks whether pollers
	// still come, and fewPolls how many it wants to see. A look that comes late
	// says little: maybe the process did not get the processor. But lateLooks
	// of them in a row mean that others have it.
	watchTick = 2 * time.Millisecond
	fewPolls  = 2
	lateLooks = 3
	// yieldEvery is how many fruitless polls in a row make a poller offer its
	// processor to other threads: the one it waits for may need it.
	yieldEvery = 32
)

// rxSide is the receive side of a session.
type rxSide struct {
	mu     sync.Mutex // the token; TryLock or Lock by Drive, receiveLoop, finish
	resume chan struct{}
	asked  atomic.Bool   // a poller wants the loop to step aside
	missed atomic.Uint32 // polls that found the loop in the network poller
	polls  atomic.Uint64 // polls that owned the side
	// polled is set while the loop has stepped aside for pollers.
	polled atomic.Bool
	// attached says that the CQs know of this session as a driver.
	attached atomic.Bool

	// The rest belongs to the owner.
	single bool // one processor: do not spin
	empty  uint // fruitless polls in a row
	in     intake
	opened bool // an FPDU has arrived
	eof    bool // the peer closed its half

	send ddp.Inbound // QN 0
	read ddp.Inbound // QN 1

	// The Send being received: where its next octet goes.
	sendOp rdmap.Opcode
	sge    int
	sgeOff uint64

	// The tagged message being received, if its last segment has not come.
	tagOpen bool
	tagOp   rdmap.Opcode
	tagSTag uint32
}

func (r *rxSide) init(s *session) {
	r.resume = make(chan struct{}, 1)
	r.single = runtime.GOMAXPROCS(0) == 1
	r.in.Deframer = s.stream.Deframer()
	r.send, r.read = ddp.NewInbound(), ddp.NewInbound()
}

// receiveLoop receives whenever nobody else does. One goroutine a session.
func (s *session) receiveLoop() {
	defer s.wg.Done()
	r := &s.rx
	watch := time.NewTimer(time.Hour)
	defer watch.Stop()
	spin := 0
	r.mu.Lock()
	for !s.stopping.Load() {
		n, out := s.llp.read(&r.in, &r.mu, spin)
		if s.stopping.Load() {
			break
		}
		switch s.received(n, out) {
		case ioDone:
			spin = s.spin()
			s.attach()
		case ioAgain: // woken by a deadline: finish's, or a poller's
			spin = 0
			s.llp.rearmReader()
			if r.asked.Load() {
				r.mu.Unlock()
				s.stepAside(watch)
				r.mu.Lock()
			}
		default: // received has ended the session
		}
	}
	r.mu.Unlock()
}

// spin is how often to look for more before sleeping. Who waits for what has just
// come runs on this processor next: then sleep at once.
func (s *session) spin() int {
	if s.rx.single || s.q.sq.cq.Waiting() || s.q.rq.cq.Waiting() {
		return 0
	}
	return readSpin
}

// attach lets pollers of the CQs know this session.
func (s *session) attach() {
	if s.llp.direct() && !s.rx.attached.Load() {
		s.rx.attached.Store(true)
		s.q.sq.cq.Attach(s)
		s.q.rq.cq.Attach(s)
	}
}

func (s *session) detach() {
	s.q.sq.cq.Detach(s)
	s.q.rq.cq.Detach(s)
}

// stepAside returns when the loop shall own the receive side again.
func (s *session) stepAside(watch *time.Timer) {
	r := &s.rx
	w := watchdog{seen: r.polls.Load(), at: time.Now()}
	r.polled.Store(true)
	s.llp.raw.hush(true)
	for r.asked.Load() {
		watch.Reset(watchTick)
		select {
		case <-s.stop:
			r.asked.Store(false)
		case <-r.resume:
			r.asked.Store(false)
		case <-watch.C:
			if w.look(r.polls.Load(), time.Now()) {
				r.asked.Store(false)
			}
		}
	}
	r.missed.Store(0)
	s.llp.raw.hush(false)
	r.polled.Store(false)
	s.wakeTransmit()
}

// watchdog tells whether pollers have gone.
type watchdog struct {
	seen uint64 // polls at the last look
	at   time.Time
	late int // looks in a row that came late and saw few polls
}

// look reports whether to take over, polls being their number by now.
func (w *watchdog) look(polls uint64, now time.Time) bool {
	few := polls-w.seen < fewPolls
	late := now.Sub(w.at) >= 2*watchTick
	w.seen, w.at = polls, now
	switch {
	case !few:
		w.late = 0
		return false
	case !late:
		return true
	}
	w.late++
	return w.late >= lateLooks
}

// Drive implements cq.Driver.
func (s *session) Drive() bool {
	r := &s.rx
	if !r.mu.TryLock() {
		return false
	}
	defer r.mu.Unlock()
	if s.stopping.Load() {
		return false
	}
	r.polls.Add(1)
	if s.llp.parked.Load() && r.missed.Add(1)%askAfter == 0 {
		r.asked.Store(true)
		s.llp.wakeReader()
		runtime.Gosched() // or the loop, and transmitLoop, may not run for long
	}
	got := s.received(s.llp.raw.tryPoll(&r.in)) == ioDone
	if s.tx.stalled.CompareAndSwap(true, false) {
		s.kick()
		got = true // a poller that sends is not idle
	}
	if got {
		r.empty = 0
	} else if r.empty++; r.empty%yieldEvery == 0 {
		yieldThread()
	}
	return got
}

// Yield implements cq.Driver.
func (s *session) Yield() {
	r := &s.rx
	r.attached.Store(false)
	r.missed.Store(0)
	if r.asked.Load() {
		signal(r.resume)
	}
}

// received handles what a read brought. The caller owns the side.
func (s *session) received(n int, out outcome) outcome {
	r := &s.rx
	switch out {
	case ioDone:
		r.in.Advance(n)
		s.deliver()
	case ioEOF:
		r.eof = true
		s.peerClosed()
	case ioReset:
		s.fail(FaultLLPReset)
	case ioAgain:
	default:
		s.fail(FaultLLPLost)
	}
	return out
}

// deliver handles every FPDU that is here.
func (s *session) deliver() {
	r := &s.rx
	for !s.stopping.Load() {
		ulpdu, ok, err := r.in.Next()
		if err != nil {
			s.halt(cause{fault: framingFault(err)})
			break
		}
		if !ok {
			break
		}
		if !r.opened {
			r.opened = true
			s.openGate()
		}
		s.segment(ulpdu)
	}
	r.in.rest()
}

// openGate lets a Responder send: a first FPDU came and was found good
// (RFC 5044 7.1.2 rule 4).
func (s *session) openGate() {
	if s.gate.CompareAndSwap(true, false) {
		s.kick()
	}
}

// peerClosed handles the end of what the peer sends. Whether work is left can be
// told only when the transmit side rests, so finish decides.
func (s *session) peerClosed() {
	if s.rx.in.Buffered() > 0 { // within an FPDU
		s.fail(FaultLLPLost)
		return
	}
	s.halt(cause{fault: NoFault, peerClosed: true})
}

func framingFault(err error) Fault {
	var e *mpa.Error
	if errors.As(err, &e) && e.Code == mpa.CodeCRC {
		return FaultCRC
	}
	return FaultFPDU
}

// segment handles one ULPDU.
func (s *session) segment(ulpdu []byte) {
	seg, code := ddp.Parse(ulpdu)
	if code == ddp.CodeShort {
		s.fail(FaultSegmentSize) // no header to repeat
		return
	}
	if code != ddp.CodeOK {
		s.halt(inboundCause(parseFault(code), seg))
		return
	}
	op, term := rdmap.Check(seg)
	if term != rdmap.CodeNone {
		s.halt(inboundCause(checkFault(op, term), seg))
		return
	}
	var f Fault
	switch op {
	case rdmap.Write:
		f = s.inWrite(seg)
	case rdmap.ReadResponse:
		f = s.inReadResponse(seg)
	case rdmap.ReadRequest:
		f = s.inReadRequest(seg)
	case rdmap.Terminate:
		s.inTerminate(seg)
		return
	default:
		s.inSend(op, seg)
		return
	}
	if f != NoFault {
		s.halt(inboundCause(f, seg))
	}
}

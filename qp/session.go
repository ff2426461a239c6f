package qp

import (
	"sync/atomic"

	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/internal/engine"
	"github.com/softrnic/softrnic/internal/midway"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/stag"
	"github.com/softrnic/softrnic/wr"
)

// session is a queue pair's time with one LLP stream, from Idle to RTS until the
// stream is gone. A new one starts the wire layers from their initial
// conditions (verbs draft 6.2.1.2).
//
// It has a transmit side, owned by who holds tx.mu, and a receive side, owned by
// who holds rx.mu: what needs a side owned is a method of transmitter or receiver, what
// concerns the stream as a whole one of session. The sides meet at irrq, reads and
// the queue pair's queues. The session ends once: halt says why, and finish, alone then,
// winds up.
type session struct {
	q      *QP
	given  *mpa.Stream // as the program knows it
	stream *mpa.Stream // with the connection as it is used
	llp    llp
	user   stag.User

	irrq       *ring[inboundRead]  // receive side -> transmit side, bounded by IRD
	reads      *ring[outboundRead] // transmit side -> receive side, bounded by ORD
	extensions bool                // RFC 7306 is spoken
	// maxORD is what ORD may be raised to: what was agreed with the peer.
	maxORD int

	// gate is closed while a Responder may not send (RFC 5044 7.1.2).
	gate atomic.Bool

	tx transmitter
	rx receiver

	sock     *engine.Socket // its place in the group; nil: reads and writes block
	attached bool           // the CQs know of the group

	stopping   atomic.Bool
	stop       chan struct{} // closed with stopping
	decided    chan struct{} // closed when the state of RTS is left
	over       chan struct{} // closed when the stream is gone and all is flushed
	cause      cause         // why; set before stop is closed
	laterFault atomic.Uint32 // a later Fault, for finish; see failAgain
	outcome    End           // how it ended; set before over is closed
	resets     bool          // finish has reset the stream
	folded     bool          // into QP.ended; guarded by QP.mu

	// draining is set once somebody has called Drain, which waits for tokens in
	// quiet.
	draining atomic.Bool
	quiet    chan struct{}
}

// cause is why a session ends.
type cause struct {
	fault fault
	// sq is the position of the Send Queue element at fault, if hasSQ; recv
	// says that the current receive is at fault.
	sq    uint64
	hasSQ bool
	recv  bool
	// The headers that the Terminate Message repeats (RFC 5040 4.8).
	segment   uint16
	ddpHeader []byte
	readReq   []byte
	// terminate is the Terminate Message, from its control word on: the one
	// that arrived, or the one that finish composes.
	terminate []byte
	// reported says that an event has told of the end before.
	reported bool
	// why has the segment at fault, if there is one. finish adds the rest.
	why *wr.Reason
}

// byVerb reports whether a Modify QP waits until RTS is left, and the stream is not reset.
func (c *cause) byVerb() bool {
	return c.fault == faultModifyClosing || c.fault == faultModifyTerminate
}

// trigger is what the state machine sees of c.
func (c *cause) trigger() trigger { return faults[c.fault].Trigger }

// completes reports whether a completion tells of c.
func (c *cause) completes() bool { return c.hasSQ || c.recv }

// event is what c raises: nothing if a completion reports it (RV-6.2.3-M14).
func (c *cause) event() wr.EventID {
	if c.completes() || c.reported {
		return 0
	}
	return faults[c.fault].Event
}

// inboundCause is a cause that repeats the DDP header of the segment at fault, or nil
// without a fault. That of an RDMA Read Request is repeated by readCause: what asks for
// it is found where the request is answered.
func inboundCause(f fault, s ddp.Segment) *cause {
	if f == noFault {
		return nil
	}
	c := &cause{fault: f, why: segmentReason(s, s.Size())}
	if withDDP, _ := rdmap.Include(faults[f].Code); withDDP {
		c.segment = uint16(s.Len())
		c.ddpHeader = append([]byte(nil), s.Header()...)
	}
	return c
}

// newSession ties a stream to the queue pair; start sets it going. It fails if the system has
// no descriptors left.
func newSession(q *QP, st *mpa.Stream, ird, ord int) (*session, error) {
	own := *st
	s := &session{
		q: q, given: st, stream: &own,
		user:    stag.User{PD: q.cfg.PD, QP: q.cfg.ID, Windows: &q.windows, Privileged: q.cfg.Privileged},
		irrq:    newRing[inboundRead](ird),
		reads:   newRing[outboundRead](max(ord, 1)), // a Read RTR needs one
		stop:    make(chan struct{}),
		decided: make(chan struct{}),
		over:    make(chan struct{}),
		quiet:   make(chan struct{}, 1),

		extensions: q.cfg.Extensions,
	}
	if err := s.llp.init(st.Conn); err != nil {
		return nil, err
	}
	s.stream.Conn = s.llp.conn
	s.tx.init(s)
	s.tx.ord.Store(int32(ord))
	s.rx.init(s)
	s.carry(q.cfg.Carried)
	s.gate.Store(st.Role == mpa.Responder)
	if err := s.join(); err != nil {
		_ = s.llp.conn.Close()
		return nil, err
	}
	return s, nil
}

// carry has a stream that is about to begin count as if it had carried so much.
func (s *session) carry(c midway.Counts) {
	if c == (midway.Counts{}) {
		return
	}
	t, r := &s.tx, &s.rx
	t.sendMSN, r.send = ddp.OutboundFrom(1+c.Sends), ddp.InboundFrom(1+c.Sends)
	t.readMSN, r.read = ddp.OutboundFrom(1+c.Reads), ddp.InboundFrom(1+c.Reads)
	t.framer.Resume(c.Octets)
	r.in.Resume(c.Octets)
	t.pos, t.metered = c.Octets, c.Octets
	t.written.Store(c.Octets)
}

// start begins to receive and to process what is on the Send Queue.
func (s *session) start() {
	if s.llp.direct {
		_ = s.given.Conn.Close() // it has another descriptor
	}
	s.serve()
	s.tx.startNudging()
	s.tx.kick()
}

// halt ends the session, and reports whether it was the first to: the first
// cause is the one that counts (RFC 5040 7.1 rule 4). Callable from either side,
// and from anywhere else.
func (s *session) halt(c cause) bool {
	if !s.stopping.CompareAndSwap(false, true) {
		return false
	}
	s.cause = c
	close(s.stop)
	go s.finish()
	return true
}

func (s *session) fail(f fault) { s.halt(cause{fault: f}) }

// completeSQ reports the Send Queue elements that are finished.
func (s *session) completeSQ() {
	if !s.q.sq.complete(s.tx.written.Load()) {
		s.fail(faultSQCompletion)
	}
}

// openGate lets a Responder send: a first FPDU came and was found good
// (RFC 5044 7.1.2 rule 4).
func (s *session) openGate() {
	if s.gate.CompareAndSwap(true, false) {
		s.tx.kick()
	}
}

// signal leaves a token in a channel of capacity 1.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

package qp

import (
	"sync/atomic"
	"time"

	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/internal/lockorder"
	"github.com/softrnic/softrnic/internal/netpoll"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/srq"
	"github.com/softrnic/softrnic/stag"
	"github.com/softrnic/softrnic/wr"
)

// session is a queue pair's time with one LLP stream, from Idle to RTS until the
// stream is gone. A new one starts the wire layers from their initial
// conditions (verbs draft 6.2.1.2).
//
// It has a transmit side, owned by the holder of tx.mu, and a receive side, owned by
// the holder of rx.mu: what needs a side owned is a method of transmitter or receiver, what
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

	sock     *netpoll.Socket // its place in the group
	attached bool            // the CQs know of the group

	stopping   atomic.Bool
	stop       chan struct{}          // closed with stopping
	decided    chan struct{}          // closed when the state of RTS is left
	over       chan struct{}          // closed when the stream is gone and all is flushed
	behind     atomic.Pointer[func()] // is called when over is closed; nil once it has been
	cause      cause                  // why; set before stop is closed
	laterFault atomic.Uint32          // a later streamFault, for finish; see failAgain
	outcome    End                    // how it ended; set before over is closed
	passed     atomic.Bool            // the queue pair has left the state that its end has led to
	resets     bool                   // finish has reset the stream
	folded     bool                   // into QP.ended; guarded by QP.mu

	// draining is set once Drain has been called, which waits for tokens in
	// drained.
	draining atomic.Bool
	drained  chan struct{}
}

// receiver is the receive side of a session. The receiver, the goroutine that calls a method
// which handles what was received, owns it: has mu.
type receiver struct {
	s      *session
	cfg    *Config // the queue pair's, as tuning and rq
	rights *rights
	tuning *Tuning
	rq     *recvQueue
	llp    *llp                // the session's, as irrq and reads
	irrq   *ring[inboundRead]  // to the transmit side, bounded by IRD
	reads  *ring[outboundRead] // from the transmit side, bounded by ORD

	mu lockorder.Mutex[lockorder.Receive] // its holder is the receiver, who owns this side; docs/memory-model.md, Owners
	// firstFPDU is 0 until an FPDU has arrived, and from then on 1 more than the stream
	// octets that were offered to the LLP by then.
	firstFPDU atomic.Uint64
	// rtrAnswered is set once the ready-to-receive Read has been answered.
	rtrAnswered atomic.Bool
	// wantRecv asks PostRecv to wake a paused session.
	wantRecv atomic.Bool

	// paused is the message that waits for a receive.
	paused msnWord

	// single says that GOMAXPROCS was 1 when the session began: no post is held back. It
	// does not change.
	single bool

	// The rest belongs to the owner.
	in           intake
	early        bool // there is something from before the session in it
	ended        bool // the peer has closed behind messages that wait for receives
	leftOver     bool // see end
	flushPending bool // there may be something to send now
	ackPending   bool // the peer waits for what acknowledges it
	noted        bool // the first message was, or nobody wants to know
	shown        bool // the segment that waits has been traced

	send   ddp.Inbound // QN 0
	read   ddp.Inbound // QN 1
	answer ddp.Inbound // QN 3

	recv    recvContext   // of the Send being received
	filling atomic.Uint64 // how far it is, for the S-RQ's watchdog: see PartialReceive
	sinks   stag.Resolver // of the memory of receives
	targets stag.Resolver // of RDMA Writes, and RDMA Read Responses unless answers is for those
	answers stag.Resolver // of RDMA Read Responses with Config.ReadIntoLocal
	readGot uint32        // octets placed of the oldest outbound RDMA Read

	loss  *loss // of an unreliable queue pair; else nil
	count inCount
	final atomic.Pointer[finalIn] // finish's, which has the side for good

	// The tagged message being received, if its last segment has not come.
	tagOpen bool
	tagOp   rdmap.Opcode
	tagSTag uint32
}

// recvContext is the receive that the Send in progress fills, wherever it comes
// from: the head of the Receive Queue, or an element of the S-RQ, which is this
// queue pair's from the message's first segment to its completion (verbs draft
// 6.3.5). Owned by the receive side.
type recvContext struct {
	open    bool // a receive is taken, its message not complete
	op      rdmap.Opcode
	id      uint64
	length  uint64 // octets of all its buffers together
	sgl     []wr.SGE
	element *srq.Element // nil: it is the head of the Receive Queue

	// Where the next octet goes.
	sge int
	off uint64
}

// transmitter is the transmit side of a session. The transmitter, the goroutine that calls
// a method which does more than try for the side, or leave a mark for its owner, owns it: has mu.
type transmitter struct {
	s      *session
	cfg    *Config // the queue pair's, as tuning and sq
	tuning *Tuning
	sq     *sendQueue
	llp    *llp                // the session's, as irrq and reads
	irrq   *ring[inboundRead]  // from the receive side, bounded by IRD
	reads  *ring[outboundRead] // to the receive side, bounded by ORD

	mu   lockorder.Mutex[lockorder.Transmit] // its holder is the transmitter, who owns this side; docs/memory-model.md, Owners
	more atomic.Bool
	// stalled is set while something is left for the next to own the side.
	stalled atomic.Bool

	// written counts the stream octets that the LLP has taken. Written by the
	// owner.
	written atomic.Uint64
	// writing is set while the LLP may have taken octets that have not been completed: see settle.
	writing atomic.Bool
	// offered counts those that it was given to take, until an FPDU has arrived.
	offered   atomic.Uint64
	began     time.Time // when the first of them were; the owner's
	batching  postBatching
	keepalive keepalive
	notReady  msnWord      // what the peer is to be told; see TellNotReady
	ord       atomic.Int32 // limit on outstanding RDMA Reads; Modify QP changes it

	// The rest belongs to the owner.
	framer   mpa.Framer
	meter    mpa.Meter
	mulpdu   int    // as the LLP said
	metered  uint64 // pos when it did
	sendMSN  ddp.Outbound
	readMSN  ddp.Outbound // of RDMA Reads and Atomics
	atomics  atomics
	writeAck writeAckProbe
	rtr      mpa.RTR // to send before anything else
	batch    *batch  // in flight, or nil
	pos      uint64  // stream octets framed
	next     uint64  // Send Queue position of the next element
	asked    asked   // what of it, if it is a Read, has been asked for
	// flushBeforeInvalidate is set while an Invalidate waits until the batch has been
	// written; nothing more is framed for that.
	flushBeforeInvalidate bool
	readsUp               bool // the next choice is an RDMA Read Response
	msg                   message
	refs                  []stag.Ref // of the scatter/gather list of msg
	traced                bool       // Config.Trace is set
	short                 int64      // the longest message that frameShorts frames
	sources               stag.Resolver
	count                 outCount
	final                 atomic.Pointer[outCount] // finish's, which has the side for good
	hdr                   [ddp.UntaggedHeader + rdmap.AtomicRequestSize]byte
}

// asked is how far a Read into several sinks has got: the peer was asked for what goes into so many of them.
type asked struct {
	sinks  int
	octets uint64
}

// postBatching holds posted requests back. Posters, pollers and flushLoop share it.
type postBatching struct {
	eager int32
	// pause and linger are constants, but for tests.
	pause, linger time.Duration
	free          atomic.Int32     // posts that go out at once
	stream        atomic.Bool      // the program streams
	doubt         atomic.Int32     // for how many batches that is not believed
	octets        atomic.Int64     // how much is held back, as Tuning.Hold counts
	last          atomic.Int64     // when requests were sent last, as clock says
	hold          func(burst bool) // the group's: Flush is called when the program looks, or soon
	looks         atomic.Uint64    // at the program's last look for completions, as the group counts
	left          *time.Timer      // a stream may have left something
}

// keepalive times the probes of a session; guarded by tx.mu.
type keepalive struct {
	timer *time.Timer   // nil: never
	first time.Duration // from what was sent first to the first probe, at least
	wait  time.Duration
	left  int
}

// message is the one being framed.
type message struct {
	kind   messageKind
	op     rdmap.Opcode
	field  uint32 // Invalidate STag, or Immediate Data of a Send: see sqe.untaggedField
	imm    bool   // a Send with Immediate Data
	msn    uint32
	stag   uint32
	to     uint64
	length uint64
	off    uint64 // octets framed
	vanish bool   // some of its memory may
	sge    int    // element that off is in
	sgeOff uint64 // and where
}

type messageKind uint8

const (
	noMessage messageKind = iota
	fromSQ
	fromIRRQ
	fromRTR
)

// atomics are those that the transmit side asks for and answers.
type atomics struct {
	asked  uint32       // requests, which are numbered by it: the nth has Request Identifier n
	msn    ddp.Outbound // QN 3
	answer rdmap.AtomicResponseHeader
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

func (s *session) fail(f streamFault) { s.halt(cause{fault: f}) }

// awaitsRTR reports whether the ready-to-receive frame of peer-to-peer mode, or the answer to it, is still
// to come (RFC 6581 9.2): a segment that arrives in Closing would make the close a bad one
// (RV-6.2.5-M12).
func (s *session) awaitsRTR() bool {
	switch {
	case !s.stream.P2P:
		return false
	case s.stream.Role == mpa.Responder:
		return s.gate.Load()
	default:
		return s.stream.RTR == mpa.RTRRead && !s.rx.rtrAnswered.Load()
	}
}

// signal leaves a token in a channel of capacity 1.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

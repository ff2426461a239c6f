// Package qp (engine of softrnic, not covered by the compatibility promise) is the
// Queue Pair: the state machine, the Send and Receive Queues, the accounting of
// RDMA Reads, and the two journeys of the data path, from a work request to the
// wire (transmit.go) and from a segment to a completion (receive.go, place.go). It
// is the only package that puts the wire layers mpa, ddp and rdmap together.
//
//	state.go                        the states as a table
//	fault.go faulttable.go          what each error entails, as a table
//	sq.go rq.go slots.go            the work queues
//	reads.go                        the IRRQ and outbound Reads
//	session.go llp*.go              one LLP stream's time, and the stream
//	transmit.go cork.go choose.go   from a work request to the wire
//	memory.go frame.go batch.go nudge.go placing.go
//	receive.go drive.go sleep.go    from a segment to a completion, and who walks it
//	transit.go place.go landing.go graceful.go
//	shared.go                       what a queue pair and its S-RQ have to do with each other
//	tuning.go                       the thresholds of both ways
//	modify.go                       Modify QP
//	finish.go end.go                the ends, and what is seen of them
//	stats.go                        counters
//	trace.go                        what is told to who traces
package qp

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/softrnic/softrnic/cq"
	"github.com/softrnic/softrnic/internal/label"
	"github.com/softrnic/softrnic/internal/midway"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/srq"
	"github.com/softrnic/softrnic/stag"
	"github.com/softrnic/softrnic/trace"
	"github.com/softrnic/softrnic/wr"
)

// DefaultCloseTimeout bounds the Closing and Terminate states.
const DefaultCloseTimeout = 5 * time.Second

// Config are the attributes that Create QP fixes (verbs draft 9.2.5.1). Depths
// and limits are checked by the RNIC, which knows what it offers.
type Config struct {
	ID             wr.QPID
	PD             wr.PDID
	STags          *stag.Table
	SendCQ, RecvCQ *cq.Queue
	// SendDepth and RecvDepth are work requests, at least 1, rounded up to a
	// power of two; SendSGE and RecvSGE elements for each, 1 to 255.
	SendDepth, RecvDepth int
	SendSGE, RecvSGE     int
	// IRD and ORD bound the RDMA Reads outstanding, inbound and outbound.
	IRD, ORD int
	// NoInboundRead and NoInboundWrite take the QP's own rights away (figure
	// 21); NoInboundWrite covers RDMA Read Responses too, but with ReadIntoLocal.
	NoInboundRead, NoInboundWrite bool
	// ReadIntoLocal makes an RDMA Read Response need the Local Write right of its
	// sink, a region, in place of the Remote Write right of a region or window, and
	// NoInboundWrite cover RDMA Writes alone.
	ReadIntoLocal bool
	// PlacedWrites makes a signaled RDMA Write complete when the peer has placed it, on a
	// stream whose peer granted a Read for that, beyond ORD; and RDMA Reads of no octets be answered
	// whatever NoInboundRead says, of which one may be outstanding beyond IRD.
	PlacedWrites bool
	// NoBind refuses Bind Memory Window.
	NoBind bool
	// Privileged allows the STag of zero and Fast-Register (verbs draft 6.1.1).
	Privileged bool
	// WriteSGE bounds the elements of an RDMA Write, SendSGE those of a Send.
	// 0 stands for SendSGE.
	WriteSGE int
	// SRQ, if set, is where receives come from; RecvDepth and RecvSGE are not
	// used then (6.3.4). RQLimit is the QP RQ Limit; above 0 it is armed (6.3.8).
	SRQ     *srq.Queue
	RQLimit int
	// GracefulReceive pauses the stream when no receive is posted, instead of
	// ending it (13.2).
	GracefulReceive bool
	// NoInboundAtomic refuses the peer's Atomic Operations.
	NoInboundAtomic bool
	// Extensions says that the queue pair speaks RFC 7306, in both directions, where
	// Modify.Extensions does not say otherwise: MPA cannot negotiate it. Without, its
	// opcodes are unexpected and its operations invalid.
	Extensions bool
	// BlockMode says that the RNIC takes block lists: Fast-Register then has
	// another status for a buffer size (figure 36).
	BlockMode bool
	// CloseTimeout bounds the Closing and Terminate states; 0 means
	// DefaultCloseTimeout.
	CloseTimeout time.Duration
	// Tuning are the thresholds of the data path.
	Tuning Tuning
	// Carried is what each stream counts as carried when it begins; zero, but in tests.
	Carried midway.Counts
	// Context is the Context of all its completions.
	Context any
	// Events takes asynchronous events. It must not block.
	Events func(wr.Event)
	// Trace, if set, is told what happens. It must not block, nor call the queue pair.
	Trace func(trace.Record)
	// Labels are those of the RNIC's goroutines.
	Labels label.Set
}

// QP is a Queue Pair. All methods may be called from any goroutine.
type QP struct {
	cfg Config
	sq  sendQueue
	rq  recvQueue

	spans *spans // nil without Config.Trace

	rights  rights
	rqLimit rqLimit // disarmed by the receive side, else changed with mu held

	// state is written with mu and both postMu held, so that a post sees one
	// state from its check to its end.
	state     atomic.Uint32
	destroyed atomic.Bool
	leaving   atomic.Bool // destroyed, or about to be: see Reset
	session   atomic.Pointer[session]
	last      atomic.Pointer[session] // the current session, or the one before

	// windows counts the Memory Windows bound to it. Owned by the STag table.
	windows stag.Windows

	mu        sync.Mutex
	ird, ord  int               // limits for the next stream; guarded by mu, as all below
	terminate *TerminateMessage // of the last session
	// starting is the connection that a Modify to RTS writes the last message
	// of streaming mode to, with mu free.
	starting net.Conn
	// ended are the counters of the sessions that are over, and what no session counts.
	ended wr.QPStats
}

// rights are those that the queue pair refuses the peer. Modify QP stores them with mu held; the receive side loads them as
// a segment comes.
type rights struct{ noRead, noWrite, noAtomic atomic.Bool }

// set takes what Modify QP supplies.
func (r *rights) set(m *Modify) {
	for _, c := range []struct {
		right *atomic.Bool
		want  *bool
	}{{&r.noRead, m.NoInboundRead}, {&r.noWrite, m.NoInboundWrite}, {&r.noAtomic, m.NoInboundAtomic}} {
		if c.want != nil {
			c.right.Store(*c.want)
		}
	}
}

// TerminateMessage is a Terminate Message as Query QP returns it.
type TerminateMessage struct {
	// Sent says whether this side composed it; else it was received.
	Sent bool
	// Code is layer<<12|type<<8|code.
	Code rdmap.TermCode
	// Raw is the Terminate header, from the control word on (RFC 5040 4.8).
	Raw []byte
}

// New makes a queue pair in the Idle state.
func New(c Config) *QP {
	if c.CloseTimeout <= 0 {
		c.CloseTimeout = DefaultCloseTimeout
	}
	if c.WriteSGE == 0 {
		c.WriteSGE = c.SendSGE
	}
	c.Tuning = c.Tuning.withDefaults()
	q := &QP{cfg: c, ird: c.IRD, ord: c.ORD}
	q.rights.noRead.Store(c.NoInboundRead)
	q.rights.noWrite.Store(c.NoInboundWrite)
	q.rights.noAtomic.Store(c.NoInboundAtomic)
	if c.Trace != nil {
		q.spans = newSpans(c.ID)
	}
	q.sq.init(&q.cfg)
	q.sq.spans = q.spans
	if c.SRQ != nil { // RV-6.3.4-M2: the depth given is ignored
		c.RecvDepth, c.RecvSGE = 0, 0
		q.rqLimit.set(c.RQLimit, c.RQLimit > 0) // RV-6.3.8-M15
	}
	q.rq.init(&c, c.RecvDepth, c.RecvSGE)
	return q
}

// ID is the queue pair's identifier.
func (q *QP) ID() wr.QPID { return q.cfg.ID }

// State is the state at this moment.
func (q *QP) State() wr.State { return wr.State(q.state.Load()) }

// PostSend posts a list of work requests to the Send Queue, in order, and
// reports how many were posted. The first that is refused stops the list
// (verbs draft 8.2.1). It does not block and keeps nothing of reqs. Errors:
// wr.ErrInvalidState, wr.ErrInvalidOp, wr.ErrInvalidSGLLength, wr.ErrInvalidSGLFormat, wr.ErrQueueFull,
// wr.ErrInvalidQP.
func (q *QP) PostSend(reqs ...wr.Request) (int, error) {
	if q.spans != nil {
		defer region(q.spans.send).End()
	}
	n, octets, err := q.postSend(reqs)
	if n > 0 {
		if s := q.session.Load(); s != nil {
			s.tx.posted(n, octets)
		}
	}
	return n, err
}

// postSend queues requests, and reports how many, and of how many octets.
func (q *QP) postSend(reqs []wr.Request) (n int, octets uint64, err error) {
	q.sq.postMu.Lock()
	defer q.sq.postMu.Unlock()
	if err := q.accepts(trigPostSQ); err != nil {
		return 0, 0, err
	}
	before := q.sq.octets
	for i := range reqs {
		if err = q.sq.check(&reqs[i]); err != nil {
			break
		}
		if err = q.sq.push(&reqs[i]); err != nil {
			break
		}
		if q.cfg.Trace != nil {
			q.tellPosted(&reqs[i])
		}
		n++
	}
	q.sq.deepened()
	return n, q.sq.octets - before, err
}

// Room reports how many requests the Send and the Receive Queue take now: 0 in a state in which they take none, and
// of a shared one.
func (q *QP) Room() (send, recv int) {
	if q.accepts(trigPostSQ) == nil {
		send = q.sq.spare()
	}
	if q.cfg.SRQ == nil && q.accepts(trigPostRQ) == nil {
		recv = q.rq.spare()
	}
	return send, recv
}

// PostRecv posts a list of receives, in order, and reports how many were posted.
// Errors: wr.ErrInvalidState, wr.ErrInvalidSGLLength, wr.ErrInvalidSGLFormat, wr.ErrQueueFull,
// wr.ErrRQUsesSRQ, wr.ErrInvalidQP.
func (q *QP) PostRecv(reqs ...wr.Recv) (int, error) {
	if q.spans != nil {
		defer region(q.spans.recv).End()
	}
	n, err := q.postRecv(reqs)
	if n > 0 {
		if s := q.session.Load(); s != nil {
			s.rx.fed()
		}
	}
	return n, err
}

func (q *QP) postRecv(reqs []wr.Recv) (n int, err error) {
	q.rq.postMu.Lock()
	defer q.rq.postMu.Unlock()
	if q.cfg.SRQ != nil {
		return 0, q.refusal(errRQUsesSRQ)
	}
	if err := q.accepts(trigPostRQ); err != nil {
		return 0, err
	}
	defer q.rq.deepened()
	for i := range reqs {
		if err := q.rq.push(&reqs[i]); err != nil {
			return i, err
		}
		if q.cfg.Trace != nil {
			q.tellPostedRecv(&reqs[i])
		}
	}
	return len(reqs), nil
}

// accepts reports whether a post is in order; it stays so while that queue's postMu is held.
func (q *QP) accepts(t trigger) error {
	s := q.State()
	if c := &table[s][t]; c.Actions&actEnqueue == 0 {
		return q.refusal(refusePost(c.Err, s))
	}
	return nil
}

// refusal is err, or that there is no such queue pair any more.
func (q *QP) refusal(err error) error {
	if q.destroyed.Load() {
		return errGone
	}
	return err
}

// Attributes are what Query QP returns (verbs draft 9.2.5.2), as far as they can
// change or differ from Config.
type Attributes struct {
	State                wr.State
	SendDepth, RecvDepth int // as allocated
	SendSGE, RecvSGE     int // with an S-RQ the depth and SGEs of receives are 0
	IRD, ORD             int
	// NoInboundRead, NoInboundWrite and NoInboundAtomic are as Modify has set them last, else as in Config.
	NoInboundRead, NoInboundWrite bool
	// ReadIntoLocal, NoBind, Privileged, WriteSGE and GracefulReceive
	// are as in Config.
	NoInboundAtomic, ReadIntoLocal      bool
	NoBind, Privileged, GracefulReceive bool
	WriteSGE                            int
	// Extensions and PlacedWrites are as in Config; with a stream, as it is there.
	Extensions, PlacedWrites bool
	// RQLimit and RQLimitArmed are defined with an S-RQ only.
	RQLimit      int
	RQLimitArmed bool
	// Stream is the LLP stream; nil in Idle.
	Stream *mpa.Stream
	// Terminate is the Terminate Message of the last session, if one was sent
	// or received; valid in the states Terminate and Error.
	Terminate *TerminateMessage
}

// Query returns the attributes.
func (q *QP) Query() Attributes {
	q.mu.Lock()
	defer q.mu.Unlock()
	a := Attributes{
		State:     q.State(),
		SendDepth: q.sq.slots.depth(), SendSGE: q.sq.sendSGE, WriteSGE: q.sq.writeSGE,
		IRD: q.ird, ORD: q.ord,
		NoInboundRead: q.rights.noRead.Load(), NoInboundWrite: q.rights.noWrite.Load(),
		NoInboundAtomic: q.rights.noAtomic.Load(), ReadIntoLocal: q.cfg.ReadIntoLocal, NoBind: q.cfg.NoBind, Privileged: q.cfg.Privileged, GracefulReceive: q.cfg.GracefulReceive,
		Extensions: q.spoken(), PlacedWrites: q.cfg.PlacedWrites,
	}
	if q.cfg.SRQ == nil {
		a.RecvDepth, a.RecvSGE = q.rq.slots.depth(), q.rq.sges
	} else {
		a.RQLimit, a.RQLimitArmed = q.rqLimit.get()
	}
	if s := q.session.Load(); s != nil { // as agreed with the peer
		a.Stream, a.IRD, a.ORD = s.given, q.inbound(s), int(s.tx.ord.Load())
		a.PlacedWrites = s.tx.placing.slot
	}
	if q.terminate != nil {
		t := *q.terminate
		a.Terminate = &t
	}
	return a
}

// raise reports an event, if there is one to report, and why it is raised, which may be nil.
func (q *QP) raise(id wr.EventID, why *wr.Reason) {
	if id != 0 && q.cfg.Events != nil {
		q.cfg.Events(wr.Event{ID: id, QP: q.cfg.ID, Why: why})
	}
}

// keepTerminate keeps the Terminate Message that a transition comes with for Query
// QP: the one that arrived, or the one to be sent, which it composes. With mu held.
func (q *QP) keepTerminate(t transition, c *cause) {
	sends := t.Actions&actSendTerminate != 0
	if sends {
		c.composeTerminate()
	}
	if sends || t.Actions&actKeepTerminate != 0 {
		term, _ := rdmap.ParseTerminate(c.terminate)
		q.terminate = &TerminateMessage{Sent: sends, Code: term.Code, Raw: c.terminate}
	}
}

// setState enters a state with every post either before or after it, and with mu
// held.
func (q *QP) setState(s wr.State) {
	q.sq.postMu.Lock()
	q.rq.postMu.Lock()
	q.state.Store(uint32(s))
	q.sq.extensions = q.spoken()
	q.rq.postMu.Unlock()
	q.sq.postMu.Unlock()
}

// spoken reports whether RFC 7306 is spoken: on the stream, if there is one.
func (q *QP) spoken() bool {
	if s := q.session.Load(); s != nil {
		return s.extensions
	}
	return q.cfg.Extensions
}

// enter takes a transition for which no LLP stream matters, with mu held.
func (q *QP) enter(t transition) {
	if q.cfg.Trace != nil {
		q.tellState(q.State(), t.Next, "verb", nil)
	}
	q.setState(t.Next)
	if t.Actions&actFlush != 0 { // Idle to Error: not through Terminate (6.1.1)
		q.terminate = nil
		q.sq.flush(noElement, wr.StatusFlushed, 0)
		q.rq.flush(wr.StatusFlushed, 0)
	}
}

// leaveRTS takes the transition that c means, and completes c.
func (q *QP) leaveRTS(s *session, c *cause) transition {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sq.postMu.Lock()
	q.rq.postMu.Lock()
	if c.fault == faultPeerClosed && s.busy() { // draft 6.2.2.2
		c.fault = faultPeerClosedBusy
	}
	from := q.State()
	t := step(from, c.trigger())
	q.state.Store(uint32(t.Next))
	q.rq.postMu.Unlock()
	q.sq.postMu.Unlock()
	q.keepTerminate(t, c) // before anyone can ask in the new state (draft 8.3.2)
	if q.cfg.Trace != nil {
		q.tellState(from, t.Next, c.trigger().String(), q.terminate)
	}
	return t
}

// endSession takes the last transition of a session, because of c.
func (q *QP) endSession(t transition, c *cause) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.keepTerminate(t, c)
	s := q.last.Load()
	s.outcome.State, s.outcome.Terminate, s.outcome.Destroyed = t.Next, q.terminate, q.leaving.Load()
	s.fold()
	if t.Actions&actRelease != 0 {
		q.session.Store(nil)
	}
	if q.cfg.Trace != nil {
		q.tellState(q.State(), t.Next, c.trigger().String(), q.terminate)
	}
	q.setState(t.Next)
}

// awaitOver waits until the last session, if its stream is gone, has raised its last
// event.
func (q *QP) awaitOver() {
	if s := q.last.Load(); s != nil && q.session.Load() == nil {
		<-s.over
	}
}

// Package qp (engine of softrnic, not covered by the compatibility promise) is the
// Queue Pair: the state machine, the Send and Receive Queues, the accounting of
// RDMA Reads, and the two journeys of the data path, from a work request to the
// wire (transmit.go) and from a segment to a completion (receive.go). It
// is the only package that puts the wire layers mpa, ddp and rdmap together.
//
//	state.go transition.go          the states as a table, and how a queue pair changes its own
//	fault.go faulttable.go          what each error entails, as a table
//	session.go begin.go             one LLP stream's time, its two sides, and how it begins
//	queues.go reads.go              the work queues, the IRRQ and outbound Reads
//	memory_ops.go                   requests that change regions and windows, and modifiers
//	post.go                         posting, and post batching
//	transmit.go schedule.go         wire out: from a work request to the wire
//	frame.go atomic.go batch.go
//	keepalive.go
//	receive.go inbound_send.go      wire in: from a segment to a completion
//	place.go intake.go direct.go
//	graceful.go lossy.go
//	llp*.go                         the stream
//	cause.go teardown.go            the ends, and what is seen of them
//	llpstream.go
//	reason.go remedy.go refuse.go   the same in words
//	srq.go                          what a queue pair and its S-RQ have to do with each other
//	modify.go query.go              Modify QP, Query QP
//	tuning.go                       the thresholds of both ways
//	count.go stats.go               counters
//	trace.go exectrace.go           traces: those of the program, and regions of Go's execution tracer
package qp

import (
	"cmp"
	"net"
	"sync/atomic"
	"time"

	"github.com/softrnic/softrnic/internal/cq"
	"github.com/softrnic/softrnic/internal/inventory"
	"github.com/softrnic/softrnic/internal/lockorder"
	"github.com/softrnic/softrnic/internal/netpoll"
	"github.com/softrnic/softrnic/internal/proflabel"
	"github.com/softrnic/softrnic/internal/verbsinternal"
	"github.com/softrnic/softrnic/srq"
	"github.com/softrnic/softrnic/stag"
	"github.com/softrnic/softrnic/wr"
)

// DefaultCloseTimeout bounds the Closing and Terminate states.
const DefaultCloseTimeout = 5 * time.Second

type (
	// Port is what the streams of an RNIC go through.
	Port = netpoll.Port
	// Shape is what a Port does to them.
	Shape = netpoll.Shape
)

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
	// ReadSGE bounds the sinks of an RDMA Read; 0 is for Reads without a list, into one.
	ReadSGE int
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
	// ending it (13.2). With an SRQ whose receives others hold in part it pauses in any case.
	GracefulReceive bool
	// NoInboundAtomic refuses the peer's Atomic Operations.
	NoInboundAtomic bool
	// Extensions says that the queue pair speaks RFC 7306, in both directions, where
	// Modify.Extensions does not say otherwise: MPA cannot negotiate it. Without, its
	// opcodes are unexpected and its operations invalid.
	Extensions bool
	// SendImmediate says that Sends may bring Immediate Data with their payload, in both directions.
	SendImmediate bool
	// BlockMode says that the RNIC takes block lists: Fast-Register then has
	// another status for a buffer size (figure 36).
	BlockMode bool
	// CloseTimeout bounds the Closing and Terminate states; 0 means
	// DefaultCloseTimeout.
	CloseTimeout time.Duration
	// Tuning are the thresholds of the data path.
	Tuning Tuning
	// Port is what its streams go through; nil: nothing is done to them.
	Port *Port
	// Carried is what each stream counts as carried when it begins; zero, but in tests.
	Carried verbsinternal.Counts
	// Context is the Context of all its completions.
	Context any
	// Events takes asynchronous events. It must not block.
	Events func(wr.Event)
	// Trace, if set, is told what happens. It must not block, nor call the queue pair.
	Trace func(wr.Record)
	// Labels are those of the RNIC's goroutines.
	Labels proflabel.Set
	// Inventory is the RNIC's object; nil for none.
	Inventory *inventory.Object
}

// QP is a Queue Pair. All methods may be called from any goroutine.
type QP struct {
	cfg Config
	sq  sendQueue
	rq  recvQueue

	spans *spans // nil without Config.Trace

	rights    rights
	readiness Readiness
	lossy     *Lossy  // of an unreliable one; does not change once there is a stream
	rqLimit   rqLimit // disarmed by the receive side, else changed with mu held

	// state is written with mu and both postMu held, so that a post sees one
	// state from its check to its end.
	state     stateWord
	destroyed atomic.Bool
	leaving   atomic.Bool // destroyed, or about to be: see Reset
	session   atomic.Pointer[session]
	last      atomic.Pointer[session] // the current session, or the one before

	// windows counts the Memory Windows bound to it. Owned by the STag table.
	windows stag.Windows

	mu        lockorder.Mutex[lockorder.QP]
	ird, ord  int               // limits for the next stream; guarded by mu, as all below
	terminate *TerminateMessage // of the last session
	// starting is the connection that a Modify to RTS writes the last message
	// of streaming mode to, with mu free.
	starting net.Conn
	// ended are the counters of the sessions that are over, and what no session counts; nil if none is.
	ended *wr.QPStats
	// kept is what good closes have found in use.
	kept struct{ irrq, reads int }

	counted *inventory.Object
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

// rqLimit is the QP RQ Limit of a queue pair with an S-RQ and whether it is armed
// (verbs draft 6.3.8). The two are one word, so that the receive side sees them
// together: limit<<1, and 1 if armed.
type rqLimit struct{ word atomic.Int64 }

// set changes the limit. The RNIC and Modify QP check its range.
func (l *rqLimit) set(limit int, armed bool) {
	word := int64(limit) << 1
	if armed {
		word |= 1
	}
	l.word.Store(word)
}

func (l *rqLimit) get() (limit int, armed bool) {
	word := l.word.Load()
	return int(word >> 1), word&1 != 0
}

// exceeded reports whether it is armed and messages are more than the limit, and
// disarms it then: the event comes once for each arming.
func (l *rqLimit) exceeded(messages int) bool {
	word := l.word.Load()
	return word&1 != 0 && int64(messages) > word>>1 && l.word.CompareAndSwap(word, word&^1)
}

// New makes a queue pair in the Idle state.
func New(c Config) *QP {
	if c.CloseTimeout <= 0 {
		c.CloseTimeout = DefaultCloseTimeout
	}
	c.WriteSGE = cmp.Or(c.WriteSGE, c.SendSGE)
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
	q.counted = inventory.Open(c.Inventory, "qp QP", uint32(c.ID), q)
	return q
}

// Count implements inventory.Counter. When the queue pair is destroyed, slots are those whose completions wait to be
// polled.
func (q *QP) Count(tell inventory.Tell) {
	over := q.destroyed.Load()
	tell(q.sq.inUse(over), "slot of the Send Queue")
	tell(q.rq.inUse(over), "slot of the Receive Queue")
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.session.Load() != nil {
		tell(1, "stream")
	}
	tell(q.kept.irrq, "IRRQ slot")
	tell(q.kept.reads, "outbound Read")
	tell(q.cfg.STags.Bound(&q.windows), "bound window")
}

// ID is the queue pair's identifier.
func (q *QP) ID() wr.QPID { return q.cfg.ID }

// State is the state at this moment.
func (q *QP) State() wr.State { return q.state.load() }

// raise reports an event, if there is one to report, and why it is raised, which may be nil.
func (q *QP) raise(id wr.EventID, why *wr.Reason) {
	if id != 0 && q.cfg.Events != nil {
		q.cfg.Events(wr.Event{ID: id, QP: q.cfg.ID, Why: why})
	}
}

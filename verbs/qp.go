package verbs

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"github.com/softrnic/softrnic/internal/lockorder"
	"github.com/softrnic/softrnic/qp"
	"github.com/softrnic/softrnic/wr"
)

// QPConfig configures a Queue Pair. For CreateQP PD, SendCQ and RecvCQ are needed;
// the CQs may be the same.
type QPConfig struct {
	// ID, if not zero, is the queue pair's identifier, 1 to 1<<24-1 as QP numbers are
	// on other RDMA networks, and used by no other queue pair of the RNIC. Zero stands for one
	// of the RNIC's choice. A number may be used again after Destroy; what names the queue pair by
	// it (RegionConfig.QP, completions not polled yet) means the new one then.
	ID             QPID
	PD             *PD
	SendCQ, RecvCQ *CQ
	// SRQ, if set, is where receives come from, and RecvDepth and RecvSGE are
	// ignored (verbs draft 6.3.4). RQLimit is the QP RQ Limit, 0 to the S-RQ's
	// depth; above 0 it is armed (6.3.8).
	SRQ     *SRQ
	RQLimit int
	// SendDepth and RecvDepth are how many work requests may be outstanding;
	// 0 stands for 64, or what the RNIC has if less, and None for none at all.
	// The queue pair may get more: see Query.
	SendDepth, RecvDepth int
	// SendSGE, WriteSGE and RecvSGE are the elements of the scatter/gather
	// list of a Send, an RDMA Write and a Receive; 0 stands for 4, and of
	// WriteSGE for SendSGE, as far as the RNIC has as many.
	SendSGE, WriteSGE, RecvSGE int
	// IRD and ORD are how many RDMA Reads may be outstanding, inbound and
	// outbound; 0 stands for 16, or what the RNIC has if less, and None for none
	// at all. NoReads sets both to None. If the RNIC shares these resources the queue pair may get
	// less, but at least 1: see Query.
	IRD, ORD int
	NoReads  bool
	// NoInboundRead and NoInboundWrite refuse the peer's RDMA Reads, and its
	// RDMA Writes and the answers to this side's Reads (figure 21). NoBind
	// refuses Bind Memory Window. All are allowed by default; the rights of the
	// regions count all the same.
	NoInboundRead, NoInboundWrite, NoBind bool
	// ReadIntoLocal makes LocalWrite enough for the sink of this side's RDMA Reads, which
	// has to be a region then; otherwise iWARP wants RemoteWrite, of a region or window (verbs draft
	// 7.5.2). It gives the peer nothing: only the answer to a Read that is outstanding
	// may write there, within what was asked for, and an RDMA Write to the same STag is refused as
	// ever. NoInboundWrite does not concern the answers then.
	ReadIntoLocal bool
	// ReadSGE lets an RDMA Read have a list of so many sinks, in Request.SGL, as InfiniBand's adapters do; 0 lets it have
	// Request.Local alone, as the draft has it. Such a Read is one request and one completion, and on the wire an
	// RDMA Read Request for each sink that is not empty, each of which counts for ORD: those beyond it wait.
	ReadSGE int
	// PlacedWrites makes a signaled RDMA Write complete when the peer has placed it, as on
	// InfiniBand, and not when it has been sent: what completes behind it does so later too. An RDMA Read of no octets
	// behind the Write tells, on a place beyond ORD that both sides offer when they connect. If the peer grants no
	// such place (it has to grant one more than ORD, or two in place of fewer), Writes complete
	// when sent on that stream, and Query says so. The queue pair also answers such Reads of the peer,
	// in spite of NoInboundRead, and one more than IRD.
	PlacedWrites bool
	// NoInboundAtomic refuses the peer's Atomic Operations, which Extensions allow.
	NoInboundAtomic bool
	// Privileged allows the STag of zero and Fast-Register: all of the RNIC's
	// physical memory (6.1.1). It is off by default.
	Privileged bool
	// GracefulReceive makes the stream wait while no receive is posted for a
	// message of the peer, instead of ending it (13.2). Where messages of other streams
	// hold receives of the SRQ it waits in any case: see SRQConfig.StallTimeout.
	GracefulReceive bool
	// Extensions makes the queue pair speak RFC 7306, Immediate Data and Atomic
	// Operations, in both directions. Both peers have to know of it: MPA does not
	// negotiate it, cm.Config.Extensions does. It is off by default: posting such an operation is
	// ErrInvalidOp then, and a peer that sends one gets Terminate 0x0206.
	Extensions bool
	// SendImmediate lets Sends bring 32 bits of Immediate Data with their payload (the flag WithImmediate), in both directions.
	// It is of softrnic's own and uses a reserved bit: both programs have to know that the other's queue pair has it. A peer
	// without it takes such a message for a plain Send.
	SendImmediate bool
	// CloseTimeout bounds the states Closing and Terminate; 0 stands for 5 s.
	CloseTimeout time.Duration
	// Context is a value of the program's. Completions hand it back.
	Context any
}

// None is an explicit zero in the fields of a configuration in which zero stands for a default and
// the draft allows none: QPConfig.SendDepth, RecvDepth, IRD and ORD, and IRD and ORD of cm.Config. Any other
// negative number is a mistake, and refused.
const None = math.MinInt32

// maxQPID is the largest identifier that a program may choose.
const maxQPID = 1<<24 - 1

// QP is a Queue Pair (verbs draft chapter 6).
type QP struct {
	rnic *RNIC
	cfg  QPConfig // as created, with its defaults
	q    *qp.QP

	// reads makes changes of IRD and ORD wait for one another, and Destroy for
	// them. Within it rnic.mu may be taken.
	reads    lockorder.Mutex[lockorder.ModifyReads]
	ird, ord int // taken from the RNIC's pools; guarded by rnic.mu
}

// CreateQP creates a Queue Pair in the Idle state (verbs draft 9.2.5.1). See
// CreateEndpoint for one that brings its PD and CQs along. Errors:
// ErrInvalidRNIC, ErrInvalidPD, ErrInvalidCQ, ErrInvalidSRQ, ErrTooManyWR,
// ErrTooManySGE, ErrIRDExceeded, ErrORDExceeded, ErrRQLimitRange,
// ErrInvalidModifier (a negative number, an ID out of range or in use),
// ErrInsufficientResources.
func (r *RNIC) CreateQP(c QPConfig) (_ *QP, err error) {
	defer asRefused(&err, "Create QP", "verbs draft 9.2.5.1", Reason{})
	c = c.withDefaults(r.limits)
	if err := r.lock(); err != nil {
		return nil, err
	}
	defer r.mu.Unlock()
	if err := r.checkQP(c); err != nil {
		return nil, err
	}
	ird, ord, err := r.takeReads(c.IRD, c.ORD)
	if err != nil {
		return nil, err
	}
	q := &QP{rnic: r, cfg: c, ird: ird, ord: ord}
	id := c.ID
	if id == 0 {
		id = QPID(r.nextID())
	}
	q.q = qp.New(q.config(id))
	q.tie()
	r.qps[q.ID()] = q
	r.traceVerb("Create QP", q.ID(), 0, 0, 0, nil)
	return q, nil
}

func (c QPConfig) withDefaults(l Limits) QPConfig {
	canBeNone := func(p *int, d int) {
		*p = cmp.Or(*p, d)
		if *p == None {
			*p = 0
		}
	}
	canBeNone(&c.SendDepth, min(64, l.WR))
	c.SendSGE = cmp.Or(c.SendSGE, 4)
	c.WriteSGE = cmp.Or(c.WriteSGE, min(c.SendSGE, l.WriteSGE))
	canBeNone(&c.IRD, min(16, l.IRD))
	canBeNone(&c.ORD, min(16, l.ORD))
	if c.NoReads {
		c.IRD, c.ORD = 0, 0
	}
	if c.SRQ != nil {
		c.RecvDepth, c.RecvSGE = 0, 0 // RV-6.3.4-M2
	} else {
		canBeNone(&c.RecvDepth, min(64, l.WR))
		c.RecvSGE = cmp.Or(c.RecvSGE, 4)
	}
	return c
}

// config is what package qp has to know.
func (q *QP) config(id QPID) qp.Config {
	c, r := q.cfg, q.rnic
	qc := qp.Config{
		ID: id, PD: c.PD.id, STags: r.stags,
		SendCQ: c.SendCQ.q, RecvCQ: c.RecvCQ.q,
		SendDepth: c.SendDepth, RecvDepth: c.RecvDepth,
		SendSGE: c.SendSGE, WriteSGE: c.WriteSGE, RecvSGE: c.RecvSGE,
		IRD: q.ird, ORD: q.ord,
		NoInboundRead: c.NoInboundRead, NoInboundWrite: c.NoInboundWrite, NoBind: c.NoBind,
		Privileged: c.Privileged, BlockMode: r.mode == BlockMode, GracefulReceive: c.GracefulReceive,
		Extensions: c.Extensions, NoInboundAtomic: c.NoInboundAtomic, ReadIntoLocal: c.ReadIntoLocal, ReadSGE: c.ReadSGE,
		PlacedWrites: c.PlacedWrites, SendImmediate: c.SendImmediate,
		CloseTimeout: c.CloseTimeout, Context: c.Context, Events: r.raise, Tuning: r.tuning, Carried: r.carried, Port: &r.port,
		Trace: r.trace, Labels: r.labels, Inventory: r.counted,
	}
	if c.SRQ != nil {
		qc.SRQ, qc.RQLimit = c.SRQ.q, c.RQLimit
	}
	return qc
}

// checkQP finds the Immediate Errors of Create QP, with mu held.
func (r *RNIC) checkQP(c QPConfig) error {
	l := r.limits
	switch {
	case c.PD == nil || r.pds[c.PD.id] != c.PD:
		return &wr.Reason{Err: wr.ErrInvalidPD, What: "QPConfig.PD is no PD of this RNIC", Remedy: "make one with AllocatePD; CreateEndpoint does without"}
	case !r.owns(c.SendCQ) || !r.owns(c.RecvCQ):
		return &wr.Reason{Err: wr.ErrInvalidCQ, What: "QPConfig.SendCQ or RecvCQ is no CQ of this RNIC", Rule: "RV-6.1.1-M4", Remedy: "make them with CreateCQ; CreateEndpoint does without"}
	case c.SRQ != nil && (c.SRQ.rnic != r || r.srqs[c.SRQ.ID()] != c.SRQ):
		return &wr.Reason{Err: wr.ErrInvalidSRQ, What: "QPConfig.SRQ is no S-RQ of this RNIC"}
	case c.ID > maxQPID:
		return &wr.Reason{Err: wr.ErrInvalidModifier, What: fmt.Sprintf("QPConfig.ID %#x is longer than 24 bits", uint32(c.ID)), Remedy: "leave ID zero for one that is free"}
	case c.ID != 0 && r.qps[c.ID] != nil:
		return &wr.Reason{Err: wr.ErrInvalidModifier, What: fmt.Sprintf("QPConfig.ID %#x is in use", uint32(c.ID)), Rule: "RV-6.1.1-M8", Remedy: "destroy that queue pair first, or leave ID zero for one that is free"}
	case min(c.SendDepth, c.RecvDepth, c.SendSGE, c.WriteSGE, c.ReadSGE, c.RecvSGE, c.IRD, c.ORD) < 0:
		return &wr.Reason{Err: wr.ErrInvalidModifier, What: "a depth or limit is negative", Remedy: "leave it zero for the default, or use None where the field allows it"}
	}
	var full error // told behind the limits: what is above one would not do anyway
	if len(r.qps) >= l.QPs {
		full = &wr.Reason{Err: wr.ErrInsufficientResources, What: fmt.Sprintf("all %d queue pairs are in use", l.QPs)}
	}
	return cmp.Or(
		atMost(wr.ErrTooManyWR, max(c.SendDepth, c.RecvDepth), l.WR),
		atMost(wr.ErrTooManySGE, max(c.SendSGE, c.ReadSGE, c.RecvSGE), l.SGE),
		atMost(wr.ErrTooManySGE, c.WriteSGE, l.WriteSGE),
		l.checkReads(c.IRD, c.ORD),
		full,
		c.checkRQLimit(),
	)
}

// checkRQLimit checks the QP RQ Limit. Without an S-RQ there is none.
func (c *QPConfig) checkRQLimit() error {
	switch {
	case c.SRQ != nil:
		return c.SRQ.q.CheckRQLimit(c.RQLimit)
	case c.RQLimit != 0:
		return &wr.Reason{Err: wr.ErrRQLimitRange, What: fmt.Sprintf("%d, without an S-RQ", c.RQLimit), Remedy: "set QPConfig.SRQ, or leave RQLimit zero"}
	}
	return nil
}

// owns reports whether the CQ is one of this RNIC, with mu held.
func (r *RNIC) owns(c *CQ) bool { return c != nil && c.rnic == r && r.cqs[c.ID()] == c }

// takeReads reserves RDMA Read resources of both kinds, or of none, with mu held.
func (r *RNIC) takeReads(ird, ord int) (gotIRD, gotORD int, err error) {
	if gotIRD, err = r.ird.raise("IRD", 0, ird); err != nil {
		return 0, 0, err
	}
	if gotORD, err = r.ord.raise("ORD", 0, ord); err != nil {
		r.ird.give(gotIRD)
		return 0, 0, err
	}
	return gotIRD, gotORD, nil
}

// tie counts the queue pair in where it is a user, with rnic.mu held.
func (q *QP) tie() {
	q.cfg.PD.refs++
	q.cfg.SendCQ.tie(q)
	q.cfg.RecvCQ.tie(q)
	if q.cfg.SRQ != nil {
		q.cfg.SRQ.refs++
	}
}

// untie counts it out.
func (q *QP) untie() {
	q.cfg.PD.release()
	q.cfg.SendCQ.release(q)
	q.cfg.RecvCQ.release(q)
	if q.cfg.SRQ != nil {
		q.cfg.SRQ.refs--
	}
}

// ID is the queue pair's identifier.
func (q *QP) ID() QPID { return q.q.ID() }

// PD is the queue pair's Protection Domain.
func (q *QP) PD() *PD { return q.cfg.PD }

// SendCQ is where its Send Queue completes, RecvCQ where its receives do.
func (q *QP) SendCQ() *CQ { return q.cfg.SendCQ }

// RecvCQ is where its receives complete.
func (q *QP) RecvCQ() *CQ { return q.cfg.RecvCQ }

// Context is QPConfig.Context.
func (q *QP) Context() any { return q.cfg.Context }

// State is the state at this moment.
func (q *QP) State() State { return q.q.State() }

// check begins a verb on the queue pair.
func (q *QP) check() error {
	if err := q.rnic.refusal(); err != nil {
		return err
	}
	if q.rnic.QP(q.ID()) != q {
		return q.gone()
	}
	return nil
}

// gone refuses a verb on a queue pair that is not there any more.
func (q *QP) gone() error {
	return &wr.Reason{Err: wr.ErrInvalidQP, What: fmt.Sprintf("QP %d was destroyed", q.ID())}
}

// about is the queue pair for a Reason.
func (q *QP) about() Reason {
	if q == nil {
		return Reason{}
	}
	return Reason{QP: q.ID()}
}

// Destroy destroys the queue pair in any state (verbs draft 9.2.5.4); a stream
// that is still there is reset. When it returns, nothing touches the memory of
// its work requests. Errors: ErrInvalidRNIC, ErrInvalidQP (it was already),
// ErrWindowsBound (the queue pair goes on as it was).
func (q *QP) Destroy() (err error) {
	defer asRefused(&err, "Destroy QP", "verbs draft 9.2.5.4", q.about())
	if q == nil {
		return errNilQP
	}
	if err := q.check(); err != nil {
		return err
	}
	err = q.q.Destroy()
	q.rnic.traceVerb("Destroy QP", q.ID(), 0, 0, 0, err)
	if err != nil {
		return q.rnic.explain(err)
	}
	counted := q.Stats()
	q.reads.Lock() // a Modify that was under way has its say about the pools first
	defer q.reads.Unlock()
	q.rnic.mu.Lock()
	defer q.rnic.mu.Unlock()
	if q.rnic.qps[q.ID()] != q {
		return nil // Close has counted it out
	}
	delete(q.rnic.qps, q.ID())
	q.rnic.ended.addQP(counted)
	q.countOut()
	return nil
}

// countOut gives back what the queue pair uses of the RNIC, with rnic.mu held.
func (q *QP) countOut() {
	q.untie()
	q.rnic.ird.give(q.ird)
	q.rnic.ord.give(q.ord)
}

// QPAttributes are what Query QP returns (verbs draft 9.2.5.2).
type QPAttributes struct {
	ID             QPID
	State          State
	PD             *PD
	SendCQ, RecvCQ *CQ
	// SRQ is where receives come from; nil without one. With one RecvDepth and
	// RecvSGE are zero, without one RQLimit and RQLimitArmed are.
	SRQ                           *SRQ
	SendDepth, RecvDepth          int // as allocated
	SendSGE, WriteSGE, RecvSGE    int
	IRD, ORD                      int // on a stream as agreed with the peer
	RQLimit                       int
	RQLimitArmed                  bool
	NoInboundRead, NoInboundWrite bool
	NoInboundAtomic               bool
	ReadIntoLocal                 bool
	ReadSGE                       int
	NoBind, Privileged            bool
	GracefulReceive               bool
	Extensions                    bool // on a stream as agreed with the peer
	// PlacedWrites says, on a stream, whether the peer granted the place, and else is QPConfig's.
	PlacedWrites bool
	// Stream is the LLP stream; nil in Idle.
	Stream *StreamConfig
	// Terminate is the Terminate Message of the last stream, if one was sent or
	// received; valid in the states Terminate and Error.
	Terminate *TerminateMessage
}

// Query returns the queue pair's attributes. Errors: ErrInvalidRNIC,
// ErrInvalidQP.
func (q *QP) Query() (_ QPAttributes, err error) {
	defer asRefused(&err, "Query QP", "verbs draft 9.2.5.2", q.about())
	if q == nil {
		return QPAttributes{}, errNilQP
	}
	if err := q.rnic.closedError(); err != nil {
		return QPAttributes{}, err
	}
	if q.rnic.QP(q.ID()) != q {
		return QPAttributes{}, q.gone()
	}
	c, a := q.cfg, q.q.Query()
	return QPAttributes{
		ID: q.ID(), State: a.State, PD: c.PD, SendCQ: c.SendCQ, RecvCQ: c.RecvCQ, SRQ: c.SRQ,
		SendDepth: a.SendDepth, RecvDepth: a.RecvDepth, SendSGE: a.SendSGE, WriteSGE: a.WriteSGE, RecvSGE: a.RecvSGE,
		IRD: a.IRD, ORD: a.ORD, RQLimit: a.RQLimit, RQLimitArmed: a.RQLimitArmed,
		NoInboundRead: a.NoInboundRead, NoInboundWrite: a.NoInboundWrite,
		NoInboundAtomic: a.NoInboundAtomic, ReadIntoLocal: a.ReadIntoLocal, ReadSGE: c.ReadSGE, NoBind: a.NoBind, Privileged: a.Privileged,
		GracefulReceive: a.GracefulReceive, Extensions: a.Extensions, PlacedWrites: a.PlacedWrites,
		Stream: streamOf(a.Stream), Terminate: terminateOf(a.Terminate),
	}, nil
}

// Drain waits until the queue pair has nothing left to send: no element on the
// Send Queue, no RDMA Read to answer; and until the ready-to-receive frame of
// peer-to-peer mode has come, and has been answered if it is a Read. It returns nil
// then, and also if the stream ends, or ctx's error.
func (q *QP) Drain(ctx context.Context) error {
	if q == nil {
		return errNilQP
	}
	return q.q.Drain(ctx)
}

// Done returns a channel that is closed when the queue pair's current stream is
// gone; its state is Idle or Error then. It is closed if there is no stream.
func (q *QP) Done() <-chan struct{} { return q.LLPStream().Done() }

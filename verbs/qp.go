package verbs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/softrnic/softrnic/qp"
	"github.com/softrnic/softrnic/wr"
)

// QPConfig configures a Queue Pair. PD, SendCQ and RecvCQ are needed; the CQs
// may be the same.
type QPConfig struct {
	PD             *PD
	SendCQ, RecvCQ *CQ
	// SendDepth and RecvDepth are how many work requests may be outstanding;
	// 0 stands for 64. The queue pair may get more: see Query.
	SendDepth, RecvDepth int
	// SendSGE and RecvSGE are the elements of one scatter/gather list; 0
	// stands for 4.
	SendSGE, RecvSGE int
	// IRD and ORD are how many RDMA Reads may be outstanding, inbound and
	// outbound; 0 stands for 16. NoReads sets both to zero.
	IRD, ORD int
	NoReads  bool
	// NoInboundRead and NoInboundWrite refuse the peer's RDMA Reads, and its
	// RDMA Writes and the answers to this side's Reads (figure 21). Both are
	// allowed by default; the rights of the regions count all the same.
	NoInboundRead, NoInboundWrite bool
	// CloseTimeout bounds the states Closing and Terminate; 0 stands for 5 s.
	CloseTimeout time.Duration
}

// QP is a Queue Pair (verbs draft chapter 6).
type QP struct {
	rnic *RNIC
	cfg  QPConfig
	q    *qp.QP
}

// CreateQP creates a Queue Pair in the Idle state. Errors: ErrInvalidRNIC,
// ErrInvalidPD, ErrInvalidCQ, ErrTooManyWR, ErrTooManySGE, ErrIRDExceeded,
// ErrORDExceeded, ErrInvalidModifier, ErrInsufficientResources.
func (r *RNIC) CreateQP(c QPConfig) (*QP, error) {
	c = c.withDefaults()
	r.mu.Lock()
	err := r.open()
	r.mu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("create QP: %w", err)
	}
	if c.PD != nil { // before r.mu is taken: Dealloc takes it second
		if err := c.PD.use(); err != nil {
			return nil, fmt.Errorf("create QP: %w", err)
		}
	}
	q, err := r.createQP(c)
	if err != nil && c.PD != nil {
		c.PD.unuse()
	}
	return q, err
}

// createQP is CreateQP with the PD counted in.
func (r *RNIC) createQP(c QPConfig) (*QP, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.checkQP(c); err != nil {
		return nil, fmt.Errorf("create QP: %w", err)
	}
	c.SendCQ.refs.Add(1)
	c.RecvCQ.refs.Add(1)
	q := &QP{rnic: r, cfg: c, q: qp.New(qp.Config{
		ID: QPID(r.nextID()), PD: c.PD.id, STags: r.stags,
		SendCQ: c.SendCQ.q, RecvCQ: c.RecvCQ.q,
		SendDepth: c.SendDepth, RecvDepth: c.RecvDepth,
		SendSGE: c.SendSGE, RecvSGE: c.RecvSGE,
		IRD: c.IRD, ORD: c.ORD,
		NoInboundRead: c.NoInboundRead, NoInboundWrite: c.NoInboundWrite,
		CloseTimeout: c.CloseTimeout, Events: r.events.raise,
	})}
	r.qps[q] = struct{}{}
	return q, nil
}

func (c QPConfig) withDefaults() QPConfig {
	set := func(p *int, d int) {
		if *p == 0 {
			*p = d
		}
	}
	set(&c.SendDepth, 64)
	set(&c.RecvDepth, 64)
	set(&c.SendSGE, 4)
	set(&c.RecvSGE, 4)
	set(&c.IRD, 16)
	set(&c.ORD, 16)
	if c.NoReads {
		c.IRD, c.ORD = 0, 0
	}
	return c
}

// checkQP finds the Immediate Errors of Create QP, with mu held.
func (r *RNIC) checkQP(c QPConfig) error {
	if err := r.open(); err != nil {
		return err
	}
	l := r.limits
	switch {
	case c.PD == nil || c.PD.rnic != r:
		return fmt.Errorf("%w: a PD of this RNIC is needed", wr.ErrInvalidPD)
	case !r.owns(c.SendCQ) || !r.owns(c.RecvCQ):
		return fmt.Errorf("%w: SendCQ and RecvCQ of this RNIC are needed", wr.ErrInvalidCQ)
	case c.SendDepth < 0 || c.RecvDepth < 0 || c.SendSGE < 0 || c.RecvSGE < 0 || c.IRD < 0 || c.ORD < 0:
		return fmt.Errorf("%w: a depth or limit is negative", wr.ErrInvalidModifier)
	case c.SendDepth > l.WR || c.RecvDepth > l.WR:
		return fmt.Errorf("%w: at most %d", wr.ErrTooManyWR, l.WR)
	case c.SendSGE > l.SGE || c.RecvSGE > l.SGE:
		return fmt.Errorf("%w: at most %d", wr.ErrTooManySGE, l.SGE)
	case c.IRD > l.IRD:
		return fmt.Errorf("%w: %d, at most %d", wr.ErrIRDExceeded, c.IRD, l.IRD)
	case c.ORD > l.ORD:
		return fmt.Errorf("%w: %d, at most %d", wr.ErrORDExceeded, c.ORD, l.ORD)
	case len(r.qps) >= l.QPs:
		return fmt.Errorf("%w: all %d queue pairs are in use", wr.ErrInsufficientResources, l.QPs)
	}
	return nil
}

// owns reports whether the CQ is one of this RNIC, with mu held.
func (r *RNIC) owns(c *CQ) bool {
	_, ok := r.cqs[c]
	return ok
}

// ID is the queue pair's identifier.
func (q *QP) ID() QPID { return q.q.ID() }

// PD is the queue pair's Protection Domain.
func (q *QP) PD() *PD { return q.cfg.PD }

// State is the state at this moment.
func (q *QP) State() State { return q.q.State() }

// PostSend posts work requests to the Send Queue, in order, and reports how many
// were posted: the first that is refused stops the list (verbs draft 9.3.1.1).
// It does not block, and keeps nothing of reqs; the memory named by their
// elements is in use until they complete. A request posted in Idle waits for
// RTS. Errors: ErrInvalidState, ErrInvalidOp, ErrInvalidSGLLength, ErrQueueFull.
func (q *QP) PostSend(reqs ...Send) (int, error) { return q.q.PostSend(reqs...) }

// PostRecv posts receives to the Receive Queue, in order, and reports how many
// were posted. Errors: ErrInvalidState, ErrInvalidSGLLength, ErrQueueFull.
func (q *QP) PostRecv(reqs ...Recv) (int, error) { return q.q.PostRecv(reqs...) }

// Query returns the queue pair's attributes (verbs draft 9.2.5.2).
func (q *QP) Query() QPAttributes { return q.q.Query() }

// Modify changes the state and attributes, all or nothing (verbs draft
// 9.2.5.3). See ModifyQP for the modifiers, and package cm for the usual way to
// RTS. Errors: ErrInvalidState, ErrInvalidLLPStream, ErrInvalidModifier,
// ErrORDExceeded, ErrStillFlushing, ErrInvalidQP.
func (q *QP) Modify(m ModifyQP) error { return q.q.Modify(m) }

// Drain waits until the queue pair has nothing left to send: no element on the
// Send Queue, no RDMA Read to answer. It returns nil then, and also if the
// stream ends, or ctx's error.
func (q *QP) Drain(ctx context.Context) error { return q.q.Drain(ctx) }

// Done returns a channel that is closed when the queue pair's current stream is
// gone; its state is Idle or Error then. It is closed if there is no stream.
func (q *QP) Done() <-chan struct{} { return q.q.Done() }

// Destroy destroys the queue pair in any state; a stream that is still there is
// reset. When it returns, nothing touches the memory of its work requests.
// Errors: ErrInvalidQP (it was already).
func (q *QP) Destroy() error {
	if err := q.q.Destroy(); err != nil {
		if errors.Is(err, wr.ErrInvalidQP) {
			return err
		}
		return fmt.Errorf("destroy QP: %w", err)
	}
	q.rnic.mu.Lock()
	delete(q.rnic.qps, q)
	q.rnic.mu.Unlock()
	q.cfg.SendCQ.refs.Add(-1)
	q.cfg.RecvCQ.refs.Add(-1)
	q.cfg.PD.unuse()
	return nil
}

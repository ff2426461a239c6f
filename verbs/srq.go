package verbs

import (
	"cmp"
	"fmt"
	"time"

	"github.com/softrnic/softrnic/srq"
	"github.com/softrnic/softrnic/wr"
)

// SRQConfig configures a Shared Receive Queue. PD is needed.
type SRQConfig struct {
	// PD is the domain of the buffers posted, whatever those of the queue pairs
	// are (verbs draft 6.3.5).
	PD *PD
	// Depth is how many receives may be outstanding; 0 stands for 64, or what
	// the RNIC has if less.
	Depth int
	// SGE are the elements of one scatter/gather list; 0 stands for 4.
	SGE int
	// Limit is the S-RQ Limit, 0 to Depth; above 0 it is armed (6.3.8).
	Limit int
	// StallTimeout is how long a message may make no progress while it keeps a receive,
	// when several streams take from the queue: a peer that begins messages and does not
	// end them would keep the receives from the others. Progress is octets placed. The
	// stream ends then, with EventSRQStalled; it may take a quarter longer until that is
	// noticed. 0 stands for 10 s, a negative time for never.
	//
	// A stream whose message finds no receive while others hold some so waits for one, also
	// without GracefulReceive, and for as long again when they have come back to the program.
	// While a stream waits, progress is 4 KiB.
	StallTimeout time.Duration
}

// SRQ is a Shared Receive Queue (verbs draft 6.3): receives for several queue
// pairs, which take them as messages arrive.
type SRQ struct {
	rnic *RNIC
	pd   *PD
	q    *srq.Queue
	refs int // queue pairs that use it; guarded by rnic.mu
}

// CreateSRQ creates a Shared Receive Queue (verbs draft 9.2.4.1). Errors:
// ErrInvalidRNIC, ErrInvalidPD, ErrTooManyWR, ErrTooManySGE, ErrSRQLimitRange,
// ErrInvalidModifier (a negative depth), ErrInsufficientResources (also without
// FeatureSRQ).
func (r *RNIC) CreateSRQ(c SRQConfig) (_ *SRQ, err error) {
	defer asRefused(&err, "Create S-RQ", "verbs draft 9.2.4.1", Reason{})
	c.Depth = cmp.Or(c.Depth, min(64, r.limits.SRQWR))
	c.SGE = cmp.Or(c.SGE, 4)
	if err := r.lock(); err != nil {
		return nil, err
	}
	defer r.mu.Unlock()
	err = r.checkSRQ(c)
	if err == nil {
		err = r.usePD(c.PD)
	}
	if err != nil {
		return nil, err
	}
	s := &SRQ{rnic: r, pd: c.PD, q: srq.New(srq.Config{
		ID: SRQID(r.nextID()), PD: c.PD.id, Depth: c.Depth, SGE: c.SGE, Limit: c.Limit,
		StallTimeout: c.StallTimeout, Events: r.raise, Inventory: r.counted,
	})}
	r.srqs[s.ID()] = s
	return s, nil
}

// checkSRQ finds the Immediate Errors of Create S-RQ but that of the PD, with mu
// held.
func (r *RNIC) checkSRQ(c SRQConfig) error {
	l := r.limits
	switch {
	case r.without&FeatureSRQ != 0:
		return &wr.Reason{Err: wr.ErrInsufficientResources, What: "the RNIC is without FeatureSRQ", Remedy: "open it with that, or let the queue pair have its own receives"}
	case len(r.srqs) >= l.SRQs:
		return &wr.Reason{Err: wr.ErrInsufficientResources, What: fmt.Sprintf("all %d S-RQs are in use", l.SRQs)}
	case c.Depth < 0 || c.SGE < 0:
		return &wr.Reason{Err: wr.ErrInvalidModifier, What: "a depth or limit is negative", Remedy: "leave it zero for the default"}
	case c.Limit < 0 || c.Limit > c.Depth:
		return &wr.Reason{Err: wr.ErrSRQLimitRange, What: fmt.Sprintf("%d, at most %d", c.Limit, c.Depth), Rule: "RV-6.3.8-M17"}
	}
	return cmp.Or(atMost(wr.ErrTooManyWR, c.Depth, l.SRQWR), atMost(wr.ErrTooManySGE, c.SGE, l.SGE))
}

// ID is the queue's identifier.
func (s *SRQ) ID() SRQID { return s.q.ID() }

// PD is the queue's Protection Domain.
func (s *SRQ) PD() *PD { return s.pd }

// PostRecv posts receives, in order, and reports how many were posted: the first
// that is refused stops the list (verbs draft 9.3.1.2). It does not block.
// Errors: ErrInvalidRNIC, ErrInvalidSRQ, ErrInvalidSGLLength, ErrInvalidSGLFormat, ErrQueueFull (a
// receive counts until its completion is reaped).
func (s *SRQ) PostRecv(reqs ...Recv) (int, error) {
	if s == nil {
		return 0, refusePostRecv(errNilSRQ, Reason{}, reqs)
	}
	n, err := s.q.Post(reqs...)
	if err != nil {
		err = refusePostRecv(s.rnic.explain(err), Reason{}, reqs[n:])
	}
	return n, err
}

// check begins a verb on the queue, with rnic.mu held.
func (s *SRQ) check() error {
	if s.rnic.srqs[s.ID()] != s {
		return s.destroyed()
	}
	return nil
}

// destroyed refuses a verb on a queue that is not there any more.
func (s *SRQ) destroyed() error {
	return &wr.Reason{Err: wr.ErrInvalidSRQ, What: fmt.Sprintf("S-RQ %d was destroyed", s.ID())}
}

// SRQAttributes are what Query S-RQ returns (verbs draft 9.2.4.2).
type SRQAttributes struct {
	// Depth, SGE and Limit are as in SRQConfig; Depth as allocated, which is
	// exactly what was asked for.
	Depth, SGE, Limit int
	PD                PDID
	// Armed is the S-RQ Limit Armed Indicator.
	Armed bool
}

// Query returns the queue's attributes (verbs draft 9.2.4.2). Errors:
// ErrInvalidRNIC, ErrInvalidSRQ.
func (s *SRQ) Query() (_ SRQAttributes, err error) {
	defer asRefused(&err, "Query S-RQ", "verbs draft 9.2.4.2", Reason{})
	if s == nil {
		return SRQAttributes{}, errNilSRQ
	}
	if err := s.rnic.closedError(); err != nil {
		return SRQAttributes{}, err
	}
	if s.rnic.SRQ(s.ID()) != s {
		return SRQAttributes{}, s.destroyed()
	}
	return SRQAttributes(s.q.Query()), nil
}

// Modify changes the queue's depth and limit, or arms the limit again, all or
// nothing and whatever is under way (verbs draft 9.2.4.3). Errors:
// ErrInvalidRNIC, ErrInvalidSRQ, ErrTooManyWR, ErrShrinkFailed (more receives are
// outstanding), ErrSRQLimitRange, ErrInvalidModifier (a depth below 1 or below an
// armed limit; a depth at all without FeatureResize).
func (s *SRQ) Modify(m ModifySRQ) (err error) {
	defer asRefused(&err, "Modify S-RQ", "verbs draft 9.2.4.3", Reason{})
	if s == nil {
		return errNilSRQ
	}
	if err := s.rnic.lock(); err != nil {
		return err
	}
	defer s.rnic.mu.Unlock()
	if err := s.checkModify(m); err != nil {
		return err
	}
	return s.q.Modify(srq.Modify(m))
}

// checkModify finds the Immediate Errors that the RNIC knows of, with rnic.mu
// held.
func (s *SRQ) checkModify(m ModifySRQ) error {
	if err := s.check(); err != nil || m.Depth == nil {
		return err
	}
	if s.rnic.without&FeatureResize != 0 {
		return &wr.Reason{Err: wr.ErrInvalidModifier, What: "this RNIC does not resize queues", Remedy: "open it with FeatureResize, or make another S-RQ"}
	}
	return atMost(wr.ErrTooManyWR, *m.Depth, s.rnic.limits.SRQWR)
}

// Destroy destroys the queue (verbs draft 9.2.4.4). When it returns nothing
// touches the memory of receives that were not completed, which are lost.
// Errors: ErrInvalidRNIC, ErrInvalidSRQ (it was already), ErrSRQInUse (a queue
// pair uses it).
func (s *SRQ) Destroy() (err error) {
	defer asRefused(&err, "Destroy S-RQ", "verbs draft 9.2.4.4", Reason{})
	if s == nil {
		return errNilSRQ
	}
	if err := s.rnic.lock(); err != nil {
		return err
	}
	defer s.rnic.mu.Unlock()
	if err := s.check(); err != nil {
		return err
	}
	if s.refs > 0 {
		return &wr.Reason{Err: wr.ErrSRQInUse, What: fmt.Sprintf("%d queue pairs use S-RQ %d", s.refs, s.ID()), Rule: "RV-6.3.3-M1"}
	}
	delete(s.rnic.srqs, s.ID())
	s.rnic.ended.addSRQ(s.Stats())
	s.q.Close()
	s.pd.release()
	return nil
}

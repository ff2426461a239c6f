package verbs

import "fmt"

// CreateEndpoint is CreateQP for a queue pair that needs nothing shared: a nil PD,
// SendCQ or RecvCQ stands for one of the queue pair's own (QP.PD, QP.SendCQ,
// QP.RecvCQ). Those CQs have room for all that the queues can hold; who resizes a queue later
// resizes its CQ first. They end with
// the queue pair, or with the last that was created on them too; the PD with the
// last region, window or queue in it. Errors: those of AllocatePD, CreateCQ and
// CreateQP.
func (r *RNIC) CreateEndpoint(c QPConfig) (*QP, error) {
	var pd *PD
	var cqs []*CQ
	undo := func(err error) (*QP, error) {
		for _, cq := range cqs {
			_ = cq.Destroy()
		}
		if pd != nil {
			_ = pd.Deallocate()
		}
		return nil, fmt.Errorf("create endpoint: %w", err)
	}
	var err error
	if c.PD == nil {
		if pd, err = r.AllocatePD(); err != nil {
			return undo(err)
		}
		c.PD = pd
	}
	sized := c.withDefaults(r.limits)
	if c.SRQ != nil {
		sized.RecvDepth = c.SRQ.q.Query().Depth
	}
	for _, own := range []struct {
		cq    **CQ
		depth int
	}{{&c.SendCQ, sized.SendDepth}, {&c.RecvCQ, sized.RecvDepth}} {
		if *own.cq != nil {
			continue
		}
		if *own.cq, err = r.CreateCQ(CQConfig{Entries: r.roomFor(own.depth)}); err != nil {
			return undo(err)
		}
		cqs = append(cqs, *own.cq)
	}
	q, err := r.CreateQP(c)
	if err != nil {
		return undo(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if pd != nil {
		pd.ends = true
	}
	for _, cq := range cqs {
		cq.ends = true
	}
	return q, nil
}

// roomFor is how many completions a work queue of a depth can have outstanding: a
// queue pair rounds its depth up to a power of two. What CreateQP refuses stays.
func (r *RNIC) roomFor(depth int) int {
	n := 1
	for n < min(depth, max(r.limits.WR, r.limits.SRQWR)) {
		n <<= 1
	}
	return n
}

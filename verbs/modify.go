package verbs

import (
	"cmp"

	"github.com/softrnic/softrnic/qp"
	"github.com/softrnic/softrnic/wr"
)

// Modify changes the state and attributes, all or nothing (verbs draft
// 9.2.5.3). See ModifyQP for the modifiers, and package cm for the usual way to
// RTS. Query tells what was allocated; if the RNIC shares RDMA Read resources
// that may be less than asked for, but at least 1. Errors: ErrInvalidRNIC,
// ErrInvalidQP, ErrInvalidState, ErrInvalidLLPStream, ErrInvalidModifier,
// ErrTooManyWR, ErrShrinkFailed, ErrORDExceeded, ErrIRDExceeded, ErrRQLimitRange,
// ErrStillFlushing, ErrInsufficientResources, ErrCannotChangeAttribute (the RNIC
// is without the feature).
func (q *QP) Modify(m ModifyQP) (err error) {
	defer asRefused(&err, "Modify QP", "verbs draft 9.2.5.3", q.about())
	if q == nil {
		return errNilQP
	}
	if err := q.check(); err != nil {
		return err
	}
	if err := q.checkModify(m); err != nil {
		return err
	}
	err = q.modify(m)
	if q.rnic.health.Load() == failed {
		q.bringDown() // failed meanwhile: it may have missed the queue pair
	}
	q.rnic.traceVerb("Modify QP", q.ID(), 0, 0, 0, err)
	return q.rnic.explain(err)
}

func (q *QP) modify(m ModifyQP) error {
	stream, err := q.instrument(&m)
	if err != nil {
		return err
	}
	if m.IRD == nil && m.ORD == nil {
		return q.q.Modify(m.qp(stream))
	}
	q.reads.Lock()
	defer q.reads.Unlock()
	if err := q.raisesORD(m); err != nil {
		return err
	}
	have, got, err := q.reserve(&m)
	if err != nil {
		return err
	}
	err = q.q.Modify(m.qp(stream))
	q.settle(have, got, err == nil)
	return err
}

// checkModify finds the Immediate Errors that the RNIC knows of: those of its
// limits and features.
func (q *QP) checkModify(m ModifyQP) error {
	l, without := q.rnic.limits, q.rnic.without
	given := func(p *int) int {
		if p == nil {
			return 0
		}
		return *p
	}
	switch {
	case without&FeatureResize != 0 && (m.SendDepth != nil || m.RecvDepth != nil):
		return &wr.Reason{Err: wr.ErrCannotChangeAttribute, What: "this RNIC does not resize queues"}
	case without&FeatureChangeIRD != 0 && m.IRD != nil:
		return &wr.Reason{Err: wr.ErrCannotChangeAttribute, What: "this RNIC does not change IRD"}
	}
	return cmp.Or(
		atMost(wr.ErrTooManyWR, max(given(m.SendDepth), given(m.RecvDepth)), l.WR),
		l.checkReads(given(m.IRD), given(m.ORD)),
	)
}

// raisesORD refuses what only an RNIC with FeatureRaiseORD does, with reads held.
func (q *QP) raisesORD(m ModifyQP) error {
	if q.rnic.without&FeatureRaiseORD != 0 && m.ORD != nil && *m.ORD > q.readLimits().ord {
		return &wr.Reason{Err: wr.ErrCannotChangeAttribute, What: "this RNIC does not raise ORD"}
	}
	return nil
}

// readLimits are reservations of RDMA Read resources.
type readLimits struct{ ird, ord int }

func (q *QP) readLimits() readLimits {
	q.rnic.mu.Lock()
	defer q.rnic.mu.Unlock()
	return readLimits{q.ird, q.ord}
}

// reserve takes from the RNIC's pools what m asks for beyond what the queue pair
// has, and puts what it got into m. Nothing is given back yet: what the queue
// pair refuses has to stay as it was. It is called with reads held.
func (q *QP) reserve(m *ModifyQP) (have, got readLimits, err error) {
	r := q.rnic
	r.mu.Lock()
	defer r.mu.Unlock()
	have = readLimits{q.ird, q.ord}
	got = have
	if m.IRD != nil {
		if got.ird, err = r.ird.raise("IRD", have.ird, *m.IRD); err != nil {
			return have, have, err
		}
		m.IRD = &got.ird
	}
	if m.ORD != nil {
		if got.ord, err = r.ord.raise("ORD", have.ord, *m.ORD); err != nil {
			r.ird.give(max(got.ird-have.ird, 0))
			return have, have, err
		}
		m.ORD = &got.ord
	}
	return have, got, nil
}

// settle ends what reserve began.
func (q *QP) settle(have, got readLimits, changed bool) {
	r := q.rnic
	r.mu.Lock()
	defer r.mu.Unlock()
	if changed {
		q.ird, q.ord = got.ird, got.ord
		r.ird.give(max(have.ird-got.ird, 0))
		r.ord.give(max(have.ord-got.ord, 0))
		return
	}
	r.ird.give(max(got.ird-have.ird, 0))
	r.ord.give(max(got.ord-have.ord, 0))
}

// bringDown ends the queue pair because the RNIC has failed. When it returns no
// post is accepted any more, but in the Closing state: that may still end in Idle,
// so somebody waits for it.
func (q *QP) bringDown() {
	q.q.FailGlobal()
	_ = q.q.Modify(qp.Modify{Next: StateTerminate}) // refused, once the stream has left RTS
	r := q.rnic
	r.mu.Lock()
	defer r.mu.Unlock()
	if q.State() == StateClosing && r.health.Load() == failed { // else Close may not see it begin
		r.calls.Go(func() {
			<-q.q.Done()
			q.q.FailGlobal()
		})
	}
}

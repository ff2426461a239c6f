package qp

import (
	"fmt"

	"github.com/softrnic/softrnic/wr"
)

// sizes are what Modify QP may resize with work outstanding: the depths of the
// work queues, and the IRRQ's, which is the IRD.
type sizes struct{ send, recv, ird int }

// sizes are the present ones, with mu held.
func (q *QP) sizes() sizes {
	x := sizes{send: q.sq.slots.depth(), recv: q.rq.slots.depth(), ird: q.ird}
	if s := q.session.Load(); s != nil {
		x.ird = s.irrq.size()
	}
	return x
}

// with is x with what m asks for.
func (x sizes) with(m *Modify) sizes {
	for _, c := range []struct{ size, want *int }{
		{&x.send, m.SendDepth}, {&x.recv, m.RecvDepth}, {&x.ird, m.IRD},
	} {
		if c.want != nil {
			*c.size = *c.want
		}
	}
	return x
}

// min is the smaller of each two.
func (x sizes) min(y sizes) sizes {
	return sizes{min(x.send, y.send), min(x.recv, y.recv), min(x.ird, y.ird)}
}

// resize makes all sizes x, or none: wr.ErrShrinkFailed if more is outstanding in
// one of them (RV-6.1.3-M10, M11). The queues become deeper than asked for, see
// ringSize. The caller has mu; no post can come between.
func (q *QP) resize(x sizes) error {
	q.sq.postMu.Lock()
	defer q.sq.postMu.Unlock()
	q.rq.postMu.Lock()
	defer q.rq.postMu.Unlock()
	if n := q.sq.reclaim(); n > uint64(x.send) {
		return fmt.Errorf("%w: %d sends are outstanding", wr.ErrShrinkFailed, n)
	}
	if n := q.rq.reclaim(); n > uint64(x.recv) {
		return fmt.Errorf("%w: %d receives are outstanding", wr.ErrShrinkFailed, n)
	}
	if s := q.session.Load(); s != nil && x.ird != s.irrq.size() && !s.irrq.resize(x.ird) {
		return fmt.Errorf("%w: inbound RDMA Reads are outstanding", wr.ErrShrinkFailed)
	}
	q.sq.resize(x.send)
	q.rq.resize(x.recv)
	return nil
}

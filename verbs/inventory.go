package verbs

import (
	"fmt"

	"github.com/softrnic/softrnic/internal/inventory"
)

// released is what there was when the RNIC was closed. All that has used it is gone then, or goes with a verb that is
// about to end: what is still counted as used has been forgotten by somebody.
type released struct {
	pds  []*PD
	cqs  []*CQ
	srqs []*SRQ
}

// from counts out what Close has taken away, with r.mu held.
func (l *released) from(r *RNIC, regions map[PDID]int) {
	for _, p := range r.pds {
		l.pds = append(l.pds, p)
		p.refs -= regions[p.id]
		p.ends = false // nothing ends with the last user any more: all has
	}
	for _, c := range r.cqs {
		l.cqs = append(l.cqs, c)
		c.ends = false
	}
	for _, s := range r.srqs {
		l.srqs = append(l.srqs, s)
		s.pd.refs--
	}
	for _, q := range r.qps {
		q.countOut()
	}
	for w := range r.windows {
		w.pd.refs--
	}
}

// count is an inventory.CounterFunc.
func (r *RNIC) count(tell inventory.Tell) {
	r.mu.Lock()
	defer r.mu.Unlock()
	tell(len(r.pds), "PD")
	tell(len(r.cqs), "CQ")
	tell(len(r.srqs), "S-RQ")
	tell(len(r.qps), "QP")
	tell(len(r.windows), "window")
	tell(len(r.handlers), "completion handler")
	if r.health.Load() != closed {
		return
	}
	for _, p := range r.released.pds {
		tell(p.refs, fmt.Sprintf("user of PD %d", p.id))
	}
	for _, c := range r.released.cqs {
		tell(c.refs, fmt.Sprintf("work queue of CQ %d", c.ID()))
		tell(len(c.tied), fmt.Sprintf("queue pair of CQ %d", c.ID()))
	}
	for _, s := range r.released.srqs {
		tell(s.refs, fmt.Sprintf("queue pair of S-RQ %d", s.ID()))
	}
	tell(r.ird.used, "share of the RNIC's IRD")
	tell(r.ord.used, "share of the RNIC's ORD")
}

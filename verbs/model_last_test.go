package verbs_test

import (
	"errors"

	"github.com/softrnic/softrnic/lab/fault"
	"github.com/softrnic/softrnic/verbs"
)

// What breaks, and how a world ends.

// failObject breaks something (figures 24 and 25).
func (w *modelWorld) failObject(n *modelNode) {
	switch w.rng.IntN(3) {
	case 0:
		w.failQP(n)
	case 1:
		if c, ok := object(w, n.cqs, goneCQ); ok {
			w.say("%v fails", c)
			fault.Provoke(c.real)
			if !c.failed && !c.gone {
				n.raise(verbs.Event{ID: verbs.EventCQOperation, CQ: c.real.ID()})
			}
			c.failed = true
		}
	default:
		w.failSRQ(n)
	}
}

func (w *modelWorld) failQP(n *modelNode) {
	q, ok := object(w, n.qps, goneQP)
	if !ok || q.peer != nil && !q.peer.sees() {
		return
	}
	w.say("%v fails", q)
	fault.Provoke(q.real)
	switch {
	case q.gone:
	case q.state == verbs.StateRTS:
		q.fault(catastrophe, nil)
	case q.state == verbs.StateIdle:
		q.raise(catastrophe.event)
		q.stale = true
		q.flush(verbs.StateError, nil, 0, nil)
	}
}

func (w *modelWorld) failSRQ(n *modelNode) {
	s, ok := object(w, n.srqs, goneSRQ)
	if !ok {
		return
	}
	for _, q := range n.qps {
		if q.srq == s && q.peer != nil && len(q.peer.held) > 0 {
			return // its end would not be seen
		}
	}
	w.say("%v fails", s)
	fault.Provoke(s.real)
	if !s.failed && !s.gone {
		n.raise(verbs.Event{ID: verbs.EventSRQCatastrophic, SRQ: s.real.ID()})
	}
	s.failed = true
	s.fed()
}

// fed lets a queue pair go on that waits for a receive. There is one at most, or it
// would be open which of them gets it.
func (s *modelSRQ) fed() {
	for _, q := range s.node.qps {
		if !q.gone && q.srq == s {
			q.resume()
		}
	}
}

// lastAct ends a world: an RNIC may fail, then both close, with all that is going
// on.
func (w *modelWorld) lastAct() {
	w.log = append(w.log, "-- last act")
	for _, n := range w.nodes {
		for _, q := range n.qps {
			if !q.sees() {
				w.say("%v to Error", q)
				q.abort()
				w.same(nil, q.real.Modify(verbs.ModifyQP{Next: verbs.StateError}))
				w.compare()
			}
		}
	}
	w.compare()
	for _, n := range w.nodes {
		w.pollAll(n)
	}
	// Of several queue pairs that end at once it is open whose completions are lost.
	if w.one(2) && !w.nodes[0].crowded() && !w.nodes[1].crowded() {
		w.failRNIC(w.nodes[w.rng.IntN(2)])
		w.compare()
		for _, n := range w.nodes {
			w.pollAll(n)
		}
	}
	for _, n := range w.nodes {
		if !n.failed && w.one(2) {
			w.tearDown(n)
		}
	}
	for _, n := range w.nodes {
		w.closeRNIC(n)
	}
}

// tearDown destroys everything in the order of 5.1.1.2. So every count of users comes
// to nothing.
func (w *modelWorld) tearDown(n *modelNode) {
	for _, m := range living(n.windows, goneWindow) {
		w.deallocateThis(m)
	}
	for _, q := range living(n.qps, goneQP) {
		w.destroyThis(q)
		w.compare() // one stream ends after the other
	}
	for _, r := range living(n.regions, goneRegion) {
		w.deregisterThis(r)
	}
	for _, s := range living(n.srqs, goneSRQ) {
		w.destroySRQThis(s)
	}
	for _, c := range living(n.cqs, goneCQ) {
		w.destroyCQThis(c)
	}
	for _, p := range living(n.pds, gonePD) {
		w.deallocThis(n, p)
		if !p.gone {
			w.fail("%v is still in use", p)
		}
	}
	w.compare()
}

// crowded reports whether a CQ has too little room for all that is outstanding.
func (n *modelNode) crowded() bool {
	for _, c := range n.cqs {
		left := c.size - len(c.entries)
		for _, q := range n.qps {
			if q.send == c {
				left -= len(q.sq)
			}
			if q.recv == c {
				left -= len(q.rq)
			}
		}
		if left < 0 {
			return true
		}
	}
	return false
}

// failRNIC is an RNIC Catastrophic Failure (figure 25).
func (w *modelWorld) failRNIC(n *modelNode) {
	w.say("RNIC %d fails", n.number)
	n.raise(verbs.Event{ID: verbs.EventRNICCatastrophic})
	n.failed = true
	for _, q := range n.qps {
		switch {
		case q.gone:
		case q.state == verbs.StateRTS:
			q.fault(globally, nil)
		case q.state == verbs.StateIdle:
			q.stale = true
			q.flush(verbs.StateError, nil, 0, nil)
		}
	}
	for _, s := range n.srqs {
		s.failed = true
	}
	fault.Provoke(n.nic)
	w.refuses(n)
}

// refuses sees that the verbs of n say that there is no such RNIC.
func (w *modelWorld) refuses(n *modelNode) {
	check := func(what string, err error) {
		if !errors.Is(err, verbs.ErrInvalidRNIC) {
			w.fail("RNIC %d, %s: %v", n.number, what, err)
		}
	}
	check("PD", second(n.nic.AllocatePD()))
	check("CQ", second(n.nic.CreateCQ(verbs.CQConfig{})))
	check("pages", second(n.nic.AllocatePages(1, 4096)))
	check("handler", second(n.nic.AddCompletionHandler(func(*verbs.CQ) {})))
	for _, p := range n.pds {
		check("S-RQ", second(n.nic.CreateSRQ(verbs.SRQConfig{PD: p.real})))
		check("region", second(p.real.Register(n.heap.real[:1], verbs.LocalRead)))
		check("STag", second(p.real.AllocateRegion(verbs.AllocateConfig{})))
		check("window", second(p.real.AllocateWindow()))
		check("PD", p.real.Deallocate())
	}
	for _, q := range n.qps {
		check("modify", q.real.Modify(verbs.ModifyQP{}))
		check("destroy", q.real.Destroy())
		check("send", second(q.real.PostSend(verbs.Request{})))
		check("receive", second(q.real.PostRecv(verbs.Recv{})))
	}
	for _, c := range n.cqs {
		check("resize", c.real.Resize(5))
		check("notify", c.real.Notify(verbs.NotifyNext))
		check("destroy", c.real.Destroy())
	}
	for _, s := range n.srqs {
		check("modify", s.real.Modify(verbs.ModifySRQ{}))
		check("receive", second(s.real.PostRecv(verbs.Recv{})))
		check("destroy", s.real.Destroy())
	}
	for _, r := range n.regions {
		check("deregister", r.real.Deregister())
		check("reregister", r.real.Reregister(nil, verbs.RegionConfig{}))
		check("share", second(r.real.RegisterShared(nil, verbs.SharedConfig{})))
	}
	for _, m := range n.windows {
		check("deallocate", m.real.Deallocate())
	}
	for _, p := range n.pages {
		check("free", p.real.Deallocate())
	}
}

// closeRNIC is 9.2.1.3. The peers of its queue pairs are reset.
func (w *modelWorld) closeRNIC(n *modelNode) {
	w.say("close RNIC %d", n.number)
	other := w.nodes[1-n.number]
	for _, q := range n.qps {
		switch {
		case q.gone:
		case q.state == verbs.StateRTS:
			q.abort()
		case q.state == verbs.StateIdle:
			q.flush(verbs.StateError, nil, 0, nil)
		}
	}
	w.must(n.nic.Close())
	n.closed = true
	n.compareReports() // Close has waited for handlers
	w.refuses(n)
	for _, c := range n.cqs {
		if _, err := c.real.PollOne(); !errors.Is(err, verbs.ErrInvalidRNIC) {
			w.fail("%v: %v after Close", c, err)
		}
	}
	if other.closed {
		return
	}
	other.settle()
	other.compareReports()
	other.compareQueues()
	other.compareQPs()
	other.compareSTags()
	other.compareMemory()
}

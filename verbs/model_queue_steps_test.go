package verbs_test

import (
	"context"
	"slices"

	"github.com/softrnic/softrnic/verbs"
)

// createCQ is 9.2.3.1.
func (w *modelWorld) createCQ(n *modelNode) {
	c := &modelCQ{node: n, size: pick(w, 0, 20, 30, 40, 60)}
	if !w.careful {
		c.size = pick(w, c.size, 1, 2, 3, 5)
	}
	if w.wrong() {
		c.size = pick(w, -1, n.limits.CQE+1)
	}
	conf := verbs.CQConfig{Entries: c.size}
	if len(n.handlers) > 0 && w.one(2) {
		c.handler = pick(w, n.handlers...)
		conf.Handler = c.handler.real
	} else if w.wrong() {
		conf.Handler = 99999
	}
	var want error
	switch {
	case c.size < 0:
		want = verbs.ErrInvalidModifier
	case c.size > n.limits.CQE:
		want = verbs.ErrTooManyCQE
	case conf.Handler != 0 && (c.handler == nil || c.handler.gone):
		want = verbs.ErrInvalidEventHandler
	case len(living(n.cqs, goneCQ)) >= n.limits.CQs:
		want = verbs.ErrInsufficientResources
	}
	w.say("%d: create CQ %+v", n.number, conf)
	var err error
	c.real, err = n.nic.CreateCQ(conf)
	w.same(want, err)
	if err == nil {
		w.allocated("entries", c.size, entries(c.real))
		c.size = entries(c.real)
		n.cqs = append(n.cqs, c)
	}
}

// allocated checks a size that may be more than was asked for.
func (w *modelWorld) allocated(what string, asked, got int) {
	if got < asked {
		w.fail("%d %s, asked for %d", got, what, asked)
	}
}

// resizeCQ is 9.2.3.3.
func (w *modelWorld) resizeCQ(n *modelNode) {
	c, ok := object(w, n.cqs, goneCQ)
	if !ok {
		return
	}
	size := n.limits.CQE/2 + w.rng.IntN(n.limits.CQE/2)
	if w.one(5) {
		size = max(len(c.entries)-1+w.rng.IntN(3), 1)
	} else if w.wrong() {
		size = pick(w, 0, -5, n.limits.CQE+1)
	}
	var want error
	switch {
	case size > n.limits.CQE:
		want = verbs.ErrTooManyCQE
	case size < 1:
		want = verbs.ErrInvalidModifier
	case c.gone:
		want = verbs.ErrInvalidCQ
	case size < len(c.entries):
		want = verbs.ErrShrinkFailed
	}
	w.say("resize %v to %d", c, size)
	w.same(want, c.real.Resize(size))
	if want == nil {
		w.allocated("entries", size, entries(c.real))
		c.size = entries(c.real)
		c.full = c.full && c.room() == 0
	}
}

// destroyCQ is 9.2.3.4.
func (w *modelWorld) destroyCQ(n *modelNode) {
	if c, ok := object(w, n.cqs, goneCQ); ok {
		w.destroyCQThis(c)
	}
}

func (w *modelWorld) destroyCQThis(c *modelCQ) {
	var want error
	switch {
	case c.gone:
		want = verbs.ErrInvalidCQ
	case c.ties > 0:
		want = verbs.ErrCQInUse
	}
	w.say("destroy %v", c)
	w.same(want, c.real.Destroy())
	if want == nil {
		c.gone = true
		for _, e := range c.entries { // no more polled: its slots are free
			e.reaped()
		}
		c.entries = nil
	}
}

// notify is 9.3.2.2, and taking the token.
func (w *modelWorld) notify(n *modelNode) {
	c, ok := object(w, n.cqs, goneCQ)
	if !ok {
		return
	}
	if used := living(n.cqs, func(c *modelCQ) bool { return c.gone || c.ties == 0 }); len(used) > 0 && !w.one(4) {
		c = pick(w, used...)
	}
	if c.token {
		w.say("take the token of %v", c)
		<-c.real.Events()
		c.token = false
		return
	}
	t := pick(w, verbs.NotifyNext, verbs.NotifySolicited)
	if w.wrong() {
		t = 9
	}
	var want error
	switch {
	case t == 9:
		want = verbs.ErrInvalidNotifyType
	case c.gone:
		want = verbs.ErrInvalidCQ
	}
	w.say("notify %v %d", c, t)
	if w.one(2) {
		w.same(want, c.real.User().Notify(t))
	} else {
		w.same(want, c.real.Notify(t))
	}
	if want != nil {
		return
	}
	c.request(t)
	if w.one(2) { // again, weaker or stronger
		t = verbs.NotifyNext + verbs.NotifySolicited - t
		w.say("notify %v %d", c, t)
		w.same(nil, c.real.Notify(t))
		c.request(t)
	}
}

// poll is 9.3.2.1, in all its forms.
func (w *modelWorld) poll(n *modelNode) {
	c, ok := object(w, n.cqs, goneCQ)
	if !ok {
		return
	}
	// Mostly one that has something.
	if full := living(n.cqs, func(c *modelCQ) bool { return len(c.entries) == 0 }); len(full) > 0 && !w.one(5) {
		c = pick(w, full...)
	}
	if w.one(2) {
		w.say("poll %v", c)
		got, err := c.real.PollOne()
		var want error
		switch {
		case c.gone:
			want = verbs.ErrInvalidCQ
		case len(c.entries) == 0:
			want = verbs.ErrCQEmpty
		}
		w.same(want, err)
		if err == nil {
			w.reap(c, got)
		}
		return
	}
	list := make([]verbs.Completion, 1+w.rng.IntN(20))
	most := min(len(list), len(c.entries))
	w.say("poll %v for %d of %d", c, len(list), len(c.entries))
	var got int
	switch {
	case most > 0 && w.one(3):
		var err error
		got, err = c.real.Wait(context.Background(), list)
		w.must(err)
	case w.one(2):
		got = c.real.User().Poll(list)
	default:
		got = c.real.Poll(list)
	}
	w.equal("completions", c, most, got)
	for _, d := range list[:got] {
		w.reap(c, d)
	}
}

func (w *modelWorld) pollAll(n *modelNode) {
	for _, c := range n.cqs {
		for len(c.entries) > 0 {
			w.say("poll %v", c)
			got, err := c.real.PollOne()
			w.must(err)
			w.reap(c, got)
		}
	}
}

func (w *modelWorld) reap(c *modelCQ, got verbs.Completion) {
	if !c.reap(got) {
		w.fail("%v: %+v, the model has %+v", c, got, c.entries)
	}
	w.count["completed: "+got.Status.String()]++
}

// createSRQ is 9.2.4.1.
func (w *modelWorld) createSRQ(n *modelNode) {
	p, ok := object(w, n.pds, gonePD)
	if !ok {
		return
	}
	s := &modelSRQ{node: n, pd: p, depth: pick(w, 6, 8, n.limits.SRQWR), sge: pick(w, 1, 4, n.limits.SGE)}
	s.limit = w.rng.IntN(3)
	if w.wrong() {
		switch w.rng.IntN(4) {
		case 0:
			s.depth = pick(w, -1, n.limits.SRQWR+1)
		case 1:
			s.sge = pick(w, -1, n.limits.SGE+1)
		default:
			s.limit = pick(w, -1, s.depth+1)
		}
	}
	var want error
	switch {
	case len(living(n.srqs, goneSRQ)) >= n.limits.SRQs:
		want = verbs.ErrInsufficientResources
	case s.depth < 0, s.sge < 0:
		want = verbs.ErrInvalidModifier
	case s.depth > n.limits.SRQWR:
		want = verbs.ErrTooManyWR
	case s.sge > n.limits.SGE:
		want = verbs.ErrTooManySGE
	case s.limit < 0, s.limit > s.depth:
		want = verbs.ErrSRQLimitRange
	case p.gone:
		want = verbs.ErrInvalidPD
	}
	w.say("%d: create S-RQ depth %d SGE %d limit %d %v", n.number, s.depth, s.sge, s.limit, p)
	var err error
	s.real, err = n.nic.CreateSRQ(verbs.SRQConfig{PD: p.real, Depth: s.depth, SGE: s.sge, Limit: s.limit})
	w.same(want, err)
	if err == nil {
		a, err := s.real.Query()
		w.must(err)
		w.allocated("receives", s.depth, a.Depth)
		w.allocated("elements", s.sge, a.SGE)
		s.depth, s.sge, s.armed = a.Depth, a.SGE, s.limit > 0
		p.users++
		n.srqs = append(n.srqs, s)
	}
}

// starved reports whether a queue pair waits for a receive of s.
func (s *modelSRQ) starved() bool {
	return slices.ContainsFunc(s.node.qps, func(q *modelQP) bool { return !q.gone && q.srq == s && len(q.held) > 0 })
}

// modifySRQ is 9.2.4.3.
func (w *modelWorld) modifySRQ(n *modelNode) {
	s, ok := object(w, n.srqs, goneSRQ)
	if !ok || s.starved() { // when it looked for a receive cannot be told
		return
	}
	var m verbs.ModifySRQ
	depth, limit := s.depth, s.limit
	if w.one(2) {
		depth = pick(w, s.used, s.used-1, 1+w.rng.IntN(n.limits.SRQWR), n.limits.SRQWR)
		if w.wrong() {
			depth = pick(w, 0, -1, n.limits.SRQWR+1)
		}
		m.Depth = &depth
	}
	if w.one(2) {
		limit = w.rng.IntN(4)
		if w.wrong() {
			limit = pick(w, -1, depth+1)
		}
		m.Limit = &limit
	}
	m.Rearm = w.one(2)
	armed := (s.armed || m.Rearm) && limit > 0
	var want error
	switch {
	case s.gone:
		want = verbs.ErrInvalidSRQ
	case m.Depth != nil && n.without&verbs.FeatureResize != 0:
		want = verbs.ErrInvalidModifier
	case depth > n.limits.SRQWR:
		want = verbs.ErrTooManyWR
	case depth < 1:
		want = verbs.ErrInvalidModifier
	case m.Limit != nil && (limit < 0 || limit > depth):
		want = verbs.ErrSRQLimitRange
	case armed && limit > depth:
		want = verbs.ErrInvalidModifier
	case depth < s.used:
		want = verbs.ErrShrinkFailed
	}
	w.say("modify %v depth %d limit %d rearm %t (used %d)", s, depth, limit, m.Rearm, s.used)
	w.same(want, s.real.Modify(m))
	if want == nil {
		a, err := s.real.Query()
		w.must(err)
		w.allocated("receives", depth, a.Depth)
		s.depth, s.limit, s.armed = a.Depth, limit, armed
	}
}

// destroySRQ is 9.2.4.4.
func (w *modelWorld) destroySRQ(n *modelNode) {
	if s, ok := object(w, n.srqs, goneSRQ); ok {
		w.destroySRQThis(s)
	}
}

func (w *modelWorld) destroySRQThis(s *modelSRQ) {
	var want error
	switch {
	case s.gone:
		want = verbs.ErrInvalidSRQ
	case s.ties > 0:
		want = verbs.ErrSRQInUse
	}
	w.say("destroy %v", s)
	w.same(want, s.real.Destroy())
	if want == nil {
		s.gone, s.posted = true, nil
		s.pd.users--
	}
}

package verbs_test

import "github.com/softrnic/softrnic/verbs"

// A batch of requests is safe if there is one possible result, and a sign of its
// end. Without this the order of what the two sides do at the same time would
// count:
//
//   - What the peer will refuse comes last: of what is behind it, some could be
//     sent or not.
//   - Behind an RDMA Read that is under way only what waits for it may go wrong, or
//     touch the same memory.
//   - A completion, or the end of the stream, comes after all else: without it
//     nobody knows when the last RDMA Write is placed (8.2.2 rule 6).
//   - The CQs have room, or there is one request only.
type modelPlan struct {
	q, p     *modelQP
	last     bool // no other request follows
	good     bool // the last one has to be good too
	recvs    int  // receives of the peer used up
	reads    int  // under way
	fence    bool // only a fence may follow
	memory   bool // STags of this side have changed: nothing is sure of them
	sign     bool // what the peer does is seen to be done
	over     bool // the stream ends with a request of this side
	received int  // completions on the peer's CQ
}

// safeWith is safe for what is posted already, were the two connected.
func (w *modelWorld) safeWith(q, p *modelQP) bool {
	var list []verbs.Request
	for _, e := range q.waiting() {
		list = append(list, e.Request)
	}
	if len(list) == 0 {
		return true
	}
	x, y := q.peer, p.peer
	q.peer, p.peer = p, q
	defer func() { q.peer, p.peer = x, y }()
	return w.safe(q, list, false)
}

// safe reports whether list may be posted; good asks for a last request that the
// peer can do.
func (w *modelWorld) safe(q *modelQP, list []verbs.Request, good bool) bool {
	p := q.peer
	if len(list) == 0 {
		return true
	}
	switch {
	case q.shut: // only what sends nothing is done; the rest waits for the end
		sign := true
		for i, r := range list {
			if !memoryOp(r.Op) {
				continue
			}
			if len(q.waiting()) > 0 || i > 0 && !memoryOp(list[i-1].Op) {
				return false
			}
			sign = r.Flags&verbs.Unsignaled == 0
		}
		return sign && q.send.room() >= len(list)+len(q.waiting())
	case p.shut && len(p.waiting()) > 0: // both would begin at once
		return false
	case len(p.held) > 0 || len(q.held) > 0:
		return w.safeWhilePaused(q, list)
	}
	if q.send.room() < len(list) && len(list) > 1 {
		return false
	}
	plan := modelPlan{q: q, p: p, sign: true, good: good}
	for i, r := range list {
		plan.last = i == len(list)-1
		if plan.over {
			return true // all else is flushed
		}
		if q.send.room() < 1 && !plan.fine(r) { // one error is enough
			return false
		}
		if !plan.step(r) {
			return false
		}
	}
	return plan.over || plan.sign && list[len(list)-1].Flags&verbs.Unsignaled == 0
}

// safeWhilePaused allows what needs nothing of a side that waits for a receive.
func (w *modelWorld) safeWhilePaused(q *modelQP, list []verbs.Request) bool {
	r, p := list[0], q.peer
	if len(list) > 1 || memoryOp(r.Op) || readOp(r.Op) || r.Op == verbs.OpWrite || r.Flags&verbs.Unsignaled != 0 || q.send.room() < 1 {
		return false // of a Write, no completion says when it is placed at last
	}
	plan := modelPlan{q: q, p: p}
	if !plan.locally(r) {
		return false
	}
	// To a side that waits anything may go: it is handled when its turn comes.
	return len(p.held) > 0 || plan.remotely(r)
}

// fine reports whether nothing goes wrong with r, as far as that is sure.
func (m *modelPlan) fine(r verbs.Request) bool {
	if memoryOp(r.Op) {
		return true // if not, only a completion is lost
	}
	return m.locally(r) && m.remotely(r)
}

// locally reports whether this side can do r.
func (m *modelPlan) locally(r verbs.Request) bool {
	if readOp(r.Op) {
		return m.q.readLocally(r) == verbs.StatusSuccess
	}
	_, s := m.q.gather(r)
	return s == verbs.StatusSuccess
}

// remotely reports whether the peer can do r, and this side its end of it.
func (m *modelPlan) remotely(r verbs.Request) bool {
	switch {
	case readOp(r.Op):
		_, bad := m.p.source(r)
		if bad != nil || m.reads >= m.p.ird {
			return false
		}
		if _, bad = m.q.sink(r.Local.STag, r.Local.TO, int(r.Local.Length)); bad != nil {
			return false
		}
		return r.Op == verbs.OpRead || m.last && m.canInvalidate(r.Local.STag)
	case r.Op == verbs.OpWrite:
		_, bad := m.p.sink(r.Remote.STag, r.Remote.TO, int(min(sglLength(r.SGL), 1<<20)))
		return bad == nil
	}
	if r.Op != verbs.OpSend && r.Op != verbs.OpSendSE {
		return false // the peer's STags change, or the stream ends
	}
	list := m.p.coming()
	if m.recvs >= len(list) || m.received >= m.p.recv.room() {
		return false
	}
	l := &modelLanding{Recv: list[m.recvs], pd: m.p.pd}
	if m.p.srq != nil {
		l.pd = m.p.srq.pd
	}
	n := sglLength(r.SGL)
	if n > sglLength(l.SGL) {
		return false
	}
	_, s := m.p.scatter(l, int(n))
	return s == verbs.StatusSuccess
}

// waits reports whether a Send that finds no receive waits for one (13.2).
func (q *modelQP) waits() bool { return q.graceful && (q.srq == nil || !q.srq.failed) }

// canInvalidate is invalidateLocal without doing it.
func (m *modelPlan) canInvalidate(s verbs.STag) bool {
	r, _ := m.q.node.named(s)
	return r != nil && r.stag() == s && !r.shared && r.pd == m.q.pd && r.windows == 0
}

// step takes r into the plan, and reports whether it is safe there.
func (m *modelPlan) step(r verbs.Request) bool {
	fenced := r.Flags&verbs.ReadFence != 0
	if r.Op == verbs.OpInvalidate {
		fenced = r.Flags&verbs.LocalFence != 0
	}
	if m.reads > 0 {
		switch {
		case r.Op != verbs.OpRead && r.Op != verbs.OpReadInvalidate && r.Op != verbs.OpBind && r.Op != verbs.OpFastRegister && fenced:
			m.reads, m.fence = 0, false
		case m.fence, m.memory, r.Op != verbs.OpRead, !m.locally(r), !m.remotely(r):
			return false
		}
	}
	if memoryOp(r.Op) {
		m.memory = true
		return true
	}
	if !m.memory && !m.locally(r) {
		m.over = true
		return true
	}
	// From here on it goes to the peer, if not stopped by a change of STags before
	// it: that ends the stream too.
	fine := m.remotely(r)
	if !fine && (!m.last || m.good) || readOp(r.Op) && m.memory && !m.last {
		return false
	}
	switch {
	case readOp(r.Op):
		if m.reads > 0 && !fine && m.p.ird > 0 && m.reads >= m.p.ird {
			return false
		}
		m.reads++
		m.fence = r.Op == verbs.OpReadInvalidate
		m.sign = true
	case r.Op == verbs.OpWrite:
		m.sign = !fine
	case m.recvs >= len(m.p.coming()) && m.p.waits(): // and nothing is seen of that
		return !m.p.shut && (m.p.srq == nil || !m.p.srq.starved())
	default:
		m.recvs++
		m.received++
		m.sign = true
	}
	return true
}

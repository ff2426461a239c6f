package verbs_test

import (
	"fmt"
	"slices"

	"github.com/softrnic/softrnic/verbs"
)

func spoilRecvs(list []verbs.Recv) { // the RNIC has copied what it needs
	for _, r := range list {
		for i := range r.SGL {
			r.SGL[i] = verbs.SGE{STag: 0xdead00, TO: 1, Length: 5}
		}
	}
}

// postRecv is 9.3.1.2, to a queue pair.
func (w *modelWorld) postRecv(n *modelNode) {
	q, ok := object(w, n.qps, goneQP)
	if !ok || q.srq != nil && !w.wrong() {
		return
	}
	if hungry := living(n.qps, func(q *modelQP) bool {
		return q.gone || q.srq != nil || q.state != verbs.StateRTS || len(q.coming()) > 2
	}); len(hungry) > 0 && !w.one(4) {
		q = pick(w, hungry...)
	}
	w.feed(q)
}

func (w *modelWorld) feed(q *modelQP) {
	list := w.recvs(q, q.pd, max(q.recvSGE, 1))
	w.say("post to %v in %v: %s", q, q.state, showRecvs(list))
	want, refused := q.postRecv(list)
	post := q.real.PostRecv
	if u, err := q.real.User(); err == nil && w.one(2) {
		post = u.PostRecv
	}
	got, err := post(list...)
	w.same(refused, err)
	w.equal("number posted", "list", want, got)
	spoilRecvs(list)
	q.resume()
}

// postShared is 9.3.1.2, to an S-RQ.
func (w *modelWorld) postShared(n *modelNode) {
	s, ok := object(w, n.srqs, goneSRQ)
	if !ok {
		return
	}
	users := living(n.qps, func(q *modelQP) bool { return q.gone || q.srq != s })
	if len(users) == 0 {
		users = n.qps
	}
	if len(users) > 0 {
		w.feedShared(s, pick(w, users...))
	}
}

// feedShared posts what q, at least, can use.
func (w *modelWorld) feedShared(s *modelSRQ, q *modelQP) {
	list := w.recvs(q, s.pd, s.sge)
	w.say("post to %v: %s", s, showRecvs(list))
	want, refused := s.postRecv(list)
	post := s.real.PostRecv
	if w.one(2) {
		post = s.real.User().PostRecv
	}
	got, err := post(list...)
	w.same(refused, err)
	w.equal("number posted", "list", want, got)
	spoilRecvs(list)
	s.fed()
}

// busy picks a queue pair that can do something; if there is none it makes one.
func (w *modelWorld) busy(n *modelNode) (*modelQP, bool) {
	able := func() []*modelQP {
		return living(n.qps, func(q *modelQP) bool {
			return q.gone || q.state != verbs.StateRTS || q.shut && len(q.waiting()) > 0 || q.peer.shut && len(q.peer.waiting()) > 0
		})
	}
	if len(able()) < 2 && !w.one(4) {
		w.connect(n)
		w.compare()
	}
	list := able()
	if len(list) == 0 || w.one(20) {
		return object(w, n.qps, goneQP)
	}
	q := pick(w, list...)
	if q.shut && !w.one(4) { // what it posts would wait for this
		q = q.peer
	}
	if p := q.peer; len(p.coming()) < 2 && !w.one(4) {
		if p.srq != nil {
			w.feedShared(p.srq, p)
		} else {
			w.feed(p)
		}
		w.compare()
	}
	return q, q.state == verbs.StateRTS
}

// traffic posts work and lets it happen.
func (w *modelWorld) traffic(n *modelNode) {
	q, ok := w.busy(n)
	if !ok {
		return
	}
	var list []verbs.Request
	for range w.rng.IntN(pick(w, 1, 4, 6)) {
		list = append(list, w.request(q))
	}
	w.bold = w.one(4) // at the end more may go wrong
	list = append(list, w.request(q))
	w.bold = false
	if q.state != verbs.StateRTS {
		w.post(q, list)
		return
	}
	for ; len(list) > 0; list = list[:len(list)-1] {
		if w.exchange(q, list) {
			return
		}
	}
}

// exchange posts list, with something good behind it to tell its end if need be, if
// that is safe.
func (w *modelWorld) exchange(q *modelQP, list []verbs.Request) bool {
	for _, end := range [][]verbs.Request{nil, {{Op: verbs.OpRead}}, {{}}} {
		tried := slices.Concat(list, end)
		if len(tried) == 0 {
			continue
		}
		tried[len(tried)-1].Flags &^= verbs.Unsignaled
		if w.safe(q, w.accepted(q, tried), end != nil) {
			for i := len(list); i < len(tried); i++ {
				tried[i].ID = w.id()
			}
			w.post(q, tried)
			return true
		}
	}
	return false
}

// accepted is what of list will be posted.
func (w *modelWorld) accepted(q *modelQP, list []verbs.Request) []verbs.Request {
	for i, r := range list {
		if q.checkSend(r) != nil || q.sendsUsed()+i >= q.sendDepth {
			return list[:i]
		}
	}
	return list
}

func (w *modelWorld) post(q *modelQP, list []verbs.Request) {
	for _, r := range list {
		w.say("post to %v in %v: %s", q, q.state, showSend(r))
	}
	want, refused := q.postSend(list)
	post := q.real.PostSend
	if u, err := q.real.User(); err == nil && w.one(2) {
		post = u.PostSend
	}
	got, err := post(list...)
	w.same(refused, err)
	w.equal("number posted", "list", want, got)
	for _, r := range list { // the RNIC has copied what it needs
		for i := range r.SGL {
			r.SGL[i] = verbs.SGE{STag: 0xbad000, Length: 1}
		}
		if r.Bind != nil {
			*r.Bind = verbs.BindRequest{}
		}
		if r.FastRegister != nil {
			clear(r.FastRegister.Buffers.Addresses)
			r.FastRegister.STag = 0
		}
	}
	q.run()
}

func showSend(r verbs.Request) string {
	s := fmt.Sprintf("%d %v flags %b", r.ID, r.Op, r.Flags)
	switch {
	case r.Bind != nil:
		return s + fmt.Sprintf(" %+v", *r.Bind)
	case r.FastRegister != nil:
		return s + fmt.Sprintf(" %+v", *r.FastRegister)
	case r.Op == verbs.OpInvalidate:
		return s + fmt.Sprintf(" %v", r.Invalidate)
	case readOp(r.Op):
		return s + fmt.Sprintf(" %s from %v %#x", showSGL([]verbs.SGE{r.Local}), r.Remote.STag, r.Remote.TO)
	case r.Op == verbs.OpWrite:
		return s + fmt.Sprintf(" %s to %v %#x", showSGL(r.SGL), r.Remote.STag, r.Remote.TO)
	}
	return s + fmt.Sprintf(" %s invalidate %v", showSGL(r.SGL), r.Invalidate)
}

func showSGL(l []verbs.SGE) (s string) {
	for _, g := range l {
		s += fmt.Sprintf("[%v %#x %d]", g.STag, g.TO, g.Length)
	}
	return s
}

func showRecvs(l []verbs.Recv) (s string) {
	for _, r := range l {
		s += fmt.Sprintf("%d%s ", r.ID, showSGL(r.SGL))
	}
	return s
}

func showRegion(c verbs.RegionConfig) string {
	return fmt.Sprintf("%d octets or %+v, rights %v flag %t key %#x zero %t VA %#x one QP %t open %t", len(c.Memory), c.Buffers,
		c.Access, c.RemoteAccess, c.Key, c.ZeroBased, c.VA, c.QP != nil, c.RemoteInvalidate)
}

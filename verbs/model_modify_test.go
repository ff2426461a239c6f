package verbs_test

import (
	"fmt"

	"github.com/softrnic/softrnic/verbs"
)

// sees reports whether the queue pair sees its peer's Terminate Message, and nothing
// else happens. One that waits for a receive reads nothing; to a Responder that waits
// with work it is the first FPDU, and lets it go on.
func (q *modelQP) sees() bool {
	return len(q.held) == 0 && !(q.shut && len(q.waiting()) > 0)
}

// attributes of figures 4 and 5, beside the next state.
type modelAttributes struct{ stream, orders, sizes, limits bool }

var figures4and5 = map[[2]verbs.State]modelAttributes{
	{verbs.StateIdle, verbs.StateIdle}:     {orders: true, sizes: true, limits: true},
	{verbs.StateIdle, verbs.StateRTS}:      {stream: true, orders: true, sizes: true, limits: true},
	{verbs.StateIdle, verbs.StateError}:    {},
	{verbs.StateRTS, verbs.StateRTS}:       {orders: true, sizes: true},
	{verbs.StateRTS, verbs.StateClosing}:   {},
	{verbs.StateRTS, verbs.StateTerminate}: {},
	{verbs.StateRTS, verbs.StateError}:     {},
	{verbs.StateError, verbs.StateIdle}:    {},
}

// checkModify is what Modify QP refuses (9.2.5.3).
func (q *modelQP) checkModify(m verbs.ModifyQP) error {
	n := q.node
	l := n.limits
	above := func(p *int, most int) bool { return p != nil && *p > most }
	below := func(p *int, least int) bool { return p != nil && *p < least }
	sizes := m.SendDepth != nil || m.RecvDepth != nil
	switch {
	case q.gone:
		return verbs.ErrInvalidQP
	case sizes && n.without&verbs.FeatureResize != 0, m.IRD != nil && n.without&verbs.FeatureChangeIRD != 0:
		return verbs.ErrCannotChangeAttribute
	case above(m.SendDepth, l.WR), above(m.RecvDepth, l.WR):
		return verbs.ErrTooManyWR
	case above(m.IRD, l.IRD):
		return verbs.ErrIRDExceeded
	case above(m.ORD, l.ORD):
		return verbs.ErrORDExceeded
	case above(m.ORD, q.ord) && n.without&verbs.FeatureRaiseORD != 0:
		return verbs.ErrCannotChangeAttribute
	}
	ird, ord := n.readsLeft(q)
	ok := true
	if m.IRD != nil {
		_, ok = provision(q.ird, *m.IRD, ird)
	}
	if m.ORD != nil && ok {
		_, ok = provision(q.ord, *m.ORD, ord)
	}
	if !ok {
		return verbs.ErrInsufficientResources
	}
	may, allowed := figures4and5[[2]verbs.State{q.state, m.Next}]
	limits := m.RQLimit != nil || m.ArmRQLimit
	switch {
	case !allowed:
		return verbs.ErrInvalidState
	case (m.Stream != nil || m.LastMessage != nil) && !may.stream, (m.ORD != nil || m.IRD != nil) && !may.orders,
		sizes && !may.sizes, limits && !may.limits:
		return verbs.ErrInvalidModifier
	case q.state == verbs.StateIdle && m.Next == verbs.StateRTS && (m.Stream == nil || m.Stream.Conn == nil):
		return verbs.ErrInvalidLLPStream
	case below(m.ORD, 0), below(m.IRD, 0), below(m.SendDepth, 1), below(m.RecvDepth, 1):
		return verbs.ErrInvalidModifier
	case m.RecvDepth != nil && q.srq != nil, limits && q.srq == nil:
		return verbs.ErrInvalidModifier
	case m.RQLimit != nil && (*m.RQLimit < 0 || *m.RQLimit > q.srq.depth):
		return verbs.ErrRQLimitRange
	case below(m.SendDepth, q.sendsUsed()), below(m.RecvDepth, q.recvsUsed()):
		return verbs.ErrShrinkFailed
	}
	return nil
}

// change does what checkModify has found good, but for the state.
func (q *modelQP) change(m verbs.ModifyQP) {
	ird, ord := q.node.readsLeft(q)
	if m.IRD != nil {
		q.ird, _ = provision(q.ird, *m.IRD, ird)
	}
	if m.ORD != nil {
		q.ord, _ = provision(q.ord, *m.ORD, ord)
	}
	if m.RQLimit != nil {
		q.rqLimit = *m.RQLimit
	}
	q.rqArmed = q.rqArmed || m.ArmRQLimit
	if m.SendDepth != nil {
		q.sendDepth = *m.SendDepth
	}
	if m.RecvDepth != nil {
		q.recvDepth = *m.RecvDepth
	}
	if m.SendDepth != nil || m.RecvDepth != nil {
		q.resized()
	}
}

// modifiers draws attributes to change, few of them.
func (w *modelWorld) modifiers(q *modelQP, m *verbs.ModifyQP) {
	l := q.node.limits
	draw := func(p **int, from, most int) {
		if !w.one(3) {
			return
		}
		v := from + w.rng.IntN(most-from+1)
		if w.wrong() {
			v = pick(w, -1, most+1, l.WR+1)
		}
		*p = &v
	}
	draw(&m.ORD, w.rng.IntN(2), 4)
	draw(&m.IRD, w.rng.IntN(2), 4)
	draw(&m.SendDepth, 1, l.WR)
	if q.srq == nil || w.wrong() {
		draw(&m.RecvDepth, 1, l.WR)
	}
	if w.one(6) {
		v := max(q.sendsUsed()-w.rng.IntN(2), 1)
		m.SendDepth = &v
	}
	if q.srq != nil && q.state == verbs.StateIdle || w.wrong() {
		draw(&m.RQLimit, 0, 3)
		m.ArmRQLimit = w.one(2)
	}
}

// modifyQP is 9.2.5.3, but for the way to RTS: see connect.
func (w *modelWorld) modifyQP(n *modelNode) {
	q, ok := object(w, n.qps, goneQP)
	if !ok {
		return
	}
	if ended := living(n.qps, func(q *modelQP) bool { return q.gone || q.state != verbs.StateError }); len(ended) > 0 && w.one(2) {
		q = pick(w, ended...)
	}
	m := verbs.ModifyQP{Next: q.state}
	switch {
	case q.state == verbs.StateError && !q.gone && !w.wrong():
		m.Next = verbs.StateIdle
	case w.wrong():
		m.Next = pick(w, verbs.StateIdle, verbs.StateClosing, verbs.StateTerminate, verbs.StateError, 77)
	case q.state == verbs.StateRTS && w.one(5):
		m.Next = pick(w, verbs.StateClosing, verbs.StateClosing, verbs.StateTerminate, verbs.StateError)
	case q.state == verbs.StateIdle && w.one(8):
		m.Next = verbs.StateError
	}
	if m.Next == q.state && q.state != verbs.StateError || w.wrong() {
		w.modifiers(q, &m)
	}
	if w.wrong() && q.state != verbs.StateRTS {
		m.Next = verbs.StateRTS // without a stream
	}
	if w.wrong() {
		m.LastMessage = []byte("unwanted")
	}
	want := q.checkModify(m)
	if q.state == verbs.StateRTS && m.Next != verbs.StateRTS && want == nil &&
		(len(q.peer.held) > 0 || m.Next == verbs.StateTerminate && !q.peer.sees() || m.Next == verbs.StateClosing && len(q.held) > 0) {
		return // whether what is held has been seen already would count
	}
	w.say("modify %v from %v to %v: %s", q, q.state, m.Next, showModify(m))
	w.same(want, q.real.Modify(m))
	if want != nil {
		return
	}
	q.change(m)
	switch {
	case q.state == m.Next:
	case q.state == verbs.StateError:
		q.state = verbs.StateIdle
	case q.state == verbs.StateIdle:
		q.stale = true
		q.flush(verbs.StateError, nil, 0, nil)
	case m.Next == verbs.StateClosing:
		q.close()
	case m.Next == verbs.StateTerminate:
		q.fault(byVerb, nil)
	default:
		q.abort()
	}
}

func showModify(m verbs.ModifyQP) string {
	s := ""
	for _, f := range []struct {
		name string
		v    *int
	}{{"ORD", m.ORD}, {"IRD", m.IRD}, {"send depth", m.SendDepth}, {"recv depth", m.RecvDepth}, {"limit", m.RQLimit}} {
		if f.v != nil {
			s += fmt.Sprintf("%s %d ", f.name, *f.v)
		}
	}
	return fmt.Sprintf("%sarm %t message %d", s, m.ArmRQLimit, len(m.LastMessage))
}

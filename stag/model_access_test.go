package stag

import "github.com/softrnic/softrnic/wr"

// The model's windows, invalidation, accesses and queries.

func (m *model) bind(b wr.BindRequest, q *modelQP) AccessFault {
	w, r := m.stags[b.Window.Index()], m.stags[b.Region.Index()]
	switch {
	case w == nil, !w.window, q.retired:
		return FaultWindow
	case w.valid:
		return FaultNotInvalid
	case r == nil, r.window, !r.valid, r.key != b.Region.Key():
		return FaultRegion
	case w.pd != r.pd, w.pd != q.user.PD, r.qp != 0 && r.qp != q.user.QP:
		return FaultPD
	case r.access&wr.BindWindow == 0:
		return FaultAccess
	}
	local := r.access & 3
	if b.Access == 0 || b.Access&^(4|8|32) != 0 || b.Access&(4|32) != 0 && local&1 == 0 || b.Access&(8|32) != 0 && local&2 == 0 { // figure 20
		return FaultAccess
	}
	if r.addressing == wr.ZeroBased {
		return FaultRegion
	}
	if b.Length == 0 {
		return FaultBounds
	}
	if f := within(r, b.VA, b.Length); f != OK {
		return f
	}
	w.valid, w.region, w.to = true, r, q
	w.life++
	w.key, w.qp, w.access, w.addressing, w.length = b.Window.Key(), q.user.QP, b.Access, b.Addressing, b.Length
	w.base = 0
	if b.Addressing == wr.VABased {
		w.base = b.VA
	}
	of, skip := r.octet, b.VA-r.base
	w.octet = func(i uint64) *byte { return of(skip + i) }
	return OK
}

// within looks at each octet.
func within(s *modelSTag, to, n uint64) AccessFault {
	f := OK
	for i := range n {
		switch a := to + i; {
		case a < to:
			return FaultWrap
		case a < s.base, a >= s.base+s.length:
			f = FaultBounds
		}
	}
	return f
}

func (m *model) retire(q *modelQP) wr.ImmediateError {
	if m.boundTo(func(w *modelSTag) bool { return w.to == q }) > 0 {
		return wr.ErrWindowsBound
	}
	q.retired = true
	return 0
}

func (m *model) invalidate(s wr.STag, u User, remote bool) AccessFault {
	e := m.stags[s.Index()]
	switch {
	case e == nil && remote && s.Index() > 0:
		return FaultGone
	case e == nil, e.shared, e.valid && e.key != s.Key():
		return FaultSTag
	case e.window && e.valid && e.qp != u.QP, e.window && !e.valid && e.pd != u.PD:
		return FaultPD
	case !e.window && e.pd != u.PD, !e.window && remote && e.qp != 0 && e.qp != u.QP:
		return FaultPD
	case !e.window && remote && (e.access&(4|8|32) == 0 || !e.mayInvalidate && e.qp == 0):
		return FaultAccess
	case !e.window && m.windowsOf(e) > 0:
		return FaultWindowsBound
	}
	e.valid, e.region, e.to = false, nil, nil
	return OK
}

func (m *model) deallocate(s wr.STag) wr.ImmediateError {
	e := m.stags[s.Index()]
	if e == nil {
		return wr.ErrInvalidSTag
	}
	if !e.window && m.windowsOf(e) > 0 {
		return wr.ErrWindowsBound
	}
	delete(m.stags, s.Index())
	return 0
}

func (m *model) resolve(s wr.STag, to, n uint64, u User, need wr.Access) AccessFault {
	if s == 0 {
		if !u.Privileged || need != 1 && need != 2 {
			return FaultSTag
		}
		if to+n-1 < to {
			return FaultWrap
		}
		if p, _ := m.place(to, n); p == nil {
			return FaultBounds
		}
		return OK
	}
	e := m.stags[s.Index()]
	remote := need == 4 || need == 8 || need == 32
	switch {
	case e == nil, !e.valid, e.key != s.Key(), e.window && (need == 1 || need == 2):
		return FaultSTag
	case e.window && e.qp != u.QP, !e.window && e.pd != u.PD, !e.window && remote && e.qp != 0 && e.qp != u.QP:
		return FaultPD
	case need != 0 && e.access&need == 0:
		return FaultAccess
	}
	return within(e, to, n)
}

// query is what the verbs should tell.
func (m *model) query(e *modelSTag) any {
	s := wr.MakeSTag(e.index, 0)
	if e.valid {
		s = wr.MakeSTag(e.index, e.key)
	}
	if e.window {
		w := WindowInfo{STag: s, PD: e.pd}
		if e.valid {
			w = WindowInfo{s, true, e.pd, e.qp, e.access, e.addressing, e.base, e.length, wr.MakeSTag(e.region.index, e.region.key)}
		}
		return w
	}
	i := Info{
		STag: s, Valid: e.valid, Shared: e.shared, PD: e.pd, RemoteAccess: e.flag, PBL: e.pbl, Access: e.access,
		QP: e.qp, RemoteInvalidate: e.mayInvalidate, Windows: m.windowsOf(e),
	}
	if e.valid {
		i.Addressing, i.Base, i.Length = e.addressing, e.base, e.length
	}
	return i
}

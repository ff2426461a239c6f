package verbs_test

import (
	"github.com/softrnic/softrnic/verbs"
)

// What the generator draws for work requests: good ones mostly.

// anySTag is an STag that may be anything: of something else, with another key, of
// what is gone, zero.
func (w *modelWorld) anySTag(n *modelNode) verbs.STag {
	var s verbs.STag
	switch {
	case len(n.regions) > 0 && w.one(2):
		s = pick(w, n.regions...).stag()
	case len(n.windows) > 0 && !w.one(3):
		s = pick(w, n.windows...).stag()
	default:
		s = pick(w, 0, 0, 7, verbs.STag(w.rng.Uint32()))
	}
	if w.one(6) {
		s ^= 1 << w.rng.IntN(8)
	}
	return s
}

// modelRange is memory as an STag has it.
type modelRange struct {
	stag         verbs.STag
	base, length uint64
}

// ranges are what a queue pair can reach with some right, in a domain.
func (q *modelQP) ranges(pd *modelPD, need verbs.Access) (list []modelRange) {
	n := q.node
	for _, r := range n.regions {
		if _, f := q.access(pd, r.stag(), r.base, 1, need); !r.gone && f == accessFine {
			list = append(list, modelRange{r.stag(), r.base, r.length})
		}
	}
	for _, m := range n.windows {
		if _, f := q.access(pd, m.stag(), m.base, 1, need); !m.gone && f == accessFine {
			list = append(list, modelRange{m.stag(), m.base, m.length})
		}
	}
	if q.privileged && need&localRightsOnly != 0 {
		for _, p := range n.pages {
			if !p.gone {
				list = append(list, modelRange{0, p.base, uint64(len(p.in.want))})
			}
		}
	}
	return list
}

// place draws a piece of memory of at most n octets, good or not.
func (w *modelWorld) place(q *modelQP, pd *modelPD, need verbs.Access, n int) verbs.SGE {
	list := q.ranges(pd, need)
	if len(list) == 0 || w.wrong() {
		if w.one(3) { // looked at only if there is something
			return verbs.SGE{STag: w.anySTag(q.node), TO: w.rng.Uint64()}
		}
		return w.badPlace(q, pd, need, n)
	}
	r := pick(w, list...)
	n = min(n, int(r.length))
	return verbs.SGE{STag: r.stag, TO: r.base + w.rng.Uint64N(r.length-uint64(n)+1), Length: uint32(n)}
}

// badPlace is wrong somehow, most of the time: beyond the bounds, without the right,
// of another domain or queue pair, Invalid, unknown.
func (w *modelWorld) badPlace(q *modelQP, pd *modelPD, need verbs.Access, n int) verbs.SGE {
	var all []modelRange
	list := q.ranges(pd, need)
	for _, r := range q.node.regions {
		all = append(all, modelRange{r.stag(), r.base, r.length})
		if !r.gone && r.valid && r.pd == pd && r.rights&need != need {
			list = append(list, modelRange{r.stag(), r.base, r.length}, modelRange{r.stag(), r.base, r.length})
		}
	}
	for _, m := range q.node.windows {
		all = append(all, modelRange{m.stag(), m.base, m.length})
		if m.valid {
			list = append(list, modelRange{m.stag(), m.base, m.length}, modelRange{m.stag(), m.base, m.length})
		}
	}
	if len(list) == 0 || w.one(3) {
		list = all
	}
	if len(list) == 0 || w.one(8) {
		return verbs.SGE{STag: w.anySTag(q.node), TO: pick(w, w.rng.Uint64(), ^uint64(0), 0), Length: uint32(max(n, 1))}
	}
	r := pick(w, list...)
	g := verbs.SGE{STag: r.stag, TO: r.base, Length: uint32(min(uint64(max(n, 1)), max(r.length, 1)))}
	switch w.rng.IntN(6) {
	case 0:
		g.TO--
	case 1:
		g.TO += r.length - uint64(g.Length) + 1
	case 2:
		g.TO = ^uint64(0) - w.rng.Uint64N(3)
	case 3:
		g.STag ^= 1 << w.rng.IntN(8)
	}
	return g
}

// list draws a scatter/gather list.
func (w *modelWorld) list(q *modelQP, pd *modelPD, need verbs.Access, most, n int) (l []verbs.SGE) {
	for range w.rng.IntN(most + 1) {
		l = append(l, w.place(q, pd, need, w.rng.IntN(n+1)))
	}
	if w.wrong() && w.one(4) {
		for len(l) < most+1 {
			l = append(l, verbs.SGE{})
		}
	}
	return l
}

// recvs draws receives, with room enough mostly.
func (w *modelWorld) recvs(q *modelQP, pd *modelPD, most int) (list []verbs.Recv) {
	for range 1 + w.rng.IntN(4) {
		r := verbs.Recv{ID: w.id()}
		if !w.one(8) {
			r.SGL = w.list(q, pd, verbs.LocalWrite, most, 900)
			big := w.place(q, pd, verbs.LocalWrite, 2000)
			if len(r.SGL) < most {
				r.SGL = append(r.SGL, big)
			}
		}
		list = append(list, r)
	}
	return list
}

// request draws a work request for q.
func (w *modelWorld) request(q *modelQP) verbs.Request {
	r := verbs.Request{ID: w.id()}
	if w.one(3) {
		r.Flags = verbs.Unsignaled
	}
	if w.one(4) {
		r.Flags |= verbs.ReadFence
	}
	p := q.peer
	switch k := w.rng.IntN(20); {
	case k < 7:
		r.Op = pick(w, verbs.OpSend, verbs.OpSendSE, verbs.OpSend, verbs.OpSendInvalidate, verbs.OpSendSEInvalidate)
		r.SGL = w.list(q, q.pd, verbs.LocalRead, q.sendSGE, 500)
		if p != nil {
			r.Invalidate = w.toInvalidate(p)
		}
	case k < 10:
		r.Op = verbs.OpWrite
		n := 0
		if p != nil {
			g := w.place(p, p.pd, verbs.RemoteWrite, 800)
			r.Remote, n = verbs.Remote{STag: g.STag, TO: g.TO}, int(min(g.Length, 2000))
		}
		r.SGL = w.list(q, q.pd, verbs.LocalRead, min(q.writeSGE, 2), n/2)
	case k < 13:
		r.Op = pick(w, verbs.OpRead, verbs.OpRead, verbs.OpReadInvalidate)
		r.Local = w.place(q, q.pd, verbs.RemoteWrite, 800)
		if p != nil {
			g := w.place(p, p.pd, verbs.RemoteRead, int(min(r.Local.Length, 2000)))
			r.Remote = verbs.Remote{STag: g.STag, TO: g.TO}
			r.Local.Length = min(r.Local.Length, g.Length)
		}
	default:
		w.memoryRequest(q, &r)
	}
	if w.wrong() {
		w.spoil(&r)
	}
	return r
}

// spoil makes a request one that is refused when it is posted, or too long.
func (w *modelWorld) spoil(r *verbs.Request) {
	switch w.rng.IntN(8) {
	case 0:
		r.Op = verbs.Op(99)
	case 1:
		r.Op = verbs.OpRecv
	case 2:
		r.Flags |= 1 << 6
	case 3:
		r.Bind, r.FastRegister = nil, nil
	case 4:
		r.Invalidate &= 0xff
	case 5:
		if r.Bind != nil {
			r.Bind.Addressing = 9
		}
	case 6:
		if r.Bind != nil {
			r.Bind.Region &= 0xff
		}
		if r.FastRegister != nil {
			r.FastRegister.STag &= 0xff
		}
	default:
		if len(r.SGL) > 1 {
			r.SGL[0].Length, r.SGL[1].Length = 1<<31, 1<<31
		}
	}
}

// toInvalidate draws an STag for a Send with Invalidate to p.
func (w *modelWorld) toInvalidate(p *modelQP) verbs.STag {
	n := p.node
	var list []verbs.STag
	for _, r := range n.regions {
		if !r.gone && !r.shared && r.pd == p.pd && r.windows == 0 && (r.open || r.scope != nil) && r.rights&remoteRightsOnly != 0 {
			list = append(list, r.stag())
		}
	}
	for _, m := range n.windows {
		if !m.gone && m.qp == p {
			list = append(list, m.stag())
		}
	}
	if len(list) == 0 || w.one(4) {
		return w.anySTag(n)
	}
	return pick(w, list...)
}

// memoryRequest makes r a Bind, Fast-Register or Invalidate.
func (w *modelWorld) memoryRequest(q *modelQP, r *verbs.Request) {
	n := q.node
	bound := living(n.windows, func(m *modelWindow) bool { return m.gone || m.qp != q })
	free := living(n.windows, func(m *modelWindow) bool { return m.gone || m.valid || m.pd != q.pd })
	under := living(n.regions, func(g *modelRegion) bool {
		return g.gone || !g.valid || g.pd != q.pd || g.rights&verbs.BindWindow == 0 || g.zero
	})
	idle := living(n.regions, func(g *modelRegion) bool { return g.gone || g.valid || g.pd != q.pd })
	if w.one(12) {
		bound, free, under, idle = n.windows, n.windows, n.regions, n.regions
	}
	switch {
	case len(free) > 0 && len(under) > 0 && w.one(2):
		w.bindRequest(r, pick(w, free...), pick(w, under...))
	case len(idle) > 0 && (q.privileged || w.wrong()) && w.one(2):
		w.fastRequest(q, r, pick(w, idle...))
	default:
		r.Op = verbs.OpInvalidate
		if w.one(2) {
			r.Flags |= verbs.LocalFence
		}
		own := living(n.regions, func(g *modelRegion) bool { return g.gone || g.shared || g.pd != q.pd || g.windows > 0 })
		switch {
		case len(bound) > 0 && !w.one(3):
			r.Invalidate = pick(w, bound...).stag()
		case len(own) > 0 && !w.one(4):
			r.Invalidate = pick(w, own...).stag()
		default:
			r.Invalidate = w.anySTag(n)
		}
	}
}

func (w *modelWorld) bindRequest(r *verbs.Request, m *modelWindow, g *modelRegion) {
	r.Op = verbs.OpBind
	b := &verbs.BindRequest{
		Window: verbs.STag(m.index<<8) | verbs.STag(uint8(w.rng.Uint32())), Region: g.stag(),
		Access: pick(w, verbs.RemoteRead, verbs.RemoteWrite, remoteRightsOnly),
	}
	for range 5 {
		if figure20(g.rights, b.Access) {
			break
		}
		b.Access = pick(w, verbs.RemoteRead, verbs.RemoteWrite)
	}
	if w.one(3) {
		b.Addressing = verbs.ZeroBased
	}
	if g.length > 0 {
		b.Length = 1 + w.rng.Uint64N(g.length)
		b.VA = g.base + w.rng.Uint64N(g.length-b.Length+1)
	}
	if w.wrong() {
		switch w.rng.IntN(4) {
		case 0:
			b.Access = verbs.Access(w.rng.IntN(64))
		case 1:
			b.Length += pick(w, 1, g.length, 1<<63)
		case 2:
			b.VA = pick(w, 0, g.base-1, g.base+g.length, ^uint64(0))
		default:
			b.Region ^= 1
		}
	}
	r.Bind = b
}

func (w *modelWorld) fastRequest(q *modelQP, r *verbs.Request, g *modelRegion) {
	r.Op = verbs.OpFastRegister
	f := &verbs.FastRegisterRequest{
		STag: verbs.STag(g.index<<8) | verbs.STag(uint8(w.rng.Uint32())), Buffers: w.bufferList(q.node, g.pbl), Access: w.rights(),
	}
	if !g.remote && !w.wrong() {
		f.Access &^= remoteRightsOnly
	}
	if len(f.Buffers.Addresses) > g.pbl && !w.wrong() {
		f.Buffers.Addresses = f.Buffers.Addresses[:g.pbl]
		f.Buffers.Length = min(f.Buffers.Length, max(f.Buffers.Size-f.Buffers.FBO, 1))
	}
	if w.one(3) {
		f.Addressing = verbs.ZeroBased
	}
	f.VA = w.vaFor(f.Buffers) // not looked at if zero-based
	r.FastRegister = f
}

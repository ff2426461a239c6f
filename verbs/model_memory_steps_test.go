package verbs_test

import (
	"github.com/softrnic/softrnic/verbs"
)

// register is 9.2.6.2.
func (w *modelWorld) register(n *modelNode) {
	pd, ok := object(w, n.pds, gonePD)
	if !ok {
		return
	}
	c, memory, scope := w.regionConfig(n)
	r, want := n.region(pd, c, memory, scope)
	if want == nil && n.full() {
		want = verbs.ErrInsufficientResources
	}
	w.say("%d: register %v %s", n.number, pd, showRegion(c))
	mr, err := pd.real.RegisterRegion(c)
	w.same(want, err)
	if err == nil {
		r.real = mr
		pd.users++
		n.registered(r)
	}
}

// allocate is 9.2.6.1.
func (w *modelWorld) allocate(n *modelNode) {
	pd, ok := object(w, n.pds, gonePD)
	if !ok {
		return
	}
	r := &modelRegion{pd: pd, pbl: 1 + w.rng.IntN(n.limits.PBL), remote: w.one(2), open: !w.one(8)}
	if w.wrong() {
		r.pbl = pick(w, -1, n.limits.PBL+1)
	}
	c := verbs.AllocateConfig{PBL: r.pbl, RemoteAccess: r.remote, RemoteInvalidate: r.open}
	if q, ok := object(w, n.qps, goneQP); ok && w.one(6) {
		c.QP, r.scope = q.real, q
	}
	var want error
	switch {
	case pd.gone:
		want = verbs.ErrInvalidPD
	case r.scope != nil && r.scope.gone, r.pbl < 0:
		want = verbs.ErrInvalidModifier
	case r.pbl > n.limits.PBL, n.full():
		want = verbs.ErrInsufficientResources
	}
	w.say("%d: allocate STag %v PBL %d remote %t", n.number, pd, r.pbl, r.remote)
	mr, err := pd.real.AllocateRegion(c)
	w.same(want, err)
	if err == nil {
		r.real = mr
		pd.users++
		n.registered(r)
	}
}

// reregister is 9.2.6.5.
func (w *modelWorld) reregister(n *modelNode) {
	old, ok1 := object(w, n.regions, goneRegion)
	pd, ok2 := object(w, n.pds, gonePD)
	if !ok1 || !ok2 {
		return
	}
	c, memory, scope := w.regionConfig(n)
	to := pd.real
	if w.one(2) {
		to, pd = nil, old.pd
	}
	r, want := n.region(pd, c, memory, scope)
	stays := true
	switch {
	case old.gone, old.shared:
		want = verbs.ErrInvalidSTag
	case old.windows > 0:
		want = verbs.ErrWindowsBound
	default:
		stays = false
	}
	w.say("reregister %v %v %s", old, pd, showRegion(c))
	w.same(want, old.real.Reregister(to, c))
	switch {
	case stays:
	case want != nil: // 7.3.2.3
		old.gone = true
		old.pd.users--
	default:
		old.pd.users--
		pd.users++
		r.real, r.index, r.pbl = old.real, uint32(old.real.STag())>>8, max(r.pbl, old.pbl)
		*old = *r
		old.seen(n)
	}
}

// share is 9.2.6.6.
func (w *modelWorld) share(n *modelNode) {
	old, ok1 := object(w, n.regions, goneRegion)
	pd, ok2 := object(w, n.pds, gonePD)
	if !ok1 || !ok2 {
		return
	}
	r := &modelRegion{
		pd: pd, valid: true, shared: true, key: uint8(w.rng.Uint32()), rights: w.rights(), zero: w.one(3),
		pbl: old.pbl, length: old.length, span: old.span, size: old.size, fbo: old.fbo,
	}
	r.remote = w.one(2)
	c := verbs.SharedConfig{Access: r.rights, RemoteAccess: r.remote, Key: r.key, ZeroBased: r.zero, Existing: old.stag()}
	r.remote = r.remote || r.rights&remoteRightsOnly != 0
	if w.wrong() {
		c.Existing ^= pick(w, verbs.STag(1), 1<<8, 1<<31)
	}
	va := old.base
	if old.zero {
		va = 0
	}
	if w.one(2) && old.size > 0 && !r.zero {
		va = old.size*(1+w.rng.Uint64N(1<<20)) + old.fbo
		c.VA = va
	}
	if w.wrong() {
		va = 1 + w.rng.Uint64N(1<<62)
		c.VA = va
	}
	if q, ok := object(w, n.qps, goneQP); ok && w.one(6) {
		c.QP, r.scope = q.real, q
	}
	var want error
	switch {
	case old.gone, c.Existing>>8 != verbs.STag(old.index):
		want = verbs.ErrInvalidSTag
	case pd.gone:
		want = verbs.ErrInvalidPD
	case r.scope != nil && r.scope.gone:
		want = verbs.ErrInvalidModifier
	case !old.valid, c.Existing != old.stag():
		want = verbs.ErrInvalidSTag
	case !regionRights(r.rights):
		want = verbs.ErrInvalidAccess
	case r.zero && c.VA != 0:
		want = verbs.ErrInvalidVA
	default:
		var ok bool
		if r.base, ok = modelBase(r.zero, va, r.length, r.size, r.fbo); !ok {
			want = verbs.ErrInvalidVA
		} else if n.full() {
			want = verbs.ErrInsufficientResources
		}
	}
	w.say("share %v as %v: rights %v zero %t VA %#x STag %v", old, pd, r.rights, r.zero, c.VA, c.Existing)
	mr, err := old.real.RegisterShared(pd.real, c)
	w.same(want, err)
	if err == nil {
		old.shared = true
		r.real = mr
		pd.users++
		n.registered(r)
	}
}

// deregister is 9.2.6.4.
func (w *modelWorld) deregister(n *modelNode) {
	if r, ok := object(w, n.regions, goneRegion); ok {
		w.deregisterThis(r)
	}
}

func (w *modelWorld) deregisterThis(r *modelRegion) {
	var want error
	switch {
	case r.gone:
		want = verbs.ErrInvalidSTag
	case r.windows > 0:
		want = verbs.ErrWindowsBound
	}
	w.say("deregister %v", r)
	w.same(want, r.real.Deregister())
	if want == nil {
		r.gone = true
		r.pd.users--
	}
}

// allocateWindow is 9.2.6.7.
func (w *modelWorld) allocateWindow(n *modelNode) {
	pd, ok := object(w, n.pds, gonePD)
	if !ok {
		return
	}
	var want error
	switch {
	case pd.gone:
		want = verbs.ErrInvalidPD
	case len(living(n.windows, goneWindow)) >= n.limits.Windows:
		want = verbs.ErrInsufficientResources
	}
	w.say("%d: allocate window %v", n.number, pd)
	mw, err := pd.real.AllocateWindow()
	w.same(want, err)
	if err == nil {
		m := &modelWindow{real: mw, pd: pd, index: uint32(mw.STag(0)) >> 8}
		if a, b := n.named(mw.STag(0)); m.index == 0 || a != nil || b != nil {
			w.fail("STag %#x is in use, or zero", mw.STag(0))
		}
		n.windows = append(n.windows, m)
		pd.users++
		w.log[len(w.log)-1] += " " + m.String()
	}
}

// deallocateWindow is 9.2.6.4.
func (w *modelWorld) deallocateWindow(n *modelNode) {
	if m, ok := object(w, n.windows, goneWindow); ok {
		w.deallocateThis(m)
	}
}

func (w *modelWorld) deallocateThis(m *modelWindow) {
	var want error
	if m.gone {
		want = verbs.ErrInvalidSTag
	}
	w.say("deallocate %v", m)
	w.same(want, m.real.Deallocate())
	if want == nil {
		m.unbind()
		m.gone = true
		m.pd.users--
	}
}

// allocPages gets physical memory.
func (w *modelWorld) allocPages(n *modelNode) {
	count, size := 1+w.rng.IntN(3), pick(w, uint64(4096), 4096, 8192)
	if n.block {
		size = pick(w, uint64(4096), 100, 1, 777, 5000)
		if size < 10 {
			count = 500
		}
	}
	if w.wrong() {
		if w.one(2) {
			count = pick(w, 0, -2, 1000)
		} else {
			size = pick(w, uint64(0), 3000, 1<<31)
		}
	}
	used := 0
	for _, p := range n.pages {
		if !p.gone {
			used += len(p.in.want)
		}
	}
	var want error
	switch {
	case !n.sizeFits(size):
		want = verbs.ErrInvalidPhysBufferSize
	case count < 1:
		want = verbs.ErrInvalidLength
	case uint64(used)+uint64(count)*size > n.limits.Physical:
		want = verbs.ErrInsufficientResources
	}
	w.say("%d: allocate %d pages of %d", n.number, count, size)
	p, err := n.nic.AllocatePages(count, size)
	w.same(want, err)
	if err != nil {
		return
	}
	m := &modelPages{real: p, in: newModelArena(p.Bytes()), size: size, base: p.Address(0)}
	w.equal("octets", "pages", uint64(count)*size, len(m.in.real))
	for i, a := range p.Addresses() {
		w.equal("address", i, m.base+uint64(i)*size, a)
	}
	n.pages = append(n.pages, m)
}

// freePages gives it back. Regions over it go on.
func (w *modelWorld) freePages(n *modelNode) {
	p, ok := object(w, n.pages, gonePages)
	if !ok {
		return
	}
	var want error
	if p.gone {
		want = verbs.ErrInvalidModifier
	}
	w.say("%d: free pages at %#x", n.number, p.base)
	w.same(want, p.real.Deallocate())
	p.gone = true
}

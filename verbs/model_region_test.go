package verbs_test

import (
	"unsafe"

	"github.com/softrnic/softrnic/verbs"
)

// Regions: what the generator draws, and what the draft makes of it.

// rights draws access rights.
func (w *modelWorld) rights() verbs.Access {
	all := localRightsOnly | remoteRightsOnly | verbs.BindWindow
	if w.one(2) {
		return all
	}
	a := verbs.Access(w.rng.IntN(int(all) + 1))
	for !w.wrong() && !regionRights(a) {
		a = verbs.Access(w.rng.IntN(int(all) + 1))
	}
	return a
}

// regionConfig draws a region, over Go memory or pages.
func (w *modelWorld) regionConfig(n *modelNode) (c verbs.RegionConfig, memory modelSpan, scope *modelQP) {
	c = verbs.RegionConfig{
		Access: w.rights(), RemoteAccess: w.one(2), Key: uint8(w.rng.Uint32()), ZeroBased: w.one(4), RemoteInvalidate: !w.one(8),
	}
	if some := living(n.pages, gonePages); len(some) > 0 && w.one(2) {
		c.Buffers = w.bufferList(n, n.limits.PBL)
		if !c.ZeroBased {
			c.VA = w.vaFor(c.Buffers)
		}
	} else {
		size := 1 + w.rng.IntN(2000)
		off := w.rng.IntN(len(n.heap.real) - size)
		if w.wrong() {
			off, size = pick(w, 0, 3, 9), pick(w, 0, 24<<10, 30<<10)
		}
		c.Memory, memory = n.heap.real[off:off+size:off+size], modelSpan{{n.heap, off, size}}
		if w.one(3) && !c.ZeroBased {
			c.VA = pick(w, 1, 1<<32+77, ^uint64(size), ^uint64(size)+1, ^uint64(5000)) // the last are about the highest
		}
	}
	if w.wrong() {
		c.VA = w.rng.Uint64()
	}
	if q, ok := object(w, n.qps, goneQP); ok && w.one(6) {
		c.QP, scope = q.real, q
	}
	return c, memory, scope
}

// bufferList draws a physical buffer list, over any pages of one size.
func (w *modelWorld) bufferList(n *modelNode, most int) (b verbs.PhysicalBuffers) {
	some := living(n.pages, gonePages)
	if w.wrong() {
		some = n.pages
	}
	if len(some) == 0 {
		return verbs.PhysicalBuffers{Size: 4096, Addresses: []uint64{1 << 40}, Length: 1}
	}
	b.Size = pick(w, some...).size
	some = living(some, func(p *modelPages) bool { return p.size != b.Size })
	count := 1 + w.rng.IntN(3)
	if w.wrong() {
		count = pick(w, 0, most+1)
	}
	for range count {
		p := pick(w, some...)
		a := p.base + p.size*w.rng.Uint64N(uint64(len(p.in.want))/p.size)
		if n.block && w.one(2) { // any alignment
			a = p.base + w.rng.Uint64N(uint64(len(p.in.want))-p.size+1)
		}
		b.Addresses = append(b.Addresses, a)
	}
	b.FBO = w.rng.Uint64N(min(b.Size, 700))
	b.Length = 1 + w.rng.Uint64N(max(uint64(count)*b.Size-b.FBO, 1))
	if !w.wrong() {
		return b
	}
	switch w.rng.IntN(5) {
	case 0:
		b.Size = pick(w, 0, 1000, 3<<30, b.Size*2)
	case 1:
		b.FBO = b.Size + w.rng.Uint64N(2)
	case 2:
		b.Length = pick(w, 0, uint64(count)*b.Size-b.FBO+1, 1<<63)
	default:
		if count > 0 {
			b.Addresses[w.rng.IntN(count)] += pick(w, 1, 1<<30, b.Size*3)
		}
	}
	return b
}

// vaFor draws a virtual address that agrees with the list.
func (w *modelWorld) vaFor(b verbs.PhysicalBuffers) uint64 {
	if w.wrong() || b.Size == 0 {
		return pick(w, 0, w.rng.Uint64())
	}
	return b.Size*(1+w.rng.Uint64N(1<<20)) + b.FBO
}

// region is the region that c makes, or why there is none (9.2.6.2).
func (n *modelNode) region(pd *modelPD, c verbs.RegionConfig, memory modelSpan, scope *modelQP) (r *modelRegion, err error) {
	r = &modelRegion{
		pd: pd, valid: true, key: c.Key, rights: c.Access, remote: c.RemoteAccess || c.Access&remoteRightsOnly != 0,
		zero: c.ZeroBased, scope: scope, open: c.RemoteInvalidate,
	}
	switch {
	case pd.gone:
		return nil, verbs.ErrInvalidPD
	case scope != nil && scope.gone:
		return nil, verbs.ErrInvalidModifier
	case !regionRights(c.Access):
		return nil, verbs.ErrInvalidAccess
	case c.ZeroBased && c.VA != 0:
		return nil, verbs.ErrInvalidVA
	case memory != nil:
		return n.overMemory(r, c, memory)
	case len(c.Buffers.Addresses) == 0 && c.Buffers.Size == 0: // no memory of either kind
		return nil, verbs.ErrInvalidLength
	}
	return n.overBuffers(r, c)
}

// overBuffers makes r one over physical buffers.
func (n *modelNode) overBuffers(r *modelRegion, c verbs.RegionConfig) (*modelRegion, error) {
	base, span, bad := n.buffers(c.Buffers, n.limits.PBL, c.ZeroBased, c.VA)
	if bad != listFine {
		return nil, map[modelListFault]error{
			badSize: verbs.ErrInvalidPhysBufferSize, tooLong: verbs.ErrInvalidLength, badFBO: verbs.ErrInvalidFBO,
			badLength: verbs.ErrInvalidLength, badVA: verbs.ErrInvalidVA, badEntry: verbs.ErrInvalidPhysBufferEntry,
		}[bad]
	}
	r.base, r.span, r.length = base, span, c.Buffers.Length
	r.size, r.fbo, r.pbl = c.Buffers.Size, c.Buffers.FBO, len(c.Buffers.Addresses)
	return r, nil
}

// overMemory makes r one over Go memory, which counts as pages of 4 KiB.
func (n *modelNode) overMemory(r *modelRegion, c verbs.RegionConfig, memory modelSpan) (*modelRegion, error) {
	r.length = uint64(memory.len())
	if r.length == 0 {
		return nil, verbs.ErrInvalidLength
	}
	at := uint64(uintptr(unsafe.Pointer(&c.Memory[0])))
	if c.VA != 0 {
		at = c.VA
	}
	r.size, r.fbo = 4096, at%4096
	for left := int64(r.fbo + r.length); left > 0; left -= 4096 {
		r.pbl++
	}
	if r.pbl > n.limits.PBL {
		return nil, verbs.ErrInvalidLength
	}
	var ok bool
	if r.base, ok = modelBase(c.ZeroBased, at, r.length, r.size, r.fbo); !ok {
		return nil, verbs.ErrInvalidVA
	}
	r.span = memory
	return r, nil
}

// full reports that no STag for a region is left.
func (n *modelNode) full() bool { return len(living(n.regions, goneRegion)) >= n.limits.Regions }

// registered adds a region that the RNIC has made.
func (n *modelNode) registered(r *modelRegion) {
	w := n.world
	r.index = uint32(r.real.STag()) >> 8
	if a, b := n.named(r.real.STag()); r.index == 0 || a != nil || b != nil {
		w.fail("STag %#x is in use, or zero", r.real.STag())
	}
	n.regions = append(n.regions, r)
	r.seen(n)
	w.log[len(w.log)-1] += " " + r.String()
}

// seen is what the handle shows from now on; and the room for buffers, which may be
// more than asked for.
func (r *modelRegion) seen(n *modelNode) {
	w := n.world
	a, err := r.real.Query()
	w.must(err)
	w.allocated("entries", r.pbl, a.PBL)
	r.pbl = a.PBL
	r.view.TaggedBuffer, r.view.length = verbs.TaggedBuffer{STag: verbs.STag(r.index << 8)}, 0
	if r.valid {
		r.view.TaggedBuffer, r.view.length = verbs.TaggedBuffer{STag: r.stag(), Base: r.base}, int(r.length)
	}
}

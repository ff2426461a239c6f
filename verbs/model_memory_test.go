package verbs_test

import (
	"github.com/softrnic/softrnic/verbs"
)

// The rules of draft chapter 7. Where several things are wrong at once the draft
// has no order; this one is that of the documentation of package stag.

// modelFault is what is wrong with an access.
type modelFault int

const (
	accessFine modelFault = iota
	badSTag
	badPD
	badRight
	badWrap
	badBounds
)

const (
	localRightsOnly  = verbs.LocalRead | verbs.LocalWrite
	remoteRightsOnly = verbs.RemoteRead | verbs.RemoteWrite | verbs.RemoteAtomic
)

// figure18 tells for local and remote rights whether they go together: none, read,
// write, both.
var figure18 = [4][4]bool{
	{false, false, false, false},
	{true, true, false, false},
	{true, false, true, false},
	{true, true, true, true},
}

func modelRights(a verbs.Access) (local, remote int, known bool) {
	bit := func(r verbs.Access, v int) int {
		if a&r != 0 {
			return v
		}
		return 0
	}
	all := localRightsOnly | remoteRightsOnly | verbs.BindWindow
	return bit(verbs.LocalRead, 1) | bit(verbs.LocalWrite, 2),
		bit(verbs.RemoteRead, 1) | bit(verbs.RemoteWrite, 2) | bit(verbs.RemoteAtomic, 3), a|all == all
}

func regionRights(a verbs.Access) bool {
	local, remote, known := modelRights(a)
	return known && figure18[local][remote]
}

// figure20 is the same for the local rights of a region and those of a window.
func figure20(region, window verbs.Access) bool {
	local, _, _ := modelRights(region)
	own, remote, known := modelRights(window)
	return known && window&verbs.BindWindow == 0 && own == 0 && remote != 0 && local|remote == local
}

// within checks n octets from to on, at least one, against a range (7.6.3).
func within(to, n, base, length uint64) modelFault {
	last := to + n - 1
	switch {
	case last < to:
		return badWrap
	case length == 0 || to < base || last > base+length-1:
		return badBounds
	}
	return accessFine
}

// access finds memory for a party: a queue pair with a domain, which for receives
// of an S-RQ is that of the S-RQ (6.3.5).
func (q *modelQP) access(pd *modelPD, s verbs.STag, to, n uint64, need verbs.Access) (modelSpan, modelFault) {
	if n == 0 { // RV-7.6.3-M3
		return nil, accessFine
	}
	r, w := q.node.named(s)
	switch {
	case s == 0:
		return q.physical(to, n, need)
	case r != nil:
		switch {
		case !r.valid || r.stag() != s: // 7.2.2, 7.4
			return nil, badSTag
		case r.pd != pd:
			return nil, badPD
		case need&remoteRightsOnly != 0 && r.scope != nil && r.scope != q:
			return nil, badPD
		case r.rights&need != need:
			return nil, badRight
		}
		f := within(to, n, r.base, r.length)
		if f != accessFine {
			return nil, f
		}
		return r.span.cut(int(to-r.base), int(n)), accessFine
	case w != nil:
		switch {
		case !w.valid || w.stag() != s: // 7.10.6.2
			return nil, badSTag
		case need&localRightsOnly != 0: // 8.1.3.2
			return nil, badSTag
		case w.qp != q: // in place of the PD (7.10.2)
			return nil, badPD
		case w.rights&need != need: // those of the region do not count
			return nil, badRight
		}
		f := within(to, n, w.base, w.length)
		if f != accessFine {
			return nil, f
		}
		return w.span.cut(int(to-w.base), int(n)), accessFine
	}
	return nil, badSTag
}

// physical is the STag of zero (7.2.1).
func (q *modelQP) physical(to, n uint64, need verbs.Access) (modelSpan, modelFault) {
	if !q.privileged || need&localRightsOnly == 0 {
		return nil, badSTag
	}
	f := badBounds
	for _, p := range q.node.pages {
		if p.gone {
			continue
		}
		switch f = within(to, n, p.base, uint64(len(p.in.want))); f {
		case accessFine:
			return modelSpan{{p.in, int(to - p.base), int(n)}}, f
		case badWrap:
			return nil, f
		}
	}
	if to+n-1 < to {
		f = badWrap
	}
	return nil, f
}

// modelListFault is what is wrong with a physical buffer list.
type modelListFault int

const (
	listFine modelListFault = iota
	badSize
	tooLong
	badFBO
	badLength
	badVA
	badEntry
)

// buffers checks a physical buffer list of at most pbl entries, and tells what
// memory it is and where it begins (7.6.1, 7.6.2).
func (n *modelNode) buffers(b verbs.PhysicalBuffers, pbl int, zero bool, va uint64) (uint64, modelSpan, modelListFault) {
	switch {
	case !n.sizeFits(b.Size):
		return 0, nil, badSize
	case len(b.Addresses) > pbl:
		return 0, nil, tooLong
	case b.FBO >= b.Size:
		return 0, nil, badFBO
	case b.Length == 0 || len(b.Addresses) == 0 || b.Length > uint64(len(b.Addresses))*b.Size-b.FBO:
		return 0, nil, badLength
	}
	base, ok := modelBase(zero, va, b.Length, b.Size, b.FBO)
	if !ok {
		return 0, nil, badVA
	}
	var span modelSpan
	for _, a := range b.Addresses {
		p := n.frame(a, b.Size)
		if p == nil || !n.block && a%b.Size != 0 {
			return 0, nil, badEntry
		}
		span = append(span, modelPiece{p.in, int(a - p.base), int(b.Size)})
	}
	return base, span.cut(int(b.FBO), int(b.Length)), listFine
}

// frame is the memory that has n octets at a physical address.
func (n *modelNode) frame(a, size uint64) *modelPages {
	for _, p := range n.pages {
		if !p.gone && within(a, size, p.base, uint64(len(p.in.want))) == accessFine {
			return p
		}
	}
	return nil
}

func (n *modelNode) sizeFits(size uint64) bool {
	if n.block { // any (7.6.2.2)
		return size >= 1 && size <= 1<<30
	}
	for s := uint64(4096); s <= 1<<30; s *= 2 { // powers of two (7.6.2.1)
		if s == size {
			return true
		}
	}
	return false
}

// modelBase is the tagged offset of the first octet (7.6.1.1, 7.6.1.2).
func modelBase(zero bool, va, length, size, fbo uint64) (base uint64, ok bool) {
	if zero {
		return 0, true
	}
	return va, va != 0 && va%size == fbo && va+length > va
}

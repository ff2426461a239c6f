package stag

import "github.com/softrnic/softrnic/wr"

// Resolve finds the n octets from tagged offset to on in the region or window
// of s, for an access by u that needs every right of need (verbs draft 7.6.3,
// 7.10.6.2, figure 21). The checks go from the STag to the octet, so that a
// user is told nothing about memory that is not open to it: STag with its key
// and state, PD or QP, access right, wrap, bounds. RFC 5041 7.1 and RFC 5040
// 7.2 ask for the same checks and begin with the same; the draft has no order.
//
// A region is open to its Protection Domain, a window to the queue pair it is
// bound to. A window serves remote rights only. The sink of an RDMA Read may be
// either, and whether the memory is there is looked at when the Read is sent,
// with no right needed: the rights are those of the response, when it comes
// (verbs draft 7.5.2).
//
// The STag of zero is the physical memory of AllocatePages, to is a physical
// address (verbs draft 7.2.1): for privileged users and local rights only, and
// within one allocation.
//
// An access of length zero is not checked (RV-7.6.3-M3, RV-7.10.6.2-M11): the
// caller need not call, and n of zero gives OK and the zero Ref.
func (t *Table) Resolve(s wr.STag, to, n uint64, u User, need wr.Access) (Ref, AccessFault) {
	if n == 0 {
		return Ref{}, OK
	}
	e := t.index.get(s.Index())
	if e == nil {
		if s == 0 {
			return t.resolvePhysical(to, n, u, need)
		}
		return Ref{}, FaultSTag
	}
	var g grant
	gen, ok := e.look(&g)
	if !ok || g.key != s.Key() { // RV-7.2.2-M1, RV-7.10.6.2-M2; RV-7.4-M7: all 32 bits
		return Ref{}, FaultSTag
	}
	if e.window {
		if need&localRights != 0 { // draft 8.1.3.2
			return Ref{}, FaultSTag
		}
		if g.qp != u.QP { // RV-7.10.2-M7, RV-7.10.6.2-M3: in place of the PD
			return Ref{}, FaultPD
		}
	} else if !g.allows(u, need&remoteRights != 0) {
		return Ref{}, FaultPD
	}
	if g.access&need != need { // RV-7.6.3-M1, RV-7.10.6.2-M6
		return Ref{}, FaultAccess
	}
	if f := g.contains(to, n); f != OK { // RV-7.6.3-M2, RV-7.10.6.2-M4
		return Ref{}, f
	}
	return Ref{e, gen, to - g.base + g.at, n}, OK
}

// resolvePhysical is Resolve for the STag of zero.
func (t *Table) resolvePhysical(to, n uint64, u User, need wr.Access) (Ref, AccessFault) {
	if !u.Privileged || need == 0 || need&^localRights != 0 { // RV-7.2.1-M5, RV-7.2.1-M7, draft 8.1.3.2.1
		return Ref{}, FaultSTag
	}
	if to+(n-1) < to {
		return Ref{}, FaultWrap
	}
	e := t.space.find(to, n)
	if e == nil || e.isRevoked() {
		return Ref{}, FaultBounds
	}
	return Ref{e, 0, to - e.grant.base.Load(), n}, OK
}

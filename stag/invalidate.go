package stag

import "github.com/softrnic/softrnic/wr"

// InvalidateRemote puts s into the Invalid state on behalf of the peer of u: an
// inbound Send with Invalidate (verbs draft 7.8, 7.10.4). When it returns OK,
// nothing is placed in or read from the memory through s any more. The queue
// pair's own rights are for the caller to check. An STag that is Invalid already
// passes: its key means nothing (draft 7.2), the other checks are done. What is
// wrong is looked for in this order, and leaves the STag as it was:
//
//	FaultGone          names nothing
//	FaultSTag          zero, another key, or a Shared Memory Region
//	FaultPD            a region of another PD or limited to another queue
//	                   pair; a Valid window of another queue pair, an
//	                   Invalid one of another PD
//	FaultAccess        a region without remote rights, or open to several
//	                   queue pairs and without RemoteInvalidate
//	FaultWindowsBound  a region with windows
func (t *Table) InvalidateRemote(s wr.STag, u User) AccessFault { return t.invalidate(s, u, true) }

// InvalidateLocal does the same for an Invalidate Local STag or an RDMA Read
// with Invalidate Local STag. It needs no access right, and the queue pair that
// a region is limited to does not matter.
func (t *Table) InvalidateLocal(s wr.STag, u User) AccessFault { return t.invalidate(s, u, false) }

func (t *Table) invalidate(s wr.STag, u User, remote bool) AccessFault {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.index.get(s.Index())
	switch {
	case e == nil && remote && s.Index() != 0: // RV-7.8-M17; zero is never deallocated, 7.2.1
		return FaultGone
	case e == nil: // RV-7.8-M12
		return FaultSTag
	case e.stag() != s && !e.isRevoked(): // draft 7.8: the key counts when moving to Invalid
		return FaultSTag
	}
	check := checkInvalidateRegion
	if e.window {
		check = checkInvalidateWindow
	}
	if f := check(e, u, remote); f != OK {
		return f
	}
	e.revoke()
	t.await(e)
	return OK
}

func checkInvalidateRegion(e *entry, u User, remote bool) AccessFault {
	g := e.grant.load()
	switch {
	case e.shared: // RV-7.8-M3, RV-7.8-M11
		return FaultSTag
	case !g.allows(u, remote): // RV-7.8-M13, R5040-7.2-M5
		return FaultPD
	case remote && (g.access&remoteRights == 0 || !e.remoteInvalidate && g.qp == 0): // RV-7.8-M15, R5040-8.1.1-M8
		return FaultAccess
	case e.windows > 0: // RV-7.8-M14
		return FaultWindowsBound
	}
	return OK
}

// checkInvalidateWindow knows no rights: a bound window has a remote one.
func checkInvalidateWindow(e *entry, u User, _ bool) AccessFault {
	g := e.grant.load()
	ok := g.qp == u.QP // RV-7.10.4-M1, RV-7.10.6.3-M2
	if e.isRevoked() {
		ok = g.pd == u.PD // RV-7.10.4-M4, RV-7.10.6.3-M3
	}
	if !ok {
		return FaultPD
	}
	return OK
}

// Lose puts s into the Invalid state whatever its owner, as by a fault of the RNIC. It reports whether
// it did: false for an STag that is not Valid, a region with windows bound to it, and a Shared Memory Region. When it returns true, nothing is placed in or read from the memory through s any more.
func (t *Table) Lose(s wr.STag) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.index.get(s.Index())
	if e == nil || e.isRevoked() || e.stag() != s || e.windows > 0 || e.shared {
		return false
	}
	e.revoke()
	t.await(e)
	return true
}

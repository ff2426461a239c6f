package stag

import "github.com/softrnic/softrnic/wr"

// FastRegister makes the Non-Shared Memory Region of an Invalid STag Valid, over
// physical buffers (verbs draft 7.3.2.5). It waits for an invalidation of it
// that is under way. The flag, the queue pair and the room for a physical buffer
// list stay. What is wrong is looked for in this order, and leaves the STag as
// it was:
//
//	FaultPrivilege    the user is not privileged
//	FaultSTag         not that of a Non-Shared Memory Region
//	FaultPD           another Protection Domain
//	FaultNotInvalid   it is Valid
//	FaultRights       rights not of figure 18, or remote without the flag
//	FaultBufferSize   size not supported
//	FaultBufferList   more entries than Info.PBL
//	FaultFBO          FBO beyond the first buffer
//	FaultLength       length zero or more than the buffers have
//	FaultVA           VA-based: VA zero, not agreeing with the FBO, too high
//	FaultBufferEntry  a buffer not aligned, or not in allocated memory
func (t *Table) FastRegister(r *wr.FastRegisterRequest, u User) AccessFault {
	if !u.Privileged { // RV-7.3.2.5-M15
		return FaultPrivilege
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.settled(r.STag.Index())
	if f := checkFastRegister(e, r, u); f != OK {
		return f
	}
	base, f := t.checkBuffers(&r.Buffers, e.pbl, r.Addressing, r.VA)
	if f != OK {
		return f
	}
	if e.pieces, f = t.lay(e.pieces, &r.Buffers); f != OK {
		e.disarm()
		return f
	}
	e.size, e.fbo = r.Buffers.Size, r.Buffers.FBO
	e.mem = join(e.pieces)
	g := e.grant.load()
	g.key, g.access, g.addressing = r.STag.Key(), r.Access, r.Addressing
	g.base, g.length, g.vanish = base, r.Buffers.Length, false // pages are this table's own
	e.grant.store(g)
	e.arm()
	return OK
}

// checkFastRegister checks the STag and what it may become.
func checkFastRegister(e *entry, r *wr.FastRegisterRequest, u User) AccessFault {
	switch {
	case e == nil, e.window, e.shared: // RV-7.3.2.5-M5 to RV-7.3.2.5-M7
		return FaultSTag
	case e.grant.load().pd != u.PD: // RV-7.3.2.5-M4
		return FaultPD
	case !e.isRevoked(): // RV-7.3.2.5-M8
		return FaultNotInvalid
	case !r.Access.Valid(): // figure 18
		return FaultRights
	case r.Access&remoteRights != 0 && !e.remoteAccess: // RV-7.3.2.5-M11, RV-7.3.2.5-M13
		return FaultRights
	}
	return OK
}

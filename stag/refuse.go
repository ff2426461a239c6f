package stag

import (
	"fmt"

	"github.com/softrnic/softrnic/wr"
)

// Why memory is not registered, in words and as data.

// wrongRights refuses rights that are no combination of figure 18.
func wrongRights(access wr.Access) *wr.Reason {
	why := &wr.Reason{Err: wr.ErrInvalidAccess, What: fmt.Sprintf("%v is no combination of figure 18", access), Rule: "verbs draft fig. 18"}
	why.Missing = access.LocalOf() &^ access
	switch {
	case why.Missing != 0:
		why.What, why.Remedy = fmt.Sprintf("%v without the %s right", access, rights(why.Missing)), "add that"
	case access&localRights == 0:
		why.Missing = localRights
		why.What, why.Remedy = fmt.Sprintf("%v, and a region needs a local right", access), "add LocalRead or LocalWrite"
	}
	return why
}

// wrongSize says which sizes a physical buffer may have.
func (t *Table) wrongSize(size uint64) (what, remedy string) {
	what = fmt.Sprintf("buffers of %d octets", size)
	if t.config.BlockMode {
		return what, fmt.Sprintf("have %d to %d", MinBlock, MaxBlock)
	}
	return what, fmt.Sprintf("have a power of two from %d to %d", MinPage, MaxPage)
}

// asked is the memory that is to be registered: physical buffers, and how many the list may have.
type asked struct {
	buffers, most     int
	size, fbo, length uint64
	va                uint64
}

// refuse says why c is not registered: f, which was found when e was given its memory.
func (t *Table) refuse(f AccessFault, e *entry, c *RegionConfig) error {
	a := asked{most: t.config.PBL, size: e.size, fbo: e.fbo, va: c.VA, length: uint64(len(c.Memory))}
	a.buffers = int((e.fbo + a.length + MinPage - 1) / MinPage)
	if b := &c.Buffers; c.Memory == nil && b.Size != 0 {
		a.buffers, a.size, a.fbo, a.length = len(b.Addresses), b.Size, b.FBO, b.Length
	}
	why := &wr.Reason{Err: faultErrors[f], What: f.String()}
	t.explainMemory(why, f, a)
	return why
}

// explainMemory adds to why what is wrong with a, by f.
func (t *Table) explainMemory(why *wr.Reason, f AccessFault, a asked) {
	switch f {
	case FaultBufferSize:
		why.What, why.Remedy = t.wrongSize(a.size)
		why.Rule = "verbs draft 7.6.2"
	case FaultBufferList:
		why.What, why.Rule = fmt.Sprintf("%d physical buffers, at most %d", a.buffers, a.most), "RV-7.3.2.5-M10"
		why.Remedy = "register less, or raise PBL"
	case FaultFBO:
		why.What, why.Rule = fmt.Sprintf("a First Byte Offset of %d in buffers of %d", a.fbo, a.size), "verbs draft 7.6.2"
		why.Remedy = "leave out the buffers before it"
	case FaultBufferEntry:
		why.What, why.Rule = "a buffer is not aligned, or not of one AllocatePages", "RV-7.6.2.1-M3"
		why.Remedy = "use its addresses"
	case FaultLength:
		room := uint64(a.buffers)*a.size - min(a.fbo, uint64(a.buffers)*a.size)
		why.What, why.Rule = fmt.Sprintf("%d octets, and the buffers have %d", a.length, room), "verbs draft 7.6.2"
		why.Remedy = "ask for no more than the buffers have"
		why.Allowed = wr.Untagged(room)
		if a.length == 0 {
			why.What, why.Remedy = "no octet", "register one at least"
			why.Allowed = wr.Octets{}
		}
	case FaultVA:
		explainVA(why, a)
	default:
	}
}

// explainVA is explainMemory of a virtual address, as checkBase looks at it.
func explainVA(why *wr.Reason, a asked) {
	switch {
	case a.va == 0:
		why.What, why.Rule, why.Remedy = "a VA-based region of physical buffers needs a VA", "verbs draft 7.6.1", "set VA, or ZeroBased"
	case a.size != 0 && a.va%a.size != a.fbo:
		why.What = fmt.Sprintf("the VA is %d octets into a buffer, the First Byte Offset %d", a.va%a.size, a.fbo)
		why.Rule, why.Remedy = "RV-7.6.2.1-M4", "make them the same"
	default:
		why.What = fmt.Sprintf("%d octets from %#x on go beyond the last TO, 2^64-1", a.length, a.va)
		why.Rule, why.Remedy = "RFC 5041 7.1", "choose a lower VA"
	}
}

// ExplainFastRegister adds to why what the table knows of f, the fault of a Fast-Register by u.
func (t *Table) ExplainFastRegister(why *wr.Reason, f AccessFault, r *wr.FastRegisterRequest, u User) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e, b := t.index.get(r.STag.Index()), &r.Buffers
	a := asked{buffers: len(b.Addresses), size: b.Size, fbo: b.FBO, length: b.Length, va: r.VA}
	if e != nil {
		a.most = e.pbl
	}
	switch f {
	case FaultPrivilege:
		why.Remedy = "set QPConfig.Privileged"
	case FaultSTag:
		why.Rule, why.Remedy = "RV-7.3.2.5-M5", "name a region of AllocateRegion that is there"
	case FaultPD:
		why.Rule, why.Remedy = "RV-7.3.2.5-M4", "have region and queue pair in one PD"
	case FaultNotInvalid:
		why.Rule, why.Remedy = "RV-7.3.2.5-M8", "invalidate it first"
	case FaultRights:
		if r.Access.Valid() {
			why.Missing = r.Access & remoteRights
			why.What = "the region has no Remote Access Flag"
			why.Rule, why.Remedy = "RV-7.3.2.5-M11", "set AllocateConfig.RemoteAccess"
			return
		}
		bad := wrongRights(r.Access)
		why.What, why.Rule, why.Remedy, why.Missing = bad.What, bad.Rule, bad.Remedy, bad.Missing
	default:
		t.explainMemory(why, f, a)
	}
}

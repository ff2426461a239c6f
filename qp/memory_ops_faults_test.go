package qp

import (
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/stag"
	"github.com/softrnic/softrnic/wr"
)

const allRights = wr.LocalRead | wr.LocalWrite | wr.RemoteRead | wr.RemoteWrite

func privileged(c *setup) { c.config = func(c *Config) { c.Privileged = true } }

// newWindow allocates a window; its key is 0x31.
func (r *rig) newWindow(pd wr.PDID) wr.STag {
	w, err := r.tab.AllocateWindow(pd)
	require.NoError(r.t, err)
	return wr.MakeSTag(w.Index(), 0x31)
}

// bound is a window that another queue pair has bound to the bindable region.
func (r *rig) bound() wr.STag { return r.bindWindow(otherQP, wr.RemoteRead|wr.RemoteWrite, wr.VABased) }

// empty allocates an STag for Fast-Register; its key is 0x41.
func (r *rig) empty(c stag.AllocateConfig) wr.STag {
	if c.PD == 0 {
		c.PD = ownPD
	}
	if c.PBL == 0 {
		c.PBL = 4
	}
	i, err := r.tab.Allocate(c)
	require.NoError(r.t, err)
	return wr.MakeSTag(i.STag.Index(), 0x41)
}

// duplicate is the STag of s after it was made a Shared Memory Region.
func (r *rig) duplicate(s *slab) wr.STag {
	_, err := r.tab.RegisterShared(s.stag, stag.SharedConfig{PD: ownPD, VA: s.base, Access: allRights})
	require.NoError(r.t, err)
	return s.stag
}

const page = stag.MinPage

func (r *rig) pages(n int) *stag.Pages {
	p, err := r.tab.AllocatePages(n, page)
	require.NoError(r.t, err)
	return p
}

// goodBind is a Bind that succeeds.
func (r *rig) goodBind() *wr.BindRequest {
	s := r.windowed
	return &wr.BindRequest{Window: r.newWindow(ownPD), Region: s.stag, VA: s.at(16), Length: 64, Access: wr.RemoteRead | wr.RemoteWrite}
}

// goodFast is a Fast-Register that succeeds on a privileged queue pair.
func (r *rig) goodFast() *wr.FastRegisterRequest {
	return &wr.FastRegisterRequest{
		STag: r.empty(stag.AllocateConfig{RemoteAccess: true}), VA: 7*page + 100, Access: allRights,
		Buffers: wr.PhysicalBuffers{Size: page, Addresses: r.pages(2).Addresses(), FBO: 100, Length: page},
	}
}

// badBind spoils a Bind that would succeed.
func badBind(name string, f streamFault, s wr.Status, spoil func(*rig, *wr.BindRequest)) ownError {
	return ownError{name: "Bind: " + name, fault: f, status: s, send: func(r *rig) wr.Request {
		b := r.goodBind()
		spoil(r, b)
		return wr.Request{Op: wr.OpBind, Bind: b}
	}}
}

func badFast(name string, f streamFault, s wr.Status, spoil func(*rig, *wr.FastRegisterRequest)) ownError {
	return ownError{name: "Fast-Register: " + name, set: privileged, fault: f, status: s, send: func(r *rig) wr.Request {
		b := r.goodFast()
		spoil(r, b)
		return wr.Request{Op: wr.OpFastRegister, FastRegister: b}
	}}
}

func badInvalidate(name string, f streamFault, s wr.Status, target func(*rig) wr.STag) ownError {
	return ownError{name: "Invalidate: " + name, fault: f, status: s, send: func(r *rig) wr.Request {
		return wr.Request{Op: wr.OpInvalidate, Invalidate: target(r)}
	}}
}

// memoryErrors are the SQ Bind, Fast-Register and Invalidate errors of figure 23,
// and what the other operations may not do with windows and the STag of zero.
var memoryErrors = []ownError{
	badBind("no window", faultBindWindow, wr.StatusInvalidWindow, func(r *rig, b *wr.BindRequest) { b.Window = r.gone }),
	badBind("a region as window", faultBindWindow, wr.StatusInvalidWindow, func(r *rig, b *wr.BindRequest) { b.Window = r.full.stag }),
	badBind("a window that is bound", faultBindNotInvalid, wr.StatusSTagNotInvalid, func(r *rig, b *wr.BindRequest) { b.Window = r.bound() }),
	badBind("no region", faultBindRegion, wr.StatusInvalidRegion, func(r *rig, b *wr.BindRequest) { b.Region = r.gone }),
	badBind("another key", faultBindRegion, wr.StatusInvalidRegion, func(_ *rig, b *wr.BindRequest) { b.Region ^= 1 }),
	badBind("a window as region", faultBindRegion, wr.StatusInvalidRegion, func(r *rig, b *wr.BindRequest) { b.Region = r.bound() }),
	badBind("an Invalid region", faultBindRegion, wr.StatusInvalidRegion, func(r *rig, b *wr.BindRequest) { b.Region = r.empty(stag.AllocateConfig{}) }),
	badBind("a zero-based region", faultBindRegion, wr.StatusInvalidRegion, func(r *rig, b *wr.BindRequest) {
		reg, err := r.tab.Register(stag.RegionConfig{
			PD: ownPD, Access: allRights | wr.BindWindow, Memory: make([]byte, 4096), Addressing: wr.ZeroBased,
		})
		require.NoError(r.t, err)
		b.Region, b.VA = reg.STag, 0
	}),
	badBind("window of another PD", faultBindPD, wr.StatusInvalidPD, func(r *rig, b *wr.BindRequest) { b.Window = r.newWindow(otherPD) }),
	badBind("region of another PD", faultBindPD, wr.StatusInvalidPD, func(r *rig, b *wr.BindRequest) { b.Region = r.foreign.stag }),
	badBind("region not for windows", faultBindAccess, wr.StatusAccess, func(r *rig, b *wr.BindRequest) { b.Region, b.VA = r.full.stag, r.full.base }),
	badBind("no remote right", faultBindAccess, wr.StatusAccess, func(_ *rig, b *wr.BindRequest) { b.Access = 0 }),
	badBind("a local right", faultBindAccess, wr.StatusAccess, func(_ *rig, b *wr.BindRequest) { b.Access |= wr.LocalRead }),
	badBind("more than the region has", faultBindAccess, wr.StatusAccess, func(r *rig, b *wr.BindRequest) { // figure 20
		s := r.newSlab(stag.RegionConfig{PD: ownPD, Access: wr.LocalRead | wr.BindWindow, Key: 0x21})
		b.Region, b.VA = s.stag, s.base
	}),
	badBind("one octet too much", faultBindBounds, wr.StatusBaseBounds, func(_ *rig, b *wr.BindRequest) { b.Length = slabSize - 15 }),
	badBind("from below", faultBindBounds, wr.StatusBaseBounds, func(_ *rig, b *wr.BindRequest) { b.VA -= 17 }),
	badBind("no octet", faultBindBounds, wr.StatusBaseBounds, func(_ *rig, b *wr.BindRequest) { b.Length = 0 }),
	badBind("wrap", faultBindWrap, wr.StatusWrap, func(_ *rig, b *wr.BindRequest) { b.VA, b.Length = top, 2 }),
	{
		name: "Bind: not enabled", set: func(c *setup) { c.config = func(c *Config) { c.NoBind = true } },
		fault: faultBindAccess, status: wr.StatusAccess,
		send: func(r *rig) wr.Request { return wr.Request{Op: wr.OpBind, Bind: r.goodBind()} },
	},

	badFast("no STag", faultFastSTag, wr.StatusInvalidSTag, func(r *rig, f *wr.FastRegisterRequest) { f.STag = r.gone }),
	badFast("a window", faultFastSTag, wr.StatusInvalidSTag, func(r *rig, f *wr.FastRegisterRequest) { f.STag = r.newWindow(ownPD) }),
	badFast("a shared region", faultFastSTag, wr.StatusInvalidSTag, func(r *rig, f *wr.FastRegisterRequest) { f.STag = r.duplicate(r.windowed) }),
	badFast("another PD", faultFastPD, wr.StatusInvalidPD, func(r *rig, f *wr.FastRegisterRequest) { f.STag = r.empty(stag.AllocateConfig{PD: otherPD}) }),
	badFast("a Valid region", faultFastNotInvalid, wr.StatusSTagNotInvalid, func(r *rig, f *wr.FastRegisterRequest) { f.STag = r.full.stag }),
	badFast("no local right", faultFastRights, wr.StatusInvalidAccessRights, func(_ *rig, f *wr.FastRegisterRequest) { f.Access = wr.RemoteRead }),
	badFast("remote right without the flag", faultFastRights, wr.StatusInvalidAccessRights, func(r *rig, f *wr.FastRegisterRequest) { f.STag = r.empty(stag.AllocateConfig{}) }),
	badFast("page size", faultFastPageSize, wr.StatusInvalidPageSize, func(_ *rig, f *wr.FastRegisterRequest) { f.Buffers.Size = 3000 }),
	badFast("list too long", faultFastList, wr.StatusPhysBufferListTooLong, func(r *rig, f *wr.FastRegisterRequest) { f.Buffers.Addresses = r.pages(5).Addresses() }),
	badFast("FBO", faultFastFBO, wr.StatusInvalidFBO, func(_ *rig, f *wr.FastRegisterRequest) { f.Buffers.FBO = page }),
	badFast("length", faultFastLength, wr.StatusInvalidFastRegLength, func(_ *rig, f *wr.FastRegisterRequest) { f.Buffers.Length = 2*page - 99 }),
	badFast("VA and FBO", faultFastVA, wr.StatusInvalidVA, func(_ *rig, f *wr.FastRegisterRequest) { f.VA++ }),
	badFast("page not aligned", faultFastEntry, wr.StatusInvalidPhysBufferEntry, func(_ *rig, f *wr.FastRegisterRequest) { f.Buffers.Addresses[1]++ }),
	badFast("page of nobody", faultFastEntry, wr.StatusInvalidPhysBufferEntry, func(_ *rig, f *wr.FastRegisterRequest) { f.Buffers.Addresses[1] = page }),
	{
		name: "Fast-Register: not privileged", fault: faultFastPrivilege, status: wr.StatusNotPrivileged,
		send: func(r *rig) wr.Request { return wr.Request{Op: wr.OpFastRegister, FastRegister: r.goodFast()} },
	},
	{
		name: "Fast-Register: block size", fault: faultFastBlockSize, status: wr.StatusInvalidPhysBufferSize,
		set: func(c *setup) { c.config = func(c *Config) { c.Privileged, c.BlockMode = true, true } },
		send: func(r *rig) wr.Request {
			f := r.goodFast()
			f.Buffers.Size = 0 // in neither mode
			return wr.Request{Op: wr.OpFastRegister, FastRegister: f}
		},
	},

	badInvalidate("no STag", faultInvalidateLocalSTag, wr.StatusInvalidSTag, func(r *rig) wr.STag { return r.gone }),
	badInvalidate("another key", faultInvalidateLocalSTag, wr.StatusInvalidSTag, func(r *rig) wr.STag { return r.full.stag ^ 1 }),
	badInvalidate("a shared region", faultInvalidateLocalSTag, wr.StatusInvalidSTag, func(r *rig) wr.STag { return r.duplicate(r.windowed) }),
	badInvalidate("region of another PD", faultInvalidateLocalPD, wr.StatusInvalidPD, func(r *rig) wr.STag { return r.foreign.stag }),
	badInvalidate("window of another QP", faultInvalidateLocalPD, wr.StatusInvalidPD, func(r *rig) wr.STag { return r.bound() }),
	badInvalidate("Invalid window of another PD", faultInvalidateLocalPD, wr.StatusInvalidPD, func(r *rig) wr.STag { return r.newWindow(otherPD) }),
	badInvalidate("region with a window", faultInvalidateLocalWindows, wr.StatusInvalidSTag, func(r *rig) wr.STag {
		r.bound()
		return r.windowed.stag
	}),
	{
		name: "Read with Invalidate of STag zero", fault: faultInvalidateLocalSTag, status: wr.StatusInvalidSTag,
		send: func(*rig) wr.Request { return wr.Request{Op: wr.OpReadInvalidate} },
	},

	{
		name: "Send from a window", fault: faultSQSTag, status: wr.StatusInvalidSTag, // draft 8.1.3.2
		send: sends(func(r *rig) []wr.SGE {
			return []wr.SGE{{STag: r.bound(), TO: r.windowed.at(100), Length: 1}}
		}),
	},
	{
		name: "Read to another QP's window", fault: faultSQPD, status: wr.StatusInvalidPD, // draft 9.5.2
		send: reads(func(r *rig) wr.SGE {
			return wr.SGE{STag: r.bound(), TO: r.windowed.at(100), Length: 1}
		}),
	},
	{
		name: "privileged Read to STag zero", set: privileged, fault: faultSQSTag, status: wr.StatusInvalidSTag, // RV-8.1.3.2.1-M2
		send: reads(func(r *rig) wr.SGE { return wr.SGE{TO: r.pages(1).Address(0), Length: 1} }),
	},
	{
		name: "privileged Read, second sink of STag zero, where Local Write is enough",
		set: func(c *setup) {
			c.config = func(c *Config) { c.Privileged, c.ReadIntoLocal, c.ReadSGE = true, true, 2 }
		},
		fault: faultSQSTag, status: wr.StatusInvalidSTag,
		send: func(r *rig) wr.Request {
			return wr.Request{Op: wr.OpRead, SGL: []wr.SGE{r.full.sge(0, 8), {TO: r.pages(1).Address(0), Length: 1}}, Remote: wr.Remote{STag: 5}}
		},
	},
	{
		name: "privileged Send from no page", set: privileged, fault: faultSQBounds, status: wr.StatusBaseBounds,
		send: sends(func(r *rig) []wr.SGE { return []wr.SGE{{TO: r.pages(1).Address(0) + page - 1, Length: 2}} }),
	},
}

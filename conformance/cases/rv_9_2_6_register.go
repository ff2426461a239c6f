package cases

import (
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// rv9_2_6_register is allocating, registering and querying Memory Regions: verbs
// draft 9.2.6.1 to 9.2.6.3.
var rv9_2_6_register = []conformance.Case{
	apiCase("9.2.6.1/results", allocateSTagResults, "RV-9.2.6.1-M1"),
	apiCase("9.2.6.1/modifiers", onHost(allocateSTagModifiers), "RV-9.2.6.1-M2"),
	apiCase("9.2.6.2/results", registerResults, "RV-9.2.6.2-M1"),
	apiCase("9.2.6.2/modifiers", onHost(registerModifiers), "RV-9.2.6.2-M2"),
	apiCase("9.2.6.2/placement", onHost(registerPlacement), "RV-9.2.6.2-M2"),
	apiCase("9.2.6.2/buffer-size", onHost(registerBufferSize), "RV-9.2.6.2-M3"),
	apiCase("9.2.6.2/addressing", onHost(registerAddressing), "RV-9.2.6.2-M4"),
	apiCase("9.2.6.3/results", onHostPair(queryRegionResults), "RV-9.2.6.3-M1"),
	apiCase("9.2.6.3/modifiers", queryRegionModifiers, "RV-9.2.6.3-M2"),
}

func allocateSTagResults(t *conformance.T) {
	n := newHost(t, hostConfig{RNIC: verbs.Config{Limits: verbs.Limits{Regions: 3, PBL: 16}}})
	dead := n.deadPD()
	require.ErrorIs(t, second(dead.AllocateRegion(verbs.AllocateConfig{})), verbs.ErrInvalidPD)
	refuses(t, "too long a list", verbs.ErrInsufficientResources,
		func() error { return second(n.pd.AllocateRegion(verbs.AllocateConfig{PBL: 17})) }, queries(n.nic.Query))
	refuses(t, "a negative list", verbs.ErrInvalidModifier,
		func() error { return second(n.pd.AllocateRegion(verbs.AllocateConfig{PBL: -1})) }, queries(n.nic.Query))
	n.allocate(verbs.AllocateConfig{PBL: 16})
	n.allocate(verbs.AllocateConfig{})
	refuses(t, "a fourth region", verbs.ErrInsufficientResources,
		func() error { return second(n.pd.AllocateRegion(verbs.AllocateConfig{})) }, queries(n.nic.Query))
	require.NoError(t, n.nic.Close())
	require.ErrorIs(t, second(n.pd.AllocateRegion(verbs.AllocateConfig{})), verbs.ErrInvalidRNIC)
}

// fastRegister runs a Fast-Register on a privileged queue pair of its own, which has
// a raw peer, and says what comes of it.
func (n *host) fastRegister(f verbs.FastRegisterRequest, want verbs.Status) {
	qp := n.newQP(verbs.QPConfig{Privileged: true})
	rawPeer(n.t, qp, asInitiator)
	run(n.t, qp, verbs.Request{ID: 0xFA57, Op: verbs.OpFastRegister, FastRegister: &f}, want)
}

func allocateSTagModifiers(t *conformance.T, n *host) {
	other := n.newPD()
	p := n.pages(64, 4096)
	for _, c := range []struct {
		pbl    int
		remote bool
	}{{1, true}, {3, false}, {30, true}} {
		mr := n.allocate(verbs.AllocateConfig{PBL: c.pbl, RemoteAccess: c.remote})
		q := must(mr.Query())(t)
		require.GreaterOrEqual(t, q.PBL, c.pbl, "may be more than asked for, not less")
		assert.Equal(t, verbs.RegionAttributes{STag: verbs.MakeSTag(mr.STag().Index(), 0), PD: n.pd.ID(), RemoteAccess: c.remote, PBL: q.PBL}, q)
		f := verbs.FastRegisterRequest{STag: mr.WithKey(9), Addressing: verbs.ZeroBased, Access: verbs.LocalRead | verbs.LocalWrite}
		f.Buffers = p.List(0, (q.PBL+1)*4096)
		n.fastRegister(f, verbs.StatusPhysBufferListTooLong)
		f.Buffers = p.List(0, q.PBL*4096)
		remote := f
		remote.Access = allRights
		if !c.remote {
			n.fastRegister(remote, verbs.StatusInvalidAccessRights)
			n.fastRegister(f, verbs.StatusSuccess)
			continue
		}
		n.fastRegister(remote, verbs.StatusSuccess)
		n.remotely(verbs.Remote{STag: mr.WithKey(9), TO: uint64(q.PBL)*4096 - 1}, 0, 0)
	}
	mr := must(other.AllocateRegion(verbs.AllocateConfig{}))(t)
	assert.Equal(t, other.ID(), must(mr.Query())(t).PD)
	n.fastRegister(verbs.FastRegisterRequest{STag: mr.WithKey(1), Buffers: p.List(0, 1), Addressing: verbs.ZeroBased, Access: verbs.LocalRead}, verbs.StatusInvalidPD)
}

func registerResults(t *conformance.T) {
	n := newHost(t, hostConfig{RNIC: verbs.Config{Limits: verbs.Limits{Regions: 3, PBL: 16}}})
	good := verbs.RegionConfig{Memory: make([]byte, 16), Access: verbs.LocalRead}
	for _, bad := range refusedRegions(make([]byte, 16), n.pages(2, 4096)) {
		refuses(t, bad.name, bad.want, func() error { return second(n.pd.RegisterRegion(bad.config)) }, queries(n.mr.Query))
	}
	dead := n.deadPD()
	require.ErrorIs(t, second(dead.RegisterRegion(good)), verbs.ErrInvalidPD)
	n.region(n.pd, good) // the refusals used nothing up
	n.region(n.pd, good)
	refuses(t, "a fourth region", verbs.ErrInsufficientResources, func() error { return second(n.pd.RegisterRegion(good)) })
	require.NoError(t, n.nic.Close())
	require.ErrorIs(t, second(n.pd.RegisterRegion(good)), verbs.ErrInvalidRNIC)
}

// rightsOfRegions is the combinations of rights that a region may have.
var rightsOfRegions = []verbs.Access{
	verbs.LocalRead, verbs.LocalWrite, verbs.LocalRead | verbs.LocalWrite,
	verbs.LocalRead | verbs.RemoteRead, verbs.LocalWrite | verbs.RemoteWrite,
	verbs.LocalRead | verbs.LocalWrite | verbs.RemoteRead, verbs.LocalRead | verbs.LocalWrite | verbs.RemoteWrite, allRights,
}

func registerModifiers(t *conformance.T, n *host) {
	other := n.newPD()
	for i, access := range rightsOfRegions {
		for _, bind := range []verbs.Access{0, verbs.BindWindow} {
			pd, key := n.pd, uint8(200+i)
			if i%2 == 1 {
				pd = other
			}
			memory := make([]byte, 100+i)
			mr := n.region(pd, verbs.RegionConfig{Memory: memory, Access: access | bind, Key: key, RemoteAccess: i == 0, VA: 1<<30 + uint64(i)})
			assert.Equal(t, key, mr.STag().Key())
			q := must(mr.Query())(t)
			assert.Equal(t, verbs.RegionAttributes{
				STag: verbs.MakeSTag(mr.STag().Index(), key), Valid: true, PD: pd.ID(),
				RemoteAccess: i == 0 || access&remoteRights != 0, PBL: q.PBL, Access: access | bind,
				Addressing: verbs.VABased, Base: 1<<30 + uint64(i), Length: uint64(100 + i), RemoteInvalidate: true,
			}, q)
			if pd != n.pd {
				continue
			}
			write, read := uint16(0x1100), uint16(0x0102)
			if access&verbs.RemoteWrite != 0 {
				write = 0
			}
			if access&verbs.RemoteRead != 0 {
				read = 0
			}
			n.remotely(mr.Remote(0), write, read)
		}
	}
}

// registerPlacement writes to the first and the last octet of regions over several
// buffers that are not in order, and next to them.
func registerPlacement(t *conformance.T, n *host) {
	for _, c := range []struct {
		fbo  uint64
		zero bool
	}{{0, false}, {0, true}, {100, false}, {4095, true}} {
		p := n.pages(4, 4096)
		const length = 2*4096 + 1
		b := verbs.PhysicalBuffers{
			Size: 4096, Addresses: []uint64{p.Address(2), p.Address(0), p.Address(3)}, FBO: c.fbo, Length: length,
		}
		base := uint64(1<<30) + c.fbo
		config := verbs.RegionConfig{Buffers: b, Access: allRights, VA: base, Key: 3}
		if c.zero {
			config.VA, config.ZeroBased, base = 0, true, 0
		}
		mr := n.region(n.pd, config)
		at := func(off uint64) verbs.Remote { return verbs.Remote{STag: mr.STag(), TO: base + off} }
		octet := func(off uint64) *byte { // of the region, in memory
			off += c.fbo
			return &p.Bytes()[[]uint64{2, 0, 3}[off/4096]*4096+off%4096]
		}
		for _, off := range []uint64{0, 4096 - c.fbo, length - 1} {
			n.remotely(at(off), 0, 0)
			assert.Equal(t, byte(0xAB), *octet(off), "FBO %d, octet %d", c.fbo, off)
			*octet(off) = 0
		}
		n.remotely(at(length), 0x1101, 0x0101)
		n.remotely(verbs.Remote{STag: mr.STag() + 1, TO: base}, 0x1100, 0x0100)
		assert.Equal(t, make([]byte, 4*4096), p.Bytes(), "everything else")
	}
}

func registerBufferSize(t *conformance.T, page *host) {
	for _, size := range []uint64{3, 4095, 4097, 12288, 4096 + 1<<20} {
		assert.ErrorIs(t, page.listOf(size), verbs.ErrInvalidPhysBufferSize, "pages of %d octets", size)
	}
	for size := uint64(4096); size <= 1<<21; size *= 2 {
		p := page.pages(1, size)
		mr := page.region(page.pd, verbs.RegionConfig{Buffers: p.List(0, int(size)), Access: allRights, ZeroBased: true})
		page.remotely(verbs.Remote{STag: mr.STag(), TO: size - 1}, 0, 0)
		assert.Equal(t, byte(0xAB), p.Bytes()[size-1])
	}
	block := newHost(t, hostConfig{RNIC: verbs.Config{Mode: verbs.BlockMode}})
	for _, size := range []uint64{1, 3, 4097, 12288} {
		p := block.pages(4, size)
		mr := block.region(block.pd, verbs.RegionConfig{Buffers: p.List(0, int(4*size)), Access: allRights, ZeroBased: true})
		block.remotely(verbs.Remote{STag: mr.STag(), TO: 4*size - 1}, 0, 0)
		assert.Equal(t, byte(0xAB), p.Bytes()[4*size-1], "blocks of %d octets", size)
	}
}

func registerAddressing(t *conformance.T, n *host) {
	memory := make([]byte, 64)
	va := n.region(n.pd, verbs.RegionConfig{Memory: memory, Access: allRights, VA: 5000})
	zero := n.region(n.pd, verbs.RegionConfig{Memory: memory, Access: allRights, ZeroBased: true})
	for _, c := range []struct {
		mr         *verbs.MR
		addressing verbs.Addressing
		base       uint64
	}{{va, verbs.VABased, 5000}, {zero, verbs.ZeroBased, 0}} {
		q := must(c.mr.Query())(t)
		assert.Equal(t, []any{c.addressing, c.base}, []any{q.Addressing, q.Base})
		n.remotely(verbs.Remote{STag: c.mr.STag(), TO: c.base}, 0, 0)
		n.remotely(verbs.Remote{STag: c.mr.STag(), TO: c.base + 63}, 0, 0)
		n.remotely(verbs.Remote{STag: c.mr.STag(), TO: 5000 - c.base}, 0x1101, 0x0101)
	}
}

func queryRegionResults(t *conformance.T, w *hostPair) {
	n := w.a
	empty := n.allocate(verbs.AllocateConfig{})
	shared := must(n.mr.RegisterShared(nil, verbs.SharedConfig{Access: verbs.LocalRead}))(t)
	invalid := n.register(64, allRights)
	run(t, n.qp, verbs.Request{Op: verbs.OpInvalidate, Invalidate: invalid.STag()}, verbs.StatusSuccess)
	regions := map[string]*verbs.MR{
		"allocated": empty, "shared": shared, "made shared": n.mr, "invalidated": invalid, "registered": n.register(8, verbs.LocalRead),
	}
	for name, mr := range regions {
		require.NoError(t, second(mr.Query()), name)
		require.NoError(t, mr.Deregister(), name)
		require.ErrorIs(t, second(mr.Query()), verbs.ErrInvalidSTag, name)
	}
	last := n.register(8, verbs.LocalRead)
	require.NoError(t, n.nic.Close())
	require.ErrorIs(t, second(last.Query()), verbs.ErrInvalidRNIC)
	require.ErrorIs(t, second(empty.Query()), verbs.ErrInvalidRNIC, "also of what was gone before")
}

// queryRegionModifiers follows one region through all that can be done to it.
func queryRegionModifiers(t *conformance.T) {
	w := newHostPair(t, hostPairConfig{A: hostConfig{QP: verbs.QPConfig{Privileged: true}}})
	n := w.a
	p := n.pages(2, 4096)
	mr := n.allocate(verbs.AllocateConfig{PBL: 2, RemoteAccess: true})
	index := mr.STag().Index()
	q := must(mr.Query())(t)
	want := verbs.RegionAttributes{STag: verbs.MakeSTag(index, 0), PD: n.pd.ID(), RemoteAccess: true, PBL: q.PBL}
	shows := func(mr *verbs.MR, want verbs.RegionAttributes, what string) {
		require.Equal(t, want, must(mr.Query())(t), what)
	}
	shows(mr, want, "allocated")
	fast := &verbs.FastRegisterRequest{STag: mr.WithKey(7), Buffers: p.List(5, 4096), VA: 1<<20 + 5, Access: allRights | verbs.BindWindow}
	run(t, n.qp, verbs.Request{Op: verbs.OpFastRegister, FastRegister: fast}, verbs.StatusSuccess)
	valid := want
	valid.STag, valid.Valid, valid.Access, valid.Base, valid.Length = verbs.MakeSTag(index, 7), true, allRights|verbs.BindWindow, 1<<20+5, 4096
	shows(mr, valid, "fast-registered")
	run(t, n.qp, verbs.Request{Op: verbs.OpInvalidate, Invalidate: mr.WithKey(7)}, verbs.StatusSuccess)
	want.Access = valid.Access // of the last time it was valid
	shows(mr, want, "invalidated")

	other := n.newPD()
	require.NoError(t, mr.Reregister(other, verbs.RegionConfig{Buffers: p.List(100, 33), Access: verbs.LocalRead, Key: 8, ZeroBased: true}))
	q = must(mr.Query())(t)
	valid = verbs.RegionAttributes{
		STag: verbs.MakeSTag(mr.STag().Index(), 8), Valid: true, PD: other.ID(), PBL: q.PBL, Access: verbs.LocalRead,
		Addressing: verbs.ZeroBased, Length: 33,
	}
	shows(mr, valid, "reregistered")
	shared := must(mr.RegisterShared(n.pd, verbs.SharedConfig{Access: verbs.LocalWrite, RemoteAccess: true, Key: 9, VA: 1<<20 + 100}))(t)
	valid.Shared = true
	shows(mr, valid, "made shared")
	shows(shared, verbs.RegionAttributes{
		STag: verbs.MakeSTag(shared.STag().Index(), 9), Valid: true, Shared: true, PD: n.pd.ID(), RemoteAccess: true, PBL: q.PBL,
		Access: verbs.LocalWrite, Base: 1<<20 + 100, Length: 33,
	}, "registered shared")
}

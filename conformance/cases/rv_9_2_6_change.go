package cases

import (
	"slices"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// rv9_2_6_change is deallocating and reregistering Memory Regions: verbs draft
// 9.2.6.4 and 9.2.6.5.
var rv9_2_6_change = []conformance.Case{
	apiCase("9.2.6.4/windows-bound", onHostPair(deallocateWindowsBound), "RV-9.2.6.4-M1", "PV-9.2.6.4-M2"),
	apiCase("9.2.6.4/results", onHostPair(deallocateResults), "RV-9.2.6.4-M2"),
	apiCase("9.2.6.4/modifiers", onHostPair(deallocateModifiers), "RV-9.2.6.4-M3"),
	apiCase("9.2.6.5/windows-bound", onHostPair(reregisterWindowsBound), "RV-9.2.6.5-M1"),
	apiCase("9.2.6.5/results", reregisterResults, "RV-9.2.6.5-M2", "RV-9.2.6.5-M4"),
	apiCase("9.2.6.5/modifiers", onHost(reregisterModifiers), "RV-9.2.6.5-M3"),
	apiCase("9.2.6.5/buffer-size", reregisterBufferSize, "RV-9.2.6.5-M4"),
	apiCase("9.2.6.5/addressing", onHost(reregisterAddressing), "RV-9.2.6.5-M6"),
}

// bindAll binds a new window with key 1 to all of a region, from b's queue pair.
func (w *hostPair) bindAll(mr *verbs.MR) *verbs.MW {
	mw := w.b.newMW()
	run(w.t, w.b.qp, verbs.Request{Op: verbs.OpBind, Bind: mw.BindRequest(mr, 0, mr.Len(), remoteRights, 1)}, verbs.StatusSuccess)
	return mw
}

// staysBound says that a verb on a region is refused because a window is bound to
// it, and that both go on as they were.
func (w *hostPair) staysBound(what string, mr *verbs.MR, verb func() error) {
	mw := w.bindAll(mr)
	refuses(w.t, what, verbs.ErrWindowsBound, verb, queries(mr.Query), queries(mw.Query))
	writes(w.t, w.a.endpoint(), mr.Remote(0), mr.Bytes()[:64])
	writes(w.t, w.a.endpoint(), verbs.Remote{STag: mw.STag(1), TO: mr.Base()}, mr.Bytes()[:64])
	reads(w.t, w.a.endpoint(), verbs.Remote{STag: mw.STag(1), TO: mr.Base()}, mr.Bytes()[:64])
	run(w.t, w.b.qp, verbs.Request{Op: verbs.OpInvalidate, Invalidate: mw.STag(1)}, verbs.StatusSuccess)
	require.NoError(w.t, verb(), "%s, without the window", what)
}

func deallocateWindowsBound(t *conformance.T, w *hostPair) {
	mr := w.b.register(256, allRights|verbs.BindWindow)
	w.staysBound("Deallocate STag", mr, mr.Deregister)
	require.ErrorIs(t, second(mr.Query()), verbs.ErrInvalidSTag)
}

func deallocateResults(t *conformance.T, w *hostPair) {
	n := w.b
	invalid := n.register(64, allRights)
	run(t, n.qp, verbs.Request{Op: verbs.OpInvalidate, Invalidate: invalid.STag()}, verbs.StatusSuccess)
	original := n.register(64, allRights)
	shared := must(original.RegisterShared(nil, verbs.SharedConfig{Access: verbs.LocalRead}))(t)
	for _, c := range []struct {
		name       string
		deallocate func() error
	}{
		{"a region, valid", n.register(64, allRights).Deregister},
		{"a region, invalid", invalid.Deregister},
		{"a region, empty", n.allocate(verbs.AllocateConfig{}).Deregister},
		{"a region, made shared", original.Deregister},
		{"a shared region", shared.Deregister},
		{"a window, invalid", n.newMW().Deallocate},
		{"a window, bound", w.bindAll(n.mr).Deallocate},
	} {
		require.NoError(t, c.deallocate(), c.name)
		require.ErrorIs(t, c.deallocate(), verbs.ErrInvalidSTag, "%s, again", c.name)
	}
	bound := w.bindAll(n.mr)
	require.ErrorIs(t, n.mr.Deregister(), verbs.ErrWindowsBound)
	require.NoError(t, n.nic.Close())
	require.ErrorIs(t, n.mr.Deregister(), verbs.ErrInvalidRNIC)
	require.ErrorIs(t, bound.Deallocate(), verbs.ErrInvalidRNIC)
}

func deallocateModifiers(t *conformance.T, w *hostPair) {
	n := w.b
	before, gone, after := n.register(64<<10, allRights), n.register(64<<10, allRights), n.register(64<<10, allRights)
	window := w.bindAll(n.mr)
	there := w.a.newCQ(64)
	far, near := w.connectMore(verbs.QPConfig{SendCQ: there, RecvCQ: there}, verbs.QPConfig{})
	run(t, far, verbs.Request{Op: verbs.OpWrite, SGL: w.a.mr.SGL(0, 64<<10), Remote: gone.Remote(0)}, verbs.StatusSuccess)
	for range 8 { // it goes on
		post(t, far, verbs.Request{Op: verbs.OpWrite, SGL: w.a.mr.SGL(0, 64<<10), Remote: gone.Remote(0)})
	}
	require.NoError(t, gone.Deregister())
	memory := fill(gone.Bytes(), 4) // the program's again
	want := slices.Clone(memory)
	if _, err := far.PostSend(verbs.Request{Op: verbs.OpWrite, SGL: w.a.mr.SGL(0, 64<<10), Remote: gone.Remote(0)}); err != nil {
		require.ErrorIs(t, err, verbs.ErrInvalidState, "the stream has ended before")
	}
	ends(t, near, verbs.StateError)
	ends(t, far, verbs.StateError)
	assert.EqualValues(t, 0x1100, attributes(t, far).Terminate.Code)
	assert.Equal(t, want, memory, "what the peer still wrote")

	n.remotely(gone.Remote(0), 0x1100, 0x0100)
	qp := n.newQP(verbs.QPConfig{})
	rawPeer(t, qp, asInitiator)
	run(t, qp, verbs.Request{ID: 3, SGL: gone.SGL(0, 1)}, verbs.StatusInvalidSTag)
	assert.Equal(t, want, memory)
	for _, mr := range []*verbs.MR{before, after} {
		writes(t, w.a.endpoint(), mr.Remote(0), mr.Bytes())
	}
	writes(t, w.a.endpoint(), verbs.Remote{STag: window.STag(1), TO: n.mr.Base()}, n.mr.Bytes()[:64])
	require.NoError(t, window.Deallocate())
	n.remotely(verbs.Remote{STag: window.STag(1), TO: n.mr.Base()}, 0x1100, 0x0100)
	writes(t, w.a.endpoint(), n.mr.Remote(0), n.mr.Bytes()[:64])
}

func reregisterWindowsBound(t *conformance.T, w *hostPair) {
	mr := w.b.register(256, allRights|verbs.BindWindow)
	old := mr.STag()
	w.staysBound("Reregister", mr, func() error {
		return mr.Reregister(nil, verbs.RegionConfig{Memory: make([]byte, 16), Access: verbs.LocalRead, Key: old.Key() + 1})
	})
	assert.EqualValues(t, 16, must(mr.Query())(t).Length)
}

// reregisterResults: three errors leave the region as it was, the others have it
// deallocated (7.3.2.3).
func reregisterResults(t *conformance.T) {
	good := verbs.RegionConfig{Memory: make([]byte, 16), Access: verbs.LocalRead}
	n := newHost(t, hostConfig{RNIC: verbs.Config{Limits: verbs.Limits{Regions: 2, PBL: 16}}})
	dies := func(what string, pd *verbs.PD, c verbs.RegionConfig, want error) {
		mr := n.register(64, allRights)
		require.ErrorIs(t, mr.Reregister(pd, c), want, what)
		require.ErrorIs(t, second(mr.Query()), verbs.ErrInvalidSTag, "%s: it is deallocated", what)
		require.ErrorIs(t, mr.Deregister(), verbs.ErrInvalidSTag, what)
	}
	for _, bad := range refusedRegions(make([]byte, 16), n.pages(2, 4096)) {
		dies(bad.name, nil, bad.config, bad.want)
	}
	dead := n.deadPD()
	dies("a deallocated PD", dead, good, verbs.ErrInvalidPD)
	dies("more pages than the RNIC has", nil, verbs.RegionConfig{Memory: make([]byte, 17*4096), Access: verbs.LocalRead, VA: 4096}, verbs.ErrInvalidLength)

	gone := n.register(64, allRights)
	require.NoError(t, gone.Deregister())
	require.ErrorIs(t, gone.Reregister(nil, good), verbs.ErrInvalidSTag)
	require.NoError(t, n.mr.Reregister(nil, good))
	shared := must(n.mr.RegisterShared(nil, verbs.SharedConfig{Access: verbs.LocalRead}))(t)
	for name, mr := range map[string]*verbs.MR{"a shared region": shared, "a region made shared": n.mr} {
		refuses(t, name, verbs.ErrInvalidSTag, func() error { return mr.Reregister(nil, good) }, queries(mr.Query))
	}
	require.NoError(t, n.nic.Close())
	require.ErrorIs(t, n.mr.Reregister(nil, good), verbs.ErrInvalidRNIC)
}

func reregisterModifiers(t *conformance.T, n *host) {
	other := n.newPD()
	p := n.pages(4, 4096)
	pages := verbs.RegionConfig{Buffers: p.List(0, 2*4096), Access: allRights, Key: 1, VA: 1 << 30}
	change := func(f func(*verbs.RegionConfig)) verbs.RegionConfig {
		c := pages
		f(&c)
		return c
	}
	for _, c := range []struct {
		name string
		pd   *verbs.PD
		c    verbs.RegionConfig
		// What a remote access to the old address makes of it.
		write, read uint16
	}{
		{"other pages", nil, change(func(c *verbs.RegionConfig) { c.Buffers = p.List(2*4096, 2*4096) }), 0, 0},
		{"FBO", nil, change(func(c *verbs.RegionConfig) { c.Buffers, c.VA = p.List(8, 4096), 1<<30+8 }), 0x1101, 0x0101},
		{"length", nil, change(func(c *verbs.RegionConfig) { c.Buffers = p.List(0, 4096) }), 0, 0},
		{"VA", nil, change(func(c *verbs.RegionConfig) { c.VA = 1<<30 + 4096 }), 0x1101, 0x0101},
		{"addressing", nil, change(func(c *verbs.RegionConfig) { c.VA, c.ZeroBased = 0, true }), 0x1101, 0x0101},
		{"PD", other, pages, 0x1102, 0x0103},
		{"key", nil, change(func(c *verbs.RegionConfig) { c.Key = 2 }), 0x1100, 0x0100},
		{"rights", nil, change(func(c *verbs.RegionConfig) { c.Access = verbs.LocalRead | verbs.LocalWrite | verbs.RemoteRead }), 0x1100, 0},
		{"remote access flag", nil, change(func(c *verbs.RegionConfig) { c.Access, c.RemoteAccess = verbs.LocalRead, true }), 0x1100, 0x0102},
	} {
		mr := n.region(n.pd, pages)
		old := mr.Remote(0)
		require.NoError(t, mr.Reregister(c.pd, c.c), c.name)
		q := must(mr.Query())(t)
		want := verbs.RegionAttributes{
			STag: verbs.MakeSTag(mr.STag().Index(), c.c.Key), Valid: true, PD: n.pd.ID(), PBL: q.PBL,
			RemoteAccess: c.c.RemoteAccess || c.c.Access&remoteRights != 0, Access: c.c.Access, Base: c.c.VA, Length: c.c.Buffers.Length,
		}
		if c.pd != nil {
			want.PD = c.pd.ID()
		}
		if c.c.ZeroBased {
			want.Addressing = verbs.ZeroBased
		}
		assert.Equal(t, want, q, c.name)
		clear(p.Bytes())
		if old.STag.Index() != mr.STag().Index() {
			c.write, c.read = 0x1100, 0x0100
		}
		n.remotely(old, c.write, c.read)
		if c.write == 0 {
			off := uint64(slices.Index(p.Bytes(), 0xAB))
			assert.Equal(t, c.c.Buffers.Addresses[0]+c.c.Buffers.FBO, p.Address(0)+off, "%s: where it went", c.name)
		}
		if c.pd == nil && c.c.Access == allRights { // the new address
			n.remotely(mr.Remote(0), 0, 0)
			n.remotely(mr.Remote(int(c.c.Buffers.Length)), 0x1101, 0x0101)
		}
		require.NoError(t, mr.Deregister())
	}
}

// reregisterBufferSize reregisters with buffers of several sizes, each of which is
// used for that many octets.
func reregisterBufferSize(t *conformance.T) {
	for _, c := range []struct {
		mode      verbs.Mode
		good, bad []uint64
	}{
		{verbs.PageMode, []uint64{4096, 8192, 1 << 20}, []uint64{1, 4097, 12288}},
		{verbs.BlockMode, []uint64{1, 4097, 12288}, []uint64{0, 1<<30 + 1}},
	} {
		n := newHost(t, hostConfig{RNIC: verbs.Config{Mode: c.mode}})
		for _, size := range c.good {
			p := n.pages(2, size)
			b := verbs.PhysicalBuffers{Size: size, Addresses: []uint64{p.Address(1), p.Address(0)}, Length: 2 * size}
			mr := n.register(64, allRights)
			require.NoError(t, mr.Reregister(nil, verbs.RegionConfig{Buffers: b, Access: allRights, ZeroBased: true}), "%d octets", size)
			n.remotely(verbs.Remote{STag: mr.STag(), TO: size - 1}, 0, 0) // the last octet of the first buffer
			assert.Equal(t, byte(0xAB), p.Bytes()[2*size-1])
			n.remotely(verbs.Remote{STag: mr.STag(), TO: size}, 0, 0) // the first one of the second
			assert.Equal(t, byte(0xAB), p.Bytes()[0])
		}
		for _, size := range c.bad {
			mr := n.register(64, allRights)
			b := verbs.PhysicalBuffers{Size: size, Addresses: []uint64{n.pages(1, 4096).Address(0)}, Length: 1}
			err := mr.Reregister(nil, verbs.RegionConfig{Buffers: b, Access: allRights, ZeroBased: true})
			require.ErrorIs(t, err, verbs.ErrInvalidPhysBufferSize, "%d octets", size)
			require.ErrorIs(t, second(mr.Query()), verbs.ErrInvalidSTag, "the region is gone")
		}
	}
}

func reregisterAddressing(t *conformance.T, n *host) {
	mr := n.register(64, allRights)
	for range 2 {
		require.NoError(t, mr.Reregister(nil, verbs.RegionConfig{Memory: mr.Bytes(), Access: allRights, ZeroBased: true}))
		q := must(mr.Query())(t)
		assert.Equal(t, []any{verbs.ZeroBased, uint64(0)}, []any{q.Addressing, q.Base})
		n.remotely(verbs.Remote{STag: mr.STag(), TO: 63}, 0, 0)
		n.remotely(verbs.Remote{STag: mr.STag(), TO: 5063}, 0x1101, 0x0101)
		require.NoError(t, mr.Reregister(nil, verbs.RegionConfig{Memory: mr.Bytes(), Access: allRights, VA: 5000}))
		q = must(mr.Query())(t)
		assert.Equal(t, []any{verbs.VABased, uint64(5000)}, []any{q.Addressing, q.Base})
		n.remotely(verbs.Remote{STag: mr.STag(), TO: 5063}, 0, 0)
		n.remotely(verbs.Remote{STag: mr.STag(), TO: 63}, 0x1101, 0x0101)
	}
}

// rv9_2_6_shared is Register Shared Memory Region: verbs draft 9.2.6.6.
var rv9_2_6_shared = []conformance.Case{
	apiCase("9.2.6.6/results", sharedResults, "RV-9.2.6.6-M1"),
	apiCase("9.2.6.6/modifiers", onHost(sharedModifiers), "RV-9.2.6.6-M2"),
	apiCase("9.2.6.6/addressing", sharedAddressing, "RV-9.2.6.6-M3"),
}

func sharedResults(t *conformance.T) {
	w := newHostPair(t, hostPairConfig{A: hostConfig{RNIC: verbs.Config{Limits: verbs.Limits{Regions: 4}}}})
	n := w.a
	dead := n.deadPD()
	invalid, other := n.register(64, allRights), n.register(64, allRights)
	run(t, n.qp, verbs.Request{Op: verbs.OpInvalidate, Invalidate: invalid.STag()}, verbs.StatusSuccess)
	for _, c := range []struct {
		name string
		want error
		mr   *verbs.MR
		pd   *verbs.PD
		c    verbs.SharedConfig
	}{
		{"an invalid region", verbs.ErrInvalidSTag, invalid, nil, verbs.SharedConfig{Access: verbs.LocalRead}},
		{"another key", verbs.ErrInvalidSTag, n.mr, nil, verbs.SharedConfig{Access: verbs.LocalRead, Existing: n.mr.WithKey(n.mr.STag().Key() + 1)}},
		{
			"the STag of another region", verbs.ErrInvalidSTag, n.mr, nil,
			verbs.SharedConfig{Access: verbs.LocalRead, Existing: other.STag()},
		},
		{"a VA of another FBO", verbs.ErrInvalidVA, n.mr, nil, verbs.SharedConfig{Access: verbs.LocalRead, VA: n.mr.Base() + 1}},
		{"a VA beyond 64 bits", verbs.ErrInvalidVA, n.mr, nil, verbs.SharedConfig{Access: verbs.LocalRead, VA: ^uint64(4095) + n.mr.Base()%4096}},
		{
			"a VA of a zero-based region", verbs.ErrInvalidVA, n.mr, nil,
			verbs.SharedConfig{Access: verbs.LocalRead, ZeroBased: true, VA: 4096},
		},
		{"a deallocated PD", verbs.ErrInvalidPD, n.mr, dead, verbs.SharedConfig{Access: verbs.LocalRead}},
		{"no rights", verbs.ErrInvalidAccess, n.mr, nil, verbs.SharedConfig{}},
		{"a remote right alone", verbs.ErrInvalidAccess, n.mr, nil, verbs.SharedConfig{Access: verbs.RemoteRead}},
	} {
		refuses(t, c.name, c.want, func() error { return second(c.mr.RegisterShared(c.pd, c.c)) }, queries(n.mr.Query), queries(invalid.Query))
	}
	assert.False(t, must(n.mr.Query())(t).Shared, "nothing was made shared")
	n.register(8, verbs.LocalRead) // the refusals used nothing up
	refuses(t, "all regions in use", verbs.ErrInsufficientResources,
		func() error { return second(n.mr.RegisterShared(nil, verbs.SharedConfig{Access: verbs.LocalRead})) }, queries(n.mr.Query))
	require.NoError(t, invalid.Deregister())
	require.ErrorIs(t, second(invalid.RegisterShared(nil, verbs.SharedConfig{Access: verbs.LocalRead})), verbs.ErrInvalidSTag)
	require.NoError(t, second(n.mr.RegisterShared(nil, verbs.SharedConfig{Access: verbs.LocalRead})))
	require.NoError(t, n.nic.Close())
	require.ErrorIs(t, second(n.mr.RegisterShared(nil, verbs.SharedConfig{Access: verbs.LocalRead})), verbs.ErrInvalidRNIC)
}

func sharedModifiers(t *conformance.T, n *host) {
	other := n.newPD()
	p := n.pages(2, 4096)
	mr := n.region(n.pd, verbs.RegionConfig{Buffers: p.List(16, 4096), Access: allRights, Key: 1, VA: 1<<20 + 16})
	original := must(mr.Query())(t)
	for i, c := range []struct {
		pd    *verbs.PD
		c     verbs.SharedConfig
		flag  bool
		write uint16
		read  uint16
	}{
		{n.pd, verbs.SharedConfig{Access: allRights, Key: 2, VA: 1<<30 + 16}, true, 0, 0},
		{n.pd, verbs.SharedConfig{Access: verbs.LocalRead | verbs.RemoteRead, Key: 3, VA: 1<<31 + 16}, true, 0x1100, 0},
		{n.pd, verbs.SharedConfig{Access: verbs.LocalRead | verbs.BindWindow, RemoteAccess: true, Key: 4, VA: 1<<20 + 16}, true, 0x1100, 0x0102},
		{other, verbs.SharedConfig{Access: verbs.LocalWrite, Key: 5, VA: 4096 + 16}, false, 0x1102, 0x0103},
	} {
		s := must(mr.RegisterShared(c.pd, c.c))(t)
		q := must(s.Query())(t)
		assert.Equal(t, verbs.RegionAttributes{
			STag: verbs.MakeSTag(s.STag().Index(), c.c.Key), Valid: true, Shared: true, PD: c.pd.ID(), RemoteAccess: c.flag,
			PBL: original.PBL, Access: c.c.Access, Base: c.c.VA, Length: 4096,
		}, q, "region %d", i)
		require.NotEqual(t, mr.STag().Index(), s.STag().Index())
		original.Shared = true
		assert.Equal(t, original, must(mr.Query())(t), "the original is shared now, and nothing else")
		clear(p.Bytes())
		n.remotely(s.Remote(20), c.write, c.read)
		if c.write == 0 {
			assert.Equal(t, byte(0xAB), p.Bytes()[36], "the same octets")
		} else {
			assert.Zero(t, p.Bytes()[36])
		}
		n.remotely(mr.Remote(21), 0, 0)
		assert.Equal(t, byte(0xAB), p.Bytes()[37], "through the original")
	}
}

func sharedAddressing(t *conformance.T) {
	for _, from := range []bool{false, true} {
		for _, to := range []bool{false, true} {
			n := newHost(t, hostConfig{})
			p := n.pages(1, 4096)
			c := verbs.RegionConfig{Buffers: p.List(0, 100), Access: allRights, ZeroBased: from}
			if !from {
				c.VA = 1 << 20
			}
			mr := n.region(n.pd, c)
			sc := verbs.SharedConfig{Access: allRights, ZeroBased: to}
			want, base, wrong := verbs.ZeroBased, uint64(0), uint64(1<<30)
			if !to {
				sc.VA = 1 << 30
				want, base, wrong = verbs.VABased, 1<<30, 0
			}
			s := must(mr.RegisterShared(nil, sc))(t)
			q := must(s.Query())(t)
			assert.Equal(t, []any{want, base}, []any{q.Addressing, q.Base})
			n.remotely(verbs.Remote{STag: s.STag(), TO: base + 99}, 0, 0)
			assert.Equal(t, byte(0xAB), p.Bytes()[99])
			n.remotely(verbs.Remote{STag: s.STag(), TO: wrong}, 0x1101, 0x0101)
		}
	}
}

// rv9_2_6_window is allocating and querying Memory Windows: verbs draft 9.2.6.7 and
// 9.2.6.8.
var rv9_2_6_window = []conformance.Case{
	apiCase("9.2.6.7/results", allocateWindowResults, "RV-9.2.6.7-M1"),
	apiCase("9.2.6.7/modifiers", onHost(allocateWindowModifiers), "RV-9.2.6.7-M2"),
	apiCase("9.2.6.8/results", onHostPair(queryWindowResults), "RV-9.2.6.8-M1"),
	apiCase("9.2.6.8/modifiers", onHostPair(queryWindowModifiers), "RV-9.2.6.8-M2"),
}

func allocateWindowResults(t *conformance.T) {
	n := newHost(t, hostConfig{RNIC: verbs.Config{Limits: verbs.Limits{Windows: 3}}})
	dead := n.deadPD()
	require.ErrorIs(t, second(dead.AllocateWindow()), verbs.ErrInvalidPD)
	for range 3 {
		n.newMW()
	}
	refuses(t, "a fourth window", verbs.ErrInsufficientResources, func() error { return second(n.pd.AllocateWindow()) }, queries(n.nic.Query))
	require.NoError(t, n.nic.Close())
	require.ErrorIs(t, second(n.pd.AllocateWindow()), verbs.ErrInvalidRNIC)
}

func allocateWindowModifiers(t *conformance.T, n *host) {
	other := n.newPD()
	mw := must(other.AllocateWindow())(t)
	q := must(mw.Query())(t)
	assert.Equal(t, verbs.WindowAttributes{STag: verbs.MakeSTag(mw.STag(0).Index(), 0), PD: other.ID()}, q)
	require.ErrorIs(t, other.Deallocate(), verbs.ErrPDInUse)
	n.remotely(verbs.Remote{STag: mw.STag(0)}, 0x1100, 0x0100)
	n.remotely(verbs.Remote{STag: mw.STag(1), TO: n.mr.Base()}, 0x1100, 0x0100)
	under := n.region(other, verbs.RegionConfig{Memory: make([]byte, 64), Access: allRights | verbs.BindWindow})
	for _, c := range []struct {
		pd   *verbs.PD
		want verbs.Status
	}{{n.pd, verbs.StatusInvalidPD}, {other, verbs.StatusSuccess}} {
		qp := n.newQP(verbs.QPConfig{PD: c.pd})
		rawPeer(t, qp, asInitiator)
		run(t, qp, verbs.Request{ID: 1, Op: verbs.OpBind, Bind: mw.BindRequest(under, 0, 64, remoteRights, 1)}, c.want)
	}
}

func queryWindowResults(t *conformance.T, w *hostPair) {
	n := w.a
	mw := n.newMW()
	require.NoError(t, second(mw.Query()), "unbound")
	run(t, n.qp, verbs.Request{Op: verbs.OpBind, Bind: mw.BindRequest(n.mr, 0, 64, remoteRights, 1)}, verbs.StatusSuccess)
	require.NoError(t, second(mw.Query()), "bound")
	run(t, n.qp, verbs.Request{Op: verbs.OpInvalidate, Invalidate: mw.STag(1)}, verbs.StatusSuccess)
	require.NoError(t, second(mw.Query()), "invalidated")
	last := n.newMW()
	require.NoError(t, mw.Deallocate())
	require.ErrorIs(t, second(mw.Query()), verbs.ErrInvalidSTag)
	require.NoError(t, n.nic.Close())
	require.ErrorIs(t, second(mw.Query()), verbs.ErrInvalidRNIC)
	require.ErrorIs(t, second(last.Query()), verbs.ErrInvalidRNIC)
}

func queryWindowModifiers(t *conformance.T, w *hostPair) {
	n := w.a
	mw, other := n.newMW(), n.newMW()
	invalid := verbs.WindowAttributes{STag: mw.STag(0), PD: n.pd.ID()}
	shows := func(mw *verbs.MW, want verbs.WindowAttributes) { require.Equal(t, want, must(mw.Query())(t)) }
	for i, access := range []verbs.Access{verbs.RemoteRead, verbs.RemoteWrite, remoteRights} {
		key := uint8(100 + i)
		run(t, n.qp, verbs.Request{Op: verbs.OpBind, Bind: mw.BindRequest(n.mr, 8, 100+i, access, key)}, verbs.StatusSuccess)
		shows(mw, verbs.WindowAttributes{
			STag: verbs.MakeSTag(mw.STag(0).Index(), key), Valid: true, PD: n.pd.ID(), QP: n.qp.ID(), Access: access,
			Base: n.mr.Base() + 8, Length: uint64(100 + i), Region: n.mr.STag(),
		})
		shows(other, verbs.WindowAttributes{STag: other.STag(0), PD: n.pd.ID()})
		run(t, n.qp, verbs.Request{Op: verbs.OpInvalidate, Invalidate: mw.STag(key)}, verbs.StatusSuccess)
		shows(mw, invalid)
	}
}

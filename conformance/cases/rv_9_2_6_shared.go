package cases

import (
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

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

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
	apiCase("9.2.6.6/modifiers", onNode(sharedModifiers), "RV-9.2.6.6-M2"),
	apiCase("9.2.6.6/addressing", sharedAddressing, "RV-9.2.6.6-M3"),
}

func sharedResults(t *conformance.T) {
	w := newWorld(t, worldConfig{A: nodeConfig{RNIC: verbs.Config{Limits: verbs.Limits{Regions: 3}}}})
	n := w.a
	dead := n.deadPD()
	invalid := n.register(64, allRights)
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
		{"a VA of another FBO", verbs.ErrInvalidVA, n.mr, nil, verbs.SharedConfig{Access: verbs.LocalRead, VA: n.mr.Base() + 1}},
		{"a VA beyond 64 bits", verbs.ErrInvalidVA, n.mr, nil, verbs.SharedConfig{Access: verbs.LocalRead, VA: ^uint64(4095) + n.mr.Base()%4096}},
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

func sharedModifiers(t *conformance.T, n *node) {
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
			n := newNode(t, nodeConfig{})
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

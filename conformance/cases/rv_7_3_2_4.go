package cases

import (
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// rv7_3_2_4 is Register Shared: verbs draft 7.3.2.4.
var rv7_3_2_4 = []conformance.Case{
	apiCase("7.3.2.4/existing", staged(sharedExisting), "RV-7.3.2.4-M1", "RV-7.3.2.4-M3"),
	apiCase("7.3.2.4/windows", staged(sharedWindows), "RV-7.3.2.4-M2", "PV-9.2.6.6-M1"),
	apiCase("7.3.2.4/va", staged(sharedVA), "RV-7.3.2.4-M5", "RV-7.4.3-M2"),
	apiCase("7.3.2.4/new-region", staged(sharedNew), "RV-7.3.2.4-M4", "RV-7.3.2.4-M6", "RV-7.3.2.4-M7"),
	apiCase("7.3.2.4/differs", staged(sharedDiffers), "RV-7.3.2.4-M8"),
	apiCase("7.3.2.4/original", staged(sharedOriginal), "RV-7.3.2.4-M9", "RV-7.3.2.4-M10", "PV-9.2.6.6-M1"),
}

func sharedExisting(n *node) {
	t, s := n.t, n.seat(privileged)
	c := verbs.SharedConfig{Access: allRights}
	allocated := must(n.pd.AllocateRegion(verbs.AllocateConfig{}))(t)
	invalidated := n.register(64, allRights)
	s.invalidate(ways[0], invalidated.STag(), invalidates)
	for _, mr := range []*verbs.MR{allocated, invalidated} {
		refuses(t, "sharing an Invalid region", verbs.ErrInvalidSTag, func() error { return second(mr.RegisterShared(nil, c)) },
			func() any { return queried(t, mr) })
		require.False(t, queried(t, mr).Shared)
	}

	mr := n.region(n.pd, verbs.RegionConfig{Memory: make([]byte, 64), Access: allRights, Key: 0x21})
	for _, key := range []uint8{0, 0x20, 0x22, 0xFF} {
		c.Existing = mr.WithKey(key)
		if key == 0 { // zero as a whole stands for the STag it has
			require.NotZero(t, c.Existing)
		}
		refuses(t, "sharing by another key", verbs.ErrInvalidSTag, func() error { return second(mr.RegisterShared(nil, c)) },
			func() any { return queried(t, mr) })
	}
	require.False(t, queried(t, mr).Shared)
	c.Existing = mr.WithKey(0x21)
	require.NoError(t, second(mr.RegisterShared(nil, c)), "by its key")

	// The key that counts is the current one.
	p := n.pages(1, 4096)
	s.does(fastRegister(invalidated.WithKey(0x77), p.List(0, 64), 4096, allRights), verbs.StatusSuccess)
	c.Existing = invalidated.STag()
	require.NotEqual(t, invalidated.WithKey(0x77), c.Existing)
	require.ErrorIs(t, second(invalidated.RegisterShared(nil, c)), verbs.ErrInvalidSTag, "by a former key")
	c.Existing = invalidated.WithKey(0x77)
	require.NoError(t, second(invalidated.RegisterShared(nil, c)), "by the current key")
	s.leave()
}

func sharedWindows(n *node) {
	t, s, mem := n.t, n.seat(verbs.QPConfig{}), n.mr.Bytes()
	one, two := n.newMW(), n.newMW()
	a, b := one.BindRequest(n.mr, 100, 50, remoteRights, 1), two.BindRequest(n.mr, 120, 50, remoteRights, 2)
	b.Addressing = verbs.ZeroBased
	s.does(binds(a), verbs.StatusSuccess)
	s.does(binds(b), verbs.StatusSuccess)
	first, last, count := queried(t, one), queried(t, two), queried(t, n.mr).Windows
	require.NoError(t, second(n.mr.RegisterShared(nil, verbs.SharedConfig{Access: verbs.LocalRead})))
	require.Equal(t, first, queried(t, one), "Query of the one window")
	require.Equal(t, last, queried(t, two), "Query of the other")
	require.Equal(t, count, queried(t, n.mr).Windows, "how many are bound")
	s.peers(verbs.BindBuffer(a), 0, mem[100:150], remoteRights, denial{})
	s.peers(verbs.BindBuffer(b), 3, mem[123:170], remoteRights, denial{})
	require.ErrorIs(t, n.mr.Deregister(), verbs.ErrWindowsBound)
	require.ErrorIs(t, s.qp.Destroy(), verbs.ErrWindowsBound)
	s.invalidate(ways[0], a.Window, invalidates)
	s.invalidate(ways[2], b.Window, invalidates)
	s.leave()
}

func sharedVA(n *node) {
	t, p := n.t, n.pages(2, 4096)
	mr := n.region(n.pd, verbs.RegionConfig{Buffers: p.List(100, 5000), Access: allRights, VA: 0x10000 + 100})
	for _, va := range []uint64{0x10000, 0x10000 + 99, 0x10000 + 101, 100 - 1, 0x10000 + 4095} {
		refuses(t, "another First Byte Offset", verbs.ErrInvalidVA, func() error {
			return second(mr.RegisterShared(nil, verbs.SharedConfig{Access: allRights, VA: va}))
		}, func() any { return queried(t, mr) })
	}
	require.False(t, queried(t, mr).Shared, "the original")
	for _, va := range []uint64{100, 0x20000 + 100, 1<<63 + 100} {
		shared := must(mr.RegisterShared(nil, verbs.SharedConfig{Access: allRights, VA: va}))(t, "VA %#x", va)
		require.Equal(t, va, queried(t, shared).Base)
	}
	require.True(t, queried(t, mr).Shared, "the original")
}

func sharedNew(n *node) {
	t, s := n.t, n.seat(verbs.QPConfig{})
	mem := make([]byte, 500)
	mr := n.region(n.pd, verbs.RegionConfig{Memory: mem, Access: allRights, Key: 1})
	indexes := map[uint32]bool{mr.STag().Index(): true}
	for _, key := range []uint8{0, 1, 0x80, 0xFF} {
		shared := must(mr.RegisterShared(nil, verbs.SharedConfig{Access: allRights, Key: key}))(t)
		st := shared.STag()
		require.Equal(t, key, st.Key())
		require.False(t, indexes[st.Index()], "the index of another region")
		indexes[st.Index()] = true
		info := queried(t, shared)
		require.Equal(t, st, info.STag, "Query")
		require.True(t, info.Valid && info.Shared, "Query: %+v", info)
		// All of it is the memory of the original.
		s.opens(shared.Buffer(), 0, mem)
		require.Equal(t, mem, s.read(mr.Remote(0), 500, taken), "through the original")
		wrong := shared.Buffer()
		wrong.STag ^= 2
		s.shuts(wrong, 0, mem[:10], noSTag)
	}
	s.leave()
}

func sharedDiffers(n *node) {
	t, mem := n.t, make([]byte, 300)
	mr := n.region(n.pd, verbs.RegionConfig{Memory: mem, Access: verbs.LocalRead, VA: 0x10_0000})
	for i, c := range []verbs.SharedConfig{
		{Access: verbs.LocalRead | verbs.LocalWrite, VA: 0x20_0000, Key: 1},
		{Access: allRights, ZeroBased: true, Key: 2},
		{Access: verbs.LocalRead | verbs.RemoteRead, VA: 1<<60 + 0x10_0000, Key: 3},
		{Access: verbs.LocalWrite | verbs.RemoteWrite, ZeroBased: true, Key: 4},
		{Access: verbs.LocalWrite | verbs.BindWindow, VA: 0x10_0000, Key: 5, RemoteAccess: true},
	} {
		pd := n.newPD()
		shared := must(mr.RegisterShared(pd, c))(t, "region %d", i)
		info := queried(t, shared)
		want := verbs.RegionAttributes{
			STag: shared.WithKey(c.Key), Valid: true, Shared: true, PD: pd.ID(), PBL: info.PBL, Access: c.Access,
			RemoteAccess: c.RemoteAccess || c.Access&remoteRights != 0, Base: c.VA, Length: 300,
		}
		if c.ZeroBased {
			want.Addressing = verbs.ZeroBased
		}
		require.Equal(t, want, info, "region %d", i)
		there, here := n.seat(verbs.QPConfig{PD: pd}), n.seat(verbs.QPConfig{})
		b := verbs.TaggedBuffer{STag: shared.STag(), Base: c.VA}
		there.judged(b, 7, mem[7:30], c.Access, noRight)
		here.shuts(b, 7, mem[7:30], noPD)
		here.judged(mr.Buffer(), 7, mem[7:30], verbs.LocalRead, noRight)
		there.leave()
		here.leave()
	}
}

func sharedOriginal(n *node) {
	t, s := n.t, n.seat(privileged)
	mr := n.region(n.pd, verbs.RegionConfig{Memory: make([]byte, 64), Access: allRights, Key: 0x55, RemoteInvalidate: true})
	before := queried(t, mr)
	require.False(t, before.Shared)
	before.Shared = true
	for range 3 { // also when it is shared already
		require.NoError(t, second(mr.RegisterShared(n.newPD(), verbs.SharedConfig{Access: verbs.LocalRead, ZeroBased: true, Key: 1})))
		require.Equal(t, before, queried(t, mr), "Query of the original")
		s.opens(mr.Buffer(), 5, mr.Bytes()[5:40])
	}
	assert.ErrorIs(t, mr.Reregister(nil, verbs.RegionConfig{Memory: make([]byte, 8), Access: allRights}), verbs.ErrInvalidSTag)
	s.invalidate(ways[0], mr.STag(), cannotBe)
	s.does(fastRegister(mr.STag(), n.pages(1, 4096).List(0, 8), 4096, allRights), verbs.StatusInvalidSTag)
	require.Equal(t, before, queried(t, mr), "Query of the original")
	s.leave()
}

package cases

import (
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// rv7_3_2_4 is Register Shared: verbs draft 7.3.2.4.
var rv7_3_2_4 = []conformance.Case{
	apiCase("7.3.2.4/existing", onProbe(privileged, sharedExisting), "RV-7.3.2.4-M1", "RV-7.3.2.4-M3"),
	apiCase("7.3.2.4/windows", onProbe(verbs.QPConfig{}, sharedWindows), "RV-7.3.2.4-M2", "PV-9.2.6.6-M1"),
	apiCase("7.3.2.4/va", onQuietHost(sharedVA), "RV-7.3.2.4-M5", "RV-7.4.3-M2"),
	apiCase("7.3.2.4/new-region", onProbe(verbs.QPConfig{}, sharedNew), "RV-7.3.2.4-M4", "RV-7.3.2.4-M6", "RV-7.3.2.4-M7"),
	apiCase("7.3.2.4/differs", onQuietHost(sharedDiffers), "RV-7.3.2.4-M8"),
	apiCase("7.3.2.4/original", onProbe(privileged, sharedOriginal), "RV-7.3.2.4-M9", "RV-7.3.2.4-M10", "PV-9.2.6.6-M1"),
}

func sharedExisting(n *host, s *probe) {
	t := n.t
	c := verbs.SharedConfig{Access: allRights}
	allocated := must(n.pd.AllocateRegion(verbs.AllocateConfig{}))(t)
	invalidated := n.register(64, allRights)
	s.invalidate(invalidations[0], invalidated.STag(), invalidates)
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
	s.runs(fastRegister(invalidated.WithKey(0x77), p.List(0, 64), 4096, allRights), verbs.StatusSuccess)
	c.Existing = invalidated.STag()
	require.NotEqual(t, invalidated.WithKey(0x77), c.Existing)
	require.ErrorIs(t, second(invalidated.RegisterShared(nil, c)), verbs.ErrInvalidSTag, "by a former key")
	c.Existing = invalidated.WithKey(0x77)
	require.NoError(t, second(invalidated.RegisterShared(nil, c)), "by the current key")
}

func sharedWindows(n *host, s *probe) {
	t, mem := n.t, n.mr.Bytes()
	one, two := n.newMW(), n.newMW()
	a, b := one.BindRequest(n.mr, 100, 50, remoteRights, 1), two.BindRequest(n.mr, 120, 50, remoteRights, 2)
	b.Addressing = verbs.ZeroBased
	s.runs(binds(a), verbs.StatusSuccess)
	s.runs(binds(b), verbs.StatusSuccess)
	first, last, count := queried(t, one), queried(t, two), queried(t, n.mr).Windows
	require.NoError(t, second(n.mr.RegisterShared(nil, verbs.SharedConfig{Access: verbs.LocalRead})))
	require.Equal(t, first, queried(t, one), "Query of the one window")
	require.Equal(t, last, queried(t, two), "Query of the other")
	require.Equal(t, count, queried(t, n.mr).Windows, "how many are bound")
	s.checksPeer(verbs.BindBuffer(a), 0, mem[100:150], remoteRights, accessFault{})
	s.checksPeer(verbs.BindBuffer(b), 3, mem[123:170], remoteRights, accessFault{})
	require.ErrorIs(t, n.mr.Deregister(), verbs.ErrWindowsBound)
	require.ErrorIs(t, s.qp.Destroy(), verbs.ErrWindowsBound)
	s.invalidate(invalidations[0], a.Window, invalidates)
	s.invalidate(invalidations[2], b.Window, invalidates)
}

func sharedVA(n *host) {
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

func sharedNew(n *host, s *probe) {
	t := n.t
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
		s.allAllowed(shared.Buffer(), 0, mem)
		require.Equal(t, mem, s.read(mr.Remote(0), 500, allowed), "through the original")
		wrong := shared.Buffer()
		wrong.STag ^= 2
		s.noneAllowed(wrong, 0, mem[:10], noSTag)
	}
}

func sharedDiffers(n *host) {
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
		there, here := n.probe(verbs.QPConfig{PD: pd}), n.probe(verbs.QPConfig{})
		b := verbs.TaggedBuffer{STag: shared.STag(), Base: c.VA}
		there.checks(b, 7, mem[7:30], c.Access, noRight)
		here.noneAllowed(b, 7, mem[7:30], noPD)
		here.checks(mr.Buffer(), 7, mem[7:30], verbs.LocalRead, noRight)
		there.disconnect()
		here.disconnect()
	}
}

func sharedOriginal(n *host, s *probe) {
	t := n.t
	mr := n.region(n.pd, verbs.RegionConfig{Memory: make([]byte, 64), Access: allRights, Key: 0x55, RemoteInvalidate: true})
	before := queried(t, mr)
	require.False(t, before.Shared)
	before.Shared = true
	for range 3 { // also when it is shared already
		require.NoError(t, second(mr.RegisterShared(n.newPD(), verbs.SharedConfig{Access: verbs.LocalRead, ZeroBased: true, Key: 1})))
		require.Equal(t, before, queried(t, mr), "Query of the original")
		s.allAllowed(mr.Buffer(), 5, mr.Bytes()[5:40])
	}
	assert.ErrorIs(t, mr.Reregister(nil, verbs.RegionConfig{Memory: make([]byte, 8), Access: allRights}), verbs.ErrInvalidSTag)
	s.invalidate(invalidations[0], mr.STag(), cannotBe)
	s.runs(fastRegister(mr.STag(), n.pages(1, 4096).List(0, 8), 4096, allRights), verbs.StatusInvalidSTag)
	require.Equal(t, before, queried(t, mr), "Query of the original")
}

// rv7_3_2_5 is Fast-Register: verbs draft 7.3.2.5.
var rv7_3_2_5 = []conformance.Case{
	apiCase("7.3.2.5/from-each-source", onProbe(privileged, fastFromEach), "RV-7.3.2.5-M1", "RV-7.5.2-M3"),
	apiCase("7.3.2.5/key", onProbe(privileged, fastKey), "RV-7.3.2.5-M2"),
	apiCase("7.3.2.5/pd-and-window", onProbe(privileged, fastChecks), "RV-7.3.2.5-M4", "RV-7.3.2.5-M6", "RV-7.3.2.5-M7"),
	apiCase("7.3.2.5/state", onProbe(privileged, fastState), "RV-7.3.2.5-M8", "RV-7.3.2.5-M9"),
	apiCase("7.3.2.5/list-size", onProbe(privileged, fastList), "RV-7.3.2.5-M10"),
	apiCase("7.3.2.5/remote-rights", onProbe(privileged, fastNoRemote), "RV-7.3.2.5-M11", "RV-7.3.2.5-M13"),
	apiCase("7.3.2.5/rights", onProbe(privileged, fastRights), "RV-7.3.2.5-M12"),
	apiCase("7.3.2.5/privileged", onQuietHost(fastPrivileged), "RV-7.3.2.5-M14", "RV-7.3.2.5-M15"),
	apiCase("7.3.2.5/order", onQuietHost(fastOrder), "RV-7.3.2.5-M16", "RV-7.3.2.5-M17"),
}

func fastFromEach(n *host, s *probe) {
	t, p := n.t, n.pages(1, 4096)
	for _, flag := range []bool{false, true} {
		c := verbs.RegionConfig{Memory: make([]byte, 64), Access: verbs.LocalRead, RemoteAccess: flag}
		allocated := must(n.pd.AllocateRegion(verbs.AllocateConfig{RemoteAccess: flag}))(t)
		registered, again := n.region(n.pd, c), n.region(n.pd, verbs.RegionConfig{Memory: c.Memory, Access: verbs.LocalRead, RemoteAccess: !flag})
		require.NoError(t, again.Reregister(nil, c))
		for i, mr := range []*verbs.MR{allocated, registered, again} {
			what := []string{"Allocate", "Register", "Reregister"}[i]
			if queried(t, mr).Valid {
				s.invalidate(invalidations[0], mr.STag(), invalidates)
			}
			local := fastRegister(mr.WithKey(1), p.List(8, 64), 4096+8, verbs.LocalRead|verbs.LocalWrite)
			s.runs(local, verbs.StatusSuccess)
			s.checks(verbs.FastRegisterBuffer(local.FastRegister), 0, p.Bytes()[8:40], verbs.LocalRead|verbs.LocalWrite, noRight)
			s.invalidate(invalidations[0], local.FastRegister.STag, invalidates)
			remote := fastRegister(mr.WithKey(2), p.List(8, 64), 4096+8, allRights)
			if !flag {
				s.runs(remote, verbs.StatusInvalidAccessRights)
				require.False(t, queried(t, mr).Valid, what)
				continue
			}
			s.runs(remote, verbs.StatusSuccess)
			s.allAllowed(verbs.FastRegisterBuffer(remote.FastRegister), 0, p.Bytes()[8:40])
		}
	}
	// Not once it is shared.
	mr := n.register(64, allRights)
	shared := must(mr.RegisterShared(nil, verbs.SharedConfig{Access: allRights}))(t)
	for _, m := range []*verbs.MR{mr, shared} {
		was := queried(t, m)
		s.runs(fastRegister(m.STag(), p.List(0, 64), 4096, allRights), verbs.StatusInvalidSTag)
		require.Equal(t, was, queried(t, m), "Query")
	}
}

func fastKey(n *host, s *probe) {
	t, p, mr := n.t, n.pages(1, 4096), n.allocated()
	for _, key := range []uint8{0, 1, 0x7F, 0xFF} {
		r := fastRegister(mr.WithKey(key), p.List(0, 64), 4096, allRights)
		s.runs(r, verbs.StatusSuccess)
		require.Equal(t, mr.WithKey(key), queried(t, mr).STag, "Query")
		b := verbs.FastRegisterBuffer(r.FastRegister)
		s.allAllowed(b, 4, p.Bytes()[4:60])
		for _, bit := range []verbs.STag{1, 0x80} {
			wrong := b
			wrong.STag ^= bit
			s.noneAllowed(wrong, 4, p.Bytes()[4:60], noSTag)
		}
		s.invalidate(invalidations[0], b.STag, invalidates)
	}
}

func fastChecks(n *host, s *probe) {
	t, p, mr, mw := n.t, n.pages(1, 4096), n.allocated(), n.newMW()
	r := fastRegister(mr.WithKey(1), p.List(0, 64), 4096, allRights)
	there := n.probe(verbs.QPConfig{Privileged: true, PD: n.newPD()})
	was := queried(t, mr)
	there.runs(r, verbs.StatusInvalidPD)
	require.Equal(t, was, queried(t, mr), "the STag of another PD")
	there.disconnect()
	s.runs(r, verbs.StatusSuccess)

	window := queried(t, mw)
	s.runs(fastRegister(mw.STag(1), p.List(0, 64), 4096, allRights), verbs.StatusInvalidSTag)
	require.Equal(t, window, queried(t, mw), "the window")
	bind := mw.BindRequest(n.mr, 0, 64, remoteRights, 1)
	s.connect()
	s.runs(binds(bind), verbs.StatusSuccess)
	s.checksPeer(verbs.BindBuffer(bind), 0, n.mr.Bytes()[:64], remoteRights, accessFault{})
	s.invalidate(invalidations[0], bind.Window, invalidates)

	s.runs(fastRegister(mr.STag()+1<<8, p.List(0, 64), 4096, allRights), verbs.StatusInvalidSTag)
	s.connect()
	k, err := s.qp.PostSend(fastRegister(0, p.List(0, 64), 4096, allRights))
	require.ErrorIs(t, err, verbs.ErrInvalidModifier, "the STag of zero")
	require.Zero(t, k)
}

func fastState(n *host, s *probe) {
	t, p, mr := n.t, n.pages(2, 4096), n.allocated()
	one, two := fastRegister(mr.WithKey(1), p.List(0, 64), 4096, allRights), fastRegister(mr.WithKey(2), p.List(4096, 64), 4096, allRights)
	s.runs(one, verbs.StatusSuccess)
	was := queried(t, mr)
	s.runs(two, verbs.StatusSTagNotInvalid)
	s.runs(one, verbs.StatusSTagNotInvalid)
	require.Equal(t, was, queried(t, mr), "the Valid STag")
	s.allAllowed(verbs.FastRegisterBuffer(one.FastRegister), 0, p.Bytes()[:64])
	registered := n.register(64, allRights)
	s.runs(fastRegister(registered.STag(), p.List(0, 64), 4096, allRights), verbs.StatusSTagNotInvalid)
	s.allAllowed(registered.Buffer(), 0, registered.Bytes())

	// What counts is the state when the request is executed, not posted.
	one.ID, two.ID = 1, 3
	post(t, s.qp, verbs.Request{ID: 2, Op: verbs.OpInvalidate, Invalidate: mr.WithKey(1)}, two)
	completes(t, n.cq, verbs.Completion{ID: 2, QP: s.qp.ID(), Op: verbs.OpInvalidate},
		verbs.Completion{ID: 3, QP: s.qp.ID(), Op: verbs.OpFastRegister})
	s.allAllowed(verbs.FastRegisterBuffer(two.FastRegister), 0, p.Bytes()[4096:4160])
}

func fastList(n *host, s *probe) {
	t, p := n.t, n.pages(20, 4096)
	registered := n.region(n.pd, verbs.RegionConfig{Buffers: p.List(0, 3*4096), Access: verbs.LocalRead, VA: 4096})
	s.invalidate(invalidations[0], registered.STag(), invalidates)
	for _, mr := range []*verbs.MR{n.allocated(), registered} {
		most := queried(t, mr).PBL
		require.Less(t, most, 20)
		for _, k := range []int{most + 1, 20} {
			s.runs(fastRegister(mr.WithKey(1), p.List(0, k*4096), 4096, verbs.LocalRead), verbs.StatusPhysBufferListTooLong)
			require.False(t, queried(t, mr).Valid, "after a list of %d of %d", k, most)
		}
		s.runs(fastRegister(mr.WithKey(1), p.List(0, most*4096), 4096, verbs.LocalRead), verbs.StatusSuccess)
	}
}

func fastNoRemote(n *host, s *probe) {
	t, p := n.t, n.pages(1, 4096)
	const local = verbs.LocalRead | verbs.LocalWrite
	mr := must(n.pd.AllocateRegion(verbs.AllocateConfig{}))(t)
	for _, a := range []verbs.Access{verbs.RemoteRead, verbs.RemoteWrite, remoteRights} {
		r := fastRegister(mr.WithKey(1), p.List(0, 64), 4096, local|a)
		s.runs(r, verbs.StatusInvalidAccessRights)
		require.False(t, queried(t, mr).Valid, "the STag")
		s.noneAllowed(verbs.FastRegisterBuffer(r.FastRegister), 0, p.Bytes()[:64], noSTag)
	}
	s.runs(fastRegister(mr.WithKey(1), p.List(0, 64), 4096, local), verbs.StatusSuccess)
}

func fastRights(n *host, s *probe) {
	t, p, mr := n.t, n.pages(1, 4096), n.allocated()
	for i, a := range validRights {
		r := fastRegister(mr.WithKey(uint8(i)), p.List(0, 64), 4096, a)
		s.runs(r, verbs.StatusSuccess)
		require.Equal(t, a, queried(t, mr).Access, "Query")
		s.checks(verbs.FastRegisterBuffer(r.FastRegister), 0, p.Bytes()[:64], a, noRight)
		s.invalidate(invalidations[0], r.FastRegister.STag, invalidates)
	}
}

func fastPrivileged(n *host) {
	t, p, mr := n.t, n.pages(1, 4096), n.allocated()
	r, was := fastRegister(mr.WithKey(1), p.List(0, 64), 4096, allRights), queried(t, mr)
	plain := n.probe(verbs.QPConfig{})
	plain.runs(r, verbs.StatusNotPrivileged)
	require.Equal(t, was, queried(t, mr), "the STag")
	plain.noneAllowed(verbs.FastRegisterBuffer(r.FastRegister), 0, p.Bytes()[:64], noSTag)
	plain.disconnect()
	s := n.probe(privileged)
	s.runs(r, verbs.StatusSuccess)
	s.disconnect()
}

func fastOrder(n *host) {
	t, s, p, mr := n.t, n.probe(privileged), n.pages(4, 4096), n.allocated()
	for i := range 20 {
		r := fastRegister(mr.WithKey(uint8(i)), p.List(100, 5000), 0x4000+100, allRights)
		b := verbs.FastRegisterBuffer(r.FastRegister)
		want := string(fill(p.Bytes()[100:5100], i))
		send := verbs.Request{ID: 2, SGL: b.SGL(0, 5000)}
		post(t, s.qp, r, send, verbs.Request{ID: 3, Op: verbs.OpInvalidate, Invalidate: b.STag})
		completes(t, n.cq, verbs.Completion{ID: r.ID, QP: s.qp.ID(), Op: verbs.OpFastRegister},
			verbs.Completion{ID: 2, QP: s.qp.ID()}, verbs.Completion{ID: 3, QP: s.qp.ID(), Op: verbs.OpInvalidate})
		require.Equal(t, want, string(s.message(opSend)), "sent through it at once")
	}

	// At the completion it is as it was asked for.
	r := fastRegister(mr.WithKey(0x99), p.List(100, 5000), 0x4000+100, allRights)
	s.runs(r, verbs.StatusSuccess)
	require.Equal(t, verbs.RegionAttributes{
		STag: mr.WithKey(0x99), Valid: true, PD: n.pd.ID(), RemoteAccess: true, PBL: queried(t, mr).PBL,
		Access: allRights, Base: 0x4000 + 100, Length: 5000, RemoteInvalidate: true,
	}, queried(t, mr), "Query")
	s.allAllowed(verbs.FastRegisterBuffer(r.FastRegister), 4900, p.Bytes()[5000:5100])
	s.invalidate(invalidations[0], r.FastRegister.STag, invalidates)

	// A Send before it comes too early.
	b := verbs.FastRegisterBuffer(r.FastRegister)
	post(t, s.qp, verbs.Request{ID: 4, SGL: b.SGL(0, 8)}, r)
	completes(t, n.cq, verbs.Completion{ID: 4, QP: s.qp.ID(), Status: verbs.StatusInvalidSTag},
		verbs.Completion{ID: r.ID, QP: s.qp.ID(), Op: verbs.OpFastRegister, Status: verbs.StatusFlushed})
	s.fails(0x0000)
	require.False(t, queried(t, mr).Valid, "the STag of the flushed request")
}

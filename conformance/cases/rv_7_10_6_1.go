package cases

import (
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// rv7_10_6_1 is what a Bind is refused for: verbs draft 7.10.2 and 7.10.6.1.
var rv7_10_6_1 = []conformance.Case{
	apiCase("7.10.6.1/each-check", onQuietHost(bindRefused), "RV-7.10.6.1-M1", "RV-7.10.6.1-M2", "RV-7.10.2-M34"),
	apiCase("7.10.6.1/window", onQuietHost(bindWindow), "RV-7.10.6.1-M3"),
	apiCase("7.10.6.1/qp", onQuietHost(bindQP), "RV-7.10.2-M8", "RV-7.10.6.1-M4"),
	apiCase("7.10.6.1/region", onProbe(verbs.QPConfig{}, bindRegion), "RV-7.10.6.1-M5"),
	apiCase("7.10.6.1/pds", onQuietHost(bindPDs), "RV-7.10.2-M6", "RV-7.10.6.1-M6", "PV-7.10.2-M1"),
	apiCase("7.10.6.1/region-for-windows", onProbe(privileged, bindRegionForWindows), "RV-7.10.6.1-M7"),
	apiCase("7.10.6.1/zero-based-region", onProbe(verbs.QPConfig{}, bindZeroBased), "RV-7.10.2-M21", "RV-7.10.6.1-M9"),
	apiCase("7.10.6.1/figure-20", onQuietHost(bindFigure20),
		"RV-7.10.2-M25", "RV-7.10.2-M27", "RV-7.10.2-M28", "RV-7.10.2-M29", "RV-7.10.6.1-M8", "PV-7.10.2-M2"),
	apiCase("7.10.6.1/range", onProbe(verbs.QPConfig{}, bindRange), "RV-7.10.2-M9", "RV-7.10.2-M13", "RV-7.10.6.1-M10", "RV-7.10.6.1-M11"),
}

// bindRefused breaks a good Bind in one thing at a time.
func bindRefused(n *host) {
	t, other, mw := n.t, n.newPD(), n.newMW()
	good := func() verbs.BindRequest { return *mw.BindRequest(n.mr, 8, 32, remoteRights, 1) }
	zero := n.region(n.pd, verbs.RegionConfig{Memory: make([]byte, 64), Access: allRights | verbs.BindWindow, ZeroBased: true})
	plain, alien := n.register(64, allRights), n.region(other, verbs.RegionConfig{Memory: make([]byte, 64), Access: allRights | verbs.BindWindow})
	readable := n.register(64, verbs.LocalRead|verbs.BindWindow)
	_, bound, _ := n.bound(verbs.QPConfig{}, 0, 8, remoteRights)
	theirs := must(other.AllocateWindow())(t)
	on := func(mr *verbs.MR) verbs.BindRequest { b := good(); b.Region, b.VA = mr.STag(), mr.Base(); return b }
	with := func(change func(*verbs.BindRequest)) verbs.BindRequest { b := good(); change(&b); return b }
	for _, c := range []struct {
		name string
		qp   verbs.QPConfig
		bind verbs.BindRequest
		want verbs.Status
	}{
		{"the window is a region", verbs.QPConfig{}, with(func(b *verbs.BindRequest) { b.Window = plain.STag() }), verbs.StatusInvalidWindow},
		{"the window is bound", verbs.QPConfig{}, with(func(b *verbs.BindRequest) { b.Window = bound.STag(2) }), verbs.StatusSTagNotInvalid},
		{"the QP may not bind", verbs.QPConfig{NoBind: true}, good(), verbs.StatusAccess},
		{"the region is a window", verbs.QPConfig{}, with(func(b *verbs.BindRequest) { b.Region = theirs.STag(0) }), verbs.StatusInvalidRegion},
		{"the QP is of another PD", verbs.QPConfig{PD: other}, good(), verbs.StatusInvalidPD},
		{"the window is of another PD", verbs.QPConfig{}, with(func(b *verbs.BindRequest) { b.Window = theirs.STag(1) }), verbs.StatusInvalidPD},
		{"the region is of another PD", verbs.QPConfig{}, on(alien), verbs.StatusInvalidPD},
		{"the region is not for windows", verbs.QPConfig{}, on(plain), verbs.StatusAccess},
		{"the region is read-only", verbs.QPConfig{}, on(readable), verbs.StatusAccess},
		{"the region is zero-based", verbs.QPConfig{}, on(zero), verbs.StatusInvalidRegion},
		{"the range is not in the region", verbs.QPConfig{}, with(func(b *verbs.BindRequest) { b.Length = hostMemory }), verbs.StatusBaseBounds},
		{"the range wraps", verbs.QPConfig{}, with(func(b *verbs.BindRequest) { b.VA = 1<<64 - 8 }), verbs.StatusWrap},
	} {
		before := []verbs.WindowAttributes{queried(t, mw), queried(t, bound), queried(t, theirs)}
		s := n.probe(c.qp)
		t.Logf("%s", c.name)
		postRecv(t, s.qp, verbs.Recv{ID: 3})
		c.bind.Addressing = verbs.VABased
		r := binds(&c.bind)
		r.Flags = verbs.Unsignaled // a refusal is reported all the same
		post(t, s.qp, r, verbs.Request{ID: 2})
		qp := s.qp.ID()
		completesAny(t, n.cq, verbs.Completion{ID: r.ID, QP: qp, Op: verbs.OpBind, Status: c.want},
			verbs.Completion{ID: 2, QP: qp, Status: verbs.StatusFlushed},
			verbs.Completion{ID: 3, QP: qp, Op: verbs.OpRecv, Status: verbs.StatusFlushed})
		s.fails(0x0000)
		require.Equal(t, before, []verbs.WindowAttributes{queried(t, mw), queried(t, bound), queried(t, theirs)}, c.name)
	}
	s, b := n.probe(verbs.QPConfig{}), good()
	s.runs(binds(&b), verbs.StatusSuccess)
	require.True(t, queried(t, mw).Valid, "nothing of this is broken")
	require.NoError(t, mw.Deallocate())
	s.disconnect()
}

func bindWindow(n *host) {
	t, s, mr, mw := n.t, n.probe(verbs.QPConfig{}), n.register(64, allRights|verbs.BindWindow), n.newMW()
	gone := n.newMW()
	require.NoError(t, gone.Deallocate())
	was := queried(t, mr)
	for _, st := range []verbs.STag{mr.STag(), n.mr.STag(), gone.STag(1), 0x12345601} {
		s.runs(binds(&verbs.BindRequest{Window: st, Region: n.mr.STag(), VA: n.mr.Base(), Length: 8, Access: remoteRights}), verbs.StatusInvalidWindow)
	}
	require.Equal(t, was, queried(t, mr), "the region named as a window")
	s.runs(binds(mw.BindRequest(n.mr, 0, 8, remoteRights, 1)), verbs.StatusSuccess)
	bound := queried(t, mw)
	x := n.probe(verbs.QPConfig{})
	x.runs(binds(mw.BindRequest(n.mr, 8, 8, remoteRights, 2)), verbs.StatusSTagNotInvalid)
	s.runs(binds(mw.BindRequest(n.mr, 0, 8, remoteRights, 1)), verbs.StatusSTagNotInvalid)
	require.Equal(t, bound, queried(t, mw))
	require.NoError(t, mw.Deallocate())
}

func bindQP(n *host) {
	t, mw := n.t, n.newMW()
	for _, refused := range []bool{true, false} {
		s := n.probe(verbs.QPConfig{NoBind: refused})
		require.Equal(t, !refused, !attributes(t, s.qp).NoBind, "Query QP")
		b := mw.BindRequest(n.mr, 0, 8, remoteRights, 1)
		if refused {
			s.runs(binds(b), verbs.StatusAccess)
			require.False(t, queried(t, mw).Valid)
			continue
		}
		s.runs(binds(b), verbs.StatusSuccess)
		s.invalidate(invalidations[0], b.Window, invalidates)
		s.disconnect()
	}
}

func bindRegion(n *host, s *probe) {
	t, mw := n.t, n.newMW()
	invalid := n.register(64, allRights|verbs.BindWindow)
	s.invalidate(invalidations[0], invalid.STag(), invalidates)
	gone := n.register(64, allRights|verbs.BindWindow)
	require.NoError(t, gone.Deregister())
	_, bound, w := n.bound(verbs.QPConfig{}, 0, 8, remoteRights)
	b := mw.BindRequest(n.mr, 0, 8, remoteRights, 1)
	for _, st := range []verbs.STag{
		0x12345678, gone.STag(), invalid.STag(), n.allocated().STag(), n.mr.STag() ^ 1, n.mr.STag() ^ 0x80, w.STag, mw.STag(1),
	} {
		bad := *b
		bad.Region = st
		s.runs(binds(&bad), verbs.StatusInvalidRegion)
		require.False(t, queried(t, mw).Valid)
		s.connect()
	}
	k, err := s.qp.PostSend(binds(&verbs.BindRequest{Window: mw.STag(1), VA: n.mr.Base(), Length: 8, Access: remoteRights}))
	require.ErrorIs(t, err, verbs.ErrInvalidModifier, "the STag of zero")
	require.Zero(t, k)
	s.runs(binds(b), verbs.StatusSuccess)
	s.invalidate(invalidations[0], b.Window, invalidates)
	require.NoError(t, bound.Deallocate())
}

// bindPDs tries all combinations of two PDs for window, region and queue pair.
func bindPDs(n *host) {
	t, pds := n.t, []*verbs.PD{n.pd, n.newPD()}
	for i := range 8 {
		mw := must(pds[i&1].AllocateWindow())(t)
		mr := n.region(pds[i>>1&1], verbs.RegionConfig{Memory: make([]byte, 64), Access: allRights | verbs.BindWindow})
		s := n.probe(verbs.QPConfig{PD: pds[i>>2]})
		want := either(i == 0 || i == 7, verbs.StatusSuccess, verbs.StatusInvalidPD)
		b := mw.BindRequest(mr, 0, 8, remoteRights, 1)
		s.runs(binds(b), want)
		require.Equal(t, want == verbs.StatusSuccess, queried(t, mw).Valid, "PDs %03b", i)
		if want == verbs.StatusSuccess {
			s.checksPeer(verbs.BindBuffer(b), 0, mr.Bytes()[:8], remoteRights, accessFault{})
			s.invalidate(invalidations[0], b.Window, invalidates)
			s.disconnect()
		}
	}
}

func bindRegionForWindows(n *host, s *probe) {
	t, mw, p := n.t, n.newMW(), n.pages(1, 4096)
	no, yes := n.register(64, allRights), n.register(64, allRights|verbs.BindWindow)
	s.runs(binds(mw.BindRequest(no, 0, 8, remoteRights, 1)), verbs.StatusAccess)
	require.False(t, queried(t, mw).Valid)
	fast := n.allocated()
	s.runs(fastRegister(fast.WithKey(1), p.List(0, 64), 4096, allRights), verbs.StatusSuccess)
	s.runs(binds(&verbs.BindRequest{Window: mw.STag(1), Region: fast.WithKey(1), VA: 4096, Length: 8, Access: remoteRights}), verbs.StatusAccess)
	require.False(t, queried(t, mw).Valid)
	b := s.binds(mw.BindRequest(yes, 0, 8, remoteRights, 1))
	s.invalidate(invalidations[0], b.Window, invalidates)
}

func bindZeroBased(n *host, s *probe) {
	t, mw := n.t, n.newMW()
	mr := n.region(n.pd, verbs.RegionConfig{Memory: make([]byte, 64), Access: allRights | verbs.BindWindow, ZeroBased: true})
	for _, a := range []verbs.Addressing{verbs.ZeroBased, verbs.VABased} {
		b := mw.BindRequest(mr, 8, 16, remoteRights, 1)
		b.Addressing = a
		s.runs(binds(b), verbs.StatusInvalidRegion)
		require.False(t, queried(t, mw).Valid, "%v window", a)
	}
}

func bindFigure20(n *host) {
	t := n.t
	const rd, wr = verbs.RemoteRead, verbs.RemoteWrite
	for _, row := range []struct {
		region verbs.Access
		ok     []verbs.Access // all others are not
	}{
		{verbs.LocalRead, []verbs.Access{rd}},
		{verbs.LocalWrite, []verbs.Access{wr}},
		{verbs.LocalRead | verbs.LocalWrite, []verbs.Access{rd, wr, rd | wr}},
	} {
		mr := n.register(64, row.region|verbs.BindWindow)
		for _, a := range []verbs.Access{0, rd, wr, rd | wr} {
			t.Logf("region %v, window %v", row.region, a)
			want := verbs.StatusAccess
			for _, ok := range row.ok {
				if a == ok {
					want = verbs.StatusSuccess
				}
			}
			s, mw := n.probe(verbs.QPConfig{}), n.newMW()
			b := mw.BindRequest(mr, 4, 20, a, 1)
			s.runs(binds(b), want)
			require.Equal(t, want == verbs.StatusSuccess, queried(t, mw).Valid)
			if want == verbs.StatusSuccess { // though the region has no remote right
				fill(mr.Bytes(), 1)
				if a&rd != 0 {
					require.Equal(t, mr.Bytes()[4:24], s.read(verbs.BindBuffer(b).Remote(0), 20, allowed))
				}
				if a&wr != 0 {
					s.write(verbs.BindBuffer(b).Remote(0), []byte("written"), allowed)
					require.Equal(t, "written", string(mr.Bytes()[4:11]))
				}
				s.invalidate(invalidations[0], b.Window, invalidates)
				s.disconnect()
			}
		}
	}
}

func bindRange(n *host, s *probe) {
	t, mw := n.t, n.newMW()
	mem := make([]byte, 300)
	const base, length = uint64(0x20000), uint64(100)
	mr := n.region(n.pd, verbs.RegionConfig{Memory: mem[100:200], Access: allRights | verbs.BindWindow, VA: base})
	key := uint8(0)
	try := func(va, k uint64, want verbs.Status) {
		t.Logf("%d octets from %#x of %d from %#x: %v", k, va, length, base, want)
		for _, a := range []verbs.Addressing{verbs.VABased, verbs.ZeroBased} {
			key++
			b := &verbs.BindRequest{Window: mw.STag(key), Region: mr.STag(), VA: va, Length: k, Access: remoteRights, Addressing: a}
			s.runs(binds(b), want)
			require.Equal(t, want == verbs.StatusSuccess, queried(t, mw).Valid)
			if want != verbs.StatusSuccess {
				s.connect()
				continue
			}
			off := int(va-base) + 100
			s.checksPeer(verbs.BindBuffer(b), 0, mem[off:off+int(k)], remoteRights, accessFault{})
			s.invalidate(invalidations[0], b.Window, invalidates)
		}
	}
	const out = verbs.StatusBaseBounds
	for _, r := range []struct {
		va, k uint64
		want  verbs.Status
	}{
		{base, 1, verbs.StatusSuccess}, {base, 100, verbs.StatusSuccess}, {base + 99, 1, verbs.StatusSuccess}, {base + 1, 99, verbs.StatusSuccess},
		{base - 1, 1, out}, {base - 1, 101, out}, {base, 101, out}, {base + 99, 2, out}, {base + 100, 1, out}, {base - 1, 102, out},
		{0, 1, out}, {base + 1<<32, 1, out}, {1<<64 - 1, 2, verbs.StatusWrap}, {base, ^uint64(0) - base + 2, verbs.StatusWrap},
	} {
		try(r.va, r.k, r.want)
	}
	for range 20 {
		va, k := base-50+uint64(t.Rand().IntN(200)), 1+uint64(t.Rand().IntN(120))
		want := either(va >= base && va+k <= base+length, verbs.StatusSuccess, out)
		try(va, k, want)
	}
}

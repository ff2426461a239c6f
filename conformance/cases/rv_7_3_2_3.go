package cases

import (
	"bytes"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/lab/fault"
	"github.com/softrnic/softrnic/stag"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wr"
)

// rv7_3_2_3 is RI-Reregister: verbs draft 7.3.2.3.
var rv7_3_2_3 = []conformance.Case{
	apiCase("7.3.2.3/non-shared-only", onQuietHost(reregisterNonShared), "RV-7.3.2.3-M1"),
	apiCase("7.3.2.3/from-each-state", onQuietHost(reregisterFromEachState), "RV-7.3.2.3-M2", "RV-7.3.2.3-M7", "RV-7.3.2.3-M11"),
	apiCase("7.3.2.3/key", onProbe(verbs.QPConfig{}, reregisterKey), "RV-7.3.2.3-M3", "RV-7.3.2.3-M8"),
	apiCase("7.3.2.3/windows", onProbe(verbs.QPConfig{}, reregisterWindows), "RV-7.3.2.3-M4"),
	apiCase("7.3.2.3/errors-that-leave-it", onProbe(verbs.QPConfig{}, reregisterLeaves), "RV-7.3.2.3-M5"),
	apiCase("7.3.2.3/errors-that-deallocate", reregisterDeallocates, "RV-7.3.2.3-M6"),
	apiCase("7.3.2.3/list-size", onProbe(privileged, reregisterListSize), "RV-7.3.2.3-M9"),
	apiCase("7.3.2.3/remote-access", onProbe(privileged, reregisterRemote), "RV-7.3.2.3-M10"),
	apiCase("7.3.2.3/often", reregisterOften, "RV-7.3.2.3-M12"),
	apiCase("7.3.2.3/under-access", onQuietHost(reregisterUnderAccess), "RV-7.3.2.3-M13"),
}

func reregisterNonShared(n *host) {
	t, mem := n.t, make([]byte, 64)
	one := n.register(64, allRights)
	two := must(one.RegisterShared(nil, verbs.SharedConfig{Access: allRights}))(t)
	for _, mr := range []*verbs.MR{one, two} {
		refuses(t, "Reregister a Shared region", verbs.ErrInvalidSTag, func() error {
			return mr.Reregister(nil, verbs.RegionConfig{Memory: mem, Access: allRights})
		}, func() any { return queried(t, one) }, func() any { return queried(t, two) })
	}

	// By index, which handles do not let a program choose: that of a window,
	// and one that names nothing.
	table := stag.NewTable(stag.Config{})
	defer table.Close()
	mw := must(table.AllocateWindow(1))(t)
	for _, st := range []wr.STag{mw, mw + 1<<8} {
		require.ErrorIs(t, second(table.Reregister(st, stag.RegionConfig{PD: 1, Memory: mem, Access: wr.LocalRead})), wr.ErrInvalidSTag)
	}
	i := must(table.QueryWindow(mw))(t, "the window is still there")
	require.False(t, i.Valid)
}

func reregisterFromEachState(n *host) {
	t, s := n.t, n.probe(verbs.QPConfig{})
	other := n.newPD()
	there := n.probe(verbs.QPConfig{PD: other})
	valid, invalid := n.register(64, allRights), n.register(64, allRights)
	s.invalidate(invalidations[0], invalid.STag(), invalidates)
	allocated := must(n.pd.AllocateRegion(verbs.AllocateConfig{}))(t)
	for i, mr := range []*verbs.MR{valid, invalid, allocated} {
		what := []string{"Valid", "Invalid", "allocated"}[i]
		former := fill(make([]byte, 64), i)
		copy(mr.Bytes(), former)
		old, now := mr.Bytes(), make([]byte, 500)
		rights := verbs.LocalRead | verbs.LocalWrite | verbs.RemoteWrite
		require.NoError(t, mr.Reregister(other, verbs.RegionConfig{Memory: now, Access: rights, VA: 0x5000_0000, Key: uint8(50 + i)}), what)
		info := queried(t, mr)
		require.Equal(t, verbs.RegionAttributes{
			STag: mr.WithKey(uint8(50 + i)), Valid: true, PD: other.ID(), RemoteAccess: true, PBL: info.PBL,
			Access: rights, Base: 0x5000_0000, Length: 500,
		}, info, what)
		b := mr.Buffer()
		there.checks(b, 0, now, rights, noRight)
		there.gather(verbs.OpSend, b.SGL(499, 2), verbs.StatusBaseBounds)
		s.noneAllowed(b, 0, now[:8], noPD)
		if old != nil {
			require.Equal(t, former, old, "the former memory")
		}
	}
	s.disconnect()
	there.disconnect()
}

func reregisterKey(n *host, s *probe) {
	t := n.t
	mr := n.region(n.pd, verbs.RegionConfig{Memory: make([]byte, 64), Access: allRights, Key: 1, VA: 0x10000})
	for key := uint8(2); key < 5; key++ {
		former, mem := mr.Buffer(), make([]byte, 64)
		require.NoError(t, mr.Reregister(nil, verbs.RegionConfig{Memory: mem, Access: allRights, Key: key, VA: 0x10000}))
		require.Equal(t, key, mr.STag().Key(), "the STag returned")
		require.Equal(t, mr.STag(), queried(t, mr).STag, "Query")
		s.allAllowed(mr.Buffer(), 5, mem[5:40])
		s.noneAllowed(former, 5, mem[5:40], noSTag)
		s.invalidate(invalidations[2], former.STag, invalidationFault{remote: verbs.StatusInvalidSTag, code: formerCode(former.STag, mr.STag())})
	}
}

// formerCode is the Terminate code for invalidating what an STag was before a
// Reregister: with another index it is deallocated, else its key is wrong.
func formerCode(former, now verbs.STag) uint16 {
	if former.Index() != now.Index() {
		return isGone.code
	}
	return cannotBe.code
}

func reregisterWindows(n *host, s *probe) {
	t, mw := n.t, n.newMW()
	mem := make([]byte, 64)
	again := func() error { return n.mr.Reregister(nil, verbs.RegionConfig{Memory: mem, Access: allRights}) }
	b := s.binds(mw.BindRequest(n.mr, 0, 64, remoteRights, 1))
	refuses(t, "Reregister with a window bound", verbs.ErrWindowsBound, again,
		func() any { return queried(t, n.mr) }, func() any { return queried(t, mw) })
	s.checksPeer(verbs.BindBuffer(b), 4, n.mr.Bytes()[4:20], remoteRights, accessFault{})
	s.invalidate(invalidations[0], b.Window, invalidates)
	require.NoError(t, again(), "after the window's invalidation")
}

func reregisterLeaves(n *host, s *probe) {
	t, mw := n.t, n.newMW()
	c := verbs.RegionConfig{Memory: make([]byte, 64), Access: allRights}
	serves := func(mr *verbs.MR, what string) {
		n.t.Logf("after %s", what)
		s.allAllowed(mr.Buffer(), 100, mr.Bytes()[100:150])
	}

	bound := n.register(256, allRights|verbs.BindWindow)
	b := s.binds(mw.BindRequest(bound, 0, 64, remoteRights, 1))
	region, window := func() any { return queried(t, bound) }, func() any { return queried(t, mw) }
	refuses(t, "windows bound", verbs.ErrWindowsBound, func() error { return bound.Reregister(nil, c) }, region, window)
	// Of two reasons the one that leaves the region counts.
	refuses(t, "windows bound, and no rights", verbs.ErrWindowsBound, func() error { return bound.Reregister(nil, verbs.RegionConfig{}) }, region, window)
	s.checksPeer(verbs.BindBuffer(b), 4, bound.Bytes()[4:20], remoteRights, accessFault{})
	serves(bound, "One or more Memory Windows is still Bound")

	shared := n.register(256, allRights)
	require.NoError(t, second(shared.RegisterShared(nil, verbs.SharedConfig{Access: allRights})))
	region = func() any { return queried(t, shared) }
	refuses(t, "shared", verbs.ErrInvalidSTag, func() error { return shared.Reregister(nil, c) }, region)
	refuses(t, "shared, and no rights", verbs.ErrInvalidSTag, func() error { return shared.Reregister(nil, verbs.RegionConfig{}) }, region)
	serves(shared, "Invalid STag Index")

	closed := newHost(t, hostConfig{})
	require.NoError(t, closed.nic.Close())
	assert.ErrorIs(t, closed.mr.Reregister(nil, c), verbs.ErrInvalidRNIC)
	// A failed RNIC still answers queries: the registration is unchanged.
	failed := newHost(t, hostConfig{})
	fault.Provoke(failed.nic)
	refuses(t, "RNIC failed", verbs.ErrInvalidRNIC, func() error { return failed.mr.Reregister(nil, c) },
		func() any { return queried(t, failed.mr) })
	require.NoError(t, mw.Deallocate())
}

func reregisterDeallocates(t *conformance.T) {
	n := newHost(t, hostConfig{RNIC: verbs.Config{Limits: verbs.Limits{Regions: 2}}})
	s, p := n.probe(verbs.QPConfig{}), n.pages(2, 4096)
	elsewhere, gone := newHost(t, hostConfig{}), n.deadPD()
	mem := make([]byte, 64)
	good := verbs.RegionConfig{Memory: mem, Access: allRights}
	type bad struct {
		refusedRegion
		pd *verbs.PD
	}
	all := []bad{
		{refusedRegion{"PD deallocated", verbs.ErrInvalidPD, good}, gone},
		{refusedRegion{"PD of another RNIC", verbs.ErrInvalidPD, good}, elsewhere.pd},
	}
	for _, b := range refusedRegions(mem, p) {
		all = append(all, bad{b, nil})
	}
	for _, b := range all {
		pd := n.newPD()
		here := verbs.QPConfig{PD: pd}
		mr := n.region(pd, verbs.RegionConfig{Memory: mem, Access: allRights, Key: 5})
		former := mr.Buffer()
		to := b.pd
		require.ErrorIs(t, mr.Reregister(to, b.config), b.want, b.name)
		assert.ErrorIs(t, second(mr.Query()), verbs.ErrInvalidSTag, "%s: Query", b.name)
		assert.ErrorIs(t, mr.Deregister(), verbs.ErrInvalidSTag, "%s: Deallocate", b.name)
		x := n.probe(here)
		x.checksPeer(former, 0, mem[:8], 0, noSTag)
		x.disconnect()
		require.NoError(t, pd.Deallocate(), "%s: the domain is empty", b.name)
	}
	s.disconnect()
	n.quiet()
}

func reregisterListSize(n *host, s *probe) {
	t, p := n.t, n.pages(20, 4096)
	mr := n.region(n.pd, verbs.RegionConfig{Buffers: p.List(0, 5*4096), Access: verbs.LocalRead, VA: 4096})
	for _, k := range []int{2, 5, 12} {
		require.NoError(t, mr.Reregister(nil, verbs.RegionConfig{Buffers: p.List(0, k*4096), Access: verbs.LocalRead, VA: 4096}))
		got := queried(t, mr).PBL
		require.GreaterOrEqual(t, got, k, "the list size of %d pages", k)
		s.invalidate(invalidations[0], mr.STag(), invalidates)
		s.runs(fastRegister(mr.WithKey(0), p.List(0, min(got, 20)*4096), 4096, verbs.LocalRead), verbs.StatusSuccess)
	}
}

func reregisterRemote(n *host, s *probe) {
	t, p := n.t, n.pages(1, 4096)
	const local = verbs.LocalRead | verbs.LocalWrite
	mr := n.register(64, local)
	for _, c := range []struct {
		access verbs.Access
		flag   bool
	}{{allRights, true}, {local, false}, {local, true}, {local | verbs.RemoteRead, true}, {local, false}} {
		mem := make([]byte, 64)
		require.NoError(t, mr.Reregister(nil, verbs.RegionConfig{Memory: mem, Access: c.access, RemoteAccess: c.flag, Key: 0x41}))
		info := queried(t, mr)
		require.Equal(t, c.flag, info.RemoteAccess, "the flag")
		require.Equal(t, c.access, info.Access, "the rights")
		s.checksPeer(mr.Buffer(), 5, mem[5:20], c.access, noRight)
		s.invalidate(invalidations[0], mr.STag(), invalidates)
		s.flagged(mr, p, c.flag)
	}
}

func reregisterOften(t *conformance.T) {
	n := newHost(t, hostConfig{RNIC: verbs.Config{Limits: verbs.Limits{Regions: 2}}})
	s, p := n.probe(verbs.QPConfig{}), n.pages(8, 4096)
	mr := n.region(n.pd, verbs.RegionConfig{Buffers: p.List(0, 8*4096), Access: allRights, VA: 4096})
	require.Equal(t, 8, queried(t, mr).PBL)
	for i := range 10_000 {
		k := 1 + t.Rand().IntN(8)
		require.NoError(t, mr.Reregister(nil, verbs.RegionConfig{Buffers: p.List(0, k*4096), Access: allRights, VA: 4096, Key: uint8(i)}))
	}
	require.Equal(t, 8, queried(t, mr).PBL, "the room there is")
	s.allAllowed(mr.Buffer(), 0, p.Bytes()[:100])
	// The longest list always goes.
	require.NoError(t, mr.Reregister(nil, verbs.RegionConfig{Buffers: p.List(0, 8*4096), Access: allRights, VA: 4096}))
	s.disconnect()
}

func reregisterUnderAccess(n *host) {
	t, s := n.t, n.probe(verbs.QPConfig{})
	sent := fill(make([]byte, 100), 1)

	// In the middle of an inbound Write.
	old, now := make([]byte, 128), make([]byte, 128)
	mr := n.region(n.pd, verbs.RegionConfig{Memory: old, Access: allRights, Key: 1, VA: 0x10000})
	former := mr.Remote(0)
	s.writeHalf(former, sent)
	atOnce(t, "Reregister", func() error {
		return mr.Reregister(nil, verbs.RegionConfig{Memory: now, Access: allRights, Key: 2, VA: 0x10000})
	})
	half := bytes.Clone(old)
	s.writeRest(former, sent)
	s.refused(noSTag.write)
	require.Equal(t, append(bytes.Clone(sent[:50]), make([]byte, 78)...), half, "what was placed before")
	require.Equal(t, half, old, "the former memory")
	require.Equal(t, make([]byte, 128), now, "the new memory")

	// A Read Request that waits behind another's answer.
	large := n.register(largeRegion, allRights)
	s.stall(large.Remote(0))
	former = mr.Remote(0)
	s.ask(former, 100)
	atOnce(t, "Reregister", func() error {
		return mr.Reregister(nil, verbs.RegionConfig{Memory: old, Access: allRights, Key: 3, VA: 0x10000})
	})
	s.skip()
	s.refused(noSTag.read)

	// In the middle of the answer: not an octet of the new memory goes out.
	s.stall(large.Remote(0))
	atOnce(t, "Reregister", func() error {
		return large.Reregister(nil, verbs.RegionConfig{Memory: bytes.Repeat([]byte{0xEE}, largeRegion), Access: allRights, Key: 4, VA: large.Base()})
	})
	require.NotContains(t, s.torn(noSTag.read), byte(0xEE), "the answer")
}

package cases

import (
	"bytes"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// rv7_3 is making regions: verbs draft 7.3 to 7.3.2.2.
var rv7_3 = []conformance.Case{
	apiCase("7.3/unregistered", onProbe(verbs.QPConfig{}, unregistered), "RV-7.3-M2"),
	apiCase("7.3/failed-gives-nothing", onProbe(verbs.QPConfig{}, failedGivesNothing), "RV-7.3-M3"),
	apiCase("7.3/failed-takes-nothing", failedTakesNothing, "RV-7.3-M4"),
	apiCase("7.3.2.1/list-size", allocatedList, "RV-7.3.2.1-M1", "RV-7.3.2.1-M2", "RV-7.3.2.1-M3", "RV-7.3.2.1-M5"),
	apiCase("7.3.2.1/remote-access-flag", onProbe(privileged, allocatedFlag), "RV-7.3.2.1-M6", "RV-7.3.2.1-M7", "RV-7.3.2.1-M8"),
	apiCase("7.3.2.1/filled", onProbe(privileged, allocatedIsFilled), "RV-7.3.2.1-M9"),
	apiCase("7.3.2.2/key", onProbe(verbs.QPConfig{}, registeredKey), "RV-7.3.2.2-M1"),
	apiCase("7.3.2.2/buffer-list", onProbe(verbs.QPConfig{}, registeredList), "RV-7.3.2.2-M2"),
	apiCase("7.3.2.2/remote-access-flag", onProbe(privileged, registeredFlag), "RV-7.3.2.2-M3", "RV-7.3.2.2-M4", "RV-7.3.2.2-M5"),
	apiCase("7.3.2.2/registered", onProbe(verbs.QPConfig{}, registeredAtOnce), "RV-7.3.2.2-M6", "RV-7.3.2.2-M7", "RV-7.3.2.2-M9"),
	apiCase("7.3.2.2/list-size", onProbe(privileged, registeredListSize), "RV-7.3.2.2-M8"),
}

func unregistered(n *host, s *probe) {
	mem := n.mr.Bytes()[:32]
	for range 8 {
		st := verbs.STag(n.t.Rand().Uint32())
		if st.Index() == n.mr.STag().Index() || st.Index() == 0 {
			continue
		}
		s.noneAllowed(verbs.TaggedBuffer{STag: st, Base: n.mr.Base()}, 0, mem, noSTag)
	}
}

func failedGivesNothing(n *host, s *probe) {
	t, p := n.t, n.pages(2, 4096)
	mem := fill(make([]byte, 64), 1)
	was, pages := bytes.Clone(mem), bytes.Clone(fill(p.Bytes(), 2))
	former := n.region(n.pd, verbs.RegionConfig{Memory: mem, Access: allRights})
	require.NoError(t, former.Deregister())
	for _, bad := range refusedRegions(mem, p) {
		mr, err := n.pd.RegisterRegion(bad.config)
		require.ErrorIs(t, err, bad.want, bad.name)
		require.Nil(t, mr, bad.name)
	}
	for d := range verbs.STag(3) { // the STag before it, itself, and the next one
		b := former.Buffer()
		if b.STag += (d - 1) << 8; b.STag.Index() == n.mr.STag().Index() {
			continue
		}
		s.write(b.Remote(0), []byte("over it."), noSTag.write)
		s.read(b.Remote(0), 8, noSTag.read)
	}
	require.Equal(t, was, mem, "the memory")
	require.Equal(t, pages, p.Bytes(), "the pages")
}

func failedTakesNothing(t *conformance.T) {
	nic := openRNIC(t, verbs.Config{Limits: verbs.Limits{Regions: 1}})
	pd := must(nic.AllocatePD())(t)
	p := must(nic.AllocatePages(2, 4096))(t)
	mem := make([]byte, 64)
	for _, bad := range refusedRegions(mem, p) {
		for range 100 {
			require.ErrorIs(t, second(pd.RegisterRegion(bad.config)), bad.want, bad.name)
		}
	}
	mr := must(pd.Register(mem, allRights))(t, "the one there is")
	for range 100 {
		require.ErrorIs(t, second(pd.Register(mem, allRights)), verbs.ErrInsufficientResources)
	}
	require.ErrorIs(t, pd.Deallocate(), verbs.ErrPDInUse)
	require.NoError(t, mr.Deregister())
	require.NoError(t, pd.Deallocate(), "nothing is left in it")
}

func allocatedList(t *conformance.T) {
	n := newHost(t, hostConfig{RNIC: verbs.Config{Limits: verbs.Limits{PBL: 16, Regions: 20}}})
	s, p := n.probe(privileged), n.pages(16, 4096)
	require.Equal(t, 16, queried(t, n.nic).Limits.PBL)
	for _, want := range []int{1, 2, 5, 8, 15, 16} {
		mr := must(n.pd.AllocateRegion(verbs.AllocateConfig{PBL: want}))(t, "a list of %d", want)
		got := queried(t, mr).PBL
		require.GreaterOrEqual(t, got, want, "the list size")
		require.LessOrEqual(t, got, 16, "the list size")
		st := mr.WithKey(9)
		s.runs(fastRegister(st, p.List(0, 4096*got), 4096, verbs.LocalRead), verbs.StatusSuccess)
		require.Len(t, s.gather(verbs.OpSend, verbs.TaggedBuffer{STag: st, Base: 4096}.SGL(4096*(got-1), 4096), verbs.StatusSuccess), 4096)
	}
	for range 100 { // more than there are regions
		for _, want := range []int{17, 1 << 20} {
			mr, err := n.pd.AllocateRegion(verbs.AllocateConfig{PBL: want})
			require.ErrorIs(t, err, verbs.ErrInsufficientResources, "a list of %d", want)
			require.Nil(t, mr)
		}
	}
	require.NoError(t, second(n.pd.AllocateRegion(verbs.AllocateConfig{PBL: 16})), "the refused ones took nothing")
	s.disconnect()
}

func allocatedFlag(n *host, s *probe) {
	t, p := n.t, n.pages(1, 4096)
	for _, flag := range []bool{false, true} {
		mr := must(n.pd.AllocateRegion(verbs.AllocateConfig{RemoteAccess: flag}))(t)
		require.Equal(t, flag, queried(t, mr).RemoteAccess, "Query")
		s.flagged(mr, p, flag)
	}
}

func allocatedIsFilled(n *host, s *probe) {
	t, p := n.t, n.pages(1, 4096)
	one := must(n.pd.AllocateRegion(verbs.AllocateConfig{RemoteAccess: true}))(t)
	two := must(n.pd.AllocateRegion(verbs.AllocateConfig{RemoteAccess: true}))(t)

	mem := make([]byte, 64)
	require.NoError(t, one.Reregister(nil, verbs.RegionConfig{Memory: mem, Access: allRights}))
	require.True(t, queried(t, one).Valid)
	s.allAllowed(one.Buffer(), 7, mem[7:40])

	r := fastRegister(two.WithKey(3), p.List(0, 64), 4096, allRights)
	s.runs(r, verbs.StatusSuccess)
	require.True(t, queried(t, two).Valid)
	s.allAllowed(verbs.FastRegisterBuffer(r.FastRegister), 7, p.Bytes()[7:40])
}

func registeredKey(n *host, s *probe) {
	t := n.t
	for key := range 256 {
		mr := n.region(n.pd, verbs.RegionConfig{Memory: make([]byte, 16), Access: allRights, Key: uint8(key)})
		require.Equal(t, uint8(key), mr.STag().Key())
		require.Equal(t, mr.STag(), queried(t, mr).STag, "Query")
		s.write(mr.Remote(0), []byte{1}, allowed)
		if key%51 == 0 {
			b := mr.Buffer()
			b.STag ^= 1 << (key % 7)
			s.noneAllowed(b, 0, mr.Bytes()[:8], noSTag)
		}
		require.NoError(t, mr.Deregister())
	}
}

func registeredList(n *host, s *probe) {
	t, p := n.t, n.pages(8, 4096)
	const length, fbo = 3*4096 + 50, 100
	order := []int{5, 0, 7, 2}
	var list []uint64
	for _, i := range order {
		list = append(list, p.Address(i))
	}
	mr := n.region(n.pd, verbs.RegionConfig{
		Buffers: verbs.PhysicalBuffers{Size: 4096, Addresses: list, FBO: fbo, Length: length}, Access: allRights, VA: 0x9000 + fbo,
	})
	sent := fill(make([]byte, length), 5)
	s.write(mr.Remote(0), sent, allowed)
	require.Equal(t, sent, s.read(mr.Remote(0), length, allowed), "read back")
	require.Equal(t, sent, s.gather(verbs.OpSend, mr.SGL(0, length), verbs.StatusSuccess), "sent")

	// By hand: the first page from its octet 100 on, then whole ones.
	want := make([]byte, 8*4096)
	rest := sent[copy(want[5*4096+fbo:6*4096], sent):]
	rest = rest[copy(want[:4096], rest):]
	rest = rest[copy(want[7*4096:], rest):]
	copy(want[2*4096:3*4096], rest)
	require.Equal(t, want, p.Bytes(), "all pages")
}

func registeredFlag(n *host, s *probe) {
	t, p := n.t, n.pages(1, 4096)
	for _, c := range []struct {
		name   string
		access verbs.Access
		flag   bool
		want   bool
	}{
		{"cleared", verbs.LocalRead | verbs.LocalWrite, false, false},
		{"set", verbs.LocalRead | verbs.LocalWrite, true, true},
		{"set, with remote rights", allRights, true, true},
	} {
		mr := n.region(n.pd, verbs.RegionConfig{Memory: make([]byte, 64), Access: c.access, RemoteAccess: c.flag, Key: 0x31})
		require.Equal(t, c.want, queried(t, mr).RemoteAccess, "%s: Query", c.name)
		s.checks(mr.Buffer(), 10, mr.Bytes()[10:30], c.access, noRight)
		s.invalidate(invalidations[0], mr.STag(), invalidates)
		s.flagged(mr, p, c.want)
	}
}

func registeredAtOnce(n *host, s *probe) {
	t := n.t
	seen := map[uint32]bool{}
	for i := range 20 {
		mem := make([]byte, 100)
		mr := n.region(n.pd, verbs.RegionConfig{Memory: mem, Access: allRights, Key: uint8(i), VA: 0x10000})
		s.allAllowed(mr.Buffer(), 0, mem)
		index := mr.STag().Index()
		require.NotZero(t, index)
		require.False(t, seen[index], "the index of another region")
		seen[index] = true
		info := queried(t, mr)
		require.True(t, info.Valid, "the state")
		require.Equal(t, mr.STag(), info.STag)
		require.Equal(t, [2]uint64{0x10000, 100}, [2]uint64{info.Base, info.Length}, "base and length")
	}
}

func registeredListSize(n *host, s *probe) {
	t, p := n.t, n.pages(100, 4096)
	sized := func(mr *verbs.MR, pages int) {
		got := queried(t, mr).PBL
		require.GreaterOrEqual(t, got, pages, "the list size of a region of %d pages", pages)
		s.invalidate(invalidations[0], mr.STag(), invalidates)
		assert.Equal(t, got, queried(t, mr).PBL, "it stays")
		s.runs(fastRegister(mr.WithKey(2), p.List(0, 4096*min(got, 100)), 4096, verbs.LocalRead), verbs.StatusSuccess)
	}
	for _, k := range []int{1, 3, 100} {
		sized(n.region(n.pd, verbs.RegionConfig{Buffers: p.List(0, k*4096), Access: verbs.LocalRead, VA: 4096}), k)
	}
	// Go memory is a list of pages of the smallest size.
	sized(n.register(1, verbs.LocalRead), 1)
	sized(n.register(40_000, verbs.LocalRead), 10)
}

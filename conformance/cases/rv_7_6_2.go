package cases

import (
	"bytes"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// rv7_6_2 is physical buffer lists: verbs draft 7.6.2.
var rv7_6_2 = []conformance.Case{
	apiCase("7.6.2/page-lists", onProbe(privileged, pageLists), "RV-7.6.2-M1", "RV-7.6.2.1-M1"),
	apiCase("7.6.2/modes", physicalModes, "RV-7.6.2-M2", "RV-7.6.2-M3"),
	apiCase("7.6.2.1/page-addresses", onProbe(privileged, pageAddresses), "RV-7.6.2.1-M2", "RV-7.6.2.1-M3"),
	apiCase("7.6.2.2/block-lists", blockLists, "RV-7.6.2.2-M1", "RV-7.6.2.2-M2"),
	apiCase("7.6.2.2/va-and-fbo", blockVA, "RV-7.6.2.2-M3"),
}

func pageLists(n *host, s *probe) {
	t, sizes := n.t, queried(n.t, n.nic).PageSizes
	require.NotEmpty(t, sizes)
	fast := n.allocated()
	for _, size := range sizes {
		require.Equal(t, uint64(0), size&(size-1), "page size %d", size)
		if size > 64<<10 {
			// Too much to use: that the size is right is told by what is wrong.
			list := verbs.PhysicalBuffers{Size: size, Addresses: []uint64{size}, Length: 1}
			require.ErrorIs(t, second(n.pd.RegisterRegion(verbs.RegionConfig{Buffers: list, Access: allRights, VA: size})), verbs.ErrInvalidPhysBufferEntry)
			s.runs(fastRegister(fast.WithKey(1), list, size, allRights), verbs.StatusInvalidPhysBufferEntry)
			continue
		}
		p := n.pages(3, size)
		list := verbs.PhysicalBuffers{Size: size, Addresses: []uint64{p.Address(2), p.Address(0), p.Address(1)}, FBO: size - 10, Length: size + 20}
		mr := n.region(n.pd, verbs.RegionConfig{Buffers: list, Access: allRights, VA: size - 10})
		sent := fill(make([]byte, 30), 1)
		s.write(mr.Remote(0), sent, allowed) // the end of page 2, the beginning of page 0
		require.Equal(t, sent[:10], p.Bytes()[3*size-10:], "pages of %d", size)
		require.Equal(t, sent[10:], p.Bytes()[:20], "pages of %d", size)
		s.write(mr.Remote(int(size)), sent[:20], allowed) // the end of page 0, the beginning of page 1
		require.Equal(t, sent[:20], p.Bytes()[size-10:size+10], "pages of %d", size)
	}
	for _, size := range []uint64{0, 1, 3000, 4097, 4096 + 8192, 1<<31 + 4096} {
		list := verbs.PhysicalBuffers{Size: size, Addresses: []uint64{1 << 32}, Length: 1}
		require.ErrorIs(t, second(n.pd.RegisterRegion(verbs.RegionConfig{Buffers: list, Access: allRights, VA: 4096})), verbs.ErrInvalidPhysBufferSize, "pages of %d", size)
		require.ErrorIs(t, n.register(8, allRights).Reregister(nil, verbs.RegionConfig{Buffers: list, Access: allRights, VA: 4096}), verbs.ErrInvalidPhysBufferSize)
		s.runs(fastRegister(fast.WithKey(1), list, 4096, allRights), verbs.StatusInvalidPageSize)
	}
}

func pageAddresses(n *host, s *probe) {
	t, p, big := n.t, n.pages(5, 4096), n.pages(2, 8192)
	bad := func(list verbs.PhysicalBuffers, what string) {
		c := verbs.RegionConfig{Buffers: list, Access: allRights, VA: 8192}
		require.ErrorIs(t, second(n.pd.RegisterRegion(c)), verbs.ErrInvalidPhysBufferEntry, "Register, %s", what)
		require.ErrorIs(t, n.register(8, allRights).Reregister(nil, c), verbs.ErrInvalidPhysBufferEntry, "Reregister, %s", what)
		mr := n.allocated()
		s.runs(fastRegister(mr.WithKey(1), list, 8192, allRights), verbs.StatusInvalidPhysBufferEntry)
		require.False(t, queried(t, mr).Valid, what)
		require.NoError(t, mr.Deregister())
	}
	for i := range 5 {
		for _, by := range []uint64{1, 8, 2048} {
			list := p.List(0, 5*4096)
			list.Addresses = slices.Clone(list.Addresses)
			if list.Addresses[i] += by; i == 4 { // inside the memory all the same
				list.Addresses[i] -= 4096
			}
			bad(list, "an entry moved")
		}
	}
	half := big.List(0, 8192)
	half.Addresses = []uint64{big.Address(0) + 4096}
	bad(half, "an address of a smaller page")
	require.NoError(t, second(n.pd.RegisterRegion(verbs.RegionConfig{Buffers: big.List(0, 8192), Access: allRights, VA: 8192})))
	require.NoError(t, second(n.pd.RegisterRegion(verbs.RegionConfig{Buffers: p.List(0, 5*4096), Access: allRights, VA: 8192})))
}

func physicalModes(t *conformance.T) {
	// Side by side, each with its kind of list.
	page := newHost(t, hostConfig{RNIC: verbs.Config{Mode: verbs.PageMode}})
	block := newHost(t, hostConfig{RNIC: verbs.Config{Mode: verbs.BlockMode}})
	for i, n := range []*host{page, block} {
		a := queried(t, n.nic)
		require.True(t, a.Features.Has(verbs.FeatureBlockMode), "block lists are offered")
		s := n.probe(verbs.QPConfig{})
		size := []uint64{4096, 1000}[i]
		p := n.pages(3, size)
		mr := n.region(n.pd, verbs.RegionConfig{Buffers: p.List(10, int(size)+50), Access: allRights, VA: 7*size + 10})
		s.allAllowed(mr.Buffer(), int(size)-20, p.Bytes()[size-10:size+30])
		s.disconnect()
		n.quiet()
	}
	require.Equal(t, verbs.PageMode, queried(t, page.nic).Mode)
	require.Equal(t, verbs.BlockMode, queried(t, block.nic).Mode)
	require.ErrorIs(t, second(page.nic.AllocatePages(1, 1000)), verbs.ErrInvalidPhysBufferSize, "a block size in page mode")

	_, err := verbs.Open(verbs.Config{Mode: verbs.BlockMode, Without: verbs.FeatureBlockMode})
	require.ErrorIs(t, err, verbs.ErrBlockListNotSupported)
	without := openRNIC(t, verbs.Config{Without: verbs.FeatureBlockMode})
	require.False(t, queried(t, without).Features.Has(verbs.FeatureBlockMode), "block lists are not offered")
	require.Equal(t, verbs.PageMode, queried(t, without).Mode)
}

func blockLists(t *conformance.T) {
	n := newHost(t, hostConfig{RNIC: verbs.Config{Mode: verbs.BlockMode}})
	s, p := n.probe(privileged), n.pages(1, 20_000)
	at := p.Address(0)
	// Blocks of 1000, odd and out of order.
	list := verbs.PhysicalBuffers{Size: 1000, Addresses: []uint64{at + 7001, at + 13, at + 4096}, FBO: 900, Length: 1500}
	mr, fast := n.region(n.pd, verbs.RegionConfig{Buffers: list, Access: allRights, VA: 5900}), n.allocated()
	r := fastRegister(fast.WithKey(1), list, 5900, allRights)
	s.runs(r, verbs.StatusSuccess)
	for i, b := range []verbs.TaggedBuffer{mr.Buffer(), verbs.FastRegisterBuffer(r.FastRegister)} {
		clear(p.Bytes())
		sent := fill(make([]byte, 1500), i)
		s.write(b.Remote(0), sent, allowed)
		want := make([]byte, 20_000)
		copy(want[7901:8001], sent)
		copy(want[13:1013], sent[100:])
		copy(want[4096:4496], sent[1100:])
		require.True(t, bytes.Equal(want, p.Bytes()), "where the octets are")
		require.Equal(t, sent, s.read(b.Remote(0), 1500, allowed))
		s.write(b.Remote(1500), []byte{1}, noBounds.write)
	}
	s.disconnect()
	n.quiet()
}

func blockVA(t *conformance.T) {
	n := newHost(t, hostConfig{RNIC: verbs.Config{Mode: verbs.BlockMode}})
	s, p, fast := n.probe(privileged), n.pages(2, 1000), n.allocated()
	list := p.List(42, 500)
	for _, va := range []uint64{5041, 5043, 5000, 4096 + 42, 42 + 500} {
		c := verbs.RegionConfig{Buffers: list, Access: allRights, VA: va}
		require.ErrorIs(t, second(n.pd.RegisterRegion(c)), verbs.ErrInvalidVA, "VA %d", va)
		require.ErrorIs(t, n.register(8, allRights).Reregister(nil, c), verbs.ErrInvalidVA)
		s.runs(fastRegister(fast.WithKey(1), list, va, allRights), verbs.StatusInvalidVA)
	}
	for _, va := range []uint64{42, 5042, 1_000_000_042} {
		c := verbs.RegionConfig{Buffers: list, Access: allRights, VA: va}
		s.allAllowed(n.region(n.pd, c).Buffer(), 0, p.Bytes()[42:542])
		require.NoError(t, n.register(8, allRights).Reregister(nil, c))
		s.runs(fastRegister(fast.WithKey(1), list, va, allRights), verbs.StatusSuccess)
		s.invalidate(invalidations[0], fast.WithKey(1), invalidates)
	}
	s.disconnect()
	n.quiet()
}

// rv7_6_3 is the checks of each access to a region: verbs draft 7.6.3; and Query
// Memory Region, 7.7.
var rv7_6_3 = []conformance.Case{
	apiCase("7.6.3/each-check", onQuietHost(eachCheck),
		"RV-7.6.3-M1", "PV-7.6.3-M1", "PV-7.6.3-M2", "PV-7.6.3-M3", "PV-7.6.3-M4", "PV-7.6.3-M5", "PV-7.6.3-M6",
		"PV-9.5.3-M5", "PV-9.5.3-M6"),
	apiCase("7.6.3/to-the-octet", onProbe(verbs.QPConfig{}, toTheOctet), "RV-7.6.3-M2", "PV-7.6.3-M6"),
	apiCase("7.6.3/no-octets", onQuietHost(noOctets), "RV-7.6.3-M3"),
	apiCase("7.7/attributes", onProbe(privileged, regionAttributes), "RV-7.7-M1"),
}

func eachCheck(n *host) {
	t, foreign := n.t, n.newPD()
	own := n.register(64, allRights)
	alien := n.region(foreign, verbs.RegionConfig{Memory: make([]byte, 64), Access: allRights})
	none := n.register(64, verbs.LocalRead)
	mem := own.Bytes()
	plain, shared := verbs.QPConfig{}, verbs.QPConfig{SRQ: n.newSRQ(verbs.SRQConfig{})}
	for i, c := range []verbs.QPConfig{plain, shared} {
		t.Logf("with an S-RQ: %v", i == 1)
		s := n.probe(c)
		s.allAllowed(own.Buffer(), 0, mem)
		s.noneAllowed(alien.Buffer(), 0, alien.Bytes(), noPD)
		s.checks(none.Buffer(), 0, none.Bytes(), verbs.LocalRead, noRight)
		s.noneAllowed(own.Buffer(), 60, mem[56:61], noBounds) // 5 octets, of which 4 are there
		s.noneAllowed(verbs.TaggedBuffer{STag: own.STag(), Base: 1<<64 - 4}, 0, mem[:8], noWrap)
		s.disconnect()

		// The rights of the queue pair: the peer's, and those of answers.
		c.NoInboundWrite = true
		s = n.probe(c)
		was := bytes.Clone(fill(mem, 1))
		require.Equal(t, was[:8], s.read(own.Remote(0), 8, allowed))
		s.write(own.Remote(0), []byte("unwanted"), noWriteRight)
		s.sink(own.SGE(0, 8), []byte("unwanted"), verbs.StatusSuccess, noWriteRight)
		require.Equal(t, was, mem)
		s.disconnect()
		c.NoInboundWrite, c.NoInboundRead = false, true
		s = n.probe(c)
		s.writeUnanswered(own.Remote(0), []byte("welcome!"))
		s.read(own.Remote(0), 8, noReadRight)
		require.Equal(t, "welcome!", string(mem[:8]))
		s.disconnect()
	}

	// An S-RQ of another PD: what a Send fills belongs to the S-RQ's, all else
	// to the queue pair's.
	s := n.probe(verbs.QPConfig{SRQ: n.newSRQ(verbs.SRQConfig{PD: foreign})})
	s.scatter(alien.SGL(0, 8), []byte("in S-RQ."), verbs.StatusSuccess)
	require.Equal(t, "in S-RQ.", string(alien.Bytes()[:8]))
	s.scatter(own.SGL(0, 8), []byte("unwanted"), verbs.StatusInvalidPD)
	s.gather(verbs.OpSend, own.SGL(0, 8), verbs.StatusSuccess)
	s.gather(verbs.OpWrite, own.SGL(0, 8), verbs.StatusSuccess)
	s.gather(verbs.OpSend, alien.SGL(0, 8), verbs.StatusInvalidPD)
	s.gather(verbs.OpWrite, alien.SGL(0, 8), verbs.StatusInvalidPD)
	s.checksPeer(own.Buffer(), 0, mem[:8], remoteRights, accessFault{})
	s.checksPeer(alien.Buffer(), 0, alien.Bytes()[:8], 0, noPD)
	s.disconnect()
}

func toTheOctet(n *host, s *probe) {
	t := n.t
	mem := fill(make([]byte, 300), 1)
	mr := n.region(n.pd, verbs.RegionConfig{Memory: mem[100:200], Access: allRights, VA: 0x10000})
	b := mr.Buffer()
	for _, in := range [][2]int{{0, 1}, {99, 1}, {0, 100}, {1, 99}, {37, 50}} {
		s.allAllowed(b, in[0], mem[100+in[0]:][:in[1]])
	}
	fill(mem, 1)
	for _, out := range [][2]int{{-1, 1}, {100, 1}, {0, 101}, {-1, 101}, {99, 2}, {-1, 2}, {1, 100}, {-100, 300}} {
		t.Logf("octets %d to %d of 100", out[0], out[0]+out[1]-1)
		s.noneAllowed(b, out[0], mem[100+out[0]:][:out[1]], noBounds)
	}
}

func noOctets(n *host) {
	t := n.t
	foreign := n.region(n.newPD(), verbs.RegionConfig{Memory: make([]byte, 8), Access: allRights})
	gone := n.register(8, allRights)
	require.NoError(t, gone.Deregister())
	invalid := must(n.pd.AllocateRegion(verbs.AllocateConfig{}))(t)
	bad := []verbs.TaggedBuffer{
		foreign.Buffer(), gone.Buffer(), invalid.Buffer(), {}, {STag: 0xFFFFFFFF, Base: 1<<64 - 1},
		{STag: n.mr.STag(), Base: n.mr.Base() - 5}, {STag: n.mr.STag() ^ 1, Base: n.mr.Base()},
		n.register(8, verbs.LocalWrite).Buffer(), n.register(8, verbs.LocalRead).Buffer(),
	}
	for _, c := range []verbs.QPConfig{{}, {SRQ: n.newSRQ(verbs.SRQConfig{})}} {
		s := n.probe(c)
		qp := s.qp
		for _, b := range bad {
			sge := b.SGE(0, 0)
			require.Equal(t, 8, len(s.gather(verbs.OpSend, []verbs.SGE{sge, n.mr.SGE(0, 8), sge}, verbs.StatusSuccess)))
			s.gather(verbs.OpSend, []verbs.SGE{sge}, verbs.StatusSuccess)
			s.gather(verbs.OpWrite, []verbs.SGE{sge}, verbs.StatusSuccess)
			s.scatter([]verbs.SGE{sge, n.mr.SGE(0, 8), sge}, []byte("received"), verbs.StatusSuccess)
			s.write(b.Remote(0), nil, allowed)
			s.read(b.Remote(0), 0, allowed)
			s.sink(sge, nil, verbs.StatusSuccess, allowed)
		}
		require.Same(t, qp, s.qp, "the stream")
		s.disconnect()
	}
	// Also without rights on the queue pair for what the peer writes.
	s := n.probe(verbs.QPConfig{NoInboundWrite: true})
	s.write(verbs.Remote{STag: 0x00FACE01}, nil, allowed)
	s.sink(verbs.SGE{STag: 0x00FACE01}, nil, verbs.StatusSuccess, allowed)
	s.disconnect()
}

func regionAttributes(n *host, s *probe) {
	t, p := n.t, n.pages(3, 4096)
	const rights = verbs.LocalRead | verbs.LocalWrite | verbs.RemoteWrite | verbs.BindWindow
	tells := func(what string, mr *verbs.MR, want verbs.RegionAttributes) {
		got := queried(t, mr)
		require.GreaterOrEqual(t, got.PBL, want.PBL, "%s: the list size", what)
		want.PBL = got.PBL
		if !got.Valid {
			want.Access = got.Access // meaningless
			require.Equal(t, mr.STag().Index(), got.STag.Index(), what)
			want.STag = got.STag
		}
		require.Equal(t, want, got, what)
	}
	pd := n.newPD()
	there := n.probe(verbs.QPConfig{PD: pd, Privileged: true})
	mr := must(pd.AllocateRegion(verbs.AllocateConfig{PBL: 5, RemoteAccess: true, RemoteInvalidate: true}))(t)
	tells("allocated", mr, verbs.RegionAttributes{PD: pd.ID(), RemoteAccess: true, PBL: 5, RemoteInvalidate: true})
	there.runs(fastRegister(mr.WithKey(7), p.List(100, 5000), 0x7000+100, rights), verbs.StatusSuccess)
	want := verbs.RegionAttributes{
		STag: mr.WithKey(7), Valid: true, PD: pd.ID(), RemoteAccess: true, PBL: 5, RemoteInvalidate: true,
		Access: rights, Base: 0x7000 + 100, Length: 5000,
	}
	tells("fast-registered", mr, want)
	mw := must(pd.AllocateWindow())(t)
	there.runs(binds(&verbs.BindRequest{Window: mw.STag(1), Region: mr.WithKey(7), VA: 0x7000 + 100, Length: 8, Access: verbs.RemoteRead}), verbs.StatusSuccess)
	want.Windows = 1
	tells("with a window", mr, want)
	there.invalidate(invalidations[0], mw.STag(1), invalidates)
	there.invalidate(invalidations[0], mr.WithKey(7), invalidates)
	tells("invalidated", mr, verbs.RegionAttributes{PD: pd.ID(), RemoteAccess: true, PBL: 5, RemoteInvalidate: true})
	there.disconnect()

	mr = n.region(n.pd, verbs.RegionConfig{Buffers: p.List(0, 3*4096), Access: verbs.LocalWrite, ZeroBased: true, Key: 0xFE, QP: s.qp})
	want = verbs.RegionAttributes{
		STag: mr.WithKey(0xFE), Valid: true, PD: n.pd.ID(), PBL: 3, Access: verbs.LocalWrite,
		Addressing: verbs.ZeroBased, Length: 3 * 4096, QP: s.qp.ID(), RemoteInvalidate: true,
	}
	tells("registered", mr, want)
	shared := must(mr.RegisterShared(pd, verbs.SharedConfig{Access: verbs.LocalRead, RemoteAccess: true, ZeroBased: true, Key: 3}))(t)
	want.Shared = true
	tells("shared", mr, want)
	tells("shared with it", shared, verbs.RegionAttributes{
		STag: shared.WithKey(3), Valid: true, Shared: true, PD: pd.ID(), RemoteAccess: true, PBL: 3, Access: verbs.LocalRead,
		Addressing: verbs.ZeroBased, Length: 3 * 4096,
	})
	require.NoError(t, mr.Deregister())
	require.ErrorIs(t, second(mr.Query()), verbs.ErrInvalidSTag)
	closed := newHost(t, hostConfig{})
	require.NoError(t, closed.nic.Close())
	require.ErrorIs(t, second(closed.mr.Query()), verbs.ErrInvalidRNIC)
}

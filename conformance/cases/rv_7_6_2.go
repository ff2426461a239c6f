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
	apiCase("7.6.2/page-lists", staged(pageLists), "RV-7.6.2-M1", "RV-7.6.2.1-M1"),
	apiCase("7.6.2/modes", physicalModes, "RV-7.6.2-M2", "RV-7.6.2-M3"),
	apiCase("7.6.2.1/page-addresses", staged(pageAddresses), "RV-7.6.2.1-M2", "RV-7.6.2.1-M3"),
	apiCase("7.6.2.2/block-lists", blockLists, "RV-7.6.2.2-M1", "RV-7.6.2.2-M2"),
	apiCase("7.6.2.2/va-and-fbo", blockVA, "RV-7.6.2.2-M3"),
}

func pageLists(n *node) {
	t, s, sizes := n.t, n.seat(privileged), queried(n.t, n.nic).PageSizes
	require.NotEmpty(t, sizes)
	fast := n.allocated()
	for _, size := range sizes {
		require.Equal(t, uint64(0), size&(size-1), "page size %d", size)
		if size > 64<<10 {
			// Too much to use: that the size is right is told by what is wrong.
			list := verbs.PhysicalBuffers{Size: size, Addresses: []uint64{size}, Length: 1}
			require.ErrorIs(t, second(n.pd.RegisterRegion(verbs.RegionConfig{Buffers: list, Access: allRights, VA: size})), verbs.ErrInvalidPhysBufferEntry)
			s.does(fastRegister(fast.WithKey(1), list, size, allRights), verbs.StatusInvalidPhysBufferEntry)
			continue
		}
		p := n.pages(3, size)
		list := verbs.PhysicalBuffers{Size: size, Addresses: []uint64{p.Address(2), p.Address(0), p.Address(1)}, FBO: size - 10, Length: size + 20}
		mr := n.region(n.pd, verbs.RegionConfig{Buffers: list, Access: allRights, VA: size - 10})
		sent := fill(make([]byte, 30), 1)
		s.write(mr.Remote(0), sent, taken) // the end of page 2, the beginning of page 0
		require.Equal(t, sent[:10], p.Bytes()[3*size-10:], "pages of %d", size)
		require.Equal(t, sent[10:], p.Bytes()[:20], "pages of %d", size)
		s.write(mr.Remote(int(size)), sent[:20], taken) // the end of page 0, the beginning of page 1
		require.Equal(t, sent[:20], p.Bytes()[size-10:size+10], "pages of %d", size)
	}
	for _, size := range []uint64{0, 1, 3000, 4097, 4096 + 8192, 1<<31 + 4096} {
		list := verbs.PhysicalBuffers{Size: size, Addresses: []uint64{1 << 32}, Length: 1}
		require.ErrorIs(t, second(n.pd.RegisterRegion(verbs.RegionConfig{Buffers: list, Access: allRights, VA: 4096})), verbs.ErrInvalidPhysBufferSize, "pages of %d", size)
		require.ErrorIs(t, n.register(8, allRights).Reregister(nil, verbs.RegionConfig{Buffers: list, Access: allRights, VA: 4096}), verbs.ErrInvalidPhysBufferSize)
		s.does(fastRegister(fast.WithKey(1), list, 4096, allRights), verbs.StatusInvalidPageSize)
	}
	s.leave()
}

func pageAddresses(n *node) {
	t, s, p, big := n.t, n.seat(privileged), n.pages(5, 4096), n.pages(2, 8192)
	bad := func(list verbs.PhysicalBuffers, what string) {
		c := verbs.RegionConfig{Buffers: list, Access: allRights, VA: 8192}
		require.ErrorIs(t, second(n.pd.RegisterRegion(c)), verbs.ErrInvalidPhysBufferEntry, "Register, %s", what)
		require.ErrorIs(t, n.register(8, allRights).Reregister(nil, c), verbs.ErrInvalidPhysBufferEntry, "Reregister, %s", what)
		mr := n.allocated()
		s.does(fastRegister(mr.WithKey(1), list, 8192, allRights), verbs.StatusInvalidPhysBufferEntry)
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
	s.leave()
}

func physicalModes(t *conformance.T) {
	// Side by side, each with its kind of list.
	page := newNode(t, nodeConfig{RNIC: verbs.Config{Mode: verbs.PageMode}})
	block := newNode(t, nodeConfig{RNIC: verbs.Config{Mode: verbs.BlockMode}})
	for i, n := range []*node{page, block} {
		a := queried(t, n.nic)
		require.True(t, a.Features.Has(verbs.FeatureBlockMode), "block lists are offered")
		s := n.seat(verbs.QPConfig{})
		size := []uint64{4096, 1000}[i]
		p := n.pages(3, size)
		mr := n.region(n.pd, verbs.RegionConfig{Buffers: p.List(10, int(size)+50), Access: allRights, VA: 7*size + 10})
		s.opens(mr.Buffer(), int(size)-20, p.Bytes()[size-10:size+30])
		s.leave()
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
	n := newNode(t, nodeConfig{RNIC: verbs.Config{Mode: verbs.BlockMode}})
	s, p := n.seat(privileged), n.pages(1, 20_000)
	at := p.Address(0)
	// Blocks of 1000, odd and out of order.
	list := verbs.PhysicalBuffers{Size: 1000, Addresses: []uint64{at + 7001, at + 13, at + 4096}, FBO: 900, Length: 1500}
	mr, fast := n.region(n.pd, verbs.RegionConfig{Buffers: list, Access: allRights, VA: 5900}), n.allocated()
	r := fastRegister(fast.WithKey(1), list, 5900, allRights)
	s.does(r, verbs.StatusSuccess)
	for i, b := range []verbs.TaggedBuffer{mr.Buffer(), verbs.FastRegisterBuffer(r.FastRegister)} {
		clear(p.Bytes())
		sent := fill(make([]byte, 1500), i)
		s.write(b.Remote(0), sent, taken)
		want := make([]byte, 20_000)
		copy(want[7901:8001], sent)
		copy(want[13:1013], sent[100:])
		copy(want[4096:4496], sent[1100:])
		require.True(t, bytes.Equal(want, p.Bytes()), "where the octets are")
		require.Equal(t, sent, s.read(b.Remote(0), 1500, taken))
		s.write(b.Remote(1500), []byte{1}, noBounds.write)
	}
	s.leave()
	n.quiet()
}

func blockVA(t *conformance.T) {
	n := newNode(t, nodeConfig{RNIC: verbs.Config{Mode: verbs.BlockMode}})
	s, p, fast := n.seat(privileged), n.pages(2, 1000), n.allocated()
	list := p.List(42, 500)
	for _, va := range []uint64{5041, 5043, 5000, 4096 + 42, 42 + 500} {
		c := verbs.RegionConfig{Buffers: list, Access: allRights, VA: va}
		require.ErrorIs(t, second(n.pd.RegisterRegion(c)), verbs.ErrInvalidVA, "VA %d", va)
		require.ErrorIs(t, n.register(8, allRights).Reregister(nil, c), verbs.ErrInvalidVA)
		s.does(fastRegister(fast.WithKey(1), list, va, allRights), verbs.StatusInvalidVA)
	}
	for _, va := range []uint64{42, 5042, 1_000_000_042} {
		c := verbs.RegionConfig{Buffers: list, Access: allRights, VA: va}
		s.opens(n.region(n.pd, c).Buffer(), 0, p.Bytes()[42:542])
		require.NoError(t, n.register(8, allRights).Reregister(nil, c))
		s.does(fastRegister(fast.WithKey(1), list, va, allRights), verbs.StatusSuccess)
		s.invalidate(ways[0], fast.WithKey(1), invalidates)
	}
	s.leave()
	n.quiet()
}

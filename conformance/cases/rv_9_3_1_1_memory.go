package cases

import (
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// rv9_3_1_1_memory is the values that modifiers of Bind and Fast-Register can have:
// verbs draft 9.3.1.1.
var rv9_3_1_1_memory = []conformance.Case{
	apiCase("9.3.1.1/bind-addressing", staged(postBindAddressing), "RV-9.3.1.1-M5"),
	apiCase("9.3.1.1/page-size", staged(postPageSize), "RV-9.3.1.1-M6"),
	apiCase("9.3.1.1/block-size", postBlockSize, "RV-9.3.1.1-M7"),
	apiCase("9.3.1.1/fast-register-addressing", staged(postFastAddressing), "RV-9.3.1.1-M9"),
	apiCase("9.3.1.1/remote-access-flag", staged(postRemoteAccess), "RV-9.3.1.1-M10", "RV-9.3.1.1-M11"),
}

// posted says that PostSQ refuses a request, which nothing comes of.
func (s *seat) posted(req verbs.Request, want error) {
	s.sit()
	k, err := s.qp.PostSend(req)
	require.ErrorIs(s.n.t, err, want)
	require.Zero(s.n.t, k)
	empty(s.n.t, s.n.cq)
	require.Equal(s.n.t, verbs.StateRTS, s.qp.State())
}

func postBindAddressing(n *node) {
	t, s, mem := n.t, n.seat(verbs.QPConfig{}), n.mr.Bytes()
	for a, base := range map[verbs.Addressing]uint64{verbs.VABased: n.mr.Base() + 100, verbs.ZeroBased: 0} {
		mw := n.newMW()
		b := mw.BindRequest(n.mr, 100, 50, remoteRights, 1)
		b.Addressing = a
		s.does(binds(b), verbs.StatusSuccess)
		require.Equal(t, a, queried(t, mw).Addressing)
		at := func(off uint64) verbs.Remote { return verbs.Remote{STag: b.Window, TO: base + off} }
		clear(mem)
		s.write(at(0), []byte{1}, taken)
		s.write(at(49), []byte{2}, taken)
		require.Equal(t, []byte{0, 1, 0}, mem[99:102], "%v", a)
		require.Equal(t, []byte{0, 2, 0}, mem[148:151], "%v", a)
		s.write(at(50), []byte{3}, noBounds.write)
		require.NoError(t, mw.Deallocate())
		for _, none := range []verbs.Addressing{2, 255} {
			b.Addressing = none
			s.posted(binds(b), verbs.ErrInvalidModifier)
		}
	}
	s.leave()
}

func postPageSize(n *node) {
	t, s, p := n.t, n.seat(privileged), n.pages(1, 1<<20)
	sizes := queried(t, n.nic).PageSizes
	require.NotEmpty(t, sizes)
	for _, size := range sizes {
		require.Zero(t, size&(size-1), "a power of two: %d", size)
		mr := n.allocated()
		list := verbs.PhysicalBuffers{Size: size, Addresses: []uint64{p.Address(0)}, Length: 64}
		want := verbs.StatusSuccess
		if size > 1<<20 { // there is no such page, but the size is good
			list.Addresses[0], want = 1<<50, verbs.StatusInvalidPhysBufferEntry
		}
		s.does(fastRegister(mr.WithKey(1), list, 0, allRights), want)
	}
	for _, size := range []uint64{0, 1, sizes[0] / 2, 4097, 12288, 3 << 20, sizes[len(sizes)-1] * 2, 1<<64 - 1} {
		mr := n.allocated()
		list := verbs.PhysicalBuffers{Size: size, Addresses: []uint64{p.Address(0)}, Length: 64}
		s.does(fastRegister(mr.WithKey(1), list, 0, allRights), verbs.StatusInvalidPageSize)
		require.False(t, queried(t, mr).Valid, "size %d", size)
	}
	s.leave()
}

func postBlockSize(t *conformance.T) {
	n := newNode(t, nodeConfig{RNIC: verbs.Config{Mode: verbs.BlockMode}})
	s, p := n.seat(privileged), n.pages(1, 10_000)
	least, most := queried(t, n.nic).MinBlock, queried(t, n.nic).MaxBlock
	for size, want := range map[uint64]verbs.Status{
		least: verbs.StatusSuccess, 4097: verbs.StatusSuccess, 10_000: verbs.StatusSuccess,
		most:      verbs.StatusInvalidPhysBufferEntry, // there is no such block, but the size is good
		least - 1: verbs.StatusInvalidPhysBufferSize, most + 1: verbs.StatusInvalidPhysBufferSize,
		1<<64 - 1: verbs.StatusInvalidPhysBufferSize,
	} {
		mr := n.allocated()
		list := verbs.PhysicalBuffers{Size: size, Addresses: []uint64{p.Address(0)}, Length: 1}
		s.does(fastRegister(mr.WithKey(1), list, 0, allRights), want)
		require.Equal(t, want == verbs.StatusSuccess, queried(t, mr).Valid, "size %d", size)
	}
	s.leave()
	n.quiet()
}

func postFastAddressing(n *node) {
	t, s, p := n.t, n.seat(privileged), n.pages(2, 4096)
	mem := p.Bytes()[10:110]
	for _, va := range []uint64{0, 4096 + 10, 1<<40 + 10} { // 0 for zero-based
		mr := n.allocated()
		r := fastRegister(mr.WithKey(1), p.List(10, 100), va, allRights)
		s.does(r, verbs.StatusSuccess)
		q := queried(t, mr)
		require.Equal(t, va, q.Base)
		require.Equal(t, va == 0, q.Addressing == verbs.ZeroBased)
		s.opens(verbs.TaggedBuffer{STag: mr.WithKey(1), Base: va}, 0, mem)
		s.write(verbs.Remote{STag: mr.WithKey(1), TO: va + 100}, []byte{1}, noBounds.write)
	}
	mr := n.allocated()
	r := fastRegister(mr.WithKey(1), p.List(10, 100), 4096+11, allRights)
	s.does(r, verbs.StatusInvalidVA)
	r.FastRegister.VA = 0
	s.does(r, verbs.StatusInvalidVA)
	for _, none := range []verbs.Addressing{2, 255} {
		r.FastRegister.Addressing = none
		s.posted(r, verbs.ErrInvalidModifier)
	}
	require.False(t, queried(t, mr).Valid)
	s.leave()
}

// postRemoteAccess: with the flag the peer can do what the rights say; without it a
// Fast-Register cannot give such rights.
func postRemoteAccess(n *node) {
	t, s, p := n.t, n.seat(privileged), n.pages(1, 4096)
	for _, a := range []verbs.Access{
		verbs.LocalWrite | verbs.RemoteWrite, verbs.LocalRead | verbs.RemoteRead, allRights,
	} {
		for _, flag := range []bool{false, true} {
			mr := n.allocate(verbs.AllocateConfig{PBL: 8, RemoteAccess: flag})
			r := fastRegister(mr.WithKey(1), p.List(0, 64), 4096, a)
			if !flag {
				s.does(r, verbs.StatusInvalidAccessRights)
				require.False(t, queried(t, mr).Valid, "%v without the flag", a)
				continue
			}
			s.does(r, verbs.StatusSuccess)
			s.peers(verbs.FastRegisterBuffer(r.FastRegister), 0, p.Bytes()[:64], a, noRight)
		}
	}
	s.leave()
}

package cases

import (
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// rv7_6 is addressing: verbs draft 7.6.1, 7.4.3.
var rv7_6 = []conformance.Case{
	apiCase("7.4.3/overlap", onProbe(verbs.QPConfig{}, overlap), "RV-7.4.3-M1"),
	apiCase("7.6.1/base", onProbe(privileged, bases), "RV-7.3.1.1-M1", "RV-7.6.1-M1", "RV-7.6.1-M2", "RV-7.6.1.2-M1", "RV-7.6.1.2-M2", "PV-7.3.1.1-M1"),
	apiCase("7.6.1.1/to-of-64-bits", onProbe(verbs.QPConfig{}, to64), "RV-7.6.1.1-M1"),
	apiCase("7.6.1.1/alignment", onProbe(privileged, anyAlignment), "RV-7.6.1.1-M2"),
	apiCase("7.6.1.1/va-and-fbo", onProbe(privileged, vaAndFBO), "RV-7.6.1.1-M3", "RV-7.6.2.1-M4"),
}

func overlap(n *host, s *probe) {
	t, mem, p := n.t, make([]byte, 300), n.pages(3, 4096)
	lists := [][2]int{{0, 300}, {0, 300}, {100, 200}, {50, 100}, {299, 1}}
	indexes := map[uint32]bool{}
	for _, over := range []struct {
		mem    []byte // what is at offset 0
		region func(off, k int) *verbs.MR
	}{
		{mem, func(off, k int) *verbs.MR {
			return n.region(n.pd, verbs.RegionConfig{Memory: mem[off : off+k], Access: allRights})
		}},
		{p.Bytes()[4000:], func(off, k int) *verbs.MR { // across a page's end
			return n.region(n.pd, verbs.RegionConfig{Buffers: p.List(4000+off, k), Access: allRights, VA: 4096*5 + 4000 + uint64(off)})
		}},
	} {
		var regions []*verbs.MR
		for _, l := range lists {
			mr := over.region(l[0], l[1])
			require.False(t, indexes[mr.STag().Index()], "an index of its own")
			indexes[mr.STag().Index()] = true
			regions = append(regions, mr)
		}
		for i, mr := range regions {
			sent := fill(make([]byte, lists[i][1]), i+20)
			s.write(mr.Remote(0), sent, allowed)
			from := lists[i][0]
			all := s.read(regions[0].Remote(from), lists[i][1], allowed)
			require.Equal(t, sent, all, "what region %d was written, through the whole", i)
		}
		// The octet in all but one of them.
		s.write(regions[0].Remote(120), []byte{0xA7}, allowed)
		for i, at := range map[int]int{1: 120, 2: 20, 3: 70} {
			require.Equal(t, []byte{0xA7}, s.read(regions[i].Remote(at), 1, allowed), "region %d", i)
		}
		succeed(t, regions[1].Deregister, regions[2].Deregister)
		s.allAllowed(regions[3].Buffer(), 0, over.mem[50:150])
	}
}

// madeAt are regions over 500 octets from octet 100 of the first page on, made in
// each of the four ways with an addressing type; base is what VA-based ones get.
func (s *probe) madeAt(p *verbs.Pages, zero bool, base uint64) map[string]verbs.TaggedBuffer {
	n := s.host
	t := n.t
	if zero {
		base = 0
	}
	c := verbs.RegionConfig{Buffers: p.List(100, 500), Access: allRights, ZeroBased: zero, VA: base}
	registered, again, fast := n.region(n.pd, c), n.register(8, allRights), n.allocated()
	require.NoError(t, again.Reregister(nil, c))
	other := c // of the other addressing type
	if other.ZeroBased = !zero; zero {
		other.VA = 0x7000 + 100
	} else {
		other.VA = 0
	}
	shared := must(n.region(n.pd, other).RegisterShared(nil, verbs.SharedConfig{Access: allRights, ZeroBased: zero, VA: base}))(t)
	r := fastRegister(fast.WithKey(1), p.List(100, 500), 0x9000+100, allRights)
	addressing := verbs.VABased
	if zero {
		addressing = verbs.ZeroBased // the VA is not looked at
	} else {
		r.FastRegister.VA = base
	}
	r.FastRegister.Addressing = addressing
	s.runs(r, verbs.StatusSuccess)
	made := map[string]verbs.TaggedBuffer{"Fast-Register": {STag: r.FastRegister.STag, Base: base}}
	for what, mr := range map[string]*verbs.MR{"Register": registered, "Reregister": again, "Register Shared": shared, "Fast-Register": fast} {
		info := queried(t, mr)
		require.Equal(t, base, info.Base, "the base of %s", what)
		require.Equal(t, addressing, info.Addressing, what)
		if mr != fast {
			made[what] = verbs.TaggedBuffer{STag: mr.STag(), Base: base}
		}
	}
	return made
}

func bases(n *host, s *probe) {
	t, p := n.t, n.pages(1, 4096)
	const va = 0x12345000 + 100
	for _, zero := range []bool{false, true} {
		for what, b := range s.madeAt(p, zero, va) {
			t.Logf("by %s, zero-based %v", what, zero)
			// The first octet is octet 100 of the page, and nothing else changes.
			clear(p.Bytes())
			s.write(verbs.Remote{STag: b.STag, TO: b.Base}, []byte{1}, allowed)
			s.write(verbs.Remote{STag: b.STag, TO: b.Base + 250}, []byte{2}, allowed)
			s.write(verbs.Remote{STag: b.STag, TO: b.Base + 499}, []byte{3}, allowed)
			want := make([]byte, 4096)
			want[100], want[350], want[599] = 1, 2, 3
			require.Equal(t, want, p.Bytes())
			for _, off := range []int{0, 250, 490} {
				s.allAllowed(b, off, p.Bytes()[100+off:][:10])
			}
			s.noneAllowed(verbs.TaggedBuffer{STag: b.STag, Base: b.Base - 1}, 0, p.Bytes()[99:100], noBounds)
			s.noneAllowed(verbs.TaggedBuffer{STag: b.STag, Base: b.Base + 500}, 0, p.Bytes()[600:601], noBounds)
			other := uint64(va) // the base that it would have had
			if !zero {
				other = 0
			}
			s.noneAllowed(verbs.TaggedBuffer{STag: b.STag, Base: other}, 0, p.Bytes()[100:108], noBounds)
		}
	}
}

func to64(n *host, s *probe) {
	t, mem := n.t, make([]byte, 64)
	for _, va := range []uint64{1 << 32, 1<<32 + 0x1234, 0x89AB_CDEF_0123_4567, 1 << 63, 0xFFFF_FFFF_FFFF_F000 - 64} {
		mr := n.region(n.pd, verbs.RegionConfig{Memory: mem, Access: allRights, VA: va})
		require.Equal(t, va, queried(t, mr).Base)
		b := verbs.TaggedBuffer{STag: mr.STag(), Base: va}
		s.allAllowed(b, 0, mem)
		for _, wrong := range []uint64{va & 0xFFFF_FFFF, va &^ (1 << 63), va ^ 1<<40} {
			if wrong != va {
				s.noneAllowed(verbs.TaggedBuffer{STag: mr.STag(), Base: wrong}, 0, mem[:8], noBounds)
			}
		}
		// All of it is on the wire: of a Write, of a Read Request and its
		// answer.
		s.connect()
		run(t, s.qp, verbs.Request{ID: 1, Op: verbs.OpWrite, SGL: b.SGL(0, 8), Remote: verbs.Remote{STag: 0x00FACE01, TO: va}}, verbs.StatusSuccess)
		require.Equal(t, va, s.segment(opWrite).to, "an RDMA Write")
		post(t, s.qp, verbs.Request{ID: 2, Op: verbs.OpRead, Local: b.SGE(0, 0), Remote: verbs.Remote{STag: 0x00FACE01, TO: ^va}})
		g := s.segment(opReadRequest)
		h := must(parseRead(g.payload))(t)
		require.Equal(t, [2]uint64{va, ^va}, [2]uint64{h.sinkTO, h.to}, "an RDMA Read Request")
		s.send(aReadResponse(h.sinkSTag, h.sinkTO, nil))
		completes(t, n.cq, verbs.Completion{ID: 2, QP: s.qp.ID(), Op: verbs.OpRead})
		s.send(aReadRequest(s.nextRead(), read{0x00FACE01, va, 8, uint32(b.STag), va}))
		g = s.segment(opReadResponse)
		require.Equal(t, va, g.to, "an RDMA Read Response")
		require.Len(t, g.header, 14)
		require.NoError(t, s.qp.Drain(t.Context()))
	}
}

func anyAlignment(n *host, s *probe) {
	t, p := n.t, n.pages(3, 4096)
	fast, again := n.allocated(), n.register(1, allRights)
	for _, fbo := range []int{0, 1, 511, 4095} {
		for _, length := range []int{1, 333, 4096, 5001} {
			va := uint64(0x5000 + fbo)
			c := verbs.RegionConfig{Buffers: p.List(fbo, length), Access: allRights, VA: va}
			registered := n.region(n.pd, c)
			require.NoError(t, again.Reregister(nil, c))
			r := fastRegister(fast.WithKey(1), c.Buffers, va, allRights)
			s.runs(r, verbs.StatusSuccess)
			for i, b := range []verbs.TaggedBuffer{registered.Buffer(), again.Buffer(), verbs.FastRegisterBuffer(r.FastRegister)} {
				clear(p.Bytes())
				sent := fill(make([]byte, length), i+fbo)
				s.write(b.Remote(0), sent, allowed)
				want := make([]byte, 3*4096)
				copy(want[fbo:], sent)
				require.Equal(t, want, p.Bytes(), "FBO %d, %d octets", fbo, length)
			}
			b := verbs.FastRegisterBuffer(r.FastRegister)
			s.write(b.Remote(length), []byte{1}, noBounds.write)
			s.read(b.Remote(-1), 1, noBounds.read)
			s.invalidate(invalidations[0], b.STag, invalidates)
			require.NoError(t, registered.Deregister())
		}
	}
}

func vaAndFBO(n *host, s *probe) {
	t, p := n.t, n.pages(1, 4096)
	const fbo = 0x64
	existing := n.region(n.pd, verbs.RegionConfig{Buffers: p.List(fbo, 64), Access: allRights, VA: fbo})
	fast := n.allocated()
	for _, va := range []uint64{0x10000, 0x10000 + fbo - 1, 0x10000 + fbo + 1, 0x10000 + 4095, 1, fbo + 2048} {
		c := verbs.RegionConfig{Buffers: p.List(fbo, 64), Access: allRights, VA: va}
		require.ErrorIs(t, second(n.pd.RegisterRegion(c)), verbs.ErrInvalidVA, "Register at %#x", va)
		require.ErrorIs(t, n.register(8, allRights).Reregister(nil, c), verbs.ErrInvalidVA, "Reregister at %#x", va)
		require.ErrorIs(t, second(existing.RegisterShared(nil, verbs.SharedConfig{Access: allRights, VA: va})), verbs.ErrInvalidVA, "Register Shared at %#x", va)
		s.runs(fastRegister(fast.WithKey(1), c.Buffers, va, allRights), verbs.StatusInvalidVA)
		require.False(t, queried(t, fast).Valid)
	}
	for _, va := range []uint64{fbo, 0x10000 + fbo, 1<<50 + fbo} {
		c := verbs.RegionConfig{Buffers: p.List(fbo, 64), Access: allRights, VA: va}
		s.allAllowed(n.region(n.pd, c).Buffer(), 0, p.Bytes()[fbo:fbo+64])
		require.NoError(t, n.register(8, allRights).Reregister(nil, c))
		require.NoError(t, second(existing.RegisterShared(nil, verbs.SharedConfig{Access: allRights, VA: va})))
		s.runs(fastRegister(fast.WithKey(1), c.Buffers, va, allRights), verbs.StatusSuccess)
		s.invalidate(invalidations[0], fast.WithKey(1), invalidates)
	}
	for _, last := range []bool{false, true} { // octet 1<<64-1, behind which there is none (RFC 5041 7.1), is in it
		va := ^uint64(0) - either[uint64](last, 63, 64)
		c := verbs.RegionConfig{Buffers: p.List(int(va%4096), 64), Access: allRights, VA: va}
		mr, err := n.pd.RegisterRegion(c)
		if last {
			require.ErrorIs(t, err, verbs.ErrInvalidVA, "Register at %#x", va)
			s.runs(fastRegister(fast.WithKey(1), c.Buffers, va, allRights), verbs.StatusInvalidVA)
			continue
		}
		require.NoError(t, err, "Register at %#x", va)
		s.allAllowed(mr.Buffer(), 0, p.Bytes()[va%4096:][:64])
	}
}

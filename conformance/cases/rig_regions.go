package cases

import (
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// Descriptions of regions that are refused, and regions that are allocated only.

// validRights are the combinations of rights that a region may have.
var validRights = []verbs.Access{
	verbs.LocalRead,
	verbs.LocalRead | verbs.RemoteRead,
	verbs.LocalWrite,
	verbs.LocalWrite | verbs.RemoteWrite,
	verbs.LocalRead | verbs.LocalWrite,
	verbs.LocalRead | verbs.LocalWrite | verbs.RemoteRead,
	verbs.LocalRead | verbs.LocalWrite | verbs.RemoteWrite,
	allRights,
}

// misregistration is a region that cannot be registered.
type misregistration struct {
	name   string
	want   error
	config verbs.RegionConfig
}

// misregistrations are one of each kind over memory mem, and pages of 4096 octets, of
// which there are two.
func misregistrations(mem []byte, p *verbs.Pages) []misregistration {
	list := func(change func(*verbs.PhysicalBuffers)) verbs.RegionConfig {
		b := p.List(100, 5000)
		change(&b)
		return verbs.RegionConfig{Buffers: b, Access: allRights, VA: 0x7000 + 100}
	}
	good := func(*verbs.PhysicalBuffers) {}
	va := func(c verbs.RegionConfig, va uint64) verbs.RegionConfig { c.VA = va; return c }
	return []misregistration{
		{"no right", verbs.ErrInvalidAccess, verbs.RegionConfig{Memory: mem}},
		{"remote read alone", verbs.ErrInvalidAccess, verbs.RegionConfig{Memory: mem, Access: verbs.LocalWrite | verbs.RemoteRead}},
		{"remote write alone", verbs.ErrInvalidAccess, verbs.RegionConfig{Memory: mem, Access: verbs.LocalRead | verbs.RemoteWrite}},
		{"no memory", verbs.ErrInvalidLength, verbs.RegionConfig{Access: allRights}},
		{"no octet", verbs.ErrInvalidLength, verbs.RegionConfig{Memory: mem[:0], Access: allRights}},
		{"VA too high", verbs.ErrInvalidVA, verbs.RegionConfig{Memory: mem, Access: allRights, VA: -uint64(len(mem)) + 1}},
		{"VA without the FBO", verbs.ErrInvalidVA, va(list(good), 0x7000)},
		{"no VA", verbs.ErrInvalidVA, va(list(good), 0)},
		{"FBO behind the first buffer", verbs.ErrInvalidFBO, list(func(b *verbs.PhysicalBuffers) { b.FBO = 4096 + 100 })},
		{"longer than the buffers", verbs.ErrInvalidLength, list(func(b *verbs.PhysicalBuffers) { b.Length = 2*4096 - 99 })},
		{"length zero", verbs.ErrInvalidLength, list(func(b *verbs.PhysicalBuffers) { b.Length = 0 })},
		{"page size", verbs.ErrInvalidPhysBufferSize, list(func(b *verbs.PhysicalBuffers) { b.Size = 4097 })},
		{"page address", verbs.ErrInvalidPhysBufferEntry, list(func(b *verbs.PhysicalBuffers) { b.Addresses[1]++ })},
		{"no such page", verbs.ErrInvalidPhysBufferEntry, list(func(b *verbs.PhysicalBuffers) { b.Addresses[1] += 1 << 20 })},
	}
}

// flagged says that a region's Remote Access Flag is so: what Fast-Register may
// make of its STag, which is Invalid.
func (s *seat) flagged(mr *verbs.MR, p *verbs.Pages, flag bool) {
	t, mem := s.n.t, p.Bytes()[10:30]
	const local = verbs.LocalRead | verbs.LocalWrite
	for i, a := range []verbs.Access{verbs.RemoteRead, verbs.RemoteWrite, remoteRights} {
		key := uint8(i + 1)
		r := fastRegister(mr.WithKey(key), p.List(0, 64), 4096, local|a)
		b := verbs.FastRegisterBuffer(r.FastRegister)
		if !flag {
			s.does(r, verbs.StatusInvalidAccessRights)
			require.False(t, queried(t, mr).Valid, "with %v, after a refused Fast-Register", a)
			s.peers(b, 10, mem, 0, noSTag)
			continue
		}
		s.does(r, verbs.StatusSuccess)
		require.Equal(t, local|a, queried(t, mr).Access, "Query")
		s.peers(b, 10, mem, a, noRight)
		s.invalidate(ways[0], b.STag, invalidates)
	}
	// Local rights alone it always may have; they do not let the peer in.
	r := fastRegister(mr.WithKey(7), p.List(0, 64), 4096, local)
	s.does(r, verbs.StatusSuccess)
	s.judged(verbs.FastRegisterBuffer(r.FastRegister), 10, mem, local, noRight)
	s.invalidate(ways[0], r.FastRegister.STag, invalidates)
}

// allocated is an STag that may have remote rights, with room for eight pages.
func (n *node) allocated() *verbs.MR {
	return must(n.pd.AllocateRegion(verbs.AllocateConfig{PBL: 8, RemoteAccess: true, RemoteInvalidate: true}))(n.t)
}

// allocate is Allocate Non-Shared Memory Region STag, in the node's PD.
func (n *node) allocate(c verbs.AllocateConfig) *verbs.MR {
	return must(n.pd.AllocateRegion(c))(n.t, "Allocate STag")
}

// refusedRegion is a description that RI-Register and RI-Reregister refuse.
type refusedRegion struct {
	name string
	want error
	c    verbs.RegionConfig
}

// refusedRegions need an RNIC in page mode with at most 16 entries of a buffer list.
func (n *node) refusedRegions() []refusedRegion {
	memory := make([]byte, 16)
	pages := func(change func(*verbs.RegionConfig)) verbs.RegionConfig {
		b := n.pages(4, 4096).List(0, 4*4096)
		b.Addresses = slices.Clone(b.Addresses)
		c := verbs.RegionConfig{Buffers: b, Access: verbs.LocalRead, VA: 1 << 20}
		change(&c)
		return c
	}
	return []refusedRegion{
		{"VA beyond 64 bits", verbs.ErrInvalidVA, verbs.RegionConfig{Memory: memory, Access: allRights, VA: 1<<64 - 15}},
		{"VA that is not of this FBO", verbs.ErrInvalidVA, pages(func(c *verbs.RegionConfig) { c.VA += 8 })},
		{"a VA of a zero-based region", verbs.ErrInvalidVA, verbs.RegionConfig{Memory: memory, Access: allRights, VA: 4096, ZeroBased: true}},
		{"no memory", verbs.ErrInvalidLength, verbs.RegionConfig{Access: allRights}},
		{"longer than its buffers", verbs.ErrInvalidLength, pages(func(c *verbs.RegionConfig) { c.Buffers.Length++ })},
		{"length 0", verbs.ErrInvalidLength, pages(func(c *verbs.RegionConfig) { c.Buffers.Length = 0 })},
		{"FBO behind the first buffer", verbs.ErrInvalidFBO, pages(func(c *verbs.RegionConfig) { c.Buffers.FBO = 4096 })},
		{"no rights", verbs.ErrInvalidAccess, verbs.RegionConfig{Memory: memory}},
		{"remote read without local", verbs.ErrInvalidAccess, verbs.RegionConfig{Memory: memory, Access: verbs.RemoteRead | verbs.LocalWrite}},
		{"remote write without local", verbs.ErrInvalidAccess, verbs.RegionConfig{Memory: memory, Access: verbs.RemoteWrite | verbs.LocalRead}},
		{"a page that is not aligned", verbs.ErrInvalidPhysBufferEntry, pages(func(c *verbs.RegionConfig) { c.Buffers.Addresses[2]++ })},
		{"a page that is nobody's", verbs.ErrInvalidPhysBufferEntry, pages(func(c *verbs.RegionConfig) { c.Buffers.Addresses[1] = 1 << 50 })},
		{"pages of 12288", verbs.ErrInvalidPhysBufferSize, pages(func(c *verbs.RegionConfig) { c.Buffers.Size = 12288 })},
	}
}

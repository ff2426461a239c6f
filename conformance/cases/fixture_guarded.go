package cases

import (
	"bytes"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// guardedMemory is memory of which each octet is watched: regions lie in it with a page of guard
// before and behind them. No octet of it is 0, and each is below 0x80; those of payload are
// not.
type guardedMemory struct {
	test              *conformance.T
	first, want, have []byte
	next              int // where the next plot's guard begins
	regions           []*guardedRegion
	undo              []func() error // takes back what was made with the regions
}

const guard = 4096

func newGuardedMemory(t *conformance.T) *guardedMemory {
	g := &guardedMemory{test: t, have: make([]byte, 1<<20)}
	for i := range g.have {
		g.have[i] = byte(i*31+i>>8*17)&0x7F | 1
	}
	g.first, g.want = bytes.Clone(g.have), bytes.Clone(g.have)
	return g
}

// payload is n octets that no guarded memory has, different from seed to seed.
func payload(seed, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*13+i>>8*7+seed) | 0x80
	}
	return b
}

// guardedRegion is a region in guarded memory.
type guardedRegion struct {
	*verbs.MR
	g    *guardedMemory
	off  int // in the guarded memory
	gone bool
}

// give takes the region away, now or with all others.
func (p *guardedRegion) give() error {
	if p.gone {
		return nil
	}
	p.gone = true
	return p.Deregister()
}

// piece takes n octets that have a page of guard on either side.
func (g *guardedMemory) piece(n int) (off int, memory []byte) {
	off = g.next + guard
	g.next = off + n
	require.Less(g.test, g.next+guard, len(g.have), "the ground is too small")
	return off, g.have[off : off+n : off+n]
}

// at is the TO of an octet of the region, or of its guard.
func (p *guardedRegion) at(off int) uint64 { return p.Base() + uint64(off) }
func (p *guardedRegion) tag() uint32       { return uint32(p.STag()) }
func (p *guardedRegion) sge(off, n int) verbs.SGE {
	return verbs.SGE{STag: p.STag(), TO: p.at(off), Length: uint32(n)}
}
func (p *guardedRegion) sgl(off, n int) []verbs.SGE { return []verbs.SGE{p.sge(off, n)} }

// deregister takes the region away. What it holds then is what it has to hold from there on.
func (p *guardedRegion) deregister() {
	require.NoError(p.g.test, p.give())
	copy(p.g.want[p.off:p.off+p.Len()], p.g.have[p.off:])
}

// gets says that octets belong into the region from off on.
func (p *guardedRegion) gets(off int, octets []byte) { copy(p.g.want[p.off+off:], octets) }

// unchanged says that no octet has changed but those that something has got.
func (g *guardedMemory) unchanged() {
	end := g.next + guard
	if bytes.Equal(g.have[:end], g.want[:end]) {
		return
	}
	for i := range end {
		if g.have[i] == g.want[i] {
			continue
		}
		k := 0
		for k+1 < len(g.regions) && g.regions[k+1].off-guard <= i {
			k++
		}
		last := min(i+16, end)
		g.test.Fatalf("octet %d of region %d: there is % x, not % x", i-g.regions[k].off, k, g.have[i:last], g.want[i:last])
	}
}

// clear takes back all regions and what was made of them, last one first.
func (g *guardedMemory) clear() {
	for i := len(g.undo) - 1; i >= 0; i-- {
		require.NoError(g.test, g.undo[i]())
	}
	end := g.next + guard
	copy(g.have, g.first[:end])
	copy(g.want, g.first[:end])
	g.next, g.regions, g.undo = 0, g.regions[:0], g.undo[:0]
}

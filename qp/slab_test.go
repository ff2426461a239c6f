package qp

import (
	"bytes"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/stag"
	"github.com/softrnic/softrnic/wr"
)

// The memory of a rig.

// slab is a region between two canaries, and what it should hold.
type slab struct {
	stag wr.STag
	base uint64
	size int
	all  []byte
	want []byte
	free bool // a peer may have written anything
}

const (
	guard    = 256
	slabSize = 4096
)

func (r *rig) newSlab(c stag.RegionConfig) *slab {
	s := &slab{size: slabSize, all: bytes.Repeat([]byte{0xC5}, slabSize+2*guard)}
	c.Memory, c.VA = s.mem(), uint64(c.Key)<<16
	for i := range c.Memory {
		c.Memory[i] = byte(i*7 + int(c.Key))
	}
	s.want = bytes.Clone(s.all)
	reg, err := r.tab.Register(c)
	require.NoError(r.t, err)
	s.stag, s.base = reg.STag, reg.Base
	r.slabs = append(r.slabs, s)
	return s
}

func (s *slab) mem() []byte { return s.all[guard : guard+s.size : guard+s.size] }

// at is the tagged offset of octet off.
func (s *slab) at(off int) uint64 { return s.base + uint64(off) }

func (s *slab) sge(off, n int) wr.SGE {
	return wr.SGE{STag: s.stag, TO: s.at(off), Length: uint32(n)}
}

func (s *slab) sgl(off, n int) []wr.SGE { return []wr.SGE{s.sge(off, n)} }

// bindWindow binds a window to octets 100 to 199 of windowed.
func (r *rig) bindWindow(qp wr.QPID, access wr.Access, how wr.Addressing) wr.STag {
	r.t.Helper()
	s, err := r.tab.AllocateWindow(ownPD)
	require.NoError(r.t, err)
	b := wr.BindRequest{
		Window: s | 0x77, Region: r.windowed.stag, VA: r.windowed.at(100), Length: 100, Addressing: how, Access: access,
	}
	// Counted apart: it does not keep the queue pair from being destroyed.
	require.Equal(r.t, stag.OK, r.tab.Bind(&b, stag.User{PD: ownPD, QP: qp, Windows: new(stag.Windows)}))
	return b.Window
}

// expect says that b is to be found at off from now on.
func (s *slab) expect(off int, b []byte) { copy(s.want[guard+off:], b) }

// requireMemory checks every octet of every region, and around them.
func (r *rig) requireMemory() {
	r.t.Helper()
	for i, s := range r.slabs {
		if s.free {
			copy(s.want[guard:], s.mem())
		}
		if !bytes.Equal(s.want, s.all) {
			for j := range s.all {
				require.Equal(r.t, s.want[j], s.all[j], "octet %d of region %d (%d octets)", j-guard, i, s.size)
			}
		}
	}
}

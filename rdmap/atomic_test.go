package rdmap

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
)

// applied is RFC 7306 5.1.1 and 5.1.2 bit by bit.
func applied(h AtomicRequestHeader, old uint64) uint64 {
	if h.Op == CmpSwap {
		for bit := range 64 {
			if at := uint64(1) << bit; h.CompareMask&at != 0 && h.Compare&at != old&at {
				return old
			}
		}
		out := uint64(0)
		for bit := range 64 {
			from := old
			if h.Mask>>bit&1 == 1 {
				from = h.Data
			}
			out |= from & (1 << bit)
		}
		return out
	}
	out, carry := uint64(0), uint64(0)
	for bit := range 64 {
		sum := old>>bit&1 + h.Data>>bit&1 + carry
		out |= sum & 1 << bit
		carry = sum >> 1
		if h.Mask>>bit&1 == 1 {
			carry = 0
		}
	}
	return out
}

func TestAtomicApply(t *testing.T) {
	for _, c := range []struct {
		h         AtomicRequestHeader
		old, want uint64
	}{
		{AtomicRequestHeader{Data: 1}, 41, 42},
		{AtomicRequestHeader{Data: 1}, ^uint64(0), 0},
		{AtomicRequestHeader{Data: 0x01_01, Mask: 0x80}, 0xFF_FF, 0x01_00_00},
		{AtomicRequestHeader{Data: 0x01_01, Mask: 0x80_80}, 0xFF_FF, 0},
		{AtomicRequestHeader{Data: 1 << 63, Mask: 1 << 63}, 1<<63 | 5, 5},
		{AtomicRequestHeader{Op: CmpSwap, Data: 7, Mask: ^uint64(0), Compare: 5, CompareMask: ^uint64(0)}, 5, 7},
		{AtomicRequestHeader{Op: CmpSwap, Data: 7, Mask: ^uint64(0), Compare: 5, CompareMask: ^uint64(0)}, 4, 4},
		{AtomicRequestHeader{Op: CmpSwap, Data: 7, Mask: ^uint64(0), Compare: 5}, 4, 7},
		{AtomicRequestHeader{Op: CmpSwap, Data: 0xAB, Mask: 0xF0, Compare: 0xF4, CompareMask: 0x0F}, 0x1234, 0x12A4},
		{AtomicRequestHeader{Op: CmpSwap, Data: 0xAB}, 0x1234, 0x1234},
	} {
		assert.Equal(t, c.want, c.h.Apply(c.old), "%+v to %#x", c.h, c.old)
		assert.Equal(t, c.want, applied(c.h, c.old), "the model")
	}
	assert.True(t, FetchAdd.Known() && CmpSwap.Known())
	for o := AtomicOpcode(0); o < 16; o++ {
		assert.Equal(t, o == 0 || o == 2, o.Known(), "%d", o)
	}
}

// FuzzAtomicApply compares with the model.
func FuzzAtomicApply(f *testing.F) {
	rng := rand.New(rand.NewPCG(7, 3))
	for range 50 {
		f.Add(rng.Uint32()%2 == 0, rng.Uint64(), rng.Uint64(), rng.Uint64()&rng.Uint64(), rng.Uint64(), rng.Uint64()&rng.Uint64()&rng.Uint64())
	}
	f.Fuzz(func(t *testing.T, swap bool, old, data, mask, compare, compareMask uint64) {
		h := AtomicRequestHeader{Data: data, Mask: mask, Compare: compare, CompareMask: compareMask}
		if swap {
			h.Op = CmpSwap
		}
		if got, want := h.Apply(old), applied(h, old); got != want {
			t.Fatalf("%+v to %#x: %#x, want %#x", h, old, got, want)
		}
	})
}

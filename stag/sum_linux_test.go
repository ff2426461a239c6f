package stag

import (
	"hash/crc32"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/safecopy"
	"github.com/softrnic/softrnic/wr"
)

// TestSumHeld: each kind of memory is copied as CopyHeld does it, and the CRC is that of the copy, behind
// what came before.
func TestSumHeld(t *testing.T) {
	tb := NewTable(Config{})
	mem := pattern(make([]byte, 3*page))
	p := pages(t, tb, 4, page)
	pattern(p.Bytes())
	var foreign atomic.Int32 // as if handlers were not Go's: the system copies
	safecopy.Heed(&foreign)
	defer foreign.Store(0)
	for name, c := range map[string]RegionConfig{
		"in one piece":  {Memory: mem, Addressing: wr.ZeroBased},
		"may vanish":    {Memory: mem, Addressing: wr.ZeroBased, MayVanish: true},
		"by the system": {Memory: mem, Addressing: wr.ZeroBased, MayVanish: true},
		"in three pieces": {Buffers: wr.PhysicalBuffers{
			Size: page, Addresses: []uint64{p.Address(2), p.Address(0), p.Address(3)}, Length: 3 * page,
		}, Addressing: wr.ZeroBased},
	} {
		t.Run(name, func(t *testing.T) {
			foreign.Store(0)
			if name == "by the system" {
				foreign.Store(1)
			}
			r := register(t, tb, c)
			ref := resolve(t, tb, r.STag, 7, r.Length-7)
			require.True(t, ref.Hold())
			defer ref.Release()
			for _, n := range []int{0, 1, 255, 256, page, int(r.Length) - 7 - 5} {
				want, got := make([]byte, n), make([]byte, n)
				require.True(t, ref.CopyHeld(want, 5))
				for _, sum := range []func(uint32, []byte, uint64) (uint32, bool){ref.SumHeld, ref.SumHeldForPeer} {
					clear(got)
					crc, ok := sum(77, got, 5)
					require.True(t, ok)
					assert.Equal(t, want, got)
					assert.Equal(t, crc32.Update(77, crc32.MakeTable(crc32.Castagnoli), want), crc, "%d octets", n)
				}
			}
			_, ok := ref.SumHeld(77, make([]byte, r.Length-7), 5)
			assert.False(t, ok, "beyond the end")
		})
	}
}

// TestSumHeldRefuses: memory that has vanished, whoever copies, and memory that is revoked.
func TestSumHeldRefuses(t *testing.T) {
	tb := NewTable(Config{})
	mem, middle := mapped(t, 3)
	r := register(t, tb, RegionConfig{Memory: mem, Addressing: wr.ZeroBased, MayVanish: true})
	all := resolve(t, tb, r.STag, 0, 3*page)
	require.NoError(t, syscall.Mprotect(middle, syscall.PROT_NONE))
	buf := make([]byte, 3*page)
	var foreign atomic.Int32
	safecopy.Heed(&foreign)
	defer foreign.Store(0)
	for range 2 {
		require.True(t, all.Hold())
		_, ok := all.SumHeld(0, buf, 0)
		all.Release()
		assert.False(t, ok, "vanished, %d", foreign.Load())
		assert.Equal(t, FaultAccess, all.Lost())
		foreign.Store(1)
	}
	foreign.Store(0)
	require.NoError(t, syscall.Mprotect(middle, syscall.PROT_READ|syscall.PROT_WRITE))
	require.NoError(t, tb.Deallocate(r.STag))
	_, ok := all.SumHeld(0, buf, 0)
	assert.False(t, ok, "revoked")
	assert.Equal(t, FaultSTag, all.Lost())
}

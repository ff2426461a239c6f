package stag

import (
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wr"
)

const atomicRights = wr.LocalRead | wr.LocalWrite | wr.RemoteAtomic

// words is memory of n aligned numbers, as numbers and as octets.
func words(n int) ([]uint64, []byte) {
	w := make([]uint64, n)
	return w, unsafe.Slice((*byte)(unsafe.Pointer(&w[0])), 8*n)
}

func plus(n uint64) func(uint64) uint64 { return func(old uint64) uint64 { return old + n } }

// TestUpdate changes eight octets, no other, and tells what was there.
func TestUpdate(t *testing.T) {
	tb := NewTable(Config{})
	w, mem := words(4)
	w[0], w[1], w[2] = 1, 2, 3
	r := register(t, tb, RegionConfig{Memory: mem, Addressing: wr.ZeroBased, Access: atomicRights})
	ref, f := tb.Resolve(r.STag, 8, 8, alice, wr.RemoteAtomic)
	require.Equal(t, OK, f)
	old, aligned, ok := ref.Update(plus(40))
	assert.True(t, aligned && ok)
	assert.EqualValues(t, 2, old)
	assert.Equal(t, []uint64{1, 42, 3, 0}, w)

	for off := uint64(1); off < 8; off++ {
		_, aligned, ok = resolve(t, tb, r.STag, 8+off, 8).Update(plus(1))
		assert.True(t, !aligned && ok, "offset %d", off)
	}
	for _, n := range []uint64{7, 9} {
		_, _, ok = resolve(t, tb, r.STag, 8, n).Update(plus(1))
		assert.False(t, ok, "%d octets", n)
	}
	assert.Equal(t, []uint64{1, 42, 3, 0}, w, "nothing was touched")

	require.NoError(t, tb.Deallocate(r.STag), "no hold is left behind")
	_, _, ok = ref.Update(plus(1))
	assert.False(t, ok)
	assert.Equal(t, FaultSTag, ref.Lost())
	_, _, ok = Ref{}.Update(plus(1))
	assert.False(t, ok)
	assert.Equal(t, []uint64{1, 42, 3, 0}, w)
}

// TestUpdateAlignment is that of the memory, not of the tagged offset.
func TestUpdateAlignment(t *testing.T) {
	tb := NewTable(Config{})
	_, mem := words(4)
	r := register(t, tb, RegionConfig{Memory: mem[4:], VA: 0x1000, Access: atomicRights})
	_, aligned, _ := resolve(t, tb, r.STag, 0x1000, 8).Update(plus(1))
	assert.False(t, aligned)
	old, aligned, ok := resolve(t, tb, r.STag, 0x1004, 8).Update(plus(7))
	assert.True(t, aligned && ok)
	assert.Zero(t, old)
	assert.EqualValues(t, 7, mem[8]+mem[15], "in the machine's order")
}

// TestUpdatePieces: in a region of several pieces a number lies in one.
func TestUpdatePieces(t *testing.T) {
	tb := NewTable(Config{BlockMode: true})
	p, err := tb.AllocatePages(4, MinPage)
	require.NoError(t, err)
	a := p.Addresses()
	r := register(t, tb, RegionConfig{Access: atomicRights, Addressing: wr.ZeroBased, Buffers: wr.PhysicalBuffers{
		Size: 12, Addresses: []uint64{a[2], a[0], a[3] + 4}, Length: 36,
	}})
	for off, want := range map[uint64]bool{0: true, 4: false, 8: false, 12: true, 16: false, 24: false, 28: true} {
		_, aligned, ok := resolve(t, tb, r.STag, off, 8).Update(plus(1))
		assert.True(t, ok)
		assert.Equal(t, want, aligned, "offset %d", off)
	}
	assert.EqualValues(t, []byte{1, 1, 1}, []byte{p.Bytes()[2*MinPage], p.Bytes()[0], p.Bytes()[3*MinPage+8]})
}

// TestUpdateIsAtomic against others, by two STags of the memory, and against sync/atomic.
func TestUpdateIsAtomic(t *testing.T) {
	const rounds, parties = 5000, 4
	tb := NewTable(Config{})
	w, mem := words(1)
	a := register(t, tb, RegionConfig{Memory: mem, Addressing: wr.ZeroBased, Access: atomicRights})
	b := register(t, tb, RegionConfig{Memory: mem, Addressing: wr.ZeroBased, Access: atomicRights, MayVanish: true})
	var wg sync.WaitGroup
	for i := range parties {
		s := []wr.STag{a.STag, b.STag}[i%2]
		wg.Go(func() {
			ref, _ := tb.Resolve(s, 0, 8, alice, wr.RemoteAtomic)
			for range rounds {
				ref.Update(plus(1 << 32))
			}
		})
		wg.Go(func() {
			for range rounds {
				atomic.AddUint64(&w[0], 1)
			}
		})
	}
	wg.Wait()
	assert.Equal(t, uint64(parties*rounds)<<32|parties*rounds, w[0])
}

// TestAtomicRight is needed, and no other one does.
func TestAtomicRight(t *testing.T) {
	tb := NewTable(Config{})
	for _, c := range []struct {
		access wr.Access
		want   AccessFault
	}{
		{atomicRights, OK},
		{wr.LocalRead | wr.LocalWrite | wr.RemoteRead | wr.RemoteWrite | wr.BindWindow, FaultAccess},
	} {
		r := register(t, tb, RegionConfig{Addressing: wr.ZeroBased, Access: c.access})
		_, f := tb.Resolve(r.STag, 0, 8, alice, wr.RemoteAtomic)
		assert.Equal(t, c.want, f)
		for _, need := range []wr.Access{wr.RemoteRead, wr.RemoteWrite} {
			_, f = tb.Resolve(r.STag, 0, 8, alice, need)
			assert.Equal(t, c.want == OK, f == FaultAccess, "it is no other right")
		}
	}
	for _, a := range []wr.Access{wr.RemoteAtomic, wr.LocalRead | wr.RemoteAtomic, wr.LocalWrite | wr.RemoteAtomic} {
		_, err := tb.Register(RegionConfig{PD: alice.PD, Memory: make([]byte, 8), Access: a})
		assert.ErrorIs(t, err, wr.ErrInvalidAccess, "%v", a)
	}
}

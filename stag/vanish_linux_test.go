package stag

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wr"
)

// mapped maps n pages, the middle one of which is to vanish.
func mapped(t testing.TB, n int) (mem, middle []byte) {
	t.Helper()
	mem, err := syscall.Mmap(-1, 0, n*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, syscall.Munmap(mem)) })
	k := n / 2 * page
	return mem, mem[k : k+page : k+page]
}

// TestVanished: a copy that meets a page that is gone, or that may not be written, is
// refused, tells why, and holds nothing; others of the region go on.
func TestVanished(t *testing.T) {
	tb := NewTable(Config{})
	mem, middle := mapped(t, 3)
	r := register(t, tb, RegionConfig{Memory: mem, Addressing: wr.ZeroBased, MayVanish: true})
	all := resolve(t, tb, r.STag, 0, 3*page)
	first := resolve(t, tb, r.STag, 0, page)
	buf := make([]byte, 3*page)
	require.True(t, all.CopyIn(0, buf))

	require.NoError(t, syscall.Mprotect(middle, syscall.PROT_READ))
	assert.False(t, all.CopyIn(0, buf), "read-only")
	assert.Equal(t, FaultAccess, all.Lost())
	assert.True(t, all.CopyOut(buf, 0), "it can be read")
	assert.True(t, first.CopyIn(0, buf[:page]), "another page")

	require.NoError(t, syscall.Mprotect(middle, syscall.PROT_NONE))
	assert.False(t, all.CopyOut(buf, 0), "not readable")
	assert.Equal(t, FaultAccess, all.Lost())
	require.True(t, all.Hold())
	assert.False(t, all.CopyHeld(buf, 0))
	all.Release()
	assert.True(t, first.CopyOut(buf[:page], 0), "another page")

	require.NoError(t, syscall.Mprotect(middle, syscall.PROT_READ|syscall.PROT_WRITE))
	assert.True(t, all.CopyIn(0, buf), "back again")
	require.NoError(t, tb.Deallocate(r.STag), "no hold is left behind")
	assert.False(t, all.CopyIn(0, buf))
	assert.Equal(t, FaultSTag, all.Lost(), "revoked, which is another thing")
}

// TestVanishedPieces is about memory of several pieces, and copies of which some have gone.
func TestVanishedPieces(t *testing.T) {
	mem, middle := mapped(t, 3)
	m := join([]piece{{page, mem[:page]}, {2 * page, middle}, {3 * page, mem[2*page:]}})
	buf := make([]byte, 2*page)
	for i := range buf {
		buf[i] = byte(i%251) + 1
	}
	require.True(t, m.tryCopyIn(page/2, buf, program))
	got := make([]byte, 2*page)
	require.True(t, m.tryCopyOut(got, page/2, program))
	assert.Equal(t, buf, got)
	require.NoError(t, syscall.Mprotect(middle, syscall.PROT_NONE))
	assert.False(t, m.tryCopyIn(page/2, buf, program))
	assert.False(t, m.tryCopyOut(got, page/2, program))
	assert.True(t, m.tryCopyOut(got[:page], 2*page, program))
	assert.Equal(t, mem[2*page:], got[:page])
}

// TestVanishedFile is about a page that its file does not have any more: SIGBUS.
func TestVanishedFile(t *testing.T) {
	tb := NewTable(Config{})
	f, err := os.Create(filepath.Join(t.TempDir(), "memory"))
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, f.Truncate(page))
	mem, err := syscall.Mmap(int(f.Fd()), 0, page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	require.NoError(t, err)
	defer func() { require.NoError(t, syscall.Munmap(mem)) }()
	r := register(t, tb, RegionConfig{Memory: mem, Addressing: wr.ZeroBased, MayVanish: true})
	ref := resolve(t, tb, r.STag, 0, 64)
	buf := make([]byte, 64)
	require.True(t, ref.CopyIn(0, buf))
	require.NoError(t, f.Truncate(0))
	assert.False(t, ref.CopyIn(0, buf))
	assert.False(t, ref.CopyOut(buf, 0))
}

// TestMayVanish says whose memory may: what has the region's has it by its rule, and a
// Reregister gives another.
func TestMayVanish(t *testing.T) {
	tb := NewTable(Config{})
	mem, middle := mapped(t, 3)
	r := register(t, tb, RegionConfig{Memory: mem, MayVanish: true})
	w := bind(t, tb, window(t, tb), 3, r, page, page, consumer(alice))
	bound, f := tb.Resolve(w, r.Base+page, 64, alice, wr.RemoteWrite)
	require.Equal(t, OK, f)
	shared, err := tb.RegisterShared(r.STag, SharedConfig{PD: alice.PD, Access: allRights})
	require.NoError(t, err)
	also := resolve(t, tb, shared.STag, shared.Base+page, 64)
	assert.True(t, bound.MayVanish())
	assert.True(t, also.MayVanish())
	require.NoError(t, syscall.Mprotect(middle, syscall.PROT_NONE))
	assert.False(t, bound.CopyIn(0, make([]byte, 64)), "by a window")
	assert.False(t, also.CopyOut(make([]byte, 64), 0), "by another region")

	other := register(t, tb, RegionConfig{MayVanish: true})
	other, err = tb.Reregister(other.STag, RegionConfig{PD: alice.PD, Access: allRights, Memory: make([]byte, 64)})
	require.NoError(t, err)
	assert.False(t, resolve(t, tb, other.STag, other.Base, 64).MayVanish())

	i, err := tb.Reregister(other.STag, RegionConfig{PD: alice.PD, Access: allRights, Memory: make([]byte, 64), MayVanish: true})
	require.NoError(t, err)
	require.Equal(t, OK, tb.InvalidateLocal(i.STag, alice))
	p := pages(t, tb, 1, page)
	require.Equal(t, OK, tb.FastRegister(&wr.FastRegisterRequest{
		STag: i.STag, Access: wr.LocalRead | wr.LocalWrite, Addressing: wr.ZeroBased,
		Buffers: wr.PhysicalBuffers{Size: page, Addresses: []uint64{p.Addresses()[0]}, Length: 64},
	}, consumer(alice)))
	assert.False(t, resolve(t, tb, i.STag, 0, 64).MayVanish(), "pages of the RNIC stay")
	assert.False(t, Ref{}.MayVanish())
}

// TestOtherPanics are no faults.
func TestOtherPanics(t *testing.T) {
	assert.PanicsWithValue(t, "no fault", func() {
		defer endFault(false)
		panic("no fault")
	})
}

func BenchmarkCopyVanishing(b *testing.B) {
	tb := NewTable(Config{})
	for _, may := range []bool{false, true} {
		r := register(b, tb, RegionConfig{Addressing: wr.ZeroBased, MayVanish: may})
		ref := resolve(b, tb, r.STag, 0, 64)
		b.Run(map[bool]string{false: "stays", true: "may"}[may], func(b *testing.B) {
			b.ReportAllocs()
			var buf [64]byte
			for b.Loop() {
				ref.CopyIn(0, buf[:])
			}
		})
	}
}

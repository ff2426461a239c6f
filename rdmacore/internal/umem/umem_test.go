//go:build linux && (amd64 || arm64)

package umem_test

import (
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rdmacore/internal/umem"
)

// pages maps n pages, and gives their address.
func pages(t *testing.T, n, prot int) ([]byte, uint64) {
	t.Helper()
	m, err := syscall.Mmap(-1, 0, n*syscall.Getpagesize(), prot, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	require.NoError(t, err)
	t.Cleanup(func() { _ = syscall.Munmap(m) })
	return m, uint64(uintptr(unsafe.Pointer(&m[0])))
}

const rw = syscall.PROT_READ | syscall.PROT_WRITE

func TestReadsAndWrites(t *testing.T) {
	m, at := pages(t, 1, rw)
	require.NoError(t, umem.Write(at+3, []byte("hello")))
	assert.Equal(t, "hello", string(m[3:8]))
	b := make([]byte, 5)
	require.NoError(t, umem.Read(b, at+3))
	assert.Equal(t, "hello", string(b))
	type pair struct{ A, B uint32 }
	require.NoError(t, umem.Store(at+64, &pair{1, 2}))
	p, err := umem.Load[pair](at + 64)
	require.NoError(t, err)
	assert.Equal(t, pair{1, 2}, p)
}

// TestNothingThere: each of these is EFAULT, and the test goes on.
func TestNothingThere(t *testing.T) {
	m, at := pages(t, 2, rw)
	page := len(m) / 2
	require.NoError(t, syscall.Mprotect(m[page:], syscall.PROT_NONE))
	_, ro := pages(t, 1, syscall.PROT_READ)
	b := make([]byte, 16)
	for _, addr := range []uint64{0, 1, 8, 4095, at + uint64(page), at + uint64(page) - 8, 1 << 47, 1 << 50, 1<<56 - 8, 1 << 63, ^uint64(0), ^uint64(0) - 15} {
		assert.ErrorIs(t, umem.Read(b, addr), syscall.EFAULT, "%#x", addr)
		assert.ErrorIs(t, umem.Write(addr, b), syscall.EFAULT, "%#x", addr)
	}
	require.NoError(t, umem.Read(b, ro))
	assert.ErrorIs(t, umem.Write(ro, b), syscall.EFAULT)
	assert.NoError(t, umem.Read(nil, 0), "nothing is not read")
}

func TestPresent(t *testing.T) {
	m, at := pages(t, 3, rw)
	page := uint64(len(m) / 3)
	assert.NoError(t, umem.Present(at+5, 2*page, true))
	assert.NoError(t, umem.Present(at, 3*page, false))
	require.NoError(t, syscall.Mprotect(m[page:2*page], syscall.PROT_READ))
	assert.NoError(t, umem.Present(at, 3*page, false))
	assert.ErrorIs(t, umem.Present(at, 3*page, true), syscall.EFAULT, "read-only")
	for _, bad := range [][2]uint64{{0, 1}, {8, 8}, {at, 1 << 60}, {1 << 50, 4096}, {at + 1<<40, 1 << 20}} {
		assert.ErrorIs(t, umem.Present(bad[0], bad[1], false), syscall.EFAULT, "%#x", bad)
	}
}

func TestDoesNotAllocate(t *testing.T) {
	_, at := pages(t, 1, rw)
	var b [64]byte
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		_ = umem.Read(b[:], at)
		_ = umem.Write(at, b[:])
	}))
}

func BenchmarkRead(b *testing.B) {
	m, _ := syscall.Mmap(-1, 0, 4096, rw, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	at := uint64(uintptr(unsafe.Pointer(&m[0])))
	var dst [128]byte
	for b.Loop() {
		_ = umem.Read(dst[:], at)
	}
}

package crc32c

import (
	"runtime/debug"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Octets beside the given ones are neither read nor written: here they cannot be.
func TestStaysInside(t *testing.T) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	eachWay(t, func(t *testing.T) {
		room, to := guarded(t, 1<<15), guarded(t, 1<<15)
		copy(room, randomOctets(newRand(), len(room)))
		check := func(b, dst []byte) {
			require.NotPanics(t, func() {
				want := portable(0, b)
				if Update(0, b) != want || Copy(0, dst, b) != want {
					require.Failf(t, "another CRC", "%d octets", len(b))
				}
			}, "%d octets", len(b))
		}
		both := func(n int) {
			check(room[:n], to[len(to)-n:])
			check(room[len(room)-n:], to[:n])
		}
		for n := range 2101 {
			both(n)
		}
		for n := 2101; n <= len(room); n += 137 {
			both(n)
		}
	})
}

// guarded returns n octets, a multiple of the page size, between pages that fault.
func guarded(t *testing.T, n int) []byte {
	t.Helper()
	page := syscall.Getpagesize()
	b, err := syscall.Mmap(-1, 0, n+2*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, syscall.Munmap(b)) })
	require.NoError(t, syscall.Mprotect(b[:page], syscall.PROT_NONE))
	require.NoError(t, syscall.Mprotect(b[page+n:], syscall.PROT_NONE))
	return b[page : page+n : page+n]
}

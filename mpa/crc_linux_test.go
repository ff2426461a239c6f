package mpa

import (
	"runtime/debug"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Octets beside the given ones are not read: here they cannot be.
func TestUpdateCRCStaysInside(t *testing.T) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	room := guarded(t, 1<<15)
	copy(room, randomOctets(newRand(), len(room)))
	check := func(b []byte) {
		require.NotPanics(t, func() {
			if got, want := updateCRC(0, b), libraryCRC(0, b); got != want {
				require.Equal(t, want, got, "%d octets", len(b))
			}
		}, "%d octets", len(b))
	}
	for n := range 2101 {
		check(room[:n])
		check(room[len(room)-n:])
	}
	for n := 2101; n <= len(room); n += 137 {
		check(room[:n])
		check(room[len(room)-n:])
	}
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

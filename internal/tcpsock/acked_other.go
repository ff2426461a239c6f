//go:build !linux

package tcpsock

// Acked cannot be known here.
func Acked(uintptr) (n uint64, ok bool) { return 0, false }

// Taken cannot be known here.
func Taken(uintptr) (n uint64, ok bool) { return 0, false }

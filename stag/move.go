//go:build !race

package stag

// move copies src to dst.
func move(dst, src []byte, _ party) int { return copy(dst, src) }

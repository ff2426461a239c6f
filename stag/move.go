//go:build !race

package stag

// onePass says that a copy may be summed while it is made.
const onePass = true

// move copies src to dst.
func move(dst, src []byte, _ party) int { return copy(dst, src) }

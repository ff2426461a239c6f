//go:build !race

package safecopy

// Unseen copies src to dst, as copy does. With the race detector, that does not see it.
func Unseen(dst, src []byte) int { return copy(dst, src) }

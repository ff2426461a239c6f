//go:build !race

package safecopy

// Raced says that the race detector is there. It sees nothing of assembler.
const Raced = false

// Unseen copies src to dst, as copy does. With the race detector, that does not see it.
func Unseen(dst, src []byte) int { return copy(dst, src) }

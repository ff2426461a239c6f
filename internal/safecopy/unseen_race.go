//go:build race

package safecopy

import "encoding/binary"

// Raced says that the race detector is there. It sees nothing of assembler.
const Raced = true

// Unseen copies src to dst, as copy does, but that the race detector does not see it. It does so without the builtin,
// which tells the detector wherever it stands.
//
//go:norace
func Unseen(dst, src []byte) int {
	n := min(len(dst), len(src))
	dst, src = dst[:n], src[:n]
	i := 0
	for ; i+8 <= n; i += 8 {
		binary.LittleEndian.PutUint64(dst[i:], binary.LittleEndian.Uint64(src[i:]))
	}
	for ; i < n; i++ {
		dst[i] = src[i]
	}
	return n
}

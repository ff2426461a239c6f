//go:build race

package stag

import "encoding/binary"

// onePass: the race detector sees nothing of assembler.
const onePass = false

// move copies src to dst. The race detector sees it if it is for the program.
func move(dst, src []byte, p party) int {
	if p == program {
		return copy(dst, src)
	}
	return moveUnseen(dst, src)
}

// moveUnseen copies without the builtin, which tells the race detector wherever it
// stands.
//
//go:norace
func moveUnseen(dst, src []byte) int {
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

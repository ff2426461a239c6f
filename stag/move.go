package stag

import "github.com/softrnic/softrnic/internal/safecopy"

// move copies src to dst. The race detector sees it if it is for the program.
func move(dst, src []byte, p party) int {
	if p == program {
		return copy(dst, src)
	}
	return safecopy.Unseen(dst, src)
}

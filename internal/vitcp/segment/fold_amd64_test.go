package segment

import (
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFolding: the constants are what they are said to be, and folding any number of octets
// is the same as taking them by tables.
func TestFolding(t *testing.T) {
	power := func(n int) uint64 { // x^n, reflected, as an operand
		r := uint64(1)
		for range n {
			r <<= 1
			if r>>32 != 0 {
				r ^= 1<<32 | uint64(bits.Reverse32(generator))
			}
		}
		return uint64(bits.Reverse32(uint32(r))) << 1
	}
	require.Equal(t, [2]uint64{power(512 + 32), power(512 - 32)}, by512)
	require.Equal(t, [2]uint64{power(128 + 32), power(128 - 32)}, by128)

	rng := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, 3*foldLeast)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	for n := range b {
		state, off := rng.Uint32(), n%17
		p := b[off:max(off, n)]
		for _, way := range []func(uint32, []byte) (uint32, []byte){fold, foldNarrow} {
			got, left := way(state, p)
			require.Equal(t, addTables(state, p), addTables(got, left), "%d octets", len(p))
		}
	}
}

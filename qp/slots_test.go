package qp

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSlotsResize replaces rings at random: what is in use keeps its element, and no
// element is in two slots.
func TestSlotsResize(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	create := func(n int) []int { return make([]int, n) }
	var s slots[int]
	s.init(3)
	require.Equal(t, 4, s.depth())
	from, to := uint64(0), uint64(0)
	inUse := map[uint64]*int{}
	for range 800 {
		switch rng.IntN(4) {
		case 0: // give the oldest back
			if from < to {
				delete(inUse, from)
				from++
			}
		case 1: // resize
			n := 1 + rng.IntN(40)
			if uint64(n) < to-from {
				continue
			}
			s.resize(n, from)
			require.Equal(t, ringSize(n), s.depth())
		default: // take one more
			if to-from < uint64(s.depth()) {
				if s.at(to) == nil {
					s.fill(create)
				}
				inUse[to] = s.at(to)
				to++
			}
		}
		seen := map[*int]bool{}
		for pos := from; pos < from+uint64(s.depth()); pos++ {
			e := s.at(pos)
			require.False(t, e != nil && seen[e], "in two slots")
			seen[e] = true
			if pos < to {
				require.NotNil(t, e)
				require.Same(t, inUse[pos], e)
			}
		}
	}
}

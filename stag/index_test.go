package stag

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func entryAt(i uint32) *entry { return &entry{index: i} }

// The hash against a map, over few indices with few homes, so that chains are
// long, run over the end of the array, and are full of tombstones.
func TestIndexTwin(t *testing.T) {
	for _, homes := range []uint32{1, 3, 64} {
		rng := rand.New(rand.NewPCG(1, uint64(homes)))
		var x index
		x.reset()
		twin := map[uint32]*entry{}
		biggest := 0
		for step := range 10000 {
			// Waves: mostly adding, then mostly removing.
			adding := step/1250%2 == 0
			i := (rng.Uint32N(homes)+minCells-homes/2)%minCells + minCells*(1+rng.Uint32N(900/homes))
			switch present := twin[i] != nil; {
			case present && (!adding || rng.IntN(4) == 0):
				x.remove(i)
				delete(twin, i)
			case !present && (adding || rng.IntN(4) == 0):
				e := entryAt(i)
				x.put(e)
				twin[i] = e
			}
			probe := minCells * (1 + rng.Uint32N(1000))
			require.Same(t, twin[i], x.get(i))
			require.Same(t, twin[probe], x.get(probe))
			require.Equal(t, len(twin), x.live)
			biggest = max(biggest, len(*x.cells.Load()))

			if step%500 == 0 {
				checkIndex(t, &x, twin)
			}
		}
		require.Greater(t, biggest, minCells, "it grew")
	}
}

// checkIndex compares everything, and the counters with the cells.
func checkIndex(t *testing.T, x *index, twin map[uint32]*entry) {
	t.Helper()
	for i, e := range twin {
		require.Same(t, e, x.get(i))
	}
	n := 0
	for e := range x.all {
		require.Same(t, twin[e.index], e)
		n++
	}
	require.Len(t, twin, n)
	used, cells := 0, *x.cells.Load()
	for p := range cells {
		if cells[p].Load() != nil {
			used++
		}
	}
	require.Equal(t, used, x.used)
	require.LessOrEqual(t, 2*used, len(cells), "an empty cell ends every search")
}

func TestIndexSize(t *testing.T) {
	var x index
	x.reset()
	size := func() int { return len(*x.cells.Load()) }
	for i := uint32(1); i <= 10000; i++ {
		x.put(entryAt(i))
	}
	require.LessOrEqual(t, size(), 8*10000, "memory follows the entries")
	for i := uint32(1); i <= 9990; i++ {
		x.remove(i)
	}
	require.LessOrEqual(t, size(), 1024, "in both directions")
	for i := uint32(9991); i <= 10000; i++ {
		require.NotNil(t, x.get(i))
		x.remove(i)
	}
	x.remove(5) // absent
	require.Zero(t, x.live)
	for i := uint32(1); i < 100000; i++ { // one at a time, for ever
		x.put(entryAt(i))
		x.remove(i)
	}
	require.Equal(t, minCells, size())
}

// A new array is made when one is needed, and not before: each costs as much as
// there are entries.
func TestIndexRebuilds(t *testing.T) {
	var x index
	x.reset()
	array := x.cells.Load()
	same := func(what string) {
		t.Helper()
		require.Same(t, array, x.cells.Load(), what)
	}
	rebuilt := func(size int) {
		t.Helper()
		require.NotSame(t, array, x.cells.Load())
		array = x.cells.Load()
		require.Len(t, *array, size)
		require.Equal(t, x.live, x.used, "no tombstones")
	}
	const half = minCells / 2
	for i := uint32(1); i <= half; i++ {
		x.put(entryAt(i))
		same("half of it may be used")
	}
	x.put(entryAt(half + 1))
	rebuilt(8 * half) // an eighth of it live
	for i := uint32(half + 1); i > half/2; i-- {
		x.remove(i)
		same("a sixteenth of it is live")
	}
	x.remove(half / 2)
	rebuilt(minCells)
	for i := uint32(1); i < half/2; i++ {
		x.remove(i)
		same("it is not cut down further")
	}
	for i := uint32(1); i <= half/2+1; i++ {
		x.put(entryAt(i))
		same("there is room between the tombstones")
	}
	x.put(entryAt(half))
	rebuilt(2 * minCells)
}

func TestIndexZero(t *testing.T) {
	var x index
	x.reset()
	x.put(entryAt(minCells))
	x.remove(minCells) // a tombstone at home of zero
	require.Nil(t, x.get(0))
}

func TestIndexAllStops(t *testing.T) {
	var x index
	x.reset()
	x.put(entryAt(1))
	x.put(entryAt(2))
	n := 0
	for range x.all {
		n++
		break
	}
	require.Equal(t, 1, n)
}

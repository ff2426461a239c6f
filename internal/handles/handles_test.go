package handles_test

import (
	"maps"
	"math"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/handles"
)

// TestTable: numbers come in turn, are found, and are given back by their own value alone.
func TestTable(t *testing.T) {
	var table handles.Table[int]
	values := [3]int{}
	for i := range values {
		n, ok := table.Add(&values[i])
		require.True(t, ok)
		assert.EqualValues(t, i+1, n)
		assert.Same(t, &values[i], table.Get(n))
	}
	for _, n := range []uint32{0, 4, handles.Max - 1, handles.Max, math.MaxUint32} {
		assert.Nil(t, table.Get(n))
		table.Remove(n, nil)
	}
	table.Remove(2, &values[0])
	assert.Same(t, &values[1], table.Get(2), "it is not the other's to give back")
	table.Remove(2, &values[1])
	table.Remove(2, &values[1])
	assert.Nil(t, table.Get(2))
	assert.Equal(t, 2, table.Len())
	n, ok := table.Add(&values[1])
	require.True(t, ok)
	assert.EqualValues(t, 4, n, "not the one that has just been given back")
	assert.Equal(t, map[uint32]*int{1: &values[0], 3: &values[2], 4: &values[1]}, maps.Collect(table.All))
}

// TestFull: all numbers but zero can be had, and those given back are found again.
func TestFull(t *testing.T) {
	var table handles.Table[int]
	v := 0
	for range handles.Max - 1 {
		n, ok := table.Add(&v)
		require.True(t, ok && n > 0 && n < handles.Max)
	}
	_, ok := table.Add(&v)
	require.False(t, ok)
	table.Remove(7, &v)
	n, ok := table.Add(&v)
	require.True(t, ok)
	assert.EqualValues(t, 7, n)
}

// TestConcurrent: whoever has a number finds its own value there, whatever others do.
func TestConcurrent(t *testing.T) {
	var table handles.Table[int]
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 5000 {
				n, ok := table.Add(&i)
				if !ok || table.Get(n) != &i {
					t.Errorf("number %d is not mine", n)
				}
				table.Remove(n, &i)
			}
		})
	}
	all.Wait()
	assert.Zero(t, table.Len())
}

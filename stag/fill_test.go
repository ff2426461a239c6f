package stag

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wr"
)

// TestFill: as many pieces as there is room for, and no other room is made.
func TestFill(t *testing.T) {
	tb := NewTable(Config{})
	p := pages(t, tb, 3, MinPage)
	pattern(p.Bytes())
	list := p.Addresses()
	slices.Reverse(list) // no two in a row
	buffers := wr.PhysicalBuffers{Size: MinPage, Addresses: list, Length: 3 * MinPage}
	r := register(t, tb, RegionConfig{Buffers: buffers, Addressing: wr.ZeroBased})
	page := func(i int) []byte { return p.Bytes()[(2-i)*MinPage:][:MinPage] }
	ref := resolve(t, tb, r.STag, 0, 3*MinPage)
	require.True(t, ref.Hold())

	var room [4][]byte
	require.Equal(t, [][]byte{page(0)[9:], page(1), page(2)[:5]}, ref.Fill(room[:0], 9, 2*MinPage-4))
	require.Equal(t, [][]byte{page(0)[9:], page(1)}, ref.Fill(room[:0:2], 9, 2*MinPage-4))
	require.Equal(t, page(2)[:5], room[2], "what lies behind the capacity is as it was")
	require.Equal(t, [][]byte{nil, page(1)[1:2]}, ref.Fill(make([][]byte, 1, 2), MinPage+1, 1))
	require.Len(t, ref.Fill(room[:2:2], 0, 1), 2)
	require.Empty(t, ref.Fill(room[:0], 0, 0))
	require.Empty(t, ref.Fill(room[:0], 1, 3*MinPage))
	require.Zero(t, testing.AllocsPerRun(100, func() { ref.Fill(room[:0:1], 0, 3*MinPage) }))
	ref.Release()

	require.NoError(t, tb.Deallocate(r.STag))
	require.Empty(t, ref.Fill(room[:0], 0, 1), "memory is let go of")

	one := register(t, tb, RegionConfig{Memory: make([]byte, 9), Addressing: wr.ZeroBased})
	ref = resolve(t, tb, one.STag, 0, 9)
	require.True(t, ref.Hold())
	defer ref.Release()
	require.Len(t, ref.Fill(room[:0], 2, 7)[0], 7)
	require.Len(t, ref.Fill(room[:1:1], 2, 7), 1)
}

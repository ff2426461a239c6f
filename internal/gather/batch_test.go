package gather

import (
	"bytes"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/stag"
	"github.com/softrnic/softrnic/wr"
)

const regionOctets = 4096

// region is memory of one table, every octet of it the same.
type region struct {
	tab  *stag.Table
	stag wr.STag
	ref  stag.Ref
}

func newRegion(t *testing.T, tab *stag.Table, fill byte) region {
	t.Helper()
	info, err := tab.Register(stag.RegionConfig{PD: 1, Memory: bytes.Repeat([]byte{fill}, regionOctets), Access: wr.LocalRead | wr.LocalWrite})
	require.NoError(t, err)
	ref, f := tab.Resolve(info.STag, info.Base, regionOctets, stag.User{PD: 1}, wr.LocalRead)
	require.Equal(t, stag.OK, f)
	return region{tab, info.STag, ref}
}

func (r region) revoke(t *testing.T) {
	t.Helper()
	require.NoError(t, r.tab.Deallocate(r.stag))
}

// held is how many octets Hold lets be sent.
func held(b *Batch) int {
	n, h := b.Hold()
	h.Release()
	return n
}

// left are the octets that are still to be sent.
func left(b *Batch) []byte {
	b.Seal()
	return bytes.Join(b.Next(), nil)
}

func (b *Batch) write(text string) {
	from := len(b.Arena)
	b.Arena = append(b.Arena, text...)
	b.Copied(from)
}

// TestHoldsWhatIsLeft: memory that has gone out is the program's again, so its revocation does not disturb what is behind it;
// and what is before memory that is gone can be sent.
func TestHoldsWhatIsLeft(t *testing.T) {
	tab := stag.NewTable(stag.Config{})
	x, y := newRegion(t, tab, 'x'), newRegion(t, tab, 'y')
	b := New(100)
	require.True(t, b.Memory(x.ref, 0, 2000))
	require.True(t, b.Memory(x.ref, 2000, 1000))
	require.True(t, b.Memory(y.ref, 0, 2000))
	b.Advance(2999)
	require.Equal(t, 5000, held(&b))
	b.Advance(1)
	x.revoke(t)
	require.Equal(t, 5000, held(&b), "all of the first region is out")
	b.write("abc")
	require.True(t, b.Memory(y.ref, 0, 10))
	y.revoke(t)
	require.Equal(t, 3000, held(&b))
	require.False(t, b.Memory(y.ref, 0, 1))
	require.Equal(t, 5013, b.Size())
}

// TestHoldsAreGivenBack: what is held in front of memory that is gone, too.
func TestHoldsAreGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tab := stag.NewTable(stag.Config{})
		x, y := newRegion(t, tab, 'x'), newRegion(t, tab, 'y')
		b := New(100)
		require.True(t, b.Memory(x.ref, 0, 2000))
		require.True(t, b.Memory(y.ref, 0, 2000))
		y.revoke(t)
		require.Equal(t, 2000, held(&b))
		x.revoke(t) // which waits for holds
	})
}

// TestHoldsOnce: runs of one region take one hold, and give it back: a revocation waits for holds.
func TestHoldsOnce(t *testing.T) {
	tab := stag.NewTable(stag.Config{})
	x, y := newRegion(t, tab, 'x'), newRegion(t, tab, 'y')
	b := New(100)
	for _, r := range []region{x, x, y, x, x} {
		require.True(t, b.Memory(r.ref, 0, 1))
	}
	require.Equal(t, 5, held(&b))
	x.revoke(t)
	require.Zero(t, held(&b))
	b.Advance(2)
	require.Equal(t, 3, held(&b), "of the other region's alone")
	y.revoke(t)
}

// TestRollback: what could not be finished leaves nothing behind.
func TestRollback(t *testing.T) {
	tab := stag.NewTable(stag.Config{})
	x := newRegion(t, tab, 'x')
	b := New(100)
	b.write("ab")
	require.True(t, b.Memory(x.ref, 0, 3))
	m := b.Mark()
	b.write("cd")
	require.True(t, b.Memory(x.ref, 3, 4))
	b.Rollback(m)
	require.Equal(t, m, b.Mark())
	b.write("e")
	require.Equal(t, "abxxxe", string(left(&b)))
	b.Advance(5)
	x.revoke(t)
	require.Equal(t, 6, held(&b))
	require.False(t, b.Empty())
	b.Advance(1)
	require.True(t, b.Empty())
}

// TestReset: an emptied batch is as a new one, and names no memory.
func TestReset(t *testing.T) {
	x := newRegion(t, stag.NewTable(stag.Config{}), 'x')
	b := New(100)
	b.write("ab")
	require.True(t, b.Memory(x.ref, 0, 3))
	b.Seal()
	b.Advance(3)
	pieces, spans := b.pieces[:cap(b.pieces)], b.spans[:cap(b.spans)]
	b.Reset()
	require.Equal(t, Batch{Arena: b.Arena[:0], pieces: b.pieces[:0], spans: b.spans[:0]}, b)
	for i := range pieces {
		require.Nil(t, pieces[i])
	}
	for i := range spans {
		require.Zero(t, spans[i])
	}
	require.False(t, b.Full(1))
	b.write("c")
	require.Equal(t, "c", string(left(&b)))
	require.True(t, b.Full(1))
}

// TestFull: systems take a thousand pieces in one call.
func TestFull(t *testing.T) {
	x := newRegion(t, stag.NewTable(stag.Config{}), 'x')
	b := New(0)
	for range MaxPieces {
		require.False(t, b.Full(1<<20))
		require.True(t, b.Memory(x.ref, 0, 1))
	}
	require.True(t, b.Full(1<<20))
}

package qp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/stag"
	"github.com/softrnic/softrnic/wr"
)

// TestBatchHoldsWhatIsLeft: memory that has gone out is the program's again, so
// its deregistration does not disturb what is behind it in the batch.
func TestBatchHoldsWhatIsLeft(t *testing.T) {
	r := newIdleRig(t, setup{})
	user := stag.User{PD: ownPD, QP: ownQP}
	ref := func(s *slab) stag.Ref {
		x, f := r.tab.Resolve(s.stag, s.base, slabSize, user, wr.LocalRead)
		require.Equal(t, stag.OK, f)
		return x
	}
	b := newBatch()
	defer b.free()
	require.True(t, b.memory(ref(r.full), 0, 2000))
	require.True(t, b.memory(ref(r.full), 2000, 1000))
	require.True(t, b.memory(ref(r.private), 0, 2000))
	require.Len(t, b.holds, 2)

	b.advance(2999)
	require.True(t, b.hold())
	b.release()
	b.advance(1)
	require.NoError(t, r.tab.Deallocate(r.full.stag))
	require.True(t, b.hold(), "all of the first region is out")
	b.release()
	b.advance(1)
	require.NoError(t, r.tab.Deallocate(r.private.stag))
	require.False(t, b.hold(), "the second is not")
}

// TestBatchRollback: an FPDU that could not be finished leaves nothing behind.
func TestBatchRollback(t *testing.T) {
	r := newIdleRig(t, setup{})
	x, f := r.tab.Resolve(r.full.stag, r.full.base, slabSize, stag.User{PD: ownPD}, wr.LocalRead)
	require.Equal(t, stag.OK, f)
	b := newBatch()
	defer b.free()
	require.True(t, b.memory(x, 0, 100))
	m := b.mark()
	b.arena = append(b.arena, 1, 2, 3)
	b.size += 3
	require.True(t, b.memory(x, 100, 100))
	b.rollback(m)
	require.Equal(t, m, b.mark())
	b.advance(100)
	require.True(t, b.empty())
	require.NoError(t, r.tab.Deallocate(r.full.stag))
	require.True(t, b.hold())
	b.release()
}

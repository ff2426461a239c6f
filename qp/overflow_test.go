package qp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/cq"
	"github.com/softrnic/softrnic/stag"
	"github.com/softrnic/softrnic/wr"
)

// TestDroppedCompletionsFreeTheirSlots flushes into a CQ that is full of others'
// completions: the queues can be used again all the same.
func TestDroppedCompletionsFreeTheirSlots(t *testing.T) {
	full := cq.New(cq.Config{ID: 1, Entries: 1})
	require.True(t, full.Push(cq.Entry{}))
	q := New(Config{
		ID: 1, PD: 1, STags: stag.NewTable(stag.Config{Regions: 4}), SendCQ: full, RecvCQ: full,
		SendDepth: 2, RecvDepth: 2, SendSGE: 1, RecvSGE: 1,
	})
	for range 3 {
		n, err := q.PostSend(wr.Request{}, wr.Request{})
		require.NoError(t, err)
		require.Equal(t, 2, n)
		n, err = q.PostRecv(wr.Recv{}, wr.Recv{})
		require.NoError(t, err)
		require.Equal(t, 2, n)
		require.NoError(t, q.Modify(Modify{Next: wr.StateError}))
		require.NoError(t, q.Modify(Modify{Next: wr.StateIdle}))
	}
}

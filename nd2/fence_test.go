package nd2

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// ND-Read-F2, ND-Bind-F2: verbs has no fence on these, so that a part goes before that has
// one. Invalidating what is Invalid is a request as any other, on every queue pair.
func TestFencePart(t *testing.T) {
	var p Provider
	a, err := p.OpenAdapter(adapterID)
	require.NoError(t, err)
	defer a.Close()
	cq, err := a.CreateCompletionQueue(4)
	require.NoError(t, err)
	q, err := a.CreateQueuePair(cq, cq, nil, 1, 1, 1, 1, 0)
	require.NoError(t, err)
	require.Zero(t, q.fence(OpFlagSilentSuccess))
	require.Equal(t, 1, q.fence(OpFlagReadFence|OpFlagSilentSuccess))
	require.Equal(t, verbs.Request{Op: verbs.OpInvalidate, Flags: verbs.LocalFence, Invalidate: a.fence.STag()}, q.parts[0])
	i, err := a.fence.Query()
	require.NoError(t, err)
	require.False(t, i.Valid)
}

package qp

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wr"
)

// TestTerminateOfAnEarlierStream: a queue pair that goes from Idle to Error did not
// pass through Terminate, so that Query has no Terminate Message for it (draft
// 6.1.1), whatever became of the stream before.
func TestTerminateOfAnEarlierStream(t *testing.T) {
	r := newRig(t, setup{})
	r.q.Fail()
	_, _, err := r.peer.End()
	require.NoError(t, err)
	require.NoError(t, r.peer.Close())
	r.over()
	require.NotNil(t, r.q.Query().Terminate)
	require.NoError(t, r.q.Modify(Modify{Next: wr.StateIdle}))
	require.NoError(t, r.q.Modify(Modify{Next: wr.StateError}))
	assert.Equal(t, wr.StateError, r.q.State())
	assert.Nil(t, r.q.Query().Terminate)
}

package verbs_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// TestQPIDOfTheProgram: a queue pair has the identifier that the program chose, and so
// have its completions; the RNIC's own choices go round it, and after Destroy it
// is free again.
func TestQPIDOfTheProgram(t *testing.T) {
	w := newWorld(t, verbs.Config{Limits: verbs.Limits{QPs: 64}})
	for _, id := range []verbs.QPID{1<<24 - 1, 0xc35007, 1<<24 - 1} {
		qp, err := w.nic.CreateQP(verbs.QPConfig{ID: id, PD: w.pd, SendCQ: w.cq, RecvCQ: w.cq})
		require.NoError(t, err)
		assert.Equal(t, id, qp.ID())
		assert.Equal(t, id, query(t, qp).ID)
		assert.Same(t, qp, w.nic.QP(id))
		require.NoError(t, second(qp.PostRecv(verbs.Recv{ID: 5})))
		require.NoError(t, qp.Modify(verbs.ModifyQP{Next: verbs.StateError}))
		c, err := w.cq.PollOne()
		require.NoError(t, err)
		assert.Equal(t, []any{id, uint64(5)}, []any{c.QP, c.ID})
		require.NoError(t, qp.Destroy())
		assert.Nil(t, w.nic.QP(id))
	}

	first, err := w.nic.CreateQP(verbs.QPConfig{PD: w.pd, SendCQ: w.cq, RecvCQ: w.cq})
	require.NoError(t, err)
	for i := range verbs.QPID(8) { // those that the RNIC would choose next
		_, err = w.nic.CreateQP(verbs.QPConfig{ID: first.ID() + 1 + i, PD: w.pd, SendCQ: w.cq, RecvCQ: w.cq})
		require.NoError(t, err)
	}
	next, err := w.nic.CreateQP(verbs.QPConfig{PD: w.pd, SendCQ: w.cq, RecvCQ: w.cq})
	require.NoError(t, err)
	assert.Equal(t, first.ID()+9, next.ID())
}

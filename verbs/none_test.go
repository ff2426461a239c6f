package verbs_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// TestNone: an explicit zero of depths, IRD and ORD, beside the default that zero stands for; another negative number is refused.
func TestNone(t *testing.T) {
	w := newWorld(t, verbs.Config{})
	qp, err := w.nic.CreateQP(verbs.QPConfig{
		PD: w.pd, SendCQ: w.cq, RecvCQ: w.cq, SendDepth: verbs.None, RecvDepth: verbs.None, IRD: verbs.None, ORD: verbs.None,
	})
	require.NoError(t, err)
	a, err := qp.Query()
	require.NoError(t, err)
	assert.Equal(t, [2]int{}, [2]int{a.IRD, a.ORD})
	assert.Equal(t, [2]int{1, 1}, [2]int{a.SendDepth, a.RecvDepth}, "as allocated, which may be more (RV-6.1.1-M3)")
	_, err = w.nic.CreateQP(verbs.QPConfig{PD: w.pd, SendCQ: w.cq, RecvCQ: w.cq, SendDepth: -1})
	require.ErrorIs(t, err, verbs.ErrInvalidModifier)
	require.ErrorContains(t, err, "None")
	require.NoError(t, qp.Destroy())
}

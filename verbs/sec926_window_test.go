package verbs_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// TestWindowRefusals: the results of Allocate Memory Window (9.2.6.7), and of
// Deallocate STag, which a bound window does not stop (7.10.4).
func TestWindowRefusals(t *testing.T) {
	refuse(t, verbs.Config{}, []refusal{
		{
			"all in use", verbs.ErrInsufficientResources,
			func(w *world) { require.NoError(w.t, second(w.pd.AllocateWindow())) },
			func(w *world) error { return second(w.pd.AllocateWindow()) },
		},
	})
	w := newWorld(t, verbs.Config{})
	w.bind()
	require.NoError(t, w.mw.Deallocate())
	require.NoError(t, w.mr.Deregister(), "nothing is bound to it any more")
	require.NoError(t, w.qp.Destroy())
}

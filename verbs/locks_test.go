package verbs_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// TestCreateAgainstDealloc takes the locks of an RNIC and a PD from both ends.
func TestCreateAgainstDealloc(t *testing.T) {
	nic, err := verbs.Open(verbs.Config{})
	require.NoError(t, err)
	defer nic.Close()
	cq, err := nic.CreateCQ(verbs.CQConfig{})
	require.NoError(t, err)
	for range 2000 {
		pd, err := nic.AllocPD()
		require.NoError(t, err)
		var wg sync.WaitGroup
		wg.Go(func() { _ = pd.Dealloc() })
		qp, err := nic.CreateQP(verbs.QPConfig{PD: pd, SendCQ: cq, RecvCQ: cq, SendDepth: 1, RecvDepth: 1})
		wg.Wait()
		if err != nil {
			require.ErrorIs(t, err, verbs.ErrInvalidPD)
			continue
		}
		require.NoError(t, qp.Destroy())
		require.NoError(t, pd.Dealloc())
	}
}

// TestStaleRegionHandle deregisters twice: the second must not reach whoever has
// the STag by then.
func TestStaleRegionHandle(t *testing.T) {
	nic, err := verbs.Open(verbs.Config{})
	require.NoError(t, err)
	defer nic.Close()
	pd, err := nic.AllocPD()
	require.NoError(t, err)
	mr, err := pd.Register(make([]byte, 8), verbs.LocalRead)
	require.NoError(t, err)
	require.NoError(t, mr.Deregister())
	require.ErrorIs(t, mr.Deregister(), verbs.ErrInvalidSTag)
	require.NoError(t, pd.Dealloc())
}

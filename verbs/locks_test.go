package verbs_test

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// TestCreateAgainstDeallocate takes the locks of an RNIC and a PD from both ends.
func TestCreateAgainstDeallocate(t *testing.T) {
	nic, err := verbs.Open(verbs.Config{})
	require.NoError(t, err)
	defer nic.Close()
	cq, err := nic.CreateCQ(verbs.CQConfig{})
	require.NoError(t, err)
	for range 2000 {
		pd, err := nic.AllocatePD()
		require.NoError(t, err)
		var wg sync.WaitGroup
		wg.Go(func() { _ = pd.Deallocate() })
		qp, err := nic.CreateQP(verbs.QPConfig{PD: pd, SendCQ: cq, RecvCQ: cq, SendDepth: 1, RecvDepth: 1})
		wg.Wait()
		if err != nil {
			require.ErrorIs(t, err, verbs.ErrInvalidPD)
			continue
		}
		require.NoError(t, qp.Destroy())
		require.NoError(t, pd.Deallocate())
	}
}

// TestVerbsAtOnce calls verbs on the same handles from many goroutines. Each
// object is destroyed once, whoever is first, and in the end nothing is left in
// any domain.
func TestVerbsAtOnce(t *testing.T) {
	for range 100 {
		w := newWorld(t, verbs.Config{})
		other, err := w.nic.AllocatePD()
		require.NoError(t, err)
		calls := []func(){
			func() { _ = w.mr.Reregister(other, verbs.RegionConfig{Memory: make([]byte, 9), Access: localRights}) },
			func() { _ = w.mr.Reregister(w.pd, verbs.RegionConfig{}) }, // takes it
			func() {
				if s, err := w.mr.RegisterShared(other, verbs.SharedConfig{Access: localRights}); err == nil {
					assert.NoError(t, s.Deregister())
				}
			},
			func() { _, _ = w.mr.Query() },
			func() { _ = w.mr.Deregister() },
			func() { _ = w.mw.Deallocate() },
			func() { _ = w.mw.Deallocate() },
			func() { _ = w.sharing.Modify(verbs.ModifyQP{ORD: ptr(4), IRD: ptr(4)}) },
			func() { _ = w.sharing.Destroy() },
			func() { _ = w.sharing.Destroy() },
			func() { _ = w.srq.Modify(verbs.ModifySRQ{Depth: ptr(16)}) },
			func() { _ = w.srq.Destroy() },
			func() { _ = w.cq.Resize(100) },
			func() { _ = w.pages.Deallocate() },
			func() { _ = w.pages.Deallocate() },
			func() { _ = other.Deallocate() },
		}
		var wg sync.WaitGroup
		for _, i := range rand.Perm(len(calls)) {
			wg.Go(calls[i])
		}
		wg.Wait()
		_ = w.mr.Deregister() // a Reregister may have come too late for the others
		_ = w.srq.Destroy()
		require.ErrorIs(t, w.mr.Deregister(), verbs.ErrInvalidSTag)
		require.ErrorIs(t, w.srq.Destroy(), verbs.ErrInvalidSRQ)
		require.NoError(t, w.qp.Destroy())
		require.NoError(t, w.pd.Deallocate())
		if err := other.Deallocate(); err != nil {
			require.ErrorIs(t, err, verbs.ErrInvalidPD)
		}
	}
}

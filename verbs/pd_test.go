package verbs_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// TestPDCountAfterRefusals: what was refused is not in the domain.
func TestPDCountAfterRefusals(t *testing.T) {
	w := newWorld(t, verbs.Config{})
	foreign := newWorld(t, verbs.Config{})
	pd, err := w.nic.AllocatePD()
	require.NoError(t, err)
	for _, call := range []func() error{
		func() error { return second(pd.RegisterRegion(verbs.RegionConfig{})) },
		func() error {
			return second(pd.RegisterRegion(verbs.RegionConfig{Memory: make([]byte, 1), Access: verbs.LocalRead, QP: foreign.qp}))
		},
		func() error { return second(pd.AllocateRegion(verbs.AllocateConfig{PBL: -1})) },
		func() error { return second(pd.AllocateRegion(verbs.AllocateConfig{PBL: small.PBL + 1})) },
		func() error { return second(w.mr.RegisterShared(pd, verbs.SharedConfig{})) },
		func() error { return w.mr.Reregister(pd, verbs.RegionConfig{}) },
		func() error { return second(w.nic.CreateSRQ(verbs.SRQConfig{PD: pd, Limit: 1000})) },
		func() error { return second(w.nic.CreateQP(verbs.QPConfig{PD: pd, SendCQ: w.cq})) },
	} {
		require.Error(t, call())
	}
	require.NoError(t, pd.Deallocate())
}

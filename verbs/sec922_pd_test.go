package verbs_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// TestPDRefusals: the results of Allocate and Deallocate PD (9.2.2).
func TestPDRefusals(t *testing.T) {
	refuse(t, verbs.Config{}, []refusal{
		{
			"all in use", verbs.ErrInsufficientResources, func(w *world) {
				for range small.PDs - 1 {
					require.NoError(w.t, second(w.nic.AllocatePD()))
				}
			},
			func(w *world) error { return second(w.nic.AllocatePD()) },
		},
		{"in use", verbs.ErrPDInUse, nil, func(w *world) error { return w.pd.Deallocate() }},
	})
}

// TestPDInUseBy: every kind of object keeps its domain, alone, until it is gone
// (RV-5.2.2-M2).
func TestPDInUseBy(t *testing.T) {
	w := newWorld(t, verbs.Config{})
	w.destroyAll()
	cq, err := w.nic.CreateCQ(verbs.CQConfig{})
	require.NoError(t, err)
	for name, use := range map[string]func(*verbs.PD) (func() error, error){
		"QP": func(pd *verbs.PD) (func() error, error) {
			qp, err := w.nic.CreateQP(verbs.QPConfig{PD: pd, SendCQ: cq, RecvCQ: cq})
			return qp.Destroy, err
		},
		"S-RQ": func(pd *verbs.PD) (func() error, error) {
			srq, err := w.nic.CreateSRQ(verbs.SRQConfig{PD: pd})
			return srq.Destroy, err
		},
		"region": func(pd *verbs.PD) (func() error, error) {
			mr, err := pd.Register(make([]byte, 1), verbs.LocalRead)
			return mr.Deregister, err
		},
		"invalid region": func(pd *verbs.PD) (func() error, error) {
			mr, err := pd.AllocateRegion(verbs.AllocateConfig{})
			return mr.Deregister, err
		},
		"window": func(pd *verbs.PD) (func() error, error) {
			mw, err := pd.AllocateWindow()
			return mw.Deallocate, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			pd, err := w.nic.AllocatePD()
			require.NoError(t, err)
			destroy, err := use(pd)
			require.NoError(t, err)
			require.ErrorIs(t, pd.Deallocate(), verbs.ErrPDInUse)
			require.NoError(t, destroy())
			require.NoError(t, pd.Deallocate())
			require.ErrorIs(t, pd.Deallocate(), verbs.ErrInvalidPD)
		})
	}
}

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

// TestPDIDs: unique among the domains that there are (RV-5.2.1-M2).
func TestPDIDs(t *testing.T) {
	nic, err := verbs.Open(verbs.Config{})
	require.NoError(t, err)
	defer nic.Close()
	seen := map[verbs.PDID]bool{}
	for range 100 {
		pd, err := nic.AllocatePD()
		require.NoError(t, err)
		assert.NotZero(t, pd.ID())
		assert.False(t, seen[pd.ID()])
		seen[pd.ID()] = true
	}
}

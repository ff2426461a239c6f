package cases

import (
	"sync"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// rv5_2_pds is the life of Protection Domains: verbs draft 5.2.1 and 5.2.2.
var rv5_2_pds = []conformance.Case{
	apiCase("5.2.1/allocated-here", pdsAllocatedHere, "RV-5.2.1-M1"),
	apiCase("5.2.1/ids-at-once", pdIDsAtOnce, "RV-5.2.1-M2"),
	apiCase("5.2.1/ids-over-time", onNode(pdIDsOverTime), "RV-5.2.1-M3"),
	apiCase("5.2.2/only-by-verb", pdDeallocatedByVerb, "RV-5.2.2-M1"),
	apiCase("5.2.2/in-use", pdInUse, "RV-5.2.2-M2", "RV-5.2.2-M3"),
}

func pdsAllocatedHere(t *conformance.T) {
	n, foreign := newNode(t, nodeConfig{}), newNode(t, nodeConfig{})
	count := queries(n.mr.Query)
	for name, pd := range map[string]*verbs.PD{"made up": {}, "of another RNIC": foreign.pd} {
		refuses(t, "Create QP in a PD "+name, verbs.ErrInvalidPD, func() error {
			return second(n.nic.CreateQP(verbs.QPConfig{PD: pd, SendCQ: n.cq, RecvCQ: n.cq}))
		})
		refuses(t, "Create S-RQ in a PD "+name, verbs.ErrInvalidPD, func() error {
			return second(n.nic.CreateSRQ(verbs.SRQConfig{PD: pd}))
		})
		refuses(t, "Register Shared in a PD "+name, verbs.ErrInvalidPD, func() error {
			return second(n.mr.RegisterShared(pd, verbs.SharedConfig{Access: verbs.LocalRead}))
		}, count)
		refuses(t, "Reregister into a PD "+name, verbs.ErrInvalidPD, func() error {
			return n.register(8, verbs.LocalRead).Reregister(pd, verbs.RegionConfig{Memory: make([]byte, 8), Access: verbs.LocalRead})
		})
	}
	require.NoError(t, n.nic.Close())
	require.ErrorIs(t, second(n.nic.AllocatePD()), verbs.ErrInvalidRNIC)
}

func pdIDsAtOnce(t *conformance.T) {
	nic := openRNIC(t, verbs.Config{})
	const workers, each = 4, 250
	ids := make(chan verbs.PDID, workers*each)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range each {
				pd, err := nic.AllocatePD()
				if !assert.NoError(t, err) {
					return
				}
				ids <- pd.ID()
			}
		})
	}
	wg.Wait()
	close(ids)
	seen := map[verbs.PDID]bool{}
	for id := range ids {
		assert.NotZero(t, id)
		seen[id] = true
	}
	assert.Len(t, seen, workers*each, "different IDs")
}

func pdIDsOverTime(t *conformance.T, n *node) {
	rng := t.Rand()
	live := map[verbs.PDID]bool{n.pd.ID(): true}
	var pds []*verbs.PD
	for range 500 {
		if len(pds) > 0 && rng.IntN(2) == 0 {
			i := rng.IntN(len(pds))
			require.NoError(t, pds[i].Deallocate())
			delete(live, pds[i].ID())
			pds[i] = pds[len(pds)-1]
			pds = pds[:len(pds)-1]
			continue
		}
		pd := n.newPD()
		require.False(t, live[pd.ID()], "PD ID %d is in use", pd.ID())
		live[pd.ID()] = true
		pds = append(pds, pd)
	}
	assert.Equal(t, n.pd.ID(), must(n.mr.Query())(t).PD)
	assert.Equal(t, n.pd.ID(), attributes(t, n.qp).PD.ID())
}

func pdDeallocatedByVerb(t *conformance.T) {
	nic := openRNIC(t, verbs.Config{Limits: verbs.Limits{PDs: 1}})
	pd := must(nic.AllocatePD())(t)
	mr := must(pd.Register(make([]byte, 8), verbs.LocalRead))(t)
	require.ErrorIs(t, second(nic.AllocatePD()), verbs.ErrInsufficientResources)
	require.NoError(t, mr.Deregister(), "the last thing in it")
	require.ErrorIs(t, second(nic.AllocatePD()), verbs.ErrInsufficientResources, "an empty PD is one all the same")
	require.NoError(t, pd.Deallocate())
	require.NoError(t, second(nic.AllocatePD()))
}

// tenant is something that is in a PD.
type tenant struct {
	name  string
	enter func(n *node, pd *verbs.PD) (leave func() error)
}

// tenants are the kinds of 9.2.2.2. Each returns what takes it out of the PD again.
func tenants() []tenant {
	memory := verbs.RegionConfig{Memory: make([]byte, 64), Access: allRights | verbs.BindWindow}
	return []tenant{
		{"QP", func(n *node, pd *verbs.PD) func() error { return n.newQP(verbs.QPConfig{PD: pd}).Destroy }},
		{"S-RQ", func(n *node, pd *verbs.PD) func() error { return n.newSRQ(verbs.SRQConfig{PD: pd}).Destroy }},
		{"region", func(n *node, pd *verbs.PD) func() error { return n.region(pd, memory).Deregister }},
		{"invalid region", func(n *node, pd *verbs.PD) func() error {
			mr := must(pd.AllocateRegion(verbs.AllocateConfig{}))(n.t)
			return mr.Deregister
		}},
		{"shared region", func(n *node, pd *verbs.PD) func() error {
			mr := must(n.mr.RegisterShared(pd, verbs.SharedConfig{Access: verbs.LocalRead}))(n.t)
			return mr.Deregister
		}},
		{"region moved in", func(n *node, pd *verbs.PD) func() error {
			mr := n.register(8, verbs.LocalRead)
			require.NoError(n.t, mr.Reregister(pd, memory))
			return func() error { return mr.Reregister(n.pd, memory) }
		}},
		{"window", func(n *node, pd *verbs.PD) func() error {
			mw := must(pd.AllocateWindow())(n.t)
			return mw.Deallocate
		}},
	}
}

func pdInUse(t *conformance.T) {
	for _, k := range tenants() {
		n := newNode(t, nodeConfig{RNIC: verbs.Config{Limits: verbs.Limits{PDs: 2}}})
		pd := n.newPD()
		leave := k.enter(n, pd)
		require.ErrorIs(t, pd.Deallocate(), verbs.ErrPDInUse, "with a %s", k.name)
		require.ErrorIs(t, second(n.nic.AllocatePD()), verbs.ErrInsufficientResources, "with a %s the PD is still there", k.name)
		require.NoError(t, k.enter(n, pd)(), "one more %s", k.name)
		require.NoError(t, leave(), "the %s works and can be taken away", k.name)
		require.NoError(t, pd.Deallocate(), "without the %s", k.name)
		require.NoError(t, second(n.nic.AllocatePD()), "its place is free")
	}
}

package cases

import (
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// rv9_2_2 is the verbs of Protection Domains: verbs draft 9.2.2.
var rv9_2_2 = []conformance.Case{
	apiCase("9.2.2.1/results", allocPDResults, "RV-9.2.2.1-M1"),
	apiCase("9.2.2.1/modifiers", allocPDModifiers, "RV-9.2.2.1-M2"),
	apiCase("9.2.2.2/results", onNode(deallocPDResults), "RV-9.2.2.2-M1"),
	apiCase("9.2.2.2/modifiers", deallocPDModifiers, "RV-9.2.2.2-M2"),
	apiCase("9.2.2.2/in-use", deallocPDInUse, "RV-9.2.2.2-M3"),
}

func allocPDResults(t *conformance.T) {
	nic := openRNIC(t, verbs.Config{Limits: verbs.Limits{PDs: 3}})
	for range 3 {
		require.NoError(t, second(nic.AllocatePD()))
	}
	refuses(t, "a fourth PD", verbs.ErrInsufficientResources, func() error { return second(nic.AllocatePD()) }, queries(nic.Query))
	require.NoError(t, nic.Close())
	require.ErrorIs(t, second(nic.AllocatePD()), verbs.ErrInvalidRNIC)
}

// allocPDModifiers: the PD is of the RNIC whose handle was given, and of no other.
func allocPDModifiers(t *conformance.T) {
	a, b := newNode(t, nodeConfig{}), newNode(t, nodeConfig{})
	ids := map[verbs.PDID]bool{}
	for range 50 {
		ids[a.newPD().ID()] = true
	}
	assert.Len(t, ids, 50)
	pd := a.newPD()
	memory := verbs.RegionConfig{Memory: make([]byte, 8), Access: verbs.LocalRead}
	for name, call := range map[string]func(n *node) error{
		"Create QP":  func(n *node) error { return second(n.nic.CreateQP(n.inNode(verbs.QPConfig{PD: pd}))) },
		"Create SRQ": func(n *node) error { return second(n.nic.CreateSRQ(verbs.SRQConfig{PD: pd})) },
		"Reregister": func(n *node) error { return n.register(8, verbs.LocalRead).Reregister(pd, memory) },
		"Register Shared": func(n *node) error {
			return second(n.register(8, verbs.LocalRead).RegisterShared(pd, verbs.SharedConfig{Access: verbs.LocalRead}))
		},
	} {
		assert.NoError(t, call(a), "%s, with a PD of the RNIC", name)
		assert.ErrorIs(t, call(b), verbs.ErrInvalidPD, "%s, with a PD of another RNIC", name)
	}
}

func deallocPDResults(t *conformance.T, n *node) {
	pd := n.deadPD()
	require.ErrorIs(t, pd.Deallocate(), verbs.ErrInvalidPD, "deallocated before")
	require.ErrorIs(t, n.pd.Deallocate(), verbs.ErrPDInUse)
	require.NoError(t, n.nic.Close())
	require.ErrorIs(t, n.pd.Deallocate(), verbs.ErrInvalidRNIC)
}

func deallocPDModifiers(t *conformance.T) {
	n := newNode(t, nodeConfig{RNIC: verbs.Config{Limits: verbs.Limits{PDs: 3}}})
	gone, other := n.deadPD(), n.newPD()
	memory := verbs.RegionConfig{Memory: make([]byte, 8), Access: verbs.LocalRead}
	for name, call := range map[string]func(pd *verbs.PD) error{
		"Create QP":              func(pd *verbs.PD) error { return second(n.nic.CreateQP(n.inNode(verbs.QPConfig{PD: pd}))) },
		"Create S-RQ":            func(pd *verbs.PD) error { return second(n.nic.CreateSRQ(verbs.SRQConfig{PD: pd})) },
		"Register":               func(pd *verbs.PD) error { return second(pd.RegisterRegion(memory)) },
		"Allocate STag":          func(pd *verbs.PD) error { return second(pd.AllocateRegion(verbs.AllocateConfig{})) },
		"Allocate Memory Window": func(pd *verbs.PD) error { return second(pd.AllocateWindow()) },
		"Reregister":             func(pd *verbs.PD) error { return n.register(8, verbs.LocalRead).Reregister(pd, memory) },
		"Register Shared": func(pd *verbs.PD) error {
			return second(n.register(8, verbs.LocalRead).RegisterShared(pd, verbs.SharedConfig{Access: verbs.LocalRead}))
		},
	} {
		assert.ErrorIs(t, call(gone), verbs.ErrInvalidPD, name)
		assert.NoError(t, call(other), "%s, in the other PD", name)
	}
	require.NoError(t, second(n.nic.AllocatePD()), "its place is free")
	require.ErrorIs(t, second(n.nic.AllocatePD()), verbs.ErrInsufficientResources)
}

// deallocPDInUse: each of the six that 9.2.2.2 names keeps the PD, alone.
func deallocPDInUse(t *conformance.T) {
	for _, k := range tenants() {
		n := newNode(t, nodeConfig{})
		pd := n.newPD()
		leave := k.enter(n, pd)
		require.ErrorIs(t, pd.Deallocate(), verbs.ErrPDInUse, "with a %s", k.name)
		require.NoError(t, second(pd.Register(make([]byte, 8), verbs.LocalRead)), "with a %s the PD works", k.name)
		require.NoError(t, leave())
		require.ErrorIs(t, pd.Deallocate(), verbs.ErrPDInUse, "with a region")
	}
	// A window keeps it in both states.
	w := newWorld(t, worldConfig{})
	pd := w.a.newPD()
	qp := w.a.newQP(verbs.QPConfig{PD: pd})
	connect(t, qp, w.b.newQP(verbs.QPConfig{}))
	under := w.a.region(pd, verbs.RegionConfig{Memory: make([]byte, 64), Access: allRights | verbs.BindWindow})
	mw := must(pd.AllocateWindow())(t)
	run(t, qp, verbs.Request{Op: verbs.OpBind, Bind: mw.BindRequest(under, 0, 64, remoteRights, 1)}, verbs.StatusSuccess)
	require.ErrorIs(t, pd.Deallocate(), verbs.ErrPDInUse, "with a bound window")
	run(t, qp, verbs.Request{Op: verbs.OpInvalidate, Invalidate: mw.STag(1)}, verbs.StatusSuccess)
	succeed(t, under.Deregister, qp.Destroy)
	require.ErrorIs(t, pd.Deallocate(), verbs.ErrPDInUse, "with an invalidated window alone")
	succeed(t, mw.Deallocate, pd.Deallocate)
	require.ErrorIs(t, pd.Deallocate(), verbs.ErrInvalidPD)
	moves(t, w.a.end(), w.b.end())
}

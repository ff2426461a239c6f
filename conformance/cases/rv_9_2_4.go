package cases

import (
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// rv9_2_4 is the verbs of Shared Receive Queues: verbs draft 9.2.4.
var rv9_2_4 = []conformance.Case{
	apiCase("9.2.4.1/results", createSRQResults, "RV-9.2.4.1-M1"),
	apiCase("9.2.4.1/modifiers", onIdleHostPair(createSRQModifiers), "RV-9.2.4.1-M2"),
	apiCase("9.2.4.2/results", onHost(querySRQResults), "RV-9.2.4.2-M1"),
	apiCase("9.2.4.2/modifiers", onIdleHostPair(querySRQModifiers), "RV-9.2.4.2-M2"),
	apiCase("9.2.4.3/results", modifySRQResults, "RV-9.2.4.3-M1"),
	apiCase("9.2.4.3/modifiers", onIdleHostPair(modifySRQModifiers), "RV-9.2.4.3-M2"),
	apiCase("9.2.4.4/results", onHost(destroySRQResults), "RV-9.2.4.4-M1"),
	apiCase("9.2.4.4/modifiers", destroySRQModifiers, "RV-9.2.4.4-M2"),
}

func createSRQResults(t *conformance.T) {
	n := newHost(t, hostConfig{RNIC: verbs.Config{Limits: verbs.Limits{SRQs: 2, SRQWR: 32, SGE: 8}}})
	dead := n.deadPD()
	create := func(c verbs.SRQConfig) func() error { return func() error { return second(n.nic.CreateSRQ(c)) } }
	for _, c := range []struct {
		name string
		want error
		c    verbs.SRQConfig
	}{
		{"work requests", verbs.ErrTooManyWR, verbs.SRQConfig{PD: n.pd, Depth: 33}},
		{"elements", verbs.ErrTooManySGE, verbs.SRQConfig{PD: n.pd, SGE: 9}},
		{"no PD", verbs.ErrInvalidPD, verbs.SRQConfig{}},
		{"a deallocated PD", verbs.ErrInvalidPD, verbs.SRQConfig{PD: dead}},
		{"limit above the depth", verbs.ErrSRQLimitRange, verbs.SRQConfig{PD: n.pd, Depth: 4, Limit: 5}},
		{"negative limit", verbs.ErrSRQLimitRange, verbs.SRQConfig{PD: n.pd, Limit: -1}},
		{"negative depth", verbs.ErrInvalidModifier, verbs.SRQConfig{PD: n.pd, Depth: -1}},
		{"negative elements", verbs.ErrInvalidModifier, verbs.SRQConfig{PD: n.pd, SGE: -1}},
	} {
		refuses(t, c.name, c.want, create(c.c), queries(n.nic.Query))
	}
	for range 2 { // the refusals used nothing up
		require.NoError(t, create(verbs.SRQConfig{PD: n.pd, Depth: 32, SGE: 8, Limit: 32})())
	}
	refuses(t, "a third S-RQ", verbs.ErrInsufficientResources, create(verbs.SRQConfig{PD: n.pd}))
	require.NoError(t, n.nic.Close())
	require.ErrorIs(t, create(verbs.SRQConfig{PD: n.pd})(), verbs.ErrInvalidRNIC)

	n = newHost(t, hostConfig{RNIC: verbs.Config{Without: verbs.FeatureSRQ}})
	a := must(n.nic.Query())(t)
	assert.Equal(t, []any{false, 0, 0, verbs.DequeueModel(0)}, []any{a.Features.Has(verbs.FeatureSRQ), a.Limits.SRQs, a.Limits.SRQWR, a.DequeueModel})
	require.ErrorIs(t, create(verbs.SRQConfig{PD: n.pd})(), verbs.ErrInsufficientResources)
}

// srqShows says what Query S-RQ has to tell.
func srqShows(t *conformance.T, s *verbs.SRQ, want verbs.SRQAttributes) {
	require.Equal(t, want, must(s.Query())(t), "Query S-RQ")
}

func createSRQModifiers(t *conformance.T, w *hostPair) {
	n := w.b
	other := n.newPD()
	memory := n.region(other, verbs.RegionConfig{Memory: make([]byte, 4096), Access: allRights})
	s := n.newSRQ(verbs.SRQConfig{PD: other, Depth: 6, SGE: 3, Limit: 2})
	srqShows(t, s, verbs.SRQAttributes{Depth: 6, SGE: 3, Limit: 2, PD: other.ID(), Armed: true})
	qp := n.newQP(verbs.QPConfig{SRQ: s})
	connect(t, w.a.qp, qp)

	require.ErrorIs(t, second(s.PostRecv(verbs.Recv{SGL: make([]verbs.SGE, 4)})), verbs.ErrInvalidSGLLength, "four elements")
	for id := range uint64(6) {
		sgl := []verbs.SGE{memory.SGE(0, 1), memory.SGE(10, 1), memory.SGE(20, 1)}
		postRecv(t, s, verbs.Recv{ID: id, SGL: sgl})
	}
	require.ErrorIs(t, second(s.PostRecv(verbs.Recv{})), verbs.ErrQueueFull, "a seventh")
	copy(w.a.mr.Bytes(), "abc")
	for id := range uint64(5) {
		run(t, w.a.qp, verbs.Request{ID: id, SGL: w.a.mr.SGL(0, 3)}, verbs.StatusSuccess)
		completes(t, n.cq, verbs.Completion{ID: id, QP: qp.ID(), Op: verbs.OpRecv, Bytes: 3})
	}
	assert.Equal(t, "abc", string([]byte{memory.Bytes()[0], memory.Bytes()[10], memory.Bytes()[20]}))
	// One is left, which is less than the limit: it was told, once.
	n.events.are(verbs.Event{ID: verbs.EventSRQLimit, SRQ: s.ID()})
	srqShows(t, s, verbs.SRQAttributes{Depth: 6, SGE: 3, Limit: 2, PD: other.ID()})
	n.quiet()
	// The PD is that of the S-RQ: memory of the queue pair's own is none for it.
	srqShows(t, n.newSRQ(verbs.SRQConfig{Depth: 1, SGE: 1}), verbs.SRQAttributes{Depth: 1, SGE: 1, PD: n.pd.ID()})
	postRecv(t, s, verbs.Recv{ID: 9, SGL: n.mr.SGL(0, 8)})
	run(t, w.a.qp, verbs.Request{ID: 8}, verbs.StatusSuccess)
	completes(t, n.cq, verbs.Completion{ID: 5, QP: qp.ID(), Op: verbs.OpRecv})
	post(t, w.a.qp, verbs.Request{ID: 9, SGL: w.a.mr.SGL(0, 3)})
	completes(t, n.cq, verbs.Completion{ID: 9, QP: qp.ID(), Op: verbs.OpRecv, Status: verbs.StatusInvalidPD})
}

func querySRQResults(t *conformance.T, n *host) {
	s, other := n.newSRQ(verbs.SRQConfig{}), n.newSRQ(verbs.SRQConfig{})
	require.NoError(t, second(s.Query()))
	require.NoError(t, s.Destroy())
	require.ErrorIs(t, second(s.Query()), verbs.ErrInvalidSRQ)
	require.NoError(t, n.nic.Close())
	require.ErrorIs(t, second(other.Query()), verbs.ErrInvalidRNIC)
}

func querySRQModifiers(t *conformance.T, w *hostPair) {
	n := w.b
	pd := n.newPD()
	one := n.newSRQ(verbs.SRQConfig{Depth: 5, SGE: 2, Limit: 1})
	two := n.newSRQ(verbs.SRQConfig{PD: pd, Depth: 9, SGE: 7})
	first := verbs.SRQAttributes{Depth: 5, SGE: 2, Limit: 1, PD: n.pd.ID(), Armed: true}
	srqShows(t, one, first)
	srqShows(t, two, verbs.SRQAttributes{Depth: 9, SGE: 7, PD: pd.ID()})
	qp := n.newQP(verbs.QPConfig{SRQ: one})
	connect(t, w.a.qp, qp)
	for round := range 2 {
		postRecv(t, one, verbs.Recv{ID: 1})
		run(t, w.a.qp, verbs.Request{ID: 2}, verbs.StatusSuccess)
		completes(t, n.cq, verbs.Completion{ID: 1, QP: qp.ID(), Op: verbs.OpRecv})
		n.events.are(verbs.Event{ID: verbs.EventSRQLimit, SRQ: one.ID()})
		first.Armed = false
		srqShows(t, one, first)
		require.NoError(t, one.Modify(verbs.ModifySRQ{Rearm: true}), "round %d", round)
		first.Armed = true
		srqShows(t, one, first)
	}
	srqShows(t, two, verbs.SRQAttributes{Depth: 9, SGE: 7, PD: pd.ID()})
}

func modifySRQResults(t *conformance.T) {
	n := newHost(t, hostConfig{RNIC: verbs.Config{Limits: verbs.Limits{SRQWR: 32}}})
	s, other := n.newSRQ(verbs.SRQConfig{Depth: 8, Limit: 2}), n.newSRQ(verbs.SRQConfig{})
	require.NoError(t, s.Modify(verbs.ModifySRQ{Depth: ptr(10), Limit: ptr(3), Rearm: true}))
	for range 5 {
		postRecv(t, s, verbs.Recv{})
	}
	for _, c := range []struct {
		name string
		want error
		m    verbs.ModifySRQ
	}{
		{"more than the RNIC has", verbs.ErrTooManyWR, verbs.ModifySRQ{Depth: ptr(33), Limit: ptr(1)}},
		{"fewer than are posted", verbs.ErrShrinkFailed, verbs.ModifySRQ{Depth: ptr(4)}},
		{"limit above the depth", verbs.ErrSRQLimitRange, verbs.ModifySRQ{Limit: ptr(11)}},
		{"limit above the new depth", verbs.ErrSRQLimitRange, verbs.ModifySRQ{Depth: ptr(20), Limit: ptr(21), Rearm: true}},
		{"negative limit", verbs.ErrSRQLimitRange, verbs.ModifySRQ{Limit: ptr(-1)}},
		{"no depth", verbs.ErrInvalidModifier, verbs.ModifySRQ{Depth: ptr(0)}},
	} {
		refuses(t, c.name, c.want, func() error { return s.Modify(c.m) }, queries(s.Query))
	}
	refuses(t, "no depth, and no limit", verbs.ErrInvalidModifier,
		func() error { return other.Modify(verbs.ModifySRQ{Depth: ptr(0)}) }, queries(other.Query))
	require.NoError(t, s.Destroy())
	require.ErrorIs(t, s.Modify(verbs.ModifySRQ{Rearm: true}), verbs.ErrInvalidSRQ)
	require.NoError(t, n.nic.Close())
	require.ErrorIs(t, other.Modify(verbs.ModifySRQ{Rearm: true}), verbs.ErrInvalidRNIC)

	n = newHost(t, hostConfig{RNIC: verbs.Config{Without: verbs.FeatureResize}})
	s = n.newSRQ(verbs.SRQConfig{Depth: 8})
	refuses(t, "depth, of an RNIC that cannot", verbs.ErrInvalidModifier,
		func() error { return s.Modify(verbs.ModifySRQ{Depth: ptr(9)}) }, queries(s.Query))
}

func modifySRQModifiers(t *conformance.T, w *hostPair) {
	n := w.b
	s := n.newSRQ(verbs.SRQConfig{Depth: 4, SGE: 2})
	qp := n.newQP(verbs.QPConfig{SRQ: s})
	connect(t, w.a.qp, qp)
	want := verbs.SRQAttributes{Depth: 4, SGE: 2, PD: n.pd.ID()}
	take := func(id uint64) {
		run(t, w.a.qp, verbs.Request{ID: id}, verbs.StatusSuccess)
		completes(t, n.cq, verbs.Completion{ID: id, QP: qp.ID(), Op: verbs.OpRecv})
	}
	// The depth, with receives posted: none is lost.
	for id := range uint64(4) {
		postRecv(t, s, verbs.Recv{ID: id})
	}
	take(0)
	for _, depth := range []int{3, 16, 6} {
		require.NoError(t, s.Modify(verbs.ModifySRQ{Depth: &depth}))
		want.Depth = depth
		srqShows(t, s, want)
	}
	for id := range uint64(3) {
		postRecv(t, s, verbs.Recv{ID: 4 + id})
	}
	require.ErrorIs(t, second(s.PostRecv(verbs.Recv{})), verbs.ErrQueueFull, "a seventh")
	take(1)
	// The limit alone arms nothing.
	require.NoError(t, s.Modify(verbs.ModifySRQ{Limit: ptr(5)}))
	want.Limit = 5
	srqShows(t, s, want)
	take(2)
	n.quiet()
	// Rearm alone: fewer than the limit are posted, the next one taken tells.
	for id := range uint64(2) {
		require.NoError(t, s.Modify(verbs.ModifySRQ{Rearm: true}))
		want.Armed = true
		srqShows(t, s, want)
		require.NoError(t, s.Modify(verbs.ModifySRQ{Rearm: true}), "armed before")
		take(3 + id)
		n.events.are(verbs.Event{ID: verbs.EventSRQLimit, SRQ: s.ID()})
		want.Armed = false
		srqShows(t, s, want)
	}
	take(5)
	n.quiet()
}

func destroySRQResults(t *conformance.T, n *host) {
	s, other := n.newSRQ(verbs.SRQConfig{}), n.newSRQ(verbs.SRQConfig{})
	postRecv(t, s, verbs.Recv{ID: 1})
	qp := n.newQP(verbs.QPConfig{SRQ: s})
	refuses(t, "with a queue pair", verbs.ErrSRQInUse, s.Destroy, queries(s.Query))
	postRecv(t, s, verbs.Recv{ID: 2})
	require.NoError(t, qp.Destroy())
	require.NoError(t, s.Destroy(), "receives are posted")
	require.ErrorIs(t, s.Destroy(), verbs.ErrInvalidSRQ)
	require.NoError(t, n.nic.Close())
	require.ErrorIs(t, other.Destroy(), verbs.ErrInvalidRNIC)
}

func destroySRQModifiers(t *conformance.T) {
	w := newHostPair(t, hostPairConfig{Idle: true, B: hostConfig{RNIC: verbs.Config{Limits: verbs.Limits{SRQs: 2}}}})
	n := w.b
	pd := n.newPD()
	gone, other := n.newSRQ(verbs.SRQConfig{PD: pd}), n.newSRQ(verbs.SRQConfig{})
	memory := fill(make([]byte, 256), 4)
	mr := n.region(pd, verbs.RegionConfig{Memory: memory, Access: allRights})
	postRecv(t, gone, verbs.Recv{ID: 1, SGL: mr.SGL(0, 256)})
	qp := n.newQP(verbs.QPConfig{SRQ: other})
	connect(t, w.a.qp, qp)

	require.NoError(t, mr.Deregister())
	require.ErrorIs(t, pd.Deallocate(), verbs.ErrPDInUse, "the S-RQ is in it")
	succeed(t, gone.Destroy, pd.Deallocate)
	for name, call := range map[string]func() error{
		"PostRQ":       func() error { return second(gone.PostRecv(verbs.Recv{})) },
		"Query S-RQ":   func() error { return second(gone.Query()) },
		"Modify S-RQ":  func() error { return gone.Modify(verbs.ModifySRQ{Rearm: true}) },
		"Destroy S-RQ": gone.Destroy,
		"Create QP":    func() error { return second(n.nic.CreateQP(n.withDefaults(verbs.QPConfig{SRQ: gone}))) },
	} {
		assert.ErrorIs(t, call(), verbs.ErrInvalidSRQ, name)
	}
	moves(t, w.a.endpoint(), endpoint{qp, n.mr}) // the other S-RQ works
	assert.Equal(t, fill(make([]byte, 256), 4), memory, "what was posted")
	n.newSRQ(verbs.SRQConfig{}) // its place is free
	require.ErrorIs(t, second(n.nic.CreateSRQ(verbs.SRQConfig{PD: n.pd})), verbs.ErrInsufficientResources)
}

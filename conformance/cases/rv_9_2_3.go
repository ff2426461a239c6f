package cases

import (
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// rv9_2_3 is the verbs of Completion Queues: verbs draft 9.2.3.
var rv9_2_3 = []conformance.Case{
	apiCase("9.2.3.1/results", createCQResults, "RV-9.2.3.1-M1"),
	apiCase("9.2.3.1/modifiers", onHost(createCQModifiers), "RV-9.2.3.1-M2"),
	apiCase("9.2.3.2/results", onHost(queryCQResults), "RV-9.2.3.2-M1"),
	apiCase("9.2.3.2/modifiers", onHost(queryCQModifiers), "RV-9.2.3.2-M2"),
	apiCase("9.2.3.3/results", modifyCQResults, "RV-9.2.3.3-M1"),
	apiCase("9.2.3.3/modifiers", onHostPair(modifyCQModifiers), "RV-9.2.3.3-M2"),
	apiCase("9.2.3.4/results", onHost(destroyCQResults), "RV-9.2.3.4-M1"),
	apiCase("9.2.3.4/modifiers", destroyCQModifiers, "RV-9.2.3.4-M2"),
}

func createCQResults(t *conformance.T) {
	nic := openRNIC(t, verbs.Config{Limits: verbs.Limits{CQs: 2, CQE: 64}})
	cleared := must(nic.AddCompletionHandler(func(*verbs.CQ) {}))(t)
	require.NoError(t, nic.RemoveCompletionHandler(cleared))
	create := func(c verbs.CQConfig) func() error { return func() error { return second(nic.CreateCQ(c)) } }
	for _, c := range []struct {
		name string
		want error
		c    verbs.CQConfig
	}{
		{"too many entries", verbs.ErrTooManyCQE, verbs.CQConfig{Entries: 65}},
		{"no such handler", verbs.ErrInvalidEventHandler, verbs.CQConfig{Entries: 4, Handler: 12345}},
		{"a cleared handler", verbs.ErrInvalidEventHandler, verbs.CQConfig{Entries: 4, Handler: cleared}},
	} {
		refuses(t, c.name, c.want, create(c.c), queries(nic.Query))
	}
	for range 2 { // the refusals used nothing up
		require.NoError(t, create(verbs.CQConfig{Entries: 64})())
	}
	refuses(t, "a third CQ", verbs.ErrInsufficientResources, create(verbs.CQConfig{Entries: 1}), queries(nic.Query))
	require.NoError(t, nic.Close())
	require.ErrorIs(t, create(verbs.CQConfig{})(), verbs.ErrInvalidRNIC)
}

func createCQModifiers(t *conformance.T, n *host) {
	called := make(chan *verbs.CQ, 10)
	id := must(n.nic.AddCompletionHandler(func(c *verbs.CQ) { called <- c }))(t)
	for _, entries := range []int{1, 5, 50} {
		with := must(n.nic.CreateCQ(verbs.CQConfig{Entries: entries, Handler: id}))(t)
		without := must(n.nic.CreateCQ(verbs.CQConfig{Entries: entries}))(t)
		for _, cq := range []*verbs.CQ{without, with} {
			require.GreaterOrEqual(t, roomOf(cq), entries)
			require.NoError(t, cq.Notify(verbs.NotifyNext))
			qp := n.flush(cq, roomOf(cq))
			completes(t, cq, flushed(qp, 1, roomOf(cq))...)
		}
		select {
		case got := <-called: // of the second one: the first one has no handler
			assert.Same(t, with, got)
		case <-t.Context().Done():
			t.Fatalf("the handler is not called")
		}
		// One more than there is room for.
		qp := n.newQP(verbs.QPConfig{SendCQ: with, RecvCQ: with, RecvDepth: roomOf(with) + 1})
		for i := range roomOf(with) + 1 {
			postRecv(t, qp, verbs.Recv{ID: uint64(i + 1)})
		}
		require.NoError(t, qp.Modify(verbs.ModifyQP{Next: verbs.StateError}))
		assert.Equal(t, verbs.Event{ID: verbs.EventCQOverflow, CQ: with.ID()}, n.events.next())
	}
	assert.Empty(t, called)
}

func queryCQResults(t *conformance.T, n *host) {
	cq := n.newCQ(4)
	require.NoError(t, second(cq.Query()))
	require.NoError(t, cq.Destroy())
	require.ErrorIs(t, second(cq.Query()), verbs.ErrInvalidCQ)
	require.NoError(t, n.nic.Close())
	require.ErrorIs(t, second(cq.Query()), verbs.ErrInvalidRNIC)
	require.ErrorIs(t, second(n.cq.Query()), verbs.ErrInvalidRNIC)
}

func queryCQModifiers(t *conformance.T, n *host) {
	id := must(n.nic.AddCompletionHandler(func(*verbs.CQ) {}))(t)
	one := must(n.nic.CreateCQ(verbs.CQConfig{Entries: 11, Handler: id}))(t)
	two := n.newCQ(222)
	shows(t, one, roomOf(one), id)
	shows(t, two, roomOf(two), 0)
	require.GreaterOrEqual(t, roomOf(one), 11)
	require.Less(t, roomOf(one), roomOf(two))
	require.NoError(t, two.Resize(33))
	shows(t, one, roomOf(one), id)
	shows(t, two, 33, 0)
}

func modifyCQResults(t *conformance.T) {
	n := newHost(t, hostConfig{RNIC: verbs.Config{Limits: verbs.Limits{CQE: 512}}})
	cq := n.newCQ(20)
	require.NoError(t, cq.Resize(30))
	qp := n.flush(cq, 6)
	for _, c := range []struct {
		name    string
		want    error
		entries int
	}{
		{"more than the RNIC has", verbs.ErrTooManyCQE, 513},
		{"fewer than are queued", verbs.ErrShrinkFailed, 5},
		{"one", verbs.ErrShrinkFailed, 1},
	} {
		refuses(t, c.name, c.want, func() error { return cq.Resize(c.entries) }, queries(cq.Query))
	}
	completes(t, cq, flushed(qp, 1, 6)...)
	require.NoError(t, cq.Resize(512))
	succeed(t, qp.Destroy, cq.Destroy)
	require.ErrorIs(t, cq.Resize(10), verbs.ErrInvalidCQ)
	require.NoError(t, n.nic.Close())
	require.ErrorIs(t, n.cq.Resize(10), verbs.ErrInvalidRNIC)
}

// modifyCQModifiers grows and shrinks a CQ step by step, each time with completions
// queued, and looks that the other CQ is left alone.
func modifyCQModifiers(t *conformance.T, w *hostPair) {
	n := w.a
	cq := n.newCQ(4)
	qp, _ := w.connectMore(verbs.QPConfig{SendCQ: cq, RecvCQ: cq}, verbs.QPConfig{})
	next, oldest := uint64(0), uint64(0)
	for _, size := range []int{4, 9, 6, 64, 3, 5} {
		require.NoError(t, cq.Resize(size))
		shows(t, cq, size, 0)
		for next < oldest+uint64(size) { // as many as there is room for
			post(t, qp, verbs.Request{ID: next, Op: verbs.OpWrite, SGL: n.mr.SGL(0, 8), Remote: w.b.mr.Remote(0)})
			next++
		}
		for next > oldest+2 { // down to two
			completes(t, cq, verbs.Completion{ID: oldest, QP: qp.ID(), Op: verbs.OpWrite})
			oldest++
		}
	}
	shows(t, n.cq, 512, 0)
	assert.Equal(t, verbs.StateRTS, qp.State())
	n.quiet()
}

func destroyCQResults(t *conformance.T, n *host) {
	cq := n.newCQ(4)
	for name, c := range map[string]verbs.QPConfig{"send CQ": {SendCQ: cq}, "receive CQ": {RecvCQ: cq}} {
		qp := n.newQP(c)
		refuses(t, name, verbs.ErrCQInUse, cq.Destroy, queries(cq.Query))
		require.NoError(t, qp.Destroy())
	}
	require.NoError(t, cq.Destroy())
	require.ErrorIs(t, cq.Destroy(), verbs.ErrInvalidCQ)
	require.NoError(t, n.nic.Close())
	require.ErrorIs(t, n.cq.Destroy(), verbs.ErrInvalidRNIC)
}

func destroyCQModifiers(t *conformance.T) {
	n := newHost(t, hostConfig{RNIC: verbs.Config{Limits: verbs.Limits{CQs: 3}}})
	gone, other := n.newCQ(8), n.newCQ(8)
	lost, kept := n.flush(gone, 3), n.flush(other, 3)
	succeed(t, lost.Destroy, gone.Destroy)
	assert.Zero(t, gone.Poll(make([]verbs.Completion, 4)))
	for name, call := range map[string]func() error{
		"Poll CQ":                         func() error { return second(gone.PollOne()) },
		"Request Completion Notification": func() error { return gone.Notify(verbs.NotifyNext) },
		"Query CQ":                        func() error { return second(gone.Query()) },
		"Modify CQ":                       func() error { return gone.Resize(9) },
		"Create QP":                       func() error { return second(n.nic.CreateQP(n.withDefaults(verbs.QPConfig{SendCQ: gone}))) },
	} {
		assert.ErrorIs(t, call(), verbs.ErrInvalidCQ, name)
	}
	completes(t, other, flushed(kept, 1, 3)...)
	n.newCQ(8) // its place is free
	require.ErrorIs(t, second(n.nic.CreateCQ(verbs.CQConfig{})), verbs.ErrInsufficientResources)
}

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

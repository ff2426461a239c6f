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

package cases

import (
	"math"
	"math/rand/v2"
	"sync"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// rv5_3_life is querying, resizing and destroying Completion Queues: verbs draft
// 5.3.2 to 5.3.4.
var rv5_3_life = []conformance.Case{
	apiCase("5.3.2/attributes", onHost(cqAttributes), "RV-5.3.2-M1", "RV-5.3.2-M2"),
	apiCase("5.3.3/resize-under-traffic", resizeUnderTraffic, "RV-5.3.3-M1", "RV-5.3.3-M2", "RV-5.3.3-M3", "PV-5.3.3-M1"),
	apiCase("5.3.3/loses-nothing", onHost(resizeLosesNothing), "RV-5.3.3-M2"),
	apiCase("5.3.3/not-below-what-is-there", onHost(resizeNotBelow), "RV-5.3.3-M3", "RV-5.3.3-M4", "RV-5.3.3-M5", "PV-5.3.3-M1"),
	apiCase("5.3.4/only-by-verb", cqDestroyedByVerb, "RV-5.3.4-M1"),
	apiCase("5.3.4/in-use", onIdleHostPair(cqInUse), "RV-5.3.4-M2", "RV-5.3.4-M3"),
	apiCase("5.3.4/returns-resources", cqReturnsResources, "RV-5.3.4-M4"),
	apiCase("5.3.4/no-completion-after", onHostPair(cqNothingAfter), "RV-5.3.4-M5"),
}

// shows says what Query CQ has to tell.
func shows(t *conformance.T, cq *verbs.CQ, entries int, handler verbs.HandlerID) {
	require.Equal(t, verbs.CQAttributes{Entries: entries, Handler: handler}, must(cq.Query())(t), "Query CQ")
	require.Equal(t, entries, roomOf(cq))
}

func cqAttributes(t *conformance.T, n *host) {
	handlers := []verbs.HandlerID{0}
	for range 2 {
		id := must(n.nic.AddCompletionHandler(func(*verbs.CQ) {}))(t)
		require.NotZero(t, id)
		handlers = append(handlers, id)
	}
	require.NotEqual(t, handlers[1], handlers[2])
	for i, id := range handlers {
		cq := must(n.nic.CreateCQ(verbs.CQConfig{Entries: 10 + i, Handler: id}))(t)
		shows(t, cq, roomOf(cq), id)
		require.GreaterOrEqual(t, roomOf(cq), 10+i)
		for _, size := range []int{300, 7, 1} {
			require.NoError(t, cq.Resize(size))
			shows(t, cq, size, id)
		}
	}
}

// resizeUnderTraffic resizes the CQ of two queue pairs, at moments and to sizes that
// the seed gives, while each of them carries numbered writes.
func resizeUnderTraffic(t *conformance.T) {
	const each, depth = 1500, 32
	w := newHostPair(t, hostPairConfig{A: hostConfig{CQ: 2 * depth, QP: verbs.QPConfig{SendDepth: depth}}})
	n := w.a
	more, _ := w.connectMore(verbs.QPConfig{SendDepth: depth}, verbs.QPConfig{})
	stop := make(chan struct{})
	var resizing sync.WaitGroup
	resizing.Go(func() { resizeAtRandom(t, n.cq, 2*depth, stop) })
	defer resizing.Wait()
	defer close(stop)
	next, posted := map[verbs.QPID]uint64{}, map[verbs.QPID]uint64{}
	got := make([]verbs.Completion, 3)
	for next[n.qp.ID()] < each || next[more.ID()] < each {
		for i, qp := range []*verbs.QP{n.qp, more} {
			for id := posted[qp.ID()]; id < each && id < next[qp.ID()]+depth; id++ {
				post(t, qp, verbs.Request{ID: id, Op: verbs.OpWrite, SGL: n.mr.SGL(0, 16), Remote: w.b.mr.Remote(16 * i)})
				posted[qp.ID()]++
			}
		}
		k := must(n.cq.Wait(t.Context(), got))(t)
		for _, c := range got[:k] {
			require.Equal(t, verbs.Completion{ID: next[c.QP], QP: c.QP, Op: verbs.OpWrite}, c, "in order, each once")
			next[c.QP]++
		}
	}
	empty(t, n.cq)
	assert.Equal(t, []verbs.State{verbs.StateRTS, verbs.StateRTS}, []verbs.State{n.qp.State(), more.State()})
	n.quiet()
}

// resizeAtRandom resizes to least entries and more until stop is closed. Now and
// then it asks for too many.
func resizeAtRandom(t *conformance.T, cq *verbs.CQ, least int, stop <-chan struct{}) {
	rng := rand.New(rand.NewPCG(t.Rand().Uint64(), 0))
	for size := least; ; {
		select {
		case <-stop:
			return
		default:
		}
		if rng.IntN(10) == 0 {
			assert.ErrorIs(t, cq.Resize(math.MaxInt), verbs.ErrTooManyCQE)
		} else {
			size = least + rng.IntN(500)
			assert.NoError(t, cq.Resize(size))
		}
		if q, err := cq.Query(); !assert.NoError(t, err) || !assert.Equal(t, size, q.Entries) {
			return
		}
	}
}

// resizeLosesNothing resizes a queue whose entries have come round: the oldest are
// behind the youngest in its storage, wherever that is.
func resizeLosesNothing(t *conformance.T, n *host) {
	for _, size := range []int{7, 8, 20} {
		cq := n.newCQ(8)
		room := roomOf(cq)
		first := n.flush(cq, room-2)
		completes(t, cq, flushed(first, 1, room-4)...)
		later := n.flush(cq, 5)
		require.NoError(t, cq.Resize(size))
		completes(t, cq, append(flushed(first, room-3, room-2), flushed(later, 1, 5)...)...)
		empty(t, cq)
	}
	n.quiet()
}

func resizeNotBelow(t *conformance.T, n *host) {
	cq := n.newCQ(9)
	qp := n.flush(cq, 5)
	for _, size := range []int{1, 4} {
		refuses(t, "fewer than there are", verbs.ErrShrinkFailed, func() error { return cq.Resize(size) }, queries(cq.Query))
	}
	refuses(t, "none", verbs.ErrInvalidModifier, func() error { return cq.Resize(0) }, queries(cq.Query))
	n.quiet()
	require.NoError(t, cq.Resize(5))
	shows(t, cq, 5, 0)
	completes(t, cq, flushed(qp, 1, 5)...)
	empty(t, cq)
	require.NoError(t, cq.Resize(1))
}

func cqDestroyedByVerb(t *conformance.T) {
	nic := openRNIC(t, verbs.Config{Limits: verbs.Limits{CQs: 1}})
	pd := must(nic.AllocatePD())(t)
	cq := must(nic.CreateCQ(verbs.CQConfig{}))(t)
	require.NoError(t, must(nic.CreateQP(verbs.QPConfig{PD: pd, SendCQ: cq, RecvCQ: cq}))(t).Destroy(), "the last user")
	require.ErrorIs(t, second(nic.CreateCQ(verbs.CQConfig{})), verbs.ErrInsufficientResources, "an unused CQ is one all the same")
	require.NoError(t, second(cq.Query()))
	require.NoError(t, cq.Destroy())
	require.NoError(t, second(nic.CreateCQ(verbs.CQConfig{})))
}

func cqInUse(t *conformance.T, w *hostPair) {
	n := w.a
	srq := n.newSRQ(verbs.SRQConfig{})
	for _, c := range []struct {
		name string
		make func(cq *verbs.CQ) verbs.QPConfig
	}{
		{"the SQ", func(cq *verbs.CQ) verbs.QPConfig { return verbs.QPConfig{SendCQ: cq} }},
		{"the RQ", func(cq *verbs.CQ) verbs.QPConfig { return verbs.QPConfig{RecvCQ: cq} }},
		{"the RQ, of an S-RQ", func(cq *verbs.CQ) verbs.QPConfig { return verbs.QPConfig{RecvCQ: cq, SRQ: srq} }},
		{"both", func(cq *verbs.CQ) verbs.QPConfig { return verbs.QPConfig{SendCQ: cq, RecvCQ: cq} }},
	} {
		cq := n.newCQ(8)
		qp, peer := w.connectMore(c.make(cq), verbs.QPConfig{})
		refuses(t, "the CQ of "+c.name, verbs.ErrCQInUse, cq.Destroy, queries(cq.Query))
		sends(t, endpoint{qp, n.mr}, endpoint{peer, w.b.mr}) // completions go on
		sends(t, endpoint{peer, w.b.mr}, endpoint{qp, n.mr})
		require.NoError(t, cq.Resize(9), "verbs too")
		require.NoError(t, qp.Destroy())
		require.NoError(t, cq.Destroy(), "no longer of %s", c.name)
	}
}

func cqReturnsResources(t *conformance.T) {
	nic := openRNIC(t, verbs.Config{Limits: verbs.Limits{CQs: 2, EventHandlers: 1}})
	handler := must(nic.AddCompletionHandler(func(*verbs.CQ) {}))(t)
	for range 100 {
		cq := must(nic.CreateCQ(verbs.CQConfig{Entries: 64, Handler: handler}))(t)
		require.NoError(t, cq.Notify(verbs.NotifyNext))
		waiting := make(chan error, 1)
		go func() { waiting <- second(cq.Wait(t.Context(), make([]verbs.Completion, 1))) }()
		require.NoError(t, cq.Destroy())
		require.ErrorIs(t, <-waiting, verbs.ErrInvalidCQ, "who waited")
		assert.Nil(t, nic.CQ(cq.ID()))
	}
}

func cqNothingAfter(t *conformance.T, w *hostPair) {
	n := w.a
	cq := n.newCQ(16)
	waiting := n.flush(cq, 3)
	there := w.b.newCQ(8)
	qp, peer := w.connectMore(verbs.QPConfig{SendCQ: cq, RecvCQ: cq}, verbs.QPConfig{SendCQ: there, RecvCQ: there})
	postRecv(t, qp, verbs.Recv{ID: 1}, verbs.Recv{ID: 2})
	post(t, qp, verbs.Request{ID: 3, Op: verbs.OpRead, Local: n.mr.SGE(0, 64), Remote: w.b.mr.Remote(0)})
	post(t, peer, verbs.Request{})
	succeed(t, waiting.Destroy, qp.Destroy, cq.Destroy)
	var c [4]verbs.Completion
	assert.Zero(t, cq.Poll(c[:]))
	assert.ErrorIs(t, second(cq.PollOne()), verbs.ErrInvalidCQ)
	assert.ErrorIs(t, second(cq.Wait(t.Context(), c[:])), verbs.ErrInvalidCQ)
	assert.Equal(t, [4]verbs.Completion{}, c)
	moves(t, n.endpoint(), w.b.endpoint())
}

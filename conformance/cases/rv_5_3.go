package cases

import (
	"math"
	"math/rand/v2"
	"reflect"
	"sync"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// rv5_3 is Completion Queues, what they serve and how large they are: verbs draft
// 5.3 and 5.3.1.
var rv5_3 = []conformance.Case{
	apiCase("5.3/only-a-cq-has-completions", onlyCQsHaveCompletions, "RV-5.3-M1"),
	apiCase("5.3/sq-rq-or-both", onIdleHostPair(cqOfSQRQOrBoth), "RV-5.3-M2"),
	apiCase("5.3/many-qps", onHostPair(cqOfManyQPs), "RV-5.3-M3"),
	apiCase("5.3.1/created-here", cqsCreatedHere, "RV-5.3.1-M1"),
	apiCase("5.3.1/entries", onHost(cqEntries), "RV-5.3.1-M2", "RV-5.3.1-M3"),
	apiCase("5.3.1/too-many-entries", cqTooManyEntries, "RV-5.3.1-M4", "RV-5.3.1-M5"),
	apiCase("5.3.1/overflow-stays", onHostPair(cqOverflowStays), "RV-5.3.1-M6", "RV-5.3.1-M7"),
	apiCase("5.3.1/fewer-entries-than-requests", cqFewerEntriesThanRequests, "RV-5.3.1-M8"),
}

// holds reports whether a value of type v can hold a Work Completion, looking into
// everything but methods.
func holds(v reflect.Type) bool {
	if v == reflect.TypeFor[verbs.Completion]() {
		return true
	}
	switch k := v.Kind(); {
	case k == reflect.Pointer, k == reflect.Slice, k == reflect.Array, k == reflect.Chan:
		return holds(v.Elem())
	case k == reflect.Map:
		return holds(v.Key()) || holds(v.Elem())
	case k != reflect.Func:
		return false
	}
	for i := range v.NumIn() {
		if holds(v.In(i)) {
			return true
		}
	}
	for i := range v.NumOut() {
		if holds(v.Out(i)) {
			return true
		}
	}
	return false
}

func onlyCQsHaveCompletions(t *conformance.T) {
	var got []string
	for _, v := range []any{
		&verbs.RNIC{}, &verbs.PD{}, &verbs.CQ{}, &verbs.QP{}, &verbs.SRQ{}, &verbs.MR{}, &verbs.MW{}, &verbs.Pages{},
		verbs.UserQP{}, verbs.UserSRQ{}, verbs.UserCQ{},
	} {
		typ := reflect.TypeOf(v)
		for i := range typ.NumMethod() {
			if m := typ.Method(i); holds(m.Type) {
				got = append(got, typ.String()+"."+m.Name)
			}
		}
	}
	assert.ElementsMatch(t, []string{"*verbs.CQ.Poll", "*verbs.CQ.PollOne", "*verbs.CQ.Wait", "*verbs.CQ.WaitOne", "verbs.UserCQ.Poll"}, got)
}

// trade has each of two connected queue pairs send one message to the other.
func trade(t *conformance.T, a, b *verbs.QP) {
	for i, qp := range []*verbs.QP{a, b} {
		postRecv(t, qp, verbs.Recv{ID: uint64(10 + i)})
	}
	for i, qp := range []*verbs.QP{a, b} {
		post(t, qp, verbs.Request{ID: uint64(20 + i)})
	}
}

func cqOfSQRQOrBoth(t *conformance.T, w *hostPair) {
	sent, received, both := w.a.newCQ(8), w.a.newCQ(8), w.a.newCQ(8)
	two := w.a.newQP(verbs.QPConfig{SendCQ: sent, RecvCQ: received})
	one := w.a.newQP(verbs.QPConfig{SendCQ: both, RecvCQ: both})
	for _, qp := range []*verbs.QP{two, one} {
		peer := w.b.newQP(verbs.QPConfig{})
		connect(t, qp, peer)
		trade(t, qp, peer)
	}
	completes(t, sent, verbs.Completion{ID: 20, QP: two.ID(), Op: verbs.OpSend})
	completes(t, received, verbs.Completion{ID: 10, QP: two.ID(), Op: verbs.OpRecv})
	completesAny(t, both,
		verbs.Completion{ID: 20, QP: one.ID(), Op: verbs.OpSend}, verbs.Completion{ID: 10, QP: one.ID(), Op: verbs.OpRecv})
	for _, cq := range []*verbs.CQ{sent, received, both, w.a.cq} {
		empty(t, cq)
	}
}

func cqOfManyQPs(t *conformance.T, w *hostPair) {
	var here, there []verbs.Completion
	for range 4 {
		a, b := w.connectMore(verbs.QPConfig{}, verbs.QPConfig{})
		trade(t, a, b)
		here = append(here, verbs.Completion{ID: 10, QP: a.ID(), Op: verbs.OpRecv}, verbs.Completion{ID: 20, QP: a.ID(), Op: verbs.OpSend})
		there = append(there, verbs.Completion{ID: 11, QP: b.ID(), Op: verbs.OpRecv}, verbs.Completion{ID: 21, QP: b.ID(), Op: verbs.OpSend})
	}
	completesAny(t, w.a.cq, here...)
	completesAny(t, w.b.cq, there...)
	w.noCompletions()
}

func cqsCreatedHere(t *conformance.T) {
	n := newHost(t, hostConfig{RNIC: verbs.Config{Limits: verbs.Limits{QPs: 2}}})
	gone := n.newCQ(4)
	require.NoError(t, gone.Destroy())
	for name, cq := range map[string]*verbs.CQ{
		"none": nil, "made up": {}, "destroyed": gone, "of another RNIC": newHost(t, hostConfig{}).cq,
	} {
		for _, c := range []verbs.QPConfig{
			{PD: n.pd, SendCQ: cq, RecvCQ: n.cq}, {PD: n.pd, SendCQ: n.cq, RecvCQ: cq},
		} {
			assert.ErrorIs(t, second(n.nic.CreateQP(c)), verbs.ErrInvalidCQ, name)
		}
	}
	n.newQP(verbs.QPConfig{}) // the limit is not used up
	require.ErrorIs(t, second(n.nic.CreateQP(n.withDefaults(verbs.QPConfig{}))), verbs.ErrInsufficientResources)
}

// flush fills a CQ with the completions of n receives, numbered from 1 on, in error.
// It returns the queue pair.
func (n *host) flush(cq *verbs.CQ, count int) *verbs.QP {
	qp := n.newQP(verbs.QPConfig{SendCQ: cq, RecvCQ: cq, RecvDepth: count})
	for i := range count {
		postRecv(n.t, qp, verbs.Recv{ID: uint64(i + 1)})
	}
	require.NoError(n.t, qp.Modify(verbs.ModifyQP{Next: verbs.StateError}))
	return qp
}

// flushed are the completions that flush makes.
func flushed(qp *verbs.QP, from, to int) []verbs.Completion {
	var list []verbs.Completion
	for i := from; i <= to; i++ {
		list = append(list, verbs.Completion{ID: uint64(i), QP: qp.ID(), Op: verbs.OpRecv, Status: verbs.StatusFlushed})
	}
	return list
}

func cqEntries(t *conformance.T, n *host) {
	refuses(t, "a negative number", verbs.ErrInvalidModifier, func() error {
		return second(n.nic.CreateCQ(verbs.CQConfig{Entries: -1}))
	})
	for _, c := range []struct{ asked, least int }{{0, 256}, {1, 1}, {3, 3}, {100, 100}} {
		cq := n.newCQ(c.asked)
		assert.Equal(t, must(cq.Query())(t).Entries, roomOf(cq), "Create CQ and Query CQ")
		require.GreaterOrEqual(t, roomOf(cq), c.least, "asked for %d", c.asked)
		qp := n.flush(cq, roomOf(cq))
		completes(t, cq, flushed(qp, 1, roomOf(cq))...)
		empty(t, cq)
	}
	n.quiet()
}

func cqTooManyEntries(t *conformance.T) {
	nic := openRNIC(t, verbs.Config{Limits: verbs.Limits{CQs: 1, CQE: 100}})
	create := func(entries int) (*verbs.CQ, error) { return nic.CreateCQ(verbs.CQConfig{Entries: entries}) }
	for _, entries := range []int{101, math.MaxInt} {
		assert.ErrorIs(t, second(create(entries)), verbs.ErrTooManyCQE, "%d entries", entries)
	}
	cq := must(create(100))(t, "the one CQ was not created before")
	assert.Equal(t, 100, roomOf(cq))
	assert.ErrorIs(t, second(create(1)), verbs.ErrInsufficientResources)
	require.NoError(t, cq.Destroy())
	assert.ErrorIs(t, second(create(101)), verbs.ErrTooManyCQE)
	require.NoError(t, second(create(1)))
}

func cqOverflowStays(t *conformance.T, w *hostPair) {
	n := w.a
	tiny, other := n.newCQ(1), n.newCQ(8)
	known := n.flush(other, 3)
	victim, _ := w.connectMore(verbs.QPConfig{SendCQ: tiny, RecvCQ: tiny}, verbs.QPConfig{})
	for id := range uint64(4) {
		post(t, n.qp, verbs.Request{ID: id, Op: verbs.OpWrite, SGL: n.mr.SGL(0, 8<<10), Remote: w.b.mr.Remote(int(id) * 8 << 10)})
	}
	post(t, victim, verbs.Request{ID: 1, Op: verbs.OpWrite}, verbs.Request{ID: 2, Op: verbs.OpWrite})
	n.events.are(verbs.Event{ID: verbs.EventCQOverflow, CQ: tiny.ID()}, verbs.Event{ID: verbs.EventCQSQOverflow, QP: victim.ID()})
	ends(t, victim, verbs.StateError)

	for id := range uint64(4) {
		completes(t, n.cq, verbs.Completion{ID: id, QP: n.qp.ID(), Op: verbs.OpWrite})
	}
	moves(t, n.endpoint(), w.b.endpoint())
	assert.Equal(t, verbs.StateRTS, n.qp.State())
	completes(t, other, flushed(known, 1, 3)...)
	again := n.flush(other, 8)
	completes(t, other, flushed(again, 1, 8)...)
	empty(t, other)
	n.quiet()
}

func cqFewerEntriesThanRequests(t *conformance.T) {
	const depth = 64
	w := newHostPair(t, hostPairConfig{Idle: true})
	cq := w.a.newCQ(1)
	// One more: that the peer has got the Writes does not mean that they have completed.
	qp := w.a.newQP(verbs.QPConfig{SendCQ: cq, RecvCQ: cq, SendDepth: depth + 1, RecvDepth: depth})
	for id := range uint64(depth) {
		post(t, qp, verbs.Request{ID: id, Op: verbs.OpWrite, Flags: verbs.Unsignaled})
		postRecv(t, qp, verbs.Recv{ID: id})
	}
	connect(t, qp, w.b.qp)
	for id := range uint64(depth) {
		run(t, w.b.qp, verbs.Request{ID: id}, verbs.StatusSuccess)
		completes(t, cq, verbs.Completion{ID: id, QP: qp.ID(), Op: verbs.OpRecv})
	}
	run(t, qp, verbs.Request{ID: 99, Op: verbs.OpWrite}, verbs.StatusSuccess)
	assert.Equal(t, verbs.StateRTS, qp.State())
	w.a.quiet()
}

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

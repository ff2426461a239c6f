package cases

import (
	"math"
	"reflect"

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

package cases

import (
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// rv8_2_1_slots is when a place of a work queue is free again: verbs draft 8.2.1.
var rv8_2_1_slots = []conformance.Case{
	apiCase("8.2.1/slots-of-sends", slotsOfSends, "RV-8.2.1-M9", "RV-8.2.1-M10", "PV-8.2.2-M1"),
	apiCase("8.2.1/slots-of-unsignaled", slotsOfUnsignaled, "RV-8.2.1-M9"),
	apiCase("8.2.1/slots-of-receives", onNode(slotsOfReceives), "RV-8.2.1-M9", "RV-8.2.1-M10", "PV-8.2.2-M1"),
}

// takes says that a queue has room for exactly that many requests, and uses it.
func takes(t *conformance.T, room int, post func(id uint64) error) {
	for i := range room {
		require.NoError(t, post(uint64(1000+i)), "request %d of %d that there is room for", i+1, room)
	}
	require.ErrorIs(t, post(2000), verbs.ErrQueueFull, "behind %d", room)
}

// slotsOfSends: a completion that is not reaped keeps its request's place.
func slotsOfSends(t *conformance.T) {
	l := newLine(t, verbs.QPConfig{SendDepth: 4})
	one := func(id uint64) error { return second(l.qp.PostSend(verbs.Request{ID: id})) }
	d := attributes(t, l.qp).SendDepth
	takes(t, d, one)
	for range d {
		l.heard()
	}
	require.NoError(t, l.qp.Drain(t.Context()))
	takes(t, 0, one)
	for range 3 * d { // all are completed all the time
		require.Len(t, await(t, l.sq, 1), 1)
		takes(t, 1, one)
		l.heard()
		require.NoError(t, l.qp.Drain(t.Context()))
	}
	await(t, l.sq, d)
	takes(t, d, one)
}

// slotsOfUnsignaled: without a completion, a place is free once the request is known
// done, by itself or by the completion of a later one; one that failed has a
// completion like any other.
func slotsOfUnsignaled(t *conformance.T) {
	l := newLine(t, verbs.QPConfig{SendDepth: 4, ORD: 16})
	d := attributes(t, l.qp).SendDepth
	reads := func(flags verbs.Flags) func(uint64) error {
		return func(id uint64) error {
			r := l.aRead(id)
			r.Flags = flags
			return second(l.qp.PostSend(r))
		}
	}
	asked := uint32(0)
	hear := func(k int) {
		for range k {
			asked++
			l.hear(l.asks(asked))
		}
	}
	t.Part("not done")
	takes(t, d, reads(verbs.Unsignaled))
	hear(d)
	l.settle()
	takes(t, 0, reads(0))

	t.Part("a later one reaped")
	for range d {
		l.tell(l.answer())
	}
	l.settle()
	for range d - 1 {
		require.NoError(t, reads(verbs.Unsignaled)(1))
	}
	require.NoError(t, reads(0)(7))
	hear(d)
	takes(t, 0, reads(0))
	for range d {
		l.tell(l.answer())
	}
	completes(t, l.sq, l.sentAs(7, verbs.OpRead, verbs.StatusSuccess))
	takes(t, d, reads(verbs.Unsignaled))
	hear(d)

	t.Part("failed")
	l.modify(verbs.StateError)
	ends(t, l.qp, verbs.StateError)
	l.modify(verbs.StateIdle)
	takes(t, 0, reads(0))
	for i := range d {
		require.Equal(t, l.sentAs(uint64(1000+i), verbs.OpRead, verbs.StatusFlushed), await(t, l.sq, 1)[0])
		takes(t, 1, reads(verbs.Unsignaled))
	}
}

// slotsOfReceives: the same of receives, all of which are signaled.
func slotsOfReceives(t *conformance.T, n *node) {
	for _, srq := range named(t, "%s", map[string]*verbs.SRQ{"RQ": nil, "S-RQ": n.newSRQ(verbs.SRQConfig{Depth: 4})}) {
		l := n.line(verbs.QPConfig{RecvDepth: 4, SRQ: srq})
		one := func(id uint64) error { return second(l.qp.PostRecv(verbs.Recv{ID: id})) }
		d := attributes(t, l.qp).RecvDepth
		if srq != nil {
			one = func(id uint64) error { return second(srq.PostRecv(verbs.Recv{ID: id})) }
			d = queried(t, srq).Depth
		}
		takes(t, d, one)
		for range d {
			l.say(nil)
		}
		l.settle() // all are completed
		takes(t, 0, one)
		for range 3 * d {
			require.Len(t, await(t, l.rq, 1), 1)
			takes(t, 1, one)
			l.say(nil)
			l.settle()
		}
		await(t, l.rq, d)
		takes(t, d, one)
	}
}

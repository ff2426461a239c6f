package cases

import (
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// rv8_2_1 is posting lists of requests, and what room they take: verbs draft 8.2.1.
var rv8_2_1 = []conformance.Case{
	apiCase("8.2.1/each-takes-one", onHost(eachTakesOne), "RV-8.2.1-M1", "RV-8.2.1-M10"),
	apiCase("8.2.1/list-order", onHost(listOrder), "RV-8.2.1-M2"),
	apiCase("8.2.1/first-error-of-sends", firstErrorOfSends, "RV-8.2.1-M3", "RV-8.2.1-M4", "RV-8.2.1-M5", "RV-8.2.1-M6", "RV-8.2.1-M7"),
	apiCase("8.2.1/first-error-of-receives", onHost(firstErrorOfReceives),
		"RV-8.2.1-M3", "RV-8.2.1-M4", "RV-8.2.1-M5", "RV-8.2.1-M6", "RV-8.2.1-M7"),
	apiCase("8.2.1/list-fills-queue", onHost(listFillsQueue), "RV-8.2.1-M3", "RV-8.2.1-M4", "RV-8.2.1-M6", "RV-8.2.1-M7", "RV-8.2.1-M10"),
	apiCase("8.2.1/returns-at-once", onHost(postingReturnsAtOnce), "RV-8.2.1-M8"),
}

// workQueue is a queue of any of the three kinds that takes requests without data.
type workQueue struct {
	name  string
	depth int
	// post posts one request for each ID, as a list.
	post func(ids ...uint64) (int, error)
	// shown is the Query of what the queue belongs to.
	shown func() any
}

// workQueues are one of each kind, of queue pairs that are Idle: nothing completes.
func (n *host) workQueues(depth int) []workQueue {
	qp := n.newQP(verbs.QPConfig{SendDepth: depth, RecvDepth: depth})
	srq := n.newSRQ(verbs.SRQConfig{Depth: depth})
	s := must(srq.Query())(n.t)
	recvs := func(ids []uint64) (list []verbs.Recv) {
		for _, id := range ids {
			list = append(list, verbs.Recv{ID: id})
		}
		return list
	}
	return []workQueue{
		{"SQ", attributes(n.t, qp).SendDepth, func(ids ...uint64) (int, error) {
			var list []verbs.Request
			for _, id := range ids {
				list = append(list, verbs.Request{ID: id})
			}
			return qp.PostSend(list...)
		}, snapshotOf(n.t, qp)},
		{"RQ", attributes(n.t, qp).RecvDepth, func(ids ...uint64) (int, error) { return qp.PostRecv(recvs(ids)...) }, snapshotOf(n.t, qp)},
		{"S-RQ", s.Depth, func(ids ...uint64) (int, error) { return srq.PostRecv(recvs(ids)...) }, queries(srq.Query)},
	}
}

// eachTakesOne fills queues with lists of all lengths, to the last place and no
// further.
func eachTakesOne(t *conformance.T, n *host) {
	for _, depth := range []int{1, 5, 64} {
		for _, q := range n.workQueues(depth) {
			t.Part("%s of %d", q.name, q.depth)
			require.GreaterOrEqual(t, q.depth, depth)
			got := must(q.post())(t, "an empty list")
			require.Zero(t, got)
			for used, length := 0, 1; used < q.depth; length++ {
				k := min(length, q.depth-used)
				got := must(q.post(make([]uint64, k)...))(t, "%d behind %d", k, used)
				require.Equal(t, k, got)
				used += k
			}
			for range 2 {
				refuses(t, "one more", verbs.ErrQueueFull, func() error {
					got, err := q.post(99)
					require.Zero(t, got)
					return err
				}, q.shown)
			}
		}
	}
}

// listOrder posts eight of each in one list, and compares what each carried.
func listOrder(t *conformance.T, n *host) {
	srq := n.newSRQ(verbs.SRQConfig{})
	for _, s := range named(t, "SQ and %s", map[string]*verbs.SRQ{"RQ": nil, "S-RQ": srq}) {
		l := n.link(verbs.QPConfig{SRQ: s})
		var sends []verbs.Request
		var recvs []verbs.Recv
		fill(n.mr.Bytes(), 3)
		for i := range 8 {
			sends = append(sends, verbs.Request{ID: uint64(i), SGL: n.mr.SGL(100*i, 10+i)})
			recvs = append(recvs, verbs.Recv{ID: uint64(i), SGL: n.mr.SGL(4096+100*i, 64)})
		}
		post(t, l.qp, sends...)
		postRecv(t, receiver(l.qp, s), recvs...)
		for i := range 8 {
			l.expect(aSend(uint32(i+1), n.mr.Bytes()[100*i:][:10+i]))
			completes(t, l.sq, l.sentAs(uint64(i), verbs.OpSend, verbs.StatusSuccess))
		}
		for i := range 8 {
			l.sendMessage([]byte{byte(i), 0xAA})
			completes(t, l.rq, l.got(uint64(i), 2))
			require.Equal(t, []byte{byte(i), 0xAA}, n.mr.Bytes()[4096+100*i:][:2], "receive %d", i)
		}
	}
}

// badSends are requests with one fault each that PostSQ has to see.
var badSends = []struct {
	what string
	req  verbs.Request
	want verbs.ImmediateError
}{
	{"no such operation", verbs.Request{Op: verbs.OpRecv}, verbs.ErrInvalidOp},
	{"a list too long", verbs.Request{SGL: make([]verbs.SGE, 5)}, verbs.ErrInvalidSGLLength},
	{"a Write's list too long", verbs.Request{Op: verbs.OpWrite, SGL: make([]verbs.SGE, 4)}, verbs.ErrInvalidSGLLength},
	{"no modifiers of a Bind", verbs.Request{Op: verbs.OpBind}, verbs.ErrInvalidModifier},
	{"no such flag", verbs.Request{Flags: 1 << 7}, verbs.ErrInvalidModifier},
}

// firstErrorOfSends has each of badSends at each place of lists of up to four, with a
// different one behind it.
func firstErrorOfSends(t *conformance.T) {
	l := newLink(t, verbs.QPConfig{SendSGE: 4, WriteSGE: 3})
	data, sent := l.mr.Bytes()[:4], uint32(0)
	for k, bad := range badSends {
		for length := 1; length <= 4; length++ {
			for at := range length {
				t.Part("%s at %d of %d", bad.what, at, length)
				var list []verbs.Request
				for i := range length {
					list = append(list, l.aSend(uint64(i)))
				}
				list[at] = bad.req
				if at+1 < length {
					list[at+1] = badSends[(k+1+at)%len(badSends)].req
				}
				got, err := l.qp.PostSend(list...)
				require.ErrorIs(t, err, bad.want)
				for i := range badSends {
					if other := badSends[i].want; other != bad.want {
						require.NotErrorIs(t, err, other)
					}
				}
				require.Equal(t, at, got, "posted")
				for i := range at {
					sent++
					l.expect(aSend(sent, data))
					completes(t, l.sq, l.sentAs(uint64(i), verbs.OpSend, verbs.StatusSuccess))
				}
				l.settled() // and nothing else was sent
				empty(t, l.sq)
			}
		}
	}
	t.Part("no fault")
	for length := 1; length <= 4; length++ {
		require.Equal(t, length, must(l.qp.PostSend(make([]verbs.Request, length)...))(t))
	}
}

// firstErrorOfReceives: the same of receives, of which the peer uses those that are
// there; the one behind them shows that there is no other.
func firstErrorOfReceives(t *conformance.T, n *host) {
	srq := n.newSRQ(verbs.SRQConfig{SGE: 3})
	for name, s := range map[string]*verbs.SRQ{"RQ": nil, "S-RQ": srq} {
		l := n.link(verbs.QPConfig{RecvSGE: 3, SRQ: s})
		posts := l.qp.PostRecv
		if s != nil {
			posts = s.PostRecv
		}
		for length := 1; length <= 4; length++ {
			for at := range length {
				t.Part("%s, at %d of %d", name, at, length)
				list := make([]verbs.Recv, length)
				for i := range list {
					list[i] = verbs.Recv{ID: uint64(i), SGL: n.mr.SGL(64*i, 64)}
				}
				list[at].SGL = make([]verbs.SGE, 4)
				got, err := posts(list...)
				require.ErrorIs(t, err, verbs.ErrInvalidSGLLength)
				require.Equal(t, at, got, "posted")
				got, err = posts(verbs.Recv{ID: 77, SGL: n.mr.SGL(1024, 64)})
				require.NoError(t, err)
				require.Equal(t, 1, got)
				clear(n.mr.Bytes())
				for i := range at {
					l.sendMessage([]byte{byte(i + 1)})
					completes(t, l.rq, l.got(uint64(i), 1))
					require.Equal(t, byte(i+1), n.mr.Bytes()[64*i], "receive %d", i)
				}
				l.sendMessage([]byte{0x77})
				completes(t, l.rq, l.got(77, 1))
				require.Equal(t, make([]byte, 64*(length-at)), n.mr.Bytes()[64*at:64*length], "the buffers of what was not posted")
			}
		}
	}
}

// listFillsQueue: the queue has room for the first two of four, and the third is
// refused for that, not the fourth for what else is wrong with it.
func listFillsQueue(t *conformance.T, n *host) {
	for q := range inTurn(t, "%s", n.workQueues(8)) {
		got, err := q.post(make([]uint64, q.depth-2)...)
		require.NoError(t, err)
		require.Equal(t, q.depth-2, got)
		got, err = q.post(1, 2, 3, 4)
		require.ErrorIs(t, err, verbs.ErrQueueFull)
		require.Equal(t, 2, got)
	}
	t.Part("with another fault behind it")
	qp := n.newQP(verbs.QPConfig{SendDepth: 8})
	d := attributes(t, qp).SendDepth
	post(t, qp, make([]verbs.Request, d-1)...)
	got, err := qp.PostSend(verbs.Request{}, verbs.Request{}, verbs.Request{Op: verbs.OpRecv})
	require.ErrorIs(t, err, verbs.ErrQueueFull)
	require.Equal(t, 1, got)
	t.Part("a list longer than the queue")
	for _, q := range n.workQueues(8) {
		got, err := q.post(make([]uint64, q.depth+5)...)
		require.ErrorIs(t, err, verbs.ErrQueueFull)
		require.Equal(t, q.depth, got, q.name)
	}
}

// postingReturnsAtOnce posts much more than TCP takes for a peer that reads nothing: a
// post that waited would wait forever.
func postingReturnsAtOnce(t *conformance.T, n *host) {
	const size = 1 << 20
	mr, srq := n.register(size, allRights), n.newSRQ(verbs.SRQConfig{})
	l := n.link(verbs.QPConfig{SendDepth: 64})
	d := attributes(t, l.qp).SendDepth
	for i := range d {
		post(t, l.qp, verbs.Request{ID: uint64(i), SGL: mr.SGL(0, size)})
	}
	require.ErrorIs(t, second(l.qp.PostSend(verbs.Request{})), verbs.ErrQueueFull)
	l.recv(1, 2, 3)
	postRecv(t, srq, verbs.Recv{ID: 1}, verbs.Recv{ID: 2})
	done := l.sq.Poll(make([]verbs.Completion, d))
	require.Less(t, done, d/2, "the peer reads nothing")
	require.Equal(t, verbs.StateRTS, l.qp.State())
	l.reset()
	ends(t, l.qp, verbs.StateError)
	for _, c := range await(t, l.sq, d-done)[1:] {
		require.Equal(t, verbs.StatusFlushed, c.Status)
	}
}

// rv8_2_1_slots is when a place of a work queue is free again: verbs draft 8.2.1.
var rv8_2_1_slots = []conformance.Case{
	apiCase("8.2.1/slots-of-sends", slotsOfSends, "RV-8.2.1-M9", "RV-8.2.1-M10", "PV-8.2.2-M1"),
	apiCase("8.2.1/slots-of-unsignaled", slotsOfUnsignaled, "RV-8.2.1-M9"),
	apiCase("8.2.1/slots-of-receives", onHost(slotsOfReceives), "RV-8.2.1-M9", "RV-8.2.1-M10", "PV-8.2.2-M1"),
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
	l := newLink(t, verbs.QPConfig{SendDepth: 4})
	one := func(id uint64) error { return second(l.qp.PostSend(verbs.Request{ID: id})) }
	d := attributes(t, l.qp).SendDepth
	takes(t, d, one)
	for range d {
		l.next()
	}
	require.NoError(t, l.qp.Drain(t.Context()))
	takes(t, 0, one)
	for range 3 * d { // all are completed all the time
		require.Len(t, await(t, l.sq, 1), 1)
		takes(t, 1, one)
		l.next()
		require.NoError(t, l.qp.Drain(t.Context()))
	}
	await(t, l.sq, d)
	takes(t, d, one)
}

// slotsOfUnsignaled: without a completion, a place is free once the request is known
// done, by itself or by the completion of a later one; one that failed has a
// completion like any other.
func slotsOfUnsignaled(t *conformance.T) {
	l := newLink(t, verbs.QPConfig{SendDepth: 4, ORD: 16})
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
			l.expect(l.asks(asked))
		}
	}
	t.Part("not done")
	takes(t, d, reads(verbs.Unsignaled))
	hear(d)
	l.settled()
	takes(t, 0, reads(0))

	t.Part("a later one reaped")
	for range d {
		l.send(l.answer())
	}
	l.settled()
	for range d - 1 {
		require.NoError(t, reads(verbs.Unsignaled)(1))
	}
	require.NoError(t, reads(0)(7))
	hear(d)
	takes(t, 0, reads(0))
	for range d {
		l.send(l.answer())
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
func slotsOfReceives(t *conformance.T, n *host) {
	for _, srq := range named(t, "%s", map[string]*verbs.SRQ{"RQ": nil, "S-RQ": n.newSRQ(verbs.SRQConfig{Depth: 4})}) {
		l := n.link(verbs.QPConfig{RecvDepth: 4, SRQ: srq})
		one := func(id uint64) error { return second(l.qp.PostRecv(verbs.Recv{ID: id})) }
		d := attributes(t, l.qp).RecvDepth
		if srq != nil {
			one = func(id uint64) error { return second(srq.PostRecv(verbs.Recv{ID: id})) }
			d = queried(t, srq).Depth
		}
		takes(t, d, one)
		for range d {
			l.sendMessage(nil)
		}
		l.settled() // all are completed
		takes(t, 0, one)
		for range 3 * d {
			require.Len(t, await(t, l.rq, 1), 1)
			takes(t, 1, one)
			l.sendMessage(nil)
			l.settled()
		}
		await(t, l.rq, d)
		takes(t, d, one)
	}
}

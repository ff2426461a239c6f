package cases

import (
	"bytes"
	"errors"
	"net"
	"strings"
	"sync"
	"syscall"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/lab/fault"
	"github.com/softrnic/softrnic/verbs"
)

// failsVerbs are verbs that fail part of the way, by each cause, and what ends by itself: nothing is kept, and the next
// of the kind succeeds.
var failsVerbs = []conformance.Case{
	apiCase("6.1.1/endpoint-room", onHost(endpointRoom), "RV-6.1.1-M3", "RV-6.1.1-M4"),
	apiCase("6.1.1/endpoint-ends", endpointEnds, "RV-6.1.4-M2"),
	apiCase("6.1.1/endpoint-fails", endpointFails, "RV-5.3.1-M5", "RV-8.3.1-M1"),
	apiCase("6.1.1/none-of-it", onHost(noneOfIt), "RV-6.1.1-M2"),
	apiCase("6.1.1/identifier-chosen", onHost(identifierChosen), "RV-6.1.1-M8"),
	apiCase("5.1.4/counts", countsOfRNIC, "RV-5.1.4-M1"),
	apiCase("8.3.1/posts-by-a-plan", postsByPlan, "RV-9.3.1.1-M2", "RV-9.3.1.2-M2", "RV-8.3.1-M1"),
	apiCase("8.3.1/registration-by-a-plan", registrationByPlan, "RV-5.2.2-M2", "RV-8.3.1-M1"),
	apiCase("5.3.1/completions-by-a-plan", completionsByPlan, "RV-5.3.1-M6", "RV-6.3.7-M2"),
	apiCase("6.5/refused-modify-gives-back", refusedModifyGivesBack, "RV-6.5-M13", "RV-6.1.3-M14"),
	apiCase("6.2.1.2/last-message-cut-short", onHost(lastMessageCutShort), "RV-6.1.3-M4", "RV-6.1.3-M14", "RV-6.1.4-M7"),
	apiCase("6.2.1.2/early-octets-at-the-limit", onHost(earlyAtLimit), "RV-6.2.1.2-M4", "RV-6.1.3-M14"),
	apiCase("6.1.3/counters-beside-posts", onHost(countersBesidePosts), "RV-6.2.2-M3"),
	apiCase("6.1.4/why-it-ended", onHost(whyItEnded), "RV-6.1.4-M4", "RV-6.1.1-M10"),
}

// countersBesidePosts posts Sends while others ask for the counters again and again: each leaves, though nothing follows it.
func countersBesidePosts(t *conformance.T, n *host) {
	l := n.link(verbs.QPConfig{})
	over := make(chan struct{})
	var readers sync.WaitGroup
	defer readers.Wait()
	defer close(over)
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
					_ = l.qp.Stats()
				}
			}
		})
	}
	for id := range counted(t, "Send %d", 512) {
		post(t, l.qp, l.aSend(uint64(id)))
		l.gets1(opSend)
		await(t, l.sq, 1)
	}
	countersOfStreams(t, n)
}

// endpoint is CreateEndpoint.
func (n *host) newEndpoint(c verbs.QPConfig) *verbs.QP {
	c.CloseTimeout = hour
	return must(n.nic.CreateEndpoint(c))(n.t, "CreateEndpoint")
}

// endpointRoom fills queues of several depths to the last element: the CQs that a queue pair brings along take it all.
func endpointRoom(t *conformance.T, n *host) {
	for d := range inTurn(t, "depths %v", [][2]int{{1, 1}, {2, 3}, {3, 2}, {5, 64}, {65, 1}, {1, 100}}) {
		qp := n.newEndpoint(verbs.QPConfig{SendDepth: d[0], RecvDepth: d[1]})
		a := attributes(t, qp)
		require.NotSame(t, a.SendCQ, a.RecvCQ, "a CQ for each queue")
		for id := range uint64(a.SendDepth) {
			post(t, qp, verbs.Request{ID: id})
		}
		for id := range uint64(a.RecvDepth) {
			postRecv(t, qp, verbs.Recv{ID: id})
		}
		require.NoError(t, qp.Modify(verbs.ModifyQP{Next: verbs.StateError}))
		await(t, a.SendCQ, a.SendDepth)
		await(t, a.RecvCQ, a.RecvDepth)
		require.NoError(t, qp.Destroy())
	}
	n.quiet()
	n = newHost(t, hostConfig{RNIC: verbs.Config{Limits: verbs.Limits{WR: 16, SRQWR: 64}}})
	for depth := range inTurn(t, "an S-RQ of %d, beyond a Work Queue", []int{1, 33, 64}) {
		s := n.newSRQ(verbs.SRQConfig{Depth: depth})
		n.receives(s, upTo(1, uint64(depth))...)
		qp := n.newEndpoint(verbs.QPConfig{SRQ: s, RecvDepth: 1})
		p := rawPeer(t, qp, asInitiator)
		for range depth {
			p.sendMessage([]byte{1})
		}
		await(t, qp.RecvCQ(), depth)
		require.NoError(t, qp.Destroy())
	}
	n.quiet()
}

// objects are how many of each kind there are.
func (n *host) objects() [6]uint64 {
	s := n.nic.Stats()
	return [6]uint64{s.PDs, s.CQs, s.SRQs, s.QPs, s.Regions, s.Windows}
}

// endpointEnds has what a queue pair has brought along be used by others too: it ends with the last of them, and not
// before. As many as an RNIC has are made one after the other.
func endpointEnds(t *conformance.T) {
	n := newHost(t, hostConfig{RNIC: verbs.Config{Limits: verbs.Limits{PDs: 2, CQs: 3, QPs: 3}}})
	before := n.objects()
	for range counted(t, "endpoint %d", 4) {
		a := n.newEndpoint(verbs.QPConfig{})
		pd, sq, rq := a.PD(), a.SendCQ(), a.RecvCQ()
		b := n.newQP(verbs.QPConfig{PD: pd, SendCQ: sq, RecvCQ: rq})
		mr := must(pd.Register(make([]byte, 8), allRights))(t)
		require.ErrorIs(t, sq.Destroy(), verbs.ErrCQInUse)
		require.NoError(t, a.Destroy())
		require.NoError(t, second(sq.Query()), "another queue pair is tied to it")
		require.NoError(t, second(rq.Query()), "another queue pair is tied to it")
		require.NoError(t, b.Destroy())
		require.ErrorIs(t, second(sq.Query()), verbs.ErrInvalidCQ, "with the last queue pair")
		require.ErrorIs(t, second(rq.Query()), verbs.ErrInvalidCQ, "with the last queue pair")
		mw := must(pd.AllocateWindow())(t, "a region is in the domain still")
		require.NoError(t, mr.Deregister())
		require.NoError(t, mw.Deallocate())
		require.ErrorIs(t, second(pd.AllocateWindow()), verbs.ErrInvalidPD, "with the last object in it")
		require.Equal(t, before, n.objects())
	}
	cq := n.newCQ(64)
	for _, c := range []verbs.QPConfig{{SendCQ: cq}, {RecvCQ: cq}, {SendCQ: cq, RecvCQ: cq, PD: n.pd}} {
		require.NoError(t, n.newEndpoint(c).Destroy())
		require.NoError(t, second(cq.Query()), "it is the program's")
	}
}

// endpointFails has CreateEndpoint fail at each of its steps, more often than there are objects to lose.
func endpointFails(t *conformance.T) {
	other := newHost(t, hostConfig{})
	for _, w := range []struct {
		name   string
		want   error
		config func(*host) verbs.QPConfig
		taken  func(*host) func() error // and how that is given back
	}{
		{name: "no PD", want: verbs.ErrInsufficientResources, taken: func(n *host) func() error { return n.newPD().Deallocate }},
		{name: "no CQ", want: verbs.ErrInsufficientResources, taken: func(n *host) func() error {
			a, b := n.newCQ(1), n.newCQ(1)
			return func() error { return errors.Join(a.Destroy(), b.Destroy()) }
		}},
		{name: "one CQ", want: verbs.ErrInsufficientResources, taken: func(n *host) func() error { return n.newCQ(1).Destroy }},
		{name: "no QP", want: verbs.ErrInsufficientResources, taken: func(n *host) func() error { return n.newQP(verbs.QPConfig{}).Destroy }},
		{name: "too deep", want: verbs.ErrTooManyWR, config: func(*host) verbs.QPConfig { return verbs.QPConfig{SendDepth: 65} }},
		{name: "too many elements", want: verbs.ErrTooManySGE, config: func(*host) verbs.QPConfig { return verbs.QPConfig{RecvSGE: 9} }},
		{name: "another RNIC's S-RQ", want: verbs.ErrInvalidSRQ, config: func(*host) verbs.QPConfig {
			return verbs.QPConfig{SRQ: other.newSRQ(verbs.SRQConfig{Depth: 8})}
		}},
		{name: "an RQ limit without an S-RQ", want: verbs.ErrRQLimitRange, config: func(*host) verbs.QPConfig { return verbs.QPConfig{RQLimit: 1} }},
	} {
		t.In(w.name, func() {
			n := newHost(t, hostConfig{RNIC: verbs.Config{Limits: verbs.Limits{PDs: 2, CQs: 3, QPs: 2, WR: 64, SGE: 8}}, CQ: 64})
			free, c := func() error { return nil }, verbs.QPConfig{}
			if w.taken != nil {
				free = w.taken(n)
			}
			if w.config != nil {
				c = w.config(n)
			}
			before := n.objects()
			for range 3 {
				qp, err := n.nic.CreateEndpoint(c)
				require.ErrorIs(t, err, w.want)
				require.Nil(t, qp)
				require.Equal(t, before, n.objects(), "nothing is left")
			}
			require.NoError(t, free())
			require.NoError(t, n.newEndpoint(verbs.QPConfig{}).Destroy())
		})
	}
}

// noneOfIt asks for queues and Reads of none at all, where zero stands for a default, and for less than none.
func noneOfIt(t *conformance.T, n *host) {
	none := verbs.None
	for c := range inTurn(t, "%+v", []verbs.QPConfig{{SendDepth: none, RecvDepth: 5}, {SendDepth: 5, RecvDepth: none}}) {
		qp := n.newQP(c)
		a := attributes(t, qp)
		for i, depth := range []int{a.SendDepth, a.RecvDepth} {
			asked := [2]int{c.SendDepth, c.RecvDepth}[i]
			require.True(t, depth <= 1 || asked == 5 && depth >= 5 && depth < 16, "%d for %d", depth, asked)
		}
		for range a.SendDepth {
			post(t, qp, verbs.Request{})
		}
		for range a.RecvDepth {
			postRecv(t, qp, verbs.Recv{})
		}
		require.ErrorIs(t, second(qp.PostSend(verbs.Request{})), verbs.ErrQueueFull)
		require.ErrorIs(t, second(qp.PostRecv(verbs.Recv{})), verbs.ErrQueueFull)
		require.NoError(t, qp.Destroy())
	}
	for name, c := range named(t, "%s", map[string]verbs.QPConfig{"IRD": {IRD: none}, "ORD": {ORD: none}, "IRD and ORD": {NoReads: true}}) {
		qp := n.newQP(c)
		a := attributes(t, qp)
		require.Equal(t, []bool{strings.Contains(name, "IRD"), strings.Contains(name, "ORD")}, []bool{a.IRD == 0, a.ORD == 0}, "none of it")
		require.NoError(t, qp.Destroy())
	}
	for i, c := range []verbs.QPConfig{
		{SendDepth: -1}, {RecvDepth: -1}, {IRD: -1}, {ORD: -1}, {SendSGE: -1}, {WriteSGE: -1}, {RecvSGE: -1}, {SendSGE: none}, {RecvSGE: none},
	} {
		refuses(t, "negative", verbs.ErrInvalidModifier, func() error { return second(n.nic.CreateQP(n.withDefaults(c))) })
		assert.EqualValues(t, 1, n.objects()[3], "queue pairs behind refusal %d", i)
	}
}

// identifierChosen gives queue pairs identifiers of the program's choice: the largest, one too large, and one in use,
// also one that comes next by itself.
func identifierChosen(t *conformance.T, n *host) {
	const most = 1<<24 - 1
	largest := n.newQP(verbs.QPConfig{ID: most})
	require.EqualValues(t, most, largest.ID())
	for _, id := range []verbs.QPID{most + 1, most, n.qp.ID()} {
		refuses(t, "identifier", verbs.ErrInvalidModifier, func() error { return second(n.nic.CreateQP(n.withDefaults(verbs.QPConfig{ID: id}))) })
	}
	require.Same(t, largest, n.nic.QP(most), "it is there still")
	next := n.newQP(verbs.QPConfig{}).ID()
	seen := map[verbs.QPID]bool{most: true, n.qp.ID(): true, next: true}
	for _, id := range []verbs.QPID{next + 1, next + 3, 0, 0, 0, 0} {
		qp := n.newQP(verbs.QPConfig{ID: id})
		require.False(t, seen[qp.ID()], "two queue pairs %d", qp.ID())
		seen[qp.ID()] = true
	}
	require.NoError(t, largest.Destroy())
	require.EqualValues(t, most, n.newQP(verbs.QPConfig{ID: most}).ID(), "it is free again")
}

// countsOfRNIC has the RNIC tell what it has, and what all that there was has counted.
func countsOfRNIC(t *conformance.T) {
	w := newHostPair(t, hostPairConfig{})
	n := w.a
	s := n.newSRQ(verbs.SRQConfig{Depth: 4})
	cq, mw := n.newCQ(8), n.newMW()
	mine, theirs := w.connectMore(verbs.QPConfig{SRQ: s, RecvCQ: cq}, verbs.QPConfig{})
	require.Equal(t, [6]uint64{1, 2, 1, 2, 1, 1}, n.objects(), "PDs, CQs, S-RQs, QPs, regions and windows")
	require.Equal(t, []*verbs.QP{n.qp, mine}, n.nic.QPs(), "by identifier")
	require.Equal(t, []*verbs.CQ{n.cq, cq}, n.nic.CQs(), "by identifier")
	require.Equal(t, []*verbs.SRQ{s}, n.nic.SRQs())
	before := n.nic.Stats()
	postRecv(t, s, n.aReceive(1), n.aReceive(2), n.aReceive(3))
	for id := range uint64(2) {
		run(t, theirs, verbs.Request{ID: id}, verbs.StatusSuccess)
		await(t, cq, 1)
	}
	run(t, mine, verbs.Request{ID: 9, Op: verbs.OpWrite, SGL: n.mr.SGL(0, 100), Remote: w.b.mr.Remote(0)}, verbs.StatusSuccess)
	run(t, n.qp, verbs.Request{ID: 9, Op: verbs.OpWrite, SGL: n.mr.SGL(0, 7), Remote: w.b.mr.Remote(0)}, verbs.StatusSuccess)
	tells := func(when string) {
		got := n.nic.Stats()
		require.EqualValues(t, 2, got.QP.In.Send.Messages-before.QP.In.Send.Messages, "Sends that came, %s", when)
		require.EqualValues(t, 107, got.QP.Out.Write.Octets-before.QP.Out.Write.Octets, "octets written, %s", when)
		require.EqualValues(t, 3, got.SRQ.Posted-before.SRQ.Posted, "receives posted to S-RQs, %s", when)
		require.EqualValues(t, 4, got.CQ.Completions[verbs.StatusSuccess]-before.CQ.Completions[verbs.StatusSuccess], "completions, %s", when)
	}
	tells("while there are queue pairs")
	succeed(t, mine.Destroy, s.Destroy, cq.Destroy, mw.Deallocate)
	tells("when they are gone")
	require.Equal(t, [6]uint64{1, 1, 0, 1, 1, 0}, n.objects())
	require.NoError(t, n.nic.Close())
	tells("when the RNIC is closed")
}

// planned is a host whose RNIC has a fault plan.
func planned(t *conformance.T, plan string) *host {
	p := must(fault.Parse(plan))(t)
	return newHost(t, hostConfig{RNIC: verbs.Config{Faults: must(fault.New(p, nil))(t)}})
}

// postsByPlan has a plan refuse one request of a list: those before it are posted, those behind it are not.
func postsByPlan(t *conformance.T) {
	n := planned(t, "post 3 of send: fail\npost 3 of recv: fail")
	k, err := n.qp.PostSend(verbs.Request{ID: 1}, verbs.Request{ID: 2}, verbs.Request{ID: 3}, verbs.Request{ID: 4})
	require.ErrorIs(t, err, verbs.ErrQueueFull)
	require.Equal(t, 2, k, "sends posted")
	k, err = n.qp.PostRecv(verbs.Recv{ID: 1}, verbs.Recv{ID: 2}, verbs.Recv{ID: 3}, verbs.Recv{ID: 4})
	require.ErrorIs(t, err, verbs.ErrQueueFull)
	require.Equal(t, 2, k, "receives posted")
	k, err = n.qp.PostSend(verbs.Request{ID: 5}, verbs.Request{ID: 6, Op: verbs.OpBind})
	require.ErrorIs(t, err, verbs.ErrInvalidModifier, "the queue pair's own refusal")
	require.Equal(t, 1, k, "sends posted")
	postRecv(t, n.qp, verbs.Recv{ID: 5})
	require.NoError(t, n.qp.Modify(verbs.ModifyQP{Next: verbs.StateError}))
	var ids []uint64
	for _, c := range await(t, n.cq, 6) {
		ids = append(ids, c.ID)
	}
	require.ElementsMatch(t, []uint64{1, 2, 5, 1, 2, 5}, ids, "what was posted")
	empty(t, n.cq)
}

// registrationByPlan has a plan refuse a registration: its domain, and its place in the table, are free.
func registrationByPlan(t *conformance.T) {
	p := must(fault.Parse("registration 1: fail"))(t)
	nic := openRNIC(t, verbs.Config{Faults: must(fault.New(p, nil))(t), Limits: verbs.Limits{Regions: 1}})
	pd := must(nic.AllocatePD())(t)
	require.ErrorIs(t, second(pd.Register(make([]byte, 8), allRights)), verbs.ErrInsufficientResources)
	mr := must(pd.Register(make([]byte, 8), allRights))(t, "the one region that there may be")
	require.NoError(t, mr.Deregister())
	require.NoError(t, pd.Deallocate(), "nothing is in it")
}

// completionsByPlan has a plan keep a completion back, which those behind it wait for, and another one find no room: the
// receives of the S-RQ are whole all the same.
func completionsByPlan(t *conformance.T) {
	const depth = 4
	n := planned(t, "completion 2 of recv: delay 1ms\ncompletion 5 of recv: delay 1h\ncompletion 6 of recv: full")
	s := n.newSRQ(verbs.SRQConfig{Depth: depth})
	n.receives(s, upTo(1, depth)...)
	l := n.link(verbs.QPConfig{SRQ: s})
	for range depth {
		l.sendMessage([]byte{1})
	}
	for i, c := range await(t, l.rq, depth) {
		require.EqualValues(t, i+1, c.ID, "in order")
	}
	n.receives(s, upTo(1, depth)...)
	l.sendMessage(nil)
	l.sendMessage(nil)
	reaches(t, l.qp, verbs.StateTerminate)
	l.rest()
	l.closesTo(verbs.StateError)
	requireOverflow(l)
	n.receives(s, 1)
	require.ErrorIs(t, second(s.PostRecv(n.aReceive(9))), verbs.ErrQueueFull, "one is kept back")
	succeed(t, l.qp.Destroy, l.rq.Destroy)
	n.receives(s, 2)
	require.ErrorIs(t, second(s.PostRecv(n.aReceive(9))), verbs.ErrQueueFull, "no more than its depth")
	n.link(verbs.QPConfig{SRQ: s}).says(3)
}

// refusedModifyGivesBack raises IRD and ORD, of which the queue pairs of an RNIC share some, in a Modify QP that is refused
// for something else, or for the other of the two: another queue pair can have them all the same.
func refusedModifyGivesBack(t *conformance.T) {
	n := newHost(t, hostConfig{RNIC: verbs.Config{Limits: verbs.Limits{QPs: 8, SharedIRD: 8, SharedORD: 8}}, QP: verbs.QPConfig{IRD: 1, ORD: 1}})
	postRecv(t, n.qp, verbs.Recv{}, verbs.Recv{}, verbs.Recv{})
	other := n.newQP(verbs.QPConfig{IRD: 1, ORD: 1})
	raise := func(qp *verbs.QP) verbs.QPAttributes {
		require.NoError(t, qp.Modify(verbs.ModifyQP{IRD: ptr(7), ORD: ptr(7)}))
		return attributes(t, qp)
	}
	for m := range inTurn(t, "%+v", []verbs.ModifyQP{
		{IRD: ptr(6), ORD: ptr(6), RecvDepth: ptr(1)}, {IRD: ptr(6), RecvDepth: ptr(1)}, {ORD: ptr(6), RecvDepth: ptr(1)},
		{IRD: ptr(0), ORD: ptr(0), RecvDepth: ptr(1)},
	}) {
		refuses(t, "a shrink", verbs.ErrShrinkFailed, func() error { return n.qp.Modify(m) }, snapshotOf(t, n.qp))
		a := raise(other)
		require.Equal(t, []int{7, 7}, []int{a.IRD, a.ORD}, "all that the first one has left")
		require.NoError(t, other.Modify(verbs.ModifyQP{IRD: ptr(1), ORD: ptr(1)}))
	}
	require.NoError(t, other.Modify(verbs.ModifyQP{IRD: ptr(0), ORD: ptr(7)}))
	require.NoError(t, n.qp.Modify(verbs.ModifyQP{ORD: ptr(0)}))
	require.NoError(t, other.Modify(verbs.ModifyQP{ORD: ptr(8)}))
	refuses(t, "no ORD is left", verbs.ErrInsufficientResources, func() error {
		return n.qp.Modify(verbs.ModifyQP{IRD: ptr(8), ORD: ptr(1)})
	}, snapshotOf(t, n.qp))
	require.NoError(t, other.Modify(verbs.ModifyQP{IRD: ptr(7)}))
	require.Equal(t, 7, attributes(t, other).IRD, "the refusal kept no IRD")
}

// lastMessageCutShort ends a Modify QP that waits for the peer to read its last message, in each way. What is Idle still
// is as it was, and can be connected.
func lastMessageCutShort(t *conformance.T, n *host) {
	last := bytes.Repeat([]byte{0xFF}, vast)
	for _, w := range []struct {
		name string
		want error
		then verbs.State // 0: the queue pair is gone
		do   func(*link, *peer)
	}{
		{name: "the peer resets", want: verbs.ErrInvalidLLPStream, then: verbs.StateIdle, do: func(_ *link, p *peer) { require.NoError(t, p.Reset()) }},
		{name: "it takes too long", want: verbs.ErrInvalidLLPStream, then: verbs.StateIdle, do: func(*link, *peer) {}},
		{name: "the queue pair fails", want: verbs.ErrInvalidState, then: verbs.StateError, do: func(l *link, p *peer) {
			fault.Provoke(l.qp)
			l.raised(verbs.EventLocalQPCatastrophic)
			p.text(string(last[1000:])) // for which it waits all the same
		}},
		{name: "the queue pair is destroyed", want: verbs.ErrInvalidQP, do: func(l *link, _ *peer) { require.NoError(t, l.qp.Destroy()) }},
	} {
		t.In(w.name, func() {
			l := n.idleLink(verbs.QPConfig{SendDepth: 8, RecvDepth: 16, IRD: 3, ORD: 5, CloseTimeout: either(w.name == "it takes too long", shortly, hour)})
			before := l.shown()
			s, p := aStream(t)
			done := make(chan error, 1)
			go func() {
				done <- l.qp.Modify(verbs.ModifyQP{
					Next: verbs.StateRTS, Stream: s, LastMessage: last, SendDepth: ptr(32), RecvDepth: ptr(4), IRD: ptr(1), ORD: ptr(9),
				})
			}()
			p.text(string(last[:1000]))
			if w.name != "it takes too long" {
				require.ErrorIs(t, l.qp.Modify(verbs.ModifyQP{SendDepth: ptr(1)}), verbs.ErrInvalidState, "another Modify meanwhile")
			}
			w.do(l, p)
			require.ErrorIs(t, receive(t, done, "Modify QP does not end"), w.want)
			if errors.Is(w.want, verbs.ErrInvalidQP) {
				return
			}
			require.Equal(t, w.then, l.qp.State())
			if w.then != verbs.StateIdle {
				l.modify(verbs.StateIdle)
			}
			require.Equal(t, before, l.shown(), "what the queue pair tells of itself")
			l.join()
			l.settled()
			require.NoError(t, l.qp.Destroy())
		})
	}
}

// earlyAtLimit hands over as many octets as may have come before RTS, and one more, which is refused.
func earlyAtLimit(t *conformance.T, n *host) {
	const most = 256 << 10
	l := n.idleLink(verbs.QPConfig{})
	s, p := aStream(t)
	var octets []byte
	for i := uint64(0); len(octets) <= most; i += 1000 {
		octets = append(octets, p.Frame(aWrite(uint32(n.mr.STag()), n.mr.Base()+i%60000, payload(1, 1000)))...)
	}
	s.Early = octets[:most+1]
	refuses(t, "too many early octets", verbs.ErrInvalidLLPStream, func() error {
		return l.qp.Modify(verbs.ModifyQP{Next: verbs.StateRTS, Stream: s, SendDepth: ptr(3), ORD: ptr(2)})
	}, snapshotOf(t, l.qp))
	s.Early = octets[:most]
	begin(t, l.qp, *s)
	l.peer = p
	require.NoError(t, p.Raw(octets[most:]))
	l.settled()
}

// whyItEnded tells in each way in which a stream ends why it did; of a queue pair that had none there is nothing to
// tell, and nothing to end.
func whyItEnded(t *conformance.T, n *host) {
	never := n.qp.LLPStream()
	receive(t, never.Done(), "there is no stream to wait for")
	require.NoError(t, never.Err())
	require.NoError(t, never.Drain(t.Context()))
	require.ErrorIs(t, never.Close(), verbs.ErrInvalidState)
	require.ErrorIs(t, never.Reset(), verbs.ErrInvalidState)
	kinds := []error{net.ErrClosed, verbs.ErrInvalidQP, verbs.ErrInvalidRNIC, syscall.ECONNRESET}
	for _, w := range []struct {
		name string
		is   [4]bool // of kinds
		do   func(*link)
	}{
		{"by Modify QP", [4]bool{true}, func(l *link) { l.modify(verbs.StateError) }},
		{"by itself", [4]bool{true}, func(l *link) { require.NoError(t, l.qp.LLPStream().Reset()) }},
		{"by Destroy QP", [4]bool{true, true}, func(l *link) { require.NoError(t, l.qp.Destroy()) }},
		{"by the peer's reset", [4]bool{3: true}, func(l *link) { require.NoError(t, l.peer.Reset()) }},
		{"by a request", [4]bool{}, func(l *link) {
			post(t, l.qp, verbs.Request{ID: 5, SGL: []verbs.SGE{{STag: 0x00F00000, Length: 1}}})
			l.rest()
			l.shut()
		}},
		{"by Close RNIC", [4]bool{0: true, 2: true}, func(l *link) { require.NoError(t, l.nic.Close()) }},
	} {
		t.In(w.name, func() {
			l := n.link(verbs.QPConfig{})
			stream := l.qp.LLPStream()
			require.NoError(t, stream.Err(), "it is there")
			w.do(l)
			receive(t, stream.Done(), "the stream does not end")
			err := stream.Err()
			for i, kind := range kinds {
				require.Equal(t, w.is[i], errors.Is(err, kind), "%v: is it %v?", err, kind)
			}
			var failed *verbs.CompletionError
			if errors.As(err, &failed); w.name == "by a request" {
				require.NotNil(t, failed, "%v", err)
				require.Equal(t, []any{uint64(5), verbs.OpSend, verbs.StatusInvalidSTag}, []any{failed.ID, failed.Op, failed.Status})
			} else {
				require.Nil(t, failed, "%v", err)
			}
			require.ErrorIs(t, stream.Close(), verbs.ErrInvalidState, "it has ended")
		})
	}
}

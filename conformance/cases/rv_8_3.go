package cases

import (
	"sync"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/lab/fault"
	"github.com/softrnic/softrnic/verbs"
)

// rv8_3 is Immediate Errors and asynchronous events: verbs draft 8.3.1 and 8.3.3.
var rv8_3 = []conformance.Case{
	apiCase("8.3.1/refusals-change-nothing", refusalsChangeNothing, "RV-8.3.1-M1"),
	apiCase("8.3.1/refusals-lose-no-event", onHost(refusalsLoseNoEvent), "RV-8.3.1-M1", "PV-8.3.1-M1"),
	apiCase("8.3.1/reregister", onHost(refusedReregister), "RV-8.3.1-M1"),
	apiCase("8.3.3/handler-replaced", onHost(eventHandlerReplaced), "RV-8.3.3-M1", "RV-8.3.3-M2"),
	apiCase("8.3.3/each-event", eachEventCalls, "RV-8.3.3-M3"),
	apiCase("8.3.3/unaffiliated", onHost(unaffiliatedEvents), "RV-8.3.3-M4"),
}

// refusalsChangeNothing asks verbs for what they refuse, on one of each object, all of
// which are in use. Nothing can be seen to have changed, and everything goes on.
func refusalsChangeNothing(t *conformance.T) {
	w := newHostPair(t, hostPairConfig{A: hostConfig{RNIC: verbs.Config{Limits: verbs.Limits{
		PDs: 1, QPs: 2, CQs: 1, SRQs: 1, Regions: 2, Windows: 1, CQE: 600, SRQWR: 64, WR: 64, IRD: 16, ORD: 16, EventHandlers: 1,
	}}}})
	n := w.a
	srq, mw, mr := n.newSRQ(verbs.SRQConfig{Depth: 8, Limit: 2}), n.newMW(), n.mr
	handler := must(n.nic.AddCompletionHandler(func(*verbs.CQ) {}))(t)
	run(t, n.qp, binds(mw.BindRequest(mr, 0, 64, remoteRights, 1)), verbs.StatusSuccess)
	postRecv(t, srq, verbs.Recv{}, verbs.Recv{})
	idle := n.newQP(verbs.QPConfig{SRQ: srq})
	n.register(8, allRights)

	all := []func() any{
		queries(n.nic.Query), queries(n.cq.Query), snapshotOf(t, n.qp), snapshotOf(t, idle), queries(srq.Query), queries(mr.Query), queries(mw.Query),
	}
	modify := func(m verbs.ModifyQP) func() error { return func() error { return n.qp.Modify(m) } }
	memory := verbs.RegionConfig{Memory: make([]byte, 8), Access: verbs.LocalRead}
	for _, c := range []struct {
		what string
		want error
		verb func() error
	}{
		{"Open of one that is open", verbs.ErrRNICInUse, func() error {
			q := must(n.nic.Query())(t)
			return second(verbs.Open(verbs.Config{ID: q.ID}))
		}},
		{"Allocate PD", verbs.ErrInsufficientResources, func() error { return second(n.nic.AllocatePD()) }},
		{"Create CQ", verbs.ErrInsufficientResources, func() error { return second(n.nic.CreateCQ(verbs.CQConfig{})) }},
		{"Create S-RQ", verbs.ErrInsufficientResources, func() error { return second(n.nic.CreateSRQ(verbs.SRQConfig{PD: n.pd})) }},
		{"Create QP", verbs.ErrInsufficientResources, func() error { return second(n.nic.CreateQP(n.withDefaults(verbs.QPConfig{}))) }},
		{"Create QP, ORD", verbs.ErrORDExceeded, func() error { return second(n.nic.CreateQP(n.withDefaults(verbs.QPConfig{ORD: 17}))) }},
		{"Register", verbs.ErrInsufficientResources, func() error { return second(n.pd.RegisterRegion(memory)) }},
		{"Allocate STag", verbs.ErrInsufficientResources, func() error { return second(n.pd.AllocateRegion(verbs.AllocateConfig{})) }},
		{"Allocate Memory Window", verbs.ErrInsufficientResources, func() error { return second(n.pd.AllocateWindow()) }},
		{"AllocatePages", verbs.ErrInvalidPhysBufferSize, func() error { return second(n.nic.AllocatePages(1, 4097)) }},
		{"Set Completion Event Handler", verbs.ErrInvalidEventHandler, func() error { return n.nic.RemoveCompletionHandler(handler + 99) }},
		{"Modify CQ, too many", verbs.ErrTooManyCQE, func() error { return n.cq.Resize(601) }},
		{"Modify CQ, none", verbs.ErrInvalidModifier, func() error { return n.cq.Resize(0) }},
		{"Destroy CQ", verbs.ErrCQInUse, n.cq.Destroy},
		{"Request Completion Notification", verbs.ErrInvalidNotifyType, func() error { return n.cq.Notify(3) }},
		{"Poll CQ", verbs.ErrCQEmpty, func() error { return second(n.cq.PollOne()) }},
		{"Modify QP, state", verbs.ErrInvalidState, modify(verbs.ModifyQP{Next: verbs.StateIdle})},
		{"Modify QP, ORD with a good depth", verbs.ErrORDExceeded, modify(verbs.ModifyQP{Next: verbs.StateRTS, ORD: ptr(17), SendDepth: ptr(8)})},
		{"Modify QP, IRD", verbs.ErrIRDExceeded, modify(verbs.ModifyQP{Next: verbs.StateRTS, IRD: ptr(17), ORD: ptr(1)})},
		{"Modify QP, depth", verbs.ErrTooManyWR, modify(verbs.ModifyQP{Next: verbs.StateRTS, ORD: ptr(1), RecvDepth: ptr(65)})},
		{"Destroy QP", verbs.ErrWindowsBound, n.qp.Destroy},
		{"PostSQ", verbs.ErrInvalidOp, func() error { return second(n.qp.PostSend(verbs.Request{Op: verbs.OpRecv})) }},
		{"PostRQ", verbs.ErrInvalidSGLLength, func() error { return second(n.qp.PostRecv(verbs.Recv{SGL: make([]verbs.SGE, 99)})) }},
		{"PostRQ with an S-RQ", verbs.ErrRQUsesSRQ, func() error { return second(idle.PostRecv(verbs.Recv{})) }},
		{"Modify S-RQ, depth", verbs.ErrTooManyWR, func() error { return srq.Modify(verbs.ModifySRQ{Depth: ptr(65), Limit: ptr(1)}) }},
		{"Modify S-RQ, limit", verbs.ErrSRQLimitRange, func() error { return srq.Modify(verbs.ModifySRQ{Limit: ptr(9)}) }},
		{"Modify S-RQ, less than are posted", verbs.ErrShrinkFailed, func() error { return srq.Modify(verbs.ModifySRQ{Depth: ptr(1), Limit: ptr(0)}) }},
		{"PostRQ to an S-RQ", verbs.ErrInvalidSGLLength, func() error { return second(srq.PostRecv(verbs.Recv{SGL: make([]verbs.SGE, 99)})) }},
		{"Destroy S-RQ", verbs.ErrSRQInUse, srq.Destroy},
		{"Deallocate STag", verbs.ErrWindowsBound, mr.Deregister},
		{"Register Shared", verbs.ErrInvalidAccess, func() error { return second(mr.RegisterShared(nil, verbs.SharedConfig{})) }},
		{"Reregister with a window", verbs.ErrWindowsBound, func() error { return mr.Reregister(nil, memory) }},
		{"Deallocate PD", verbs.ErrPDInUse, n.pd.Deallocate},
	} {
		refuses(t, c.what, c.want, c.verb, all...)
	}
	moves(t, n.endpoint(), w.b.endpoint())
	writes(t, endpoint{w.b.qp, w.b.mr}, verbs.Remote{STag: mw.STag(1), TO: mr.Base()}, mr.Bytes()[:64])
	succeed(t, idle.Destroy, mw.Deallocate)
	n.quiet()
}

// held is what a handler waits for until it is released, at the latest when the case
// ends.
func held(t *conformance.T) (hold chan struct{}, release func()) {
	hold = make(chan struct{})
	release = sync.OnceFunc(func() { close(hold) })
	t.Cleanup(release)
	return hold, release
}

// refusalsLoseNoEvent has verbs of event handling refused between what raises events and
// their delivery.
func refusalsLoseNoEvent(t *conformance.T, n *host) {
	hold, release := held(t)
	got := make(chan verbs.Event, 100)
	require.NoError(t, n.nic.SetEventHandler(func(e verbs.Event) {
		<-hold
		got <- bare(e)
	}))
	b := n.cqHandler()
	cq := b.cq(8)
	notify(t, cq, verbs.NotifyNext)
	var want []verbs.Event
	for range 20 {
		qp := n.newQP(verbs.QPConfig{})
		fault.Provoke(qp)
		want = append(want, verbs.Event{ID: verbs.EventLocalQPCatastrophic, QP: qp.ID()})
		assert.ErrorIs(t, second(n.nic.AddCompletionHandler(nil)), verbs.ErrInvalidEventHandler)
		assert.ErrorIs(t, n.nic.ReplaceCompletionHandler(b.id+1000, func(*verbs.CQ) {}), verbs.ErrInvalidEventHandler)
		assert.ErrorIs(t, cq.Notify(0), verbs.ErrInvalidNotifyType)
	}
	release()
	for i, e := range want {
		x := receive(t, got, "event %d is lost", i)
		require.Equal(t, e, x, "event %d", i)
	}
	n.flush(cq, 1)
	b.calledOnce(cq) // it is still armed, and the handler still there
}

// refusedReregister is the exception: what cannot be made of a region leaves none.
func refusedReregister(t *conformance.T, n *host) {
	mr := n.register(64, allRights)
	require.ErrorIs(t, mr.Reregister(nil, verbs.RegionConfig{Memory: make([]byte, 8), Access: verbs.RemoteRead}), verbs.ErrInvalidAccess)
	require.ErrorIs(t, second(mr.Query()), verbs.ErrInvalidSTag)
}

// lost is an Idle queue pair that loses a stream of its own, which raises an event.
func (n *host) lost() verbs.Event {
	qp := n.newQP(verbs.QPConfig{})
	p := rawPeer(n.t, qp, asInitiator)
	require.NoError(n.t, p.Reset())
	ends(n.t, qp, verbs.StateError)
	return verbs.Event{ID: verbs.EventLLPReset, QP: qp.ID()}
}

// eventHandlerReplaced sets one handler behind the other, and then none. Each gets what
// happens in its time, which events of the next handler close.
func eventHandlerReplaced(t *conformance.T, n *host) {
	listen := func() chan verbs.Event {
		c := make(chan verbs.Event, 10)
		require.NoError(t, n.nic.SetEventHandler(func(e verbs.Event) { c <- bare(e) }))
		return c
	}
	next := func(c chan verbs.Event) verbs.Event {
		select {
		case e := <-c:
			return e
		case <-t.Context().Done():
			t.Fatalf("the handler is not called")
			return verbs.Event{}
		}
	}
	a := listen()
	require.Equal(t, n.lost(), next(a))
	b := listen()
	require.Equal(t, n.lost(), next(b))
	require.NoError(t, n.nic.SetEventHandler(nil))
	n.lost()
	n.lost()
	c := listen()
	require.Equal(t, n.lost(), next(c), "the first one since there is a handler again")
	require.Equal(t, n.lost(), next(c))
	require.NoError(t, n.nic.Close()) // no call is under way any more
	for _, c := range []chan verbs.Event{a, b, c} {
		require.Empty(t, c)
	}
}

// eachEventCalls has many queue pairs end, each for a reason of its own, at the same
// time and with a handler that is slow to come back.
func eachEventCalls(t *conformance.T) {
	const each = 20
	n := newHost(t, hostConfig{})
	reasons := []struct {
		event verbs.EventID
		do    func(*link)
	}{
		{verbs.EventLLPReset, func(l *link) { assert.NoError(t, l.peer.Reset()) }},
		{verbs.EventProtSTag, func(l *link) { assert.NoError(t, l.peer.Send(badSTag)) }},
		{verbs.EventTerminateReceived, func(l *link) { assert.NoError(t, l.peer.Send(aTerminate(0x0100, nil, false))) }},
		{verbs.EventLLPCloseComplete, func(l *link) { assert.NoError(t, l.peer.CloseWrite()) }},
		{verbs.EventLocalQPCatastrophic, func(l *link) { fault.Provoke(l.qp) }},
	}
	hold, release := held(t)
	got := make(chan verbs.Event, 10*each)
	require.NoError(t, n.nic.SetEventHandler(func(e verbs.Event) {
		<-hold
		got <- bare(e)
	}))
	want := map[verbs.Event]bool{}
	var g sync.WaitGroup
	for i := range each * len(reasons) {
		r, l := reasons[i%len(reasons)], n.link(verbs.QPConfig{})
		want[verbs.Event{ID: r.event, QP: l.id}] = true
		g.Go(func() { r.do(l) })
	}
	g.Wait()
	release()
	for range each * len(reasons) {
		e := receive(t, got, "there is no call for %v", want)
		require.True(t, want[e], "%v: it is none of them, or comes twice", e)
		delete(want, e)
	}
	require.NoError(t, n.nic.Close())
	require.Empty(t, got)
}

// unaffiliatedEvents are those that figure 25 has: with a CQ, with an S-RQ, with neither.
func unaffiliatedEvents(t *conformance.T, n *host) {
	cq, srq := n.newCQ(8), n.newSRQ(verbs.SRQConfig{})
	fault.Provoke(cq)
	n.events.are(verbs.Event{ID: verbs.EventCQOperation, CQ: cq.ID()})
	fault.Provoke(srq)
	n.events.are(verbs.Event{ID: verbs.EventSRQCatastrophic, SRQ: srq.ID()})
	lines := []*link{n.link(verbs.QPConfig{}), n.link(verbs.QPConfig{}), n.link(verbs.QPConfig{})}
	fault.Provoke(n.nic)
	n.events.are(verbs.Event{ID: verbs.EventRNICCatastrophic})
	for _, l := range lines {
		l.terminated(0x0208, nil, false)
		l.closesTo(verbs.StateError)
	}
	require.NoError(t, n.nic.Close())
	require.Empty(t, n.events.events, "other events")
}

// rv8_3_2 is errors that a completion tells of: verbs draft 8.3.2, figure 23.
var rv8_3_2 = []conformance.Case{
	apiCase("8.3.2/send-queue", figure23Of(sendQueueErrors), append([]string{"PV-8.3.2-M2"}, figure23Keys...)...),
	apiCase("8.3.2/fast-register", figure23Of(fastRegisterErrors), figure23Keys...),
	apiCase("8.3.2/bind", figure23Of(bindErrors), figure23Keys...),
	apiCase("8.3.2/invalidate", figure23Of(invalidateErrors), figure23Keys...),
	apiCase("8.3.2/receive-queue", figure23Of(receiveQueueErrors), append([]string{"PV-8.3.2-M1"}, figure23Keys...)...),
	apiCase("8.3.2/remote-protection", figure23Of(remoteInvalidateErrors), figure23Keys...),
}

var figure23Keys = []string{"RV-8.3.2-M1", "RV-8.3.2-M2", "RV-8.3.2-M3"}

// figure23Of runs errors, each on a link of its own: with a CQ for each of its queues.
func figure23Of(errors func() []completionError) func(*conformance.T) {
	return func(t *conformance.T) {
		n := newHost(t, hostConfig{})
		for e := range inTurn(t, "%s", errors()) {
			n.link(e.qp).completesInError(&e)
		}
	}
}

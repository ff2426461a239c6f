package cases

import (
	"reflect"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// rv9_1 is the verbs as a whole, and which Consumer may use which: verbs draft 9 and 9.1.
var rv9_1 = []conformance.Case{
	apiCase("9/life", wholeLife, "RV-9-M1"),
	apiCase("9/modifiers-of-creation", modifiersOfCreation, "RV-9-M2"),
	apiCase("9/modifiers-of-memory", onHost(modifiersOfMemory), "RV-9-M2"),
	apiCase("9/modifiers-of-posts", modifiersOfPosts, "RV-9-M2"),
	apiCase("9/modifiers-of-options", onHost(modifiersOfOptions), "RV-9-M3"),
	apiCase("9/options-taken-away", optionsTakenAway, "RV-9-M3"),
	apiCase("9.1/four-verbs", fourVerbs, "RV-9.1-M1"),
	apiCase("9.2.5.1/privileged-only", onHost(privilegedOnly), "RV-9.2.5.1-M3"),
}

// wholeLife calls the verbs in the order of 5.1.1.1 and 5.1.1.2, with every
// operation type between. What each has to bring about is written out.
func wholeLife(t *conformance.T) {
	w := newHostPair(t, hostPairConfig{Idle: true, A: hostConfig{QP: verbs.QPConfig{Privileged: true}}})
	a, b := w.a, w.b
	called := make(chan *verbs.CQ, 8)
	handler := must(b.nic.AddCompletionHandler(func(c *verbs.CQ) { called <- c }))(t)
	cq := must(b.nic.CreateCQ(verbs.CQConfig{Entries: 16, Handler: handler}))(t)
	srq := b.newSRQ(verbs.SRQConfig{Depth: 4, SGE: 2})
	qp := b.newQP(verbs.QPConfig{RecvCQ: cq, SRQ: srq})
	window := b.newMW()
	fast := a.allocate(verbs.AllocateConfig{PBL: 2, RemoteAccess: true})
	pages := a.pages(2, 4096)
	connect(t, a.qp, qp)

	received := func(c verbs.Completion) {
		c.QP, c.Op = qp.ID(), verbs.OpRecv
		completes(t, cq, c)
	}
	bind := func(key uint8) {
		run(t, qp, verbs.Request{ID: 1, Op: verbs.OpBind, Bind: window.BindRequest(b.mr, 100, 200, remoteRights, key)}, verbs.StatusSuccess)
	}
	register := func(key uint8) verbs.SGE {
		f := &verbs.FastRegisterRequest{STag: fast.WithKey(key), Buffers: pages.List(10, 4096), Addressing: verbs.ZeroBased, Access: allRights}
		run(t, a.qp, verbs.Request{ID: 2, Op: verbs.OpFastRegister, FastRegister: f}, verbs.StatusSuccess)
		return verbs.FastRegisterBuffer(f).SGE(0, 50)
	}
	validFast := func() bool {
		q := must(fast.Query())(t)
		return q.Valid
	}

	// Receive and Send.
	fill(a.mr.Bytes()[:20], 1)
	postRecv(t, srq, verbs.Recv{ID: 11, SGL: []verbs.SGE{b.mr.SGE(0, 15), b.mr.SGE(1000, 10)}})
	run(t, a.qp, verbs.Request{ID: 3, Op: verbs.OpSend, SGL: a.mr.SGL(0, 20)}, verbs.StatusSuccess)
	received(verbs.Completion{ID: 11, Bytes: 20})
	assert.Equal(t, a.mr.Bytes()[:15], b.mr.Bytes()[:15])
	assert.Equal(t, a.mr.Bytes()[15:20], b.mr.Bytes()[1000:1005])
	// Send with Solicited Event: the handler, for it and not for the one before.
	require.NoError(t, cq.Notify(verbs.NotifySolicited))
	postRecv(t, srq, verbs.Recv{ID: 12}, verbs.Recv{ID: 13})
	run(t, a.qp, verbs.Request{ID: 4}, verbs.StatusSuccess)
	received(verbs.Completion{ID: 12})
	assert.Empty(t, called)
	run(t, a.qp, verbs.Request{ID: 5, Op: verbs.OpSendSE}, verbs.StatusSuccess)
	received(verbs.Completion{ID: 13})
	got := receive(t, called, "the handler is not called")
	assert.Same(t, cq, got)
	// Bind, RDMA Write and RDMA Read through the window, and both Sends that
	// invalidate it.
	for key, op := range map[uint8]verbs.Op{1: verbs.OpSendInvalidate, 2: verbs.OpSendSEInvalidate} {
		bind(key)
		at := verbs.Remote{STag: window.STag(key), TO: b.mr.Base() + 100}
		writes(t, a.endpoint(), at, b.mr.Bytes()[100:300])
		reads(t, a.endpoint(), at, b.mr.Bytes()[100:300])
		postRecv(t, srq, verbs.Recv{ID: 14})
		run(t, a.qp, verbs.Request{ID: 6, Op: op, Invalidate: at.STag}, verbs.StatusSuccess)
		received(verbs.Completion{ID: 14, HasInvalidated: true, Invalidated: at.STag})
		assert.False(t, must(window.Query())(t).Valid, "the window after %v", op)
	}
	// Fast-Register, RDMA Read with Invalidate, Invalidate Local STag.
	fill(b.mr.Bytes()[:50], 2)
	sink := register(1)
	run(t, a.qp, verbs.Request{ID: 7, Op: verbs.OpReadInvalidate, Local: sink, Remote: b.mr.Remote(0)}, verbs.StatusSuccess)
	assert.Equal(t, b.mr.Bytes()[:50], pages.Bytes()[10:60])
	assert.False(t, validFast())
	sink = register(2)
	assert.True(t, validFast())
	run(t, a.qp, verbs.Request{ID: 8, Op: verbs.OpInvalidate, Invalidate: sink.STag}, verbs.StatusSuccess)
	assert.False(t, validFast())
	// What can be changed.
	require.NoError(t, cq.Resize(8))
	require.NoError(t, srq.Modify(verbs.ModifySRQ{Depth: ptr(6)}))
	require.NoError(t, a.qp.Modify(verbs.ModifyQP{Next: verbs.StateRTS, ORD: ptr(3)}))
	require.NoError(t, fast.Reregister(nil, verbs.RegionConfig{Memory: make([]byte, 64), Access: allRights}))
	shared := must(fast.RegisterShared(nil, verbs.SharedConfig{Access: verbs.LocalRead}))(t)
	assert.Equal(t, []int{8, 3}, []int{roomOf(cq), attributes(t, a.qp).ORD})
	assert.Equal(t, 64, shared.Len())
	// The end, in the order of 5.1.1.2.
	require.NoError(t, a.qp.Modify(verbs.ModifyQP{Next: verbs.StateClosing}))
	ends(t, a.qp, verbs.StateIdle)
	ends(t, qp, verbs.StateIdle)
	a.events.are(verbs.Event{ID: verbs.EventLLPCloseComplete, QP: a.qp.ID()})
	b.events.are(verbs.Event{ID: verbs.EventLLPCloseComplete, QP: qp.ID()})
	for _, destroy := range []func() error{
		window.Deallocate, b.mr.Deregister, shared.Deregister, fast.Deregister, a.mr.Deregister, pages.Deallocate,
		qp.Destroy, a.qp.Destroy, b.qp.Destroy, srq.Destroy, cq.Destroy, a.cq.Destroy, b.cq.Destroy,
		a.pd.Deallocate, b.pd.Deallocate, a.nic.Close, b.nic.Close,
	} {
		require.NoError(t, destroy())
	}
	assert.Empty(t, a.events.events)
	assert.Empty(t, b.events.events)
}

// methods are the names of the exported methods of a value and of its pointer, and
// of its exported fields.
func methods(v any) []string {
	var names []string
	typ := reflect.TypeOf(v)
	for i := range typ.NumField() {
		if f := typ.Field(i); f.IsExported() || f.Anonymous {
			names = append(names, "field "+f.Name)
		}
	}
	p := reflect.PointerTo(typ)
	for i := range p.NumMethod() {
		names = append(names, p.Method(i).Name)
	}
	return names
}

// fourVerbs: a Non-Privileged Consumer has PostSQ, PostRQ, Poll and Request
// Completion Notification, which are enough to move data, and no way to more.
func fourVerbs(t *conformance.T) {
	assert.ElementsMatch(t, []string{"PostSend", "PostRecv"}, methods(verbs.UserQP{}))
	assert.ElementsMatch(t, []string{"PostRecv"}, methods(verbs.UserSRQ{}))
	assert.ElementsMatch(t, []string{"Poll", "Notify"}, methods(verbs.UserCQ{}))

	w := newHostPair(t, hostPairConfig{Idle: true})
	srq := w.b.newSRQ(verbs.SRQConfig{})
	far := w.b.newQP(verbs.QPConfig{SRQ: srq})
	connect(t, w.a.qp, far)
	near := must(w.a.qp.User())(t)
	there := must(far.User())(t)
	require.ErrorIs(t, second(there.PostRecv(verbs.Recv{})), verbs.ErrRQUsesSRQ)
	cq, cqThere := w.a.cq.User(), w.b.cq.User()
	require.NoError(t, cqThere.Notify(verbs.NotifyNext))
	postRecv(t, srq.User(), verbs.Recv{ID: 1, SGL: w.b.mr.SGL(0, 8)})
	postRecv(t, near, verbs.Recv{ID: 2, SGL: w.a.mr.SGL(0, 8)})
	poll := func(cq verbs.UserCQ, want verbs.Completion) {
		var got [1]verbs.Completion
		eventually(t, func() bool { return cq.Poll(got[:]) == 1 }, "a completion")
		require.Equal(t, want, got[0])
	}
	copy(w.a.mr.Bytes()[8:], "question")
	copy(w.b.mr.Bytes()[8:], "answer")
	post(t, near, verbs.Request{ID: 3, SGL: w.a.mr.SGL(8, 8)})
	select {
	case <-w.b.cq.Events(): // told to the one who made the handle (8.2.5)
	case <-t.Context().Done():
		t.Fatalf("no notification")
	}
	poll(cq, verbs.Completion{ID: 3, QP: w.a.qp.ID()})
	poll(cqThere, verbs.Completion{ID: 1, QP: far.ID(), Op: verbs.OpRecv, Bytes: 8})
	post(t, there, verbs.Request{ID: 4, SGL: w.b.mr.SGL(8, 6)})
	poll(cqThere, verbs.Completion{ID: 4, QP: far.ID()})
	poll(cq, verbs.Completion{ID: 2, QP: w.a.qp.ID(), Op: verbs.OpRecv, Bytes: 6})
	assert.Equal(t, "question", string(w.b.mr.Bytes()[:8]))
	assert.Equal(t, "answer", string(w.a.mr.Bytes()[:6]))
}

// privilegedOnly: the STag of zero and Fast-Register are for Privileged Consumers.
func privilegedOnly(t *conformance.T, n *host) {
	privileged := n.newQP(verbs.QPConfig{Privileged: true})
	require.ErrorIs(t, second(privileged.User()), verbs.ErrInvalidModifier, "a handle for a Non-Privileged Consumer")
	p := n.pages(1, 4096)
	mr := n.allocate(verbs.AllocateConfig{})
	for _, c := range []struct {
		req        verbs.Request
		privileged verbs.Status
		user       verbs.Status
	}{
		{verbs.Request{ID: 1, SGL: []verbs.SGE{{TO: p.Address(0), Length: 8}}}, verbs.StatusSuccess, verbs.StatusInvalidSTag},
		{verbs.Request{ID: 2, Op: verbs.OpFastRegister, FastRegister: &verbs.FastRegisterRequest{
			STag: mr.WithKey(1), Buffers: p.List(0, 8), Addressing: verbs.ZeroBased, Access: verbs.LocalRead,
		}}, verbs.StatusSuccess, verbs.StatusNotPrivileged},
	} {
		qp := n.newQP(verbs.QPConfig{})
		raw := rawPeer(t, qp, asInitiator)
		user := must(qp.User())(t)
		post(t, user, c.req)
		completes(t, n.cq, verbs.Completion{ID: c.req.ID, QP: qp.ID(), Op: c.req.Op, Status: c.user})
		raw.terminatedAs(0x0000)
		qp = n.newQP(verbs.QPConfig{Privileged: true})
		rawPeer(t, qp, asInitiator)
		run(t, qp, c.req, c.privileged)
	}
}

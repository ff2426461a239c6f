package cases

import (
	"slices"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// rv9_2_5_life is Query QP and Destroy QP: verbs draft 9.2.5.2 and 9.2.5.4.
var rv9_2_5_life = []conformance.Case{
	apiCase("9.2.5.2/results", onNode(queryQPResults), "RV-9.2.5.2-M1"),
	apiCase("9.2.5.2/modifiers", inWorld(queryQPModifiers), "RV-9.2.5.2-M2"),
	apiCase("9.2.5.2/terminate-message", inWorld(queryQPTerminate), "RV-9.2.5.2-M2"),
	apiCase("9.2.5.4/results", onNode(destroyQPResults), "RV-9.2.5.4-M1"),
	apiCase("9.2.5.4/windows-bound", inWorld(destroyQPWindows), "RV-9.2.5.4-M1"),
	apiCase("9.2.5.4/modifiers", inWorld(destroyQPModifiers), "RV-9.2.5.4-M2"),
}

// inEveryState makes a queue pair for each state, and the raw peers of those that
// have a stream.
func (n *node) inEveryState() map[verbs.State]*verbs.QP {
	qps := map[verbs.State]*verbs.QP{}
	for _, s := range []verbs.State{verbs.StateIdle, verbs.StateRTS, verbs.StateClosing, verbs.StateTerminate, verbs.StateError} {
		qp := n.newQP(verbs.QPConfig{})
		if s != verbs.StateIdle {
			rawPeer(n.t, qp, asInitiator)
			require.NoError(n.t, qp.Modify(verbs.ModifyQP{Next: s}))
		}
		require.Equal(n.t, s, qp.State())
		qps[s] = qp
	}
	return qps
}

func queryQPResults(t *conformance.T, n *node) {
	for s, qp := range n.inEveryState() {
		a := must(qp.Query())(t)
		assert.Equal(t, s, a.State)
		assert.Equal(t, s != verbs.StateIdle && s != verbs.StateError, a.Stream != nil, "the LLP stream in %v", s)
	}
	gone := n.newQP(verbs.QPConfig{})
	require.NoError(t, gone.Destroy())
	require.ErrorIs(t, second(gone.Query()), verbs.ErrInvalidQP)
	require.NoError(t, n.nic.Close())
	require.ErrorIs(t, second(n.qp.Query()), verbs.ErrInvalidRNIC)
}

func queryQPModifiers(t *conformance.T, w *world) {
	n := w.a
	pd, cq := n.newPD(), n.newCQ(8)
	s := n.newSRQ(verbs.SRQConfig{Depth: 8})
	c := verbs.QPConfig{
		PD: pd, SendCQ: cq, RecvCQ: n.cq, SendDepth: 16, RecvDepth: 32, SendSGE: 3, WriteSGE: 5, RecvSGE: 6, IRD: 7, ORD: 8,
		NoInboundRead: true, NoBind: true, Privileged: true,
	}
	qp := n.newQP(c)
	want := told{
		ID: qp.ID(), PD: pd.ID(), SendCQ: cq.ID(), RecvCQ: n.cq.ID(), State: verbs.StateIdle, SendSGE: 3, WriteSGE: 5, RecvSGE: 6,
		IRD: 7, ORD: 8, NoInboundRead: true, NoBind: true, Privileged: true,
	}
	shows := func(what string) {
		got := tell(t, qp)
		require.GreaterOrEqual(t, got.SendDepth, 16)
		require.True(t, c.SRQ != nil || got.RecvDepth >= 32)
		got.SendDepth, got.RecvDepth = 0, 0
		require.Equal(t, want, got, what)
	}
	shows("after Create QP")
	require.NoError(t, qp.Modify(verbs.ModifyQP{ORD: ptr(2), IRD: ptr(3)}))
	want.ORD, want.IRD = 2, 3
	shows("after Modify QP")
	x, _ := tcpPair(t)
	begin(t, qp, verbs.Stream{Conn: x, Role: asInitiator})
	want.State, want.Stream = verbs.StateRTS, true
	shows("in RTS")
	assert.Same(t, x, attributes(t, qp).Stream.Conn, "the LLP Stream Handle")

	c = verbs.QPConfig{PD: n.pd, SendCQ: n.cq, RecvCQ: cq, SRQ: s, RQLimit: 4, SendDepth: 16, SendSGE: 1, WriteSGE: 1, IRD: 1, ORD: 1, NoInboundWrite: true}
	qp = n.newQP(c)
	want = told{
		ID: qp.ID(), PD: n.pd.ID(), SendCQ: n.cq.ID(), RecvCQ: cq.ID(), SRQ: s.ID(), SendSGE: 1, WriteSGE: 1,
		IRD: 1, ORD: 1, NoInboundWrite: true, RQLimit: 4, RQLimitArmed: true,
	}
	shows("with an S-RQ")
	require.NoError(t, qp.Modify(verbs.ModifyQP{RQLimit: ptr(2)}))
	want.RQLimit = 2
	shows("with another RQ Limit")
	assert.NotEqual(t, qp.ID(), n.qp.ID())
	assert.Same(t, n.pd, attributes(t, n.qp).PD, "the other queue pair")
}

// queryQPTerminate: the Terminate Message, and who made it, in the states Terminate
// and Error.
func queryQPTerminate(t *conformance.T, w *world) {
	assert.Nil(t, attributes(t, w.a.qp).Terminate)
	post(t, w.a.qp, verbs.Request{Op: verbs.OpWrite, SGL: w.a.mr.SGL(0, 8), Remote: verbs.Remote{STag: 0x7FFFFF00}})
	ends(t, w.b.qp, verbs.StateError)
	ends(t, w.a.qp, verbs.StateError)
	sent, received := attributes(t, w.b.qp).Terminate, attributes(t, w.a.qp).Terminate
	require.NotNil(t, sent)
	require.NotNil(t, received)
	assert.True(t, sent.Sent, "made here")
	assert.False(t, received.Sent, "made by the Associated QP")
	// Layer DDP, Tagged Buffer Model Error, invalid STag; with segment length and
	// header (RFC 5040 4.8).
	want := []byte{0x11, 0x00, 0xC0, 0x00, 0, 14 + 8, 0xC1, opWrite, 0x7F, 0xFF, 0xFF, 0x00, 0, 0, 0, 0, 0, 0, 0, 0}
	assert.Equal(t, want, sent.Raw)
	assert.Equal(t, want, received.Raw)
	assert.EqualValues(t, 0x1100, sent.Code)
	assert.EqualValues(t, 0x1100, received.Code)

	n := w.a
	qp := n.newQP(verbs.QPConfig{})
	p := rawPeer(t, qp, asInitiator)
	require.NoError(t, qp.Modify(verbs.ModifyQP{Next: verbs.StateTerminate}))
	local := attributes(t, qp)
	require.NotNil(t, local.Terminate, "in %v", local.State)
	assert.Equal(t, []any{verbs.StateTerminate, true}, []any{local.State, local.Terminate.Sent})
	assert.EqualValues(t, 0x0000, local.Terminate.Code)
	terminated(t, p, 0x0000)
}

func destroyQPResults(t *conformance.T, n *node) {
	for s, qp := range n.inEveryState() {
		require.NoError(t, qp.Destroy(), "in %v", s)
		require.ErrorIs(t, qp.Destroy(), verbs.ErrInvalidQP, "in %v, again", s)
	}
	require.NoError(t, n.nic.Close())
	require.ErrorIs(t, n.qp.Destroy(), verbs.ErrInvalidRNIC)
}

func destroyQPWindows(t *conformance.T, w *world) {
	n := w.b
	mw := n.newMW()
	run(t, n.qp, verbs.Request{Op: verbs.OpBind, Bind: mw.BindRequest(n.mr, 0, 64, remoteRights, 1)}, verbs.StatusSuccess)
	refuses(t, "a window is bound", verbs.ErrWindowsBound, n.qp.Destroy, tells(t, n.qp), queries(mw.Query), queries(n.mr.Query))
	moves(t, w.a.end(), n.end())
	writes(t, w.a.end(), verbs.Remote{STag: mw.STag(1), TO: n.mr.Base()}, n.mr.Bytes()[:64])
	run(t, n.qp, verbs.Request{Op: verbs.OpInvalidate, Invalidate: mw.STag(1)}, verbs.StatusSuccess)
	require.NoError(t, n.qp.Destroy())
}

func destroyQPModifiers(t *conformance.T, w *world) {
	n := w.b
	pd, cq := n.newPD(), n.newCQ(64)
	s := n.newSRQ(verbs.SRQConfig{PD: pd})
	there := w.a.newCQ(8)
	far, near := w.pair(verbs.QPConfig{SendCQ: there, RecvCQ: there}, verbs.QPConfig{PD: pd, SendCQ: cq, RecvCQ: cq, SRQ: s})
	sink := n.region(pd, verbs.RegionConfig{Memory: make([]byte, 64<<10), Access: allRights})
	run(t, far, verbs.Request{Op: verbs.OpWrite, SGL: w.a.mr.SGL(0, 64<<10), Remote: sink.Remote(0)}, verbs.StatusSuccess)
	postRecv(t, s, verbs.Recv{SGL: sink.SGL(0, 64)})
	for range 4 { // more is under way
		post(t, far, verbs.Request{Op: verbs.OpWrite, SGL: w.a.mr.SGL(0, 64<<10), Remote: sink.Remote(0)})
		post(t, near, verbs.Request{Op: verbs.OpRead, Local: sink.SGE(0, 64<<10), Remote: w.a.mr.Remote(0)})
	}

	require.NoError(t, near.Destroy())
	before := slices.Clone(fill(sink.Bytes(), 9)) // the program's again
	for name, call := range map[string]func() error{
		"Query QP":  func() error { return second(near.Query()) },
		"Modify QP": func() error { return near.Modify(verbs.ModifyQP{Next: verbs.StateError}) },
		"PostSQ":    func() error { return second(near.PostSend(verbs.Request{})) },
		"PostRQ":    func() error { return second(near.PostRecv(verbs.Recv{})) },
	} {
		assert.ErrorIs(t, call(), verbs.ErrInvalidQP, name)
	}
	ends(t, far, verbs.StateError)
	assert.Nil(t, n.nic.QP(near.ID()))
	require.NoError(t, cq.Destroy(), "nothing is tied to it")
	require.NoError(t, s.Destroy(), "nothing is tied to it")
	moves(t, w.a.end(), n.end()) // the other one goes on
	assert.Equal(t, before, sink.Bytes(), "the memory of the destroyed one")
	succeed(t, sink.Deregister, pd.Deallocate)
}

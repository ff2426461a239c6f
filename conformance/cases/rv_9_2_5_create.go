package cases

import (
	"slices"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// rv9_2_5_create is Create QP: verbs draft 9.2.5.1.
var rv9_2_5_create = []conformance.Case{
	apiCase("9.2.5.1/results", createQPResults, "RV-9.2.5.1-M1"),
	apiCase("9.2.5.1/attributes-told", onHost(createQPTold), "RV-9.2.5.1-M2"),
	apiCase("9.2.5.1/queues-and-lists", onIdleHostPair(createQPQueues), "RV-9.2.5.1-M2"),
	apiCase("9.2.5.1/rights", onHost(createQPRights), "RV-9.2.5.1-M2"),
	apiCase("9.2.5.1/reads-outstanding", onHost(createQPReads), "RV-9.2.5.1-M2", "RV-9.2.5.1-M4"),
	apiCase("9.2.5.1/no-ord-left", createQPNoORD, "RV-9.2.5.1-M4", "RV-9.2.5.1-M5"),
	apiCase("9.2.5.1/no-ird-left", createQPNoIRD, "RV-9.2.5.1-M6"),
}

func createQPResults(t *conformance.T) {
	n := newHost(t, hostConfig{RNIC: verbs.Config{Limits: small}})
	s := n.newSRQ(verbs.SRQConfig{Depth: 8})
	dead := n.deadPD()
	goneCQ, goneSRQ := n.newCQ(4), n.newSRQ(verbs.SRQConfig{})
	succeed(t, goneCQ.Destroy, goneSRQ.Destroy)
	for _, c := range []struct {
		name string
		want error
		c    verbs.QPConfig
	}{
		{"a destroyed send CQ", verbs.ErrInvalidCQ, n.withDefaults(verbs.QPConfig{SendCQ: goneCQ})},
		{"a destroyed receive CQ", verbs.ErrInvalidCQ, n.withDefaults(verbs.QPConfig{RecvCQ: goneCQ})},
		{"no send CQ", verbs.ErrInvalidCQ, verbs.QPConfig{PD: n.pd, RecvCQ: n.cq}},
		{"no receive CQ", verbs.ErrInvalidCQ, verbs.QPConfig{PD: n.pd, SendCQ: n.cq}},
		{"a destroyed S-RQ", verbs.ErrInvalidSRQ, n.withDefaults(verbs.QPConfig{SRQ: goneSRQ})},
		{"a made-up S-RQ", verbs.ErrInvalidSRQ, n.withDefaults(verbs.QPConfig{SRQ: &verbs.SRQ{}})},
		{"ORD", verbs.ErrORDExceeded, n.withDefaults(verbs.QPConfig{ORD: small.ORD + 1})},
		{"IRD", verbs.ErrIRDExceeded, n.withDefaults(verbs.QPConfig{IRD: small.IRD + 1})},
		{"WRs of the SQ", verbs.ErrTooManyWR, n.withDefaults(verbs.QPConfig{SendDepth: small.WR + 1})},
		{"WRs of the RQ", verbs.ErrTooManyWR, n.withDefaults(verbs.QPConfig{RecvDepth: small.WR + 1})},
		{"SGEs of a Send", verbs.ErrTooManySGE, n.withDefaults(verbs.QPConfig{SendSGE: small.SGE + 1})},
		{"SGEs of an RDMA Write", verbs.ErrTooManySGE, n.withDefaults(verbs.QPConfig{WriteSGE: small.WriteSGE + 1})},
		{"SGEs of a Receive", verbs.ErrTooManySGE, n.withDefaults(verbs.QPConfig{RecvSGE: small.SGE + 1})},
		{"a deallocated PD", verbs.ErrInvalidPD, n.withDefaults(verbs.QPConfig{PD: dead})},
		{"no PD", verbs.ErrInvalidPD, verbs.QPConfig{SendCQ: n.cq, RecvCQ: n.cq}},
		{"RQ Limit above the S-RQ", verbs.ErrRQLimitRange, n.withDefaults(verbs.QPConfig{SRQ: s, RQLimit: 9})},
		{"negative RQ Limit", verbs.ErrRQLimitRange, n.withDefaults(verbs.QPConfig{SRQ: s, RQLimit: -1})},
		{"negative depth", verbs.ErrInvalidModifier, n.withDefaults(verbs.QPConfig{SendDepth: -1})},
		{"negative IRD", verbs.ErrInvalidModifier, n.withDefaults(verbs.QPConfig{IRD: -1})},
	} {
		refuses(t, c.name, c.want, func() error { return second(n.nic.CreateQP(c.c)) }, queries(s.Query), queries(n.cq.Query))
	}
	// What was refused holds nothing: all queue pairs are there to be had, and S-RQ
	// and PD are free.
	for range small.QPs - 1 {
		n.newQP(verbs.QPConfig{IRD: small.IRD, ORD: small.ORD})
	}
	refuses(t, "one more", verbs.ErrInsufficientResources, func() error { return second(n.nic.CreateQP(n.withDefaults(verbs.QPConfig{}))) })
	require.NoError(t, s.Destroy())
	require.NoError(t, n.nic.Close())
	require.ErrorIs(t, second(n.nic.CreateQP(n.withDefaults(verbs.QPConfig{}))), verbs.ErrInvalidRNIC)
}

func createQPTold(t *conformance.T, n *host) {
	pd, one, two := n.newPD(), n.newCQ(8), n.newCQ(8)
	s := n.newSRQ(verbs.SRQConfig{Depth: 8})
	for _, c := range []verbs.QPConfig{
		{PD: n.pd, SendCQ: one, RecvCQ: two, SendDepth: 3, RecvDepth: 70, SendSGE: 1, WriteSGE: 2, RecvSGE: 3, IRD: 4, ORD: 5},
		{
			PD: pd, SendCQ: two, RecvCQ: one, SendDepth: 70, RecvDepth: 3, SendSGE: 6, WriteSGE: 5, RecvSGE: 7, IRD: 9, ORD: 8,
			NoInboundRead: true, NoInboundWrite: true, NoBind: true, Privileged: true,
		},
		{PD: pd, SendCQ: one, RecvCQ: one, SRQ: s, RQLimit: 3, SendDepth: 5, SendSGE: 2, WriteSGE: 2, NoReads: true},
		{PD: pd, SendCQ: one, RecvCQ: one, SRQ: s, SendDepth: 5, SendSGE: 2, WriteSGE: 2, NoReads: true},
	} {
		a := attributes(t, n.newQP(c))
		assert.Same(t, c.PD, a.PD)
		assert.Same(t, c.SendCQ, a.SendCQ)
		assert.Same(t, c.RecvCQ, a.RecvCQ)
		assert.Same(t, c.SRQ, a.SRQ)
		assert.NotZero(t, a.ID)
		assert.Equal(t, verbs.StateIdle, a.State)
		assert.GreaterOrEqual(t, a.SendDepth, c.SendDepth)
		assert.GreaterOrEqual(t, a.SendSGE, c.SendSGE)
		assert.GreaterOrEqual(t, a.WriteSGE, c.WriteSGE)
		if c.SRQ == nil {
			assert.GreaterOrEqual(t, a.RecvDepth, c.RecvDepth)
			assert.GreaterOrEqual(t, a.RecvSGE, c.RecvSGE)
		} else {
			assert.Equal(t, []int{0, 0}, []int{a.RecvDepth, a.RecvSGE}, "not returned with an S-RQ")
		}
		assert.Equal(t, []any{c.IRD, c.ORD, c.NoInboundRead, c.NoInboundWrite, c.NoBind, c.Privileged, c.RQLimit, c.RQLimit > 0},
			[]any{a.IRD, a.ORD, a.NoInboundRead, a.NoInboundWrite, a.NoBind, a.Privileged, a.RQLimit, a.RQLimitArmed})
	}
}

// createQPQueues: as many work requests and elements as were asked for, in use.
func createQPQueues(t *conformance.T, w *hostPair) {
	s := w.b.newSRQ(verbs.SRQConfig{Depth: 8, SGE: 4})
	for _, c := range []verbs.QPConfig{
		{SendDepth: 1, RecvDepth: 2, SendSGE: 1, WriteSGE: 2, RecvSGE: 3},
		{SendDepth: 20, RecvDepth: 10, SendSGE: 3, WriteSGE: 1, RecvSGE: 2},
	} {
		qp, peer := w.a.newQP(c), w.b.newQP(verbs.QPConfig{SRQ: s})
		a := attributes(t, qp)
		list := func(k int) (sgl []verbs.SGE) {
			for i := range k {
				sgl = append(sgl, w.a.mr.SGE(i, 1))
			}
			return sgl
		}
		for name, req := range map[string]verbs.Request{
			"Send":       {SGL: list(a.SendSGE + 1)},
			"RDMA Write": {Op: verbs.OpWrite, SGL: list(a.WriteSGE + 1)},
		} {
			require.ErrorIs(t, second(qp.PostSend(req)), verbs.ErrInvalidSGLLength, name)
		}
		require.ErrorIs(t, second(qp.PostRecv(verbs.Recv{SGL: list(a.RecvSGE + 1)})), verbs.ErrInvalidSGLLength)
		for id := range uint64(a.SendDepth - 1) {
			post(t, qp, verbs.Request{ID: id, Op: verbs.OpWrite, SGL: list(a.WriteSGE), Remote: w.b.mr.Remote(0), Flags: verbs.Unsignaled})
		}
		post(t, qp, verbs.Request{ID: 99, SGL: list(a.SendSGE)})
		require.ErrorIs(t, second(qp.PostSend(verbs.Request{})), verbs.ErrQueueFull)
		for id := range uint64(a.RecvDepth) {
			postRecv(t, qp, verbs.Recv{ID: id, SGL: list(a.RecvSGE)})
		}
		require.ErrorIs(t, second(qp.PostRecv(verbs.Recv{})), verbs.ErrQueueFull)
		postRecv(t, s, verbs.Recv{ID: 7, SGL: w.b.mr.SGL(0, 64)})
		connect(t, qp, peer)
		completes(t, w.a.cq, verbs.Completion{ID: 99, QP: qp.ID(), Op: verbs.OpSend})
		completes(t, w.b.cq, verbs.Completion{ID: 7, QP: peer.ID(), Op: verbs.OpRecv, Bytes: uint32(a.SendSGE)})
		for id := range uint64(a.RecvDepth) {
			run(t, peer, verbs.Request{ID: id, SGL: w.b.mr.SGL(0, a.RecvSGE)}, verbs.StatusSuccess)
			completes(t, w.a.cq, verbs.Completion{ID: id, QP: qp.ID(), Op: verbs.OpRecv, Bytes: uint32(a.RecvSGE)})
		}
	}
}

// createQPRights: the three of figure 21, and that of Privileged Consumers.
func createQPRights(t *conformance.T, n *host) {
	at := n.mr.Remote(0)
	write := func() []byte { return aWrite(uint32(at.STag), at.TO, []byte{1}) }
	read := func() []byte { return readRequest(1, at, 1) }
	for _, c := range []struct {
		name  string
		qp    verbs.QPConfig
		ulpdu []byte
		want  uint16
	}{
		{"RDMA Write", verbs.QPConfig{}, write(), 0},
		{"RDMA Read", verbs.QPConfig{}, read(), 0},
		{"RDMA Write without inbound Writes", verbs.QPConfig{NoInboundWrite: true}, write(), 0x1100},
		{"RDMA Read without inbound Reads", verbs.QPConfig{NoInboundRead: true}, read(), 0x1201},
		{"RDMA Read without inbound Writes", verbs.QPConfig{NoInboundWrite: true}, read(), 0},
		{"RDMA Write without inbound Reads", verbs.QPConfig{NoInboundRead: true}, write(), 0},
	} {
		t.Logf("%s", c.name)
		qp := n.newQP(c.qp)
		if c.qp.NoInboundRead && c.want == 0 {
			p := rawPeer(t, qp, asResponder)
			require.NoError(t, p.Send(c.ulpdu))
			require.NoError(t, p.CloseWrite())
			ends(t, qp, verbs.StateIdle)
			continue
		}
		tries(t, qp, c.ulpdu, c.want)
	}
	p := n.pages(1, 4096)
	for _, privileged := range []bool{true, false} {
		want := either(privileged, verbs.StatusSuccess, verbs.StatusInvalidSTag)
		qp := n.newQP(verbs.QPConfig{Privileged: privileged})
		rawPeer(t, qp, asInitiator)
		run(t, qp, verbs.Request{ID: 1, SGL: []verbs.SGE{{TO: p.Address(0), Length: 8}}}, want)
	}
	for _, noBind := range []bool{false, true} {
		want := either(noBind, verbs.StatusAccess, verbs.StatusSuccess)
		qp := n.newQP(verbs.QPConfig{NoBind: noBind})
		rawPeer(t, qp, asInitiator)
		run(t, qp, verbs.Request{ID: 1, Op: verbs.OpBind, Bind: n.newMW().BindRequest(n.mr, 0, 8, remoteRights, 1)}, want)
	}
}

// createQPReads counts the RDMA Read Requests that are on the wire at a time.
func createQPReads(t *conformance.T, n *host) {
	for _, ord := range []int{1, 3, 8} {
		qp := n.newQP(verbs.QPConfig{ORD: ord})
		allocated := attributes(t, qp).ORD
		require.LessOrEqual(t, allocated, ord)
		require.Positive(t, allocated)
		n.postReads(qp)
		n.outstanding(qp, rawPeer(t, qp, asInitiator), allocated)
	}
	none := n.newQP(verbs.QPConfig{NoReads: true})
	assert.Equal(t, []int{0, 0}, []int{attributes(t, none).IRD, attributes(t, none).ORD})
	p := rawPeer(t, none, asInitiator)
	run(t, none, verbs.Request{ID: 1, Op: verbs.OpRead, Local: n.mr.SGE(0, 1)}, verbs.StatusZeroReadResources)
	p.terminatedAs(0x0000)
	none = n.newQP(verbs.QPConfig{NoReads: true})
	tries(t, none, readRequest(1, n.mr.Remote(0), 1), 0x1202)
}

func createQPNoORD(t *conformance.T) {
	n := newHost(t, hostConfig{
		RNIC: verbs.Config{Limits: verbs.Limits{QPs: 8, SharedORD: 10}}, QP: verbs.QPConfig{ORD: 7},
	})
	assert.Equal(t, 7, attributes(t, n.qp).ORD)
	last := n.newQP(verbs.QPConfig{ORD: 5})
	assert.Equal(t, 3, attributes(t, last).ORD, "what is left")
	one := n.withDefaults(verbs.QPConfig{ORD: 1})
	require.ErrorIs(t, second(n.nic.CreateQP(one)), verbs.ErrInsufficientResources)
	assert.Zero(t, attributes(t, n.newQP(verbs.QPConfig{NoReads: true})).ORD, "none was asked for")
	require.NoError(t, last.Destroy())
	assert.Equal(t, 1, attributes(t, n.newQP(one)).ORD)
	assert.Equal(t, 2, attributes(t, n.newQP(verbs.QPConfig{ORD: 2})).ORD)
	require.ErrorIs(t, second(n.nic.CreateQP(one)), verbs.ErrInsufficientResources)
}

func createQPNoIRD(t *conformance.T) {
	n := newHost(t, hostConfig{
		RNIC: verbs.Config{Limits: verbs.Limits{QPs: 8, SharedIRD: 10, SharedORD: 10}}, QP: verbs.QPConfig{IRD: 10, ORD: 1},
	})
	require.ErrorIs(t, second(n.nic.CreateQP(n.withDefaults(verbs.QPConfig{IRD: 1, ORD: 9}))), verbs.ErrInsufficientResources)
	require.NoError(t, n.qp.Modify(verbs.ModifyQP{IRD: ptr(4)}))
	a := attributes(t, n.newQP(verbs.QPConfig{IRD: 9, ORD: 9}))
	assert.Equal(t, []int{6, 9}, []int{a.IRD, a.ORD}, "the refusal kept no ORD")
	require.ErrorIs(t, second(n.nic.CreateQP(n.withDefaults(verbs.QPConfig{IRD: 1, ORD: 1}))), verbs.ErrInsufficientResources)
	require.NoError(t, n.qp.Modify(verbs.ModifyQP{IRD: ptr(1)}))
	require.ErrorIs(t, second(n.nic.CreateQP(n.withDefaults(verbs.QPConfig{IRD: 3, ORD: 1}))), verbs.ErrInsufficientResources, "no ORD")
	require.NoError(t, n.qp.Modify(verbs.ModifyQP{ORD: ptr(0)}))
	a = attributes(t, n.newQP(verbs.QPConfig{IRD: 9, ORD: 9}))
	assert.Equal(t, []int{3, 1}, []int{a.IRD, a.ORD}, "the refusal kept no IRD")
}

// rv9_2_5_life is Query QP and Destroy QP: verbs draft 9.2.5.2 and 9.2.5.4.
var rv9_2_5_life = []conformance.Case{
	apiCase("9.2.5.2/results", onHost(queryQPResults), "RV-9.2.5.2-M1"),
	apiCase("9.2.5.2/modifiers", onHostPair(queryQPModifiers), "RV-9.2.5.2-M2"),
	apiCase("9.2.5.2/terminate-message", onHostPair(queryQPTerminate), "RV-9.2.5.2-M2"),
	apiCase("9.2.5.4/results", onHost(destroyQPResults), "RV-9.2.5.4-M1"),
	apiCase("9.2.5.4/windows-bound", onHostPair(destroyQPWindows), "RV-9.2.5.4-M1"),
	apiCase("9.2.5.4/modifiers", onHostPair(destroyQPModifiers), "RV-9.2.5.4-M2"),
}

// inEveryState makes a queue pair for each state, and the raw peers of those that
// have a stream.
func (n *host) inEveryState() map[verbs.State]*verbs.QP {
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

func queryQPResults(t *conformance.T, n *host) {
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

func queryQPModifiers(t *conformance.T, w *hostPair) {
	n := w.a
	pd, cq := n.newPD(), n.newCQ(8)
	s := n.newSRQ(verbs.SRQConfig{Depth: 8})
	c := verbs.QPConfig{
		PD: pd, SendCQ: cq, RecvCQ: n.cq, SendDepth: 16, RecvDepth: 32, SendSGE: 3, WriteSGE: 5, RecvSGE: 6, IRD: 7, ORD: 8,
		NoInboundRead: true, NoBind: true, Privileged: true,
	}
	qp := n.newQP(c)
	want := qpSnapshot{
		ID: qp.ID(), PD: pd.ID(), SendCQ: cq.ID(), RecvCQ: n.cq.ID(), State: verbs.StateIdle, SendSGE: 3, WriteSGE: 5, RecvSGE: 6,
		IRD: 7, ORD: 8, NoInboundRead: true, NoBind: true, Privileged: true,
	}
	shows := func(what string) {
		got := snapshot(t, qp)
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
	begin(t, qp, verbs.StreamConfig{Conn: x, Role: asInitiator})
	want.State, want.Stream = verbs.StateRTS, true
	shows("in RTS")
	assert.Same(t, x, attributes(t, qp).Stream.Conn, "the LLP Stream Handle")

	c = verbs.QPConfig{PD: n.pd, SendCQ: n.cq, RecvCQ: cq, SRQ: s, RQLimit: 4, SendDepth: 16, SendSGE: 1, WriteSGE: 1, IRD: 1, ORD: 1, NoInboundWrite: true}
	qp = n.newQP(c)
	want = qpSnapshot{
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
func queryQPTerminate(t *conformance.T, w *hostPair) {
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
	p.terminatedAs(0x0000)
}

func destroyQPResults(t *conformance.T, n *host) {
	for s, qp := range n.inEveryState() {
		require.NoError(t, qp.Destroy(), "in %v", s)
		require.ErrorIs(t, qp.Destroy(), verbs.ErrInvalidQP, "in %v, again", s)
	}
	require.NoError(t, n.nic.Close())
	require.ErrorIs(t, n.qp.Destroy(), verbs.ErrInvalidRNIC)
}

func destroyQPWindows(t *conformance.T, w *hostPair) {
	n := w.b
	mw := n.newMW()
	run(t, n.qp, verbs.Request{Op: verbs.OpBind, Bind: mw.BindRequest(n.mr, 0, 64, remoteRights, 1)}, verbs.StatusSuccess)
	refuses(t, "a window is bound", verbs.ErrWindowsBound, n.qp.Destroy, snapshotOf(t, n.qp), queries(mw.Query), queries(n.mr.Query))
	moves(t, w.a.endpoint(), n.endpoint())
	writes(t, w.a.endpoint(), verbs.Remote{STag: mw.STag(1), TO: n.mr.Base()}, n.mr.Bytes()[:64])
	run(t, n.qp, verbs.Request{Op: verbs.OpInvalidate, Invalidate: mw.STag(1)}, verbs.StatusSuccess)
	require.NoError(t, n.qp.Destroy())
}

func destroyQPModifiers(t *conformance.T, w *hostPair) {
	n := w.b
	pd, cq := n.newPD(), n.newCQ(64)
	s := n.newSRQ(verbs.SRQConfig{PD: pd})
	there := w.a.newCQ(8)
	far, near := w.connectMore(verbs.QPConfig{SendCQ: there, RecvCQ: there}, verbs.QPConfig{PD: pd, SendCQ: cq, RecvCQ: cq, SRQ: s})
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
	moves(t, w.a.endpoint(), n.endpoint()) // the other one goes on
	assert.Equal(t, before, sink.Bytes(), "the memory of the destroyed one")
	succeed(t, sink.Deregister, pd.Deallocate)
}

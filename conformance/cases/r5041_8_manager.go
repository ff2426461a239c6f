package cases

import (
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// The cases of RFC 5041 8.3.2 that need more room; r5041_8_api.go lists them.

// noHarm: a program that has handles of the data path only does with them what it
// should not. Its own queue pair ends, at most; two other programs go on undisturbed.
func noHarm(t *conformance.T, w *hostPair) {
	n := w.a
	foreign := n.region(n.newPD(), verbs.RegionConfig{Memory: make([]byte, 64), Access: allRights | verbs.BindWindow})
	region := must(n.pd.AllocateRegion(verbs.AllocateConfig{}))(t)
	mw := n.newMW()
	pages := n.pages(1, 4096)
	for _, send := range named(t, "%s", map[string]verbs.Request{
		"a Send of another's memory": {SGL: foreign.SGL(0, 8)},
		"a Read into another's":      {Op: verbs.OpRead, Local: foreign.SGE(0, 8), Remote: theirs},
		"the STag of zero":           {SGL: []verbs.SGE{{Length: 8, TO: pages.Address(0)}}},
		"an Invalidate of another's": {Op: verbs.OpInvalidate, Invalidate: foreign.STag()},
		"a Bind to another's":        {Op: verbs.OpBind, Bind: mw.BindRequest(foreign, 0, 8, remoteRights, 1)},
		"a Fast-Register": {Op: verbs.OpFastRegister, FastRegister: &verbs.FastRegisterRequest{
			STag: region.STag(), Buffers: pages.List(0, 8), Addressing: verbs.ZeroBased, Access: verbs.LocalRead,
		}},
		"a made-up STag": {SGL: []verbs.SGE{{STag: 0x12345600, Length: 8}}},
	}) {
		cq := n.newCQ(8)
		qp := n.newQP(verbs.QPConfig{SendCQ: cq, RecvCQ: cq})
		user := must(qp.User())(t)
		p := rawPeer(t, qp, asInitiator)
		require.NoError(t, second(user.PostSend(send)))
		c := await(t, cq, 1)[0]
		require.NotEqual(t, verbs.StatusSuccess, c.Status)
		require.NotEqual(t, verbs.StatusFlushed, c.Status)
		p.terminatedAs(0x0000)
		require.True(t, must(foreign.Query())(t).Valid, "the other's region")
		moves(t, w.a.endpoint(), w.b.endpoint())
		require.Equal(t, verbs.StateRTS, n.qp.State())
	}
	t.Part("a flood")
	cq := n.newCQ(2)
	flood := must(n.newQP(verbs.QPConfig{SendCQ: cq, RecvCQ: cq, SendDepth: 8, RecvDepth: 8}).User())(t)
	for k, post := range []func() error{
		func() error { return second(flood.PostSend(verbs.Request{})) },
		func() error { return second(flood.PostRecv(verbs.Recv{})) },
	} {
		var err error
		for i := 0; err == nil; i++ {
			require.Less(t, i, 1000, "queue %d is not bounded", k)
			err = post()
		}
		require.ErrorIs(t, err, verbs.ErrQueueFull)
	}
	moves(t, w.a.endpoint(), w.b.endpoint())
}

// limitsKept: as much of everything as the RNIC was told to have, and again as much
// when that is given back.
func limitsKept(t *conformance.T) {
	nic := openRNIC(t, verbs.Config{Limits: small})
	for range counted(t, "round %d", 3) {
		pd := must(nic.AllocatePD())(t)
		cq := must(nic.CreateCQ(verbs.CQConfig{}))(t)
		memory := make([]byte, 8)
		for _, k := range []struct {
			what  string
			limit int
			make  func() (func() error, error)
		}{
			{"PDs", small.PDs - 1, func() (func() error, error) { v, err := nic.AllocatePD(); return v.Deallocate, err }},
			{"CQs", small.CQs - 1, func() (func() error, error) { v, err := nic.CreateCQ(verbs.CQConfig{}); return v.Destroy, err }},
			{"QPs", small.QPs, func() (func() error, error) {
				v, err := nic.CreateQP(verbs.QPConfig{PD: pd, SendCQ: cq, RecvCQ: cq})
				return v.Destroy, err
			}},
			{"S-RQs", small.SRQs, func() (func() error, error) {
				v, err := nic.CreateSRQ(verbs.SRQConfig{PD: pd})
				return v.Destroy, err
			}},
			{"regions", small.Regions, func() (func() error, error) {
				v, err := pd.Register(memory, verbs.LocalRead)
				return v.Deregister, err
			}},
			{"windows", small.Windows, func() (func() error, error) { v, err := pd.AllocateWindow(); return v.Deallocate, err }},
			{"pages", int(small.Physical / 4096), func() (func() error, error) { v, err := nic.AllocatePages(1, 4096); return v.Deallocate, err }},
		} {
			var back []func() error
			for i := range k.limit {
				free := must(k.make())(t, "%d of %d %s", i+1, k.limit, k.what)
				back = append(back, free)
			}
			require.ErrorIs(t, second(k.make()), verbs.ErrInsufficientResources, "more than %d %s", k.limit, k.what)
			require.NoError(t, back[0]())
			free := must(k.make())(t, "one of the %s instead of one that was given back", k.what)
			require.ErrorIs(t, second(k.make()), verbs.ErrInsufficientResources, "more than %d %s", k.limit, k.what)
			for _, f := range append(back[1:], free) {
				require.NoError(t, f())
			}
		}
		succeed(t, cq.Destroy, pd.Deallocate)
	}
}

// program is one of two that share an RNIC.
type program struct {
	pd *verbs.PD
	cq *verbs.CQ
	mr *verbs.MR
	mw *verbs.MW
}

func (n *host) program() *program {
	p := &program{pd: n.newPD(), cq: n.newCQ(64)}
	p.mr = n.region(p.pd, verbs.RegionConfig{Memory: make([]byte, 64), Access: allRights | verbs.BindWindow})
	p.mw = must(p.pd.AllocateWindow())(n.t)
	return p
}

func (p *program) qp(n *host) *verbs.QP {
	return n.newQP(verbs.QPConfig{PD: p.pd, SendCQ: p.cq, RecvCQ: p.cq})
}

// noTrust: two programs know each other's STags, and their peers do. Neither gets at
// what is the other's, locally or from remote; and what they bring about ends their
// own streams.
func noTrust(t *conformance.T, n *host) {
	mine, yours := n.program(), n.program()
	bystander := yours.qp(n)
	peer := rawPeer(t, bystander, asInitiator)
	alive := func() {
		run(t, bystander, verbs.Request{ID: 5, SGL: yours.mr.SGL(0, 8)}, verbs.StatusSuccess)
		u := must(peer.Next())(t)
		require.Equal(t, yours.mr.Bytes()[:8], u[18:])
	}
	alive()
	for x := range inTurn(t, "%s", []struct {
		what string
		send verbs.Request
		want verbs.Status
	}{
		{"a Send", verbs.Request{SGL: yours.mr.SGL(0, 8)}, verbs.StatusInvalidPD},
		{"an RDMA Write", verbs.Request{Op: verbs.OpWrite, SGL: yours.mr.SGL(0, 8), Remote: theirs}, verbs.StatusInvalidPD},
		{"an RDMA Read", verbs.Request{Op: verbs.OpRead, Local: yours.mr.SGE(0, 8), Remote: theirs}, verbs.StatusInvalidPD},
		{"a Bind to its region", verbs.Request{Op: verbs.OpBind, Bind: mine.mw.BindRequest(yours.mr, 0, 8, remoteRights, 1)}, verbs.StatusInvalidPD},
		{"a Bind of its window", verbs.Request{Op: verbs.OpBind, Bind: yours.mw.BindRequest(mine.mr, 0, 8, remoteRights, 1)}, verbs.StatusInvalidPD},
		{"an Invalidate", verbs.Request{Op: verbs.OpInvalidate, Invalidate: yours.mr.STag()}, verbs.StatusInvalidPD},
	}) {
		qp := mine.qp(n)
		p := rawPeer(t, qp, asInitiator)
		x.send.ID = 6
		run(t, qp, x.send, x.want)
		p.terminatedAs(0x0000)
		alive()
	}
	for _, u := range named(t, "%s", map[string][]byte{
		"a peer's RDMA Write": aWrite(uint32(yours.mr.STag()), yours.mr.Base(), []byte("mine")),
		"a peer's RDMA Read":  readRequest(1, yours.mr.Remote(0), 4),
	}) {
		code := either(u[1] == opReadRequest, 0x0103, uint16(0x1102))
		tries(t, mine.qp(n), u, code)
		alive()
	}
	t.Part("a receive of the other's")
	qp := mine.qp(n)
	postRecv(t, qp, verbs.Recv{ID: 7, SGL: yours.mr.SGL(0, 8)})
	p := rawPeer(t, qp, asInitiator)
	require.NoError(t, p.Send(aSend(1, []byte("mine"))))
	p.terminatedAs(0x0000)
	completes(t, mine.cq, verbs.Completion{ID: 7, QP: qp.ID(), Op: verbs.OpRecv, Status: verbs.StatusInvalidPD})
	alive()
	require.Equal(t, make([]byte, 64), yours.mr.Bytes(), "the other's memory")
	empty(t, yours.cq)
	t.Part("what is in use cannot be taken away")
	require.ErrorIs(t, yours.pd.Deallocate(), verbs.ErrPDInUse)
	require.ErrorIs(t, yours.cq.Destroy(), verbs.ErrCQInUse)
	alive()
}

// buffersOwned: STags are made of memory that the program shows to be its own, with
// addresses that the RNIC has handed out; and only with the handles of the manager.
func buffersOwned(t *conformance.T) {
	n := newHost(t, hostConfig{QP: verbs.QPConfig{Privileged: true}})
	pages := n.pages(2, 4096)
	first, last := pages.Address(0), pages.Address(1)
	freed := n.pages(1, 4096)
	gone := freed.Address(0)
	require.NoError(t, freed.Deallocate())
	for _, list := range named(t, "%s", map[string][]uint64{
		"nothing": {0}, "far behind": {last + 1<<40}, "freed": {gone}, "within a page": {first + 8},
		"one of two": {first, gone}, "the last address": {^uint64(0) &^ 4095},
	}) {
		buffers := verbs.PhysicalBuffers{Size: 4096, Addresses: list, Length: 8}
		refuses(t, "Register", verbs.ErrInvalidPhysBufferEntry, func() error {
			return second(n.pd.RegisterRegion(verbs.RegionConfig{Buffers: buffers, ZeroBased: true, Access: allRights}))
		})
		region := must(n.pd.AllocateRegion(verbs.AllocateConfig{RemoteAccess: true, PBL: 2}))(t)
		qp := n.newQP(verbs.QPConfig{Privileged: true})
		p := rawPeer(t, qp, asInitiator)
		run(t, qp, verbs.Request{Op: verbs.OpFastRegister, FastRegister: &verbs.FastRegisterRequest{
			STag: region.STag(), Buffers: buffers, Addressing: verbs.ZeroBased, Access: allRights,
		}}, verbs.StatusInvalidPhysBufferEntry)
		p.terminatedAs(0x0000)
		require.False(t, must(region.Query())(t).Valid, "the region afterwards")
	}
	t.Part("its own")
	mr := must(n.pd.RegisterRegion(verbs.RegionConfig{Buffers: pages.List(0, 8192), ZeroBased: true, Access: allRights}))(t)
	n.remotely(mr.Remote(8191), 0, 0)
}

// greedyDetected: two streams share receives, and one takes them all. The program is
// told that they run short, and by whom; it ends that stream, and the other goes on.
func greedyDetected(t *conformance.T) {
	const depth, low = 16, 4
	n := newHost(t, hostConfig{})
	s := n.newSRQ(verbs.SRQConfig{Depth: depth, Limit: low})
	fed := 0
	feed := func(to int) {
		for ; fed < to; fed++ {
			postRecv(t, s, verbs.Recv{ID: uint64(fed), SGL: n.mr.SGL(8*fed, 8)})
		}
	}
	feed(depth)
	// A stream has one message in progress at most: the limit that tells is 0.
	join := func(watched bool) (*verbs.QP, *peer) {
		qp := n.newQP(verbs.QPConfig{SRQ: s})
		if watched {
			require.NoError(t, qp.Modify(verbs.ModifyQP{Next: verbs.StateIdle, RQLimit: ptr(0), ArmRQLimit: true}))
		}
		return qp, rawPeer(t, qp, asResponder)
	}
	greedy, bad := join(true)
	modest, good := join(false)
	require.NoError(t, good.Send(aSend(1, []byte("modest"))))
	completes(t, n.cq, verbs.Completion{ID: 0, QP: modest.ID(), Op: verbs.OpRecv, Bytes: 6})
	for i := range depth - low {
		require.NoError(t, bad.Send(cutUp(opSend, 0, uint32(i+1), []byte("greedy"), 6)[0]))
		completes(t, n.cq, verbs.Completion{ID: uint64(i + 1), QP: greedy.ID(), Op: verbs.OpRecv, Bytes: 6})
	}
	n.events.are(
		verbs.Event{ID: verbs.EventRQLimit, QP: greedy.ID()}, // at its first message
		verbs.Event{ID: verbs.EventSRQLimit, SRQ: s.ID()},
	)
	n.quiet()
	require.NoError(t, greedy.Destroy())
	require.NotEmpty(t, bad.gone(), "the stream of %s", "the greedy peer")
	feed(fed + 8)
	require.NoError(t, good.Send(aSend(2, []byte("modest"))))
	completes(t, n.cq, verbs.Completion{ID: depth - low + 1, QP: modest.ID(), Op: verbs.OpRecv, Bytes: 6})
	require.Equal(t, verbs.StateRTS, modest.State())
}

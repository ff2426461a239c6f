package cases

import (
	"reflect"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// r5041_8_api is the RNIC and its resource manager, which is package verbs: RFC 5041
// 8.3.
var r5041_8_api = []conformance.Case{
	apiCase("8.3/fast-registered-range", fastRange, "R5041-8.3-M1", "R5041-8.3-M2"),
	apiCase("8.3/rnic-and-manager", onHostPair(rnicAndManager), "R5041-8.3-M5"),
	apiCase("8.3.1/rnic-rules", onHostPair(rnicRules), "R5041-8.3.1-M1"),
	apiCase("8.3.1/enabled-memory", enabledMemory, "R5041-8.3.1-M4"),
	apiCase("8.3.2/manager-rules", managerRules, "R5041-8.3.2-M1"),
	apiCase("8.3.2/no-harm-by-data-path", onHostPair(noHarm), "R5041-8.3.2-M2"),
	apiCase("8.3.2/scarce-resources", limitsKept, "R5041-8.3.2-M3"),
	apiCase("8.3.2/no-mutual-trust", onHost(noTrust), "R5041-8.3.2-M4"),
	apiCase("8.3.2/right-to-buffers", buffersOwned, "R5041-8.3.2-M5"),
	apiCase("8.3.2/greedy-peer", greedyDetected, "R5041-8.3.2-M6"),
}

// fastRange takes a region through its states, again and again. It is reachable, from
// the first octet to the last, while it is Valid.
func fastRange(t *conformance.T) {
	w := newHostPair(t, hostPairConfig{A: hostConfig{QP: verbs.QPConfig{Privileged: true}}})
	n := w.a
	pages := n.pages(1, 4096)
	region := must(n.pd.AllocateRegion(verbs.AllocateConfig{RemoteAccess: true}))(t)
	for round, length := range []int{100, 1, 4096} {
		fast := &verbs.FastRegisterRequest{
			STag: region.WithKey(uint8(round)), Buffers: pages.List(0, length), Addressing: verbs.ZeroBased, Access: allRights,
		}
		at := verbs.FastRegisterBuffer(fast)
		t.Part("round %d: not yet registered", round)
		n.remotely(at.Remote(0), 0x1100, 0x0100)
		t.Part("round %d: registered", round)
		run(t, n.qp, verbs.Request{Op: verbs.OpFastRegister, FastRegister: fast}, verbs.StatusSuccess)
		n.remotely(at.Remote(0), 0, 0)
		n.remotely(at.Remote(length-1), 0, 0)
		n.remotely(at.Remote(length), 0x1101, 0x0101)
		t.Part("round %d: invalidated", round)
		run(t, n.qp, verbs.Request{Op: verbs.OpInvalidate, Invalidate: fast.STag}, verbs.StatusSuccess)
		n.remotely(at.Remote(0), 0x1100, 0x0100)
		n.remotely(at.Remote(length-1), 0x1100, 0x0100)
	}
}

// rnicAndManager: the program that has the RNIC makes what another needs, and hands it
// handles of the data path. With these alone the other one sends, receives and polls.
func rnicAndManager(t *conformance.T, w *hostPair) {
	send := must(w.a.qp.User())(t)
	recv := must(w.b.qp.User())(t)
	sent, received := w.a.cq.User(), w.b.cq.User()
	require.NoError(t, second(recv.PostRecv(verbs.Recv{ID: 3, SGL: w.b.mr.SGL(0, 64)})))
	require.NoError(t, received.Notify(verbs.NotifyNext))
	data := fill(w.a.mr.Bytes()[:40], 5)
	require.NoError(t, second(send.PostSend(verbs.Request{ID: 4, SGL: w.a.mr.SGL(0, 40)})))
	var c [1]verbs.Completion
	eventually(t, func() bool { return received.Poll(c[:]) > 0 }, "the receive completes")
	require.Equal(t, verbs.Completion{ID: 3, QP: w.b.qp.ID(), Op: verbs.OpRecv, Bytes: 40}, c[0])
	require.Equal(t, data, w.b.mr.Bytes()[:40])
	eventually(t, func() bool { return sent.Poll(c[:]) > 0 }, "the Send completes")
	require.Equal(t, verbs.Completion{ID: 4, QP: w.a.qp.ID()}, c[0])
	// Nothing of the manager is in reach from a handle.
	for _, h := range []any{send, sent, w.a.newSRQ(verbs.SRQConfig{}).User()} {
		typ := reflect.TypeOf(h)
		for i := range typ.NumMethod() {
			require.Contains(t, []string{"PostSend", "PostRecv", "Poll", "Notify"}, typ.Method(i).Name, "a method of %v", typ)
		}
		for i := range typ.NumField() {
			require.False(t, typ.Field(i).IsExported(), "field %s of %v", typ.Field(i).Name, typ)
		}
	}
}

// rnicRules tries the rules of 8.3.1 on one RNIC, one after the other, while a stream
// of it is in use.
func rnicRules(t *conformance.T, w *hostPair) {
	n := w.a
	works := func() { moves(t, w.b.endpoint(), w.a.endpoint()) }
	works()
	other := n.newPD()
	foreign := n.region(other, verbs.RegionConfig{Memory: make([]byte, 64), Access: allRights})
	t.Part("another PD")
	n.remotely(foreign.Remote(0), 0x1102, 0x0103)
	t.Part("another stream")
	scoped := n.region(n.pd, verbs.RegionConfig{Memory: make([]byte, 64), Access: allRights, QP: n.qp})
	n.remotely(scoped.Remote(0), 0x1102, 0x0103)
	writes(t, w.b.endpoint(), scoped.Remote(0), scoped.Bytes())
	t.Part("the enabled memory")
	n.remotely(n.mr.Remote(hostMemory), 0x1101, 0x0101)
	n.remotely(n.mr.Remote(hostMemory-1), 0, 0)
	t.Part("a binding")
	mw := n.newMW()
	bind := mw.BindRequest(n.mr, 100, 50, verbs.RemoteWrite, 3)
	run(t, n.qp, verbs.Request{Op: verbs.OpBind, Bind: bind}, verbs.StatusSuccess)
	writes(t, w.b.endpoint(), verbs.BindBuffer(bind).Remote(0), n.mr.Bytes()[100:150])
	run(t, n.qp, verbs.Request{Op: verbs.OpInvalidate, Invalidate: bind.Window}, verbs.StatusSuccess)
	tries(t, n.newQP(verbs.QPConfig{}), aWrite(uint32(bind.Window), n.mr.Base()+100, []byte{1}), 0x1100)
	t.Part("rights")
	n.remotely(n.register(8, verbs.LocalRead|verbs.RemoteRead).Remote(0), 0x1100, 0)
	n.remotely(n.register(8, verbs.LocalWrite|verbs.RemoteWrite).Remote(0), 0, 0x0102)
	t.Part("revocation")
	gone := n.register(8, allRights)
	require.NoError(t, gone.Deregister())
	n.remotely(gone.Remote(0), 0x1100, 0x0100)
	t.Part("")
	works()
	require.Equal(t, verbs.StateRTS, n.qp.State())
}

// enabledMemory registers a piece of a slice, and tries all that is around its ends.
// Only what is wholly inside gets through, and no octet of the rest changes.
func enabledMemory(t *conformance.T) {
	const guard, size = 32, 64
	n := newHost(t, hostConfig{})
	for _, length := range []int{1, 2, 9, size, size + 1} {
		for _, off := range []int{-guard, -9, -1, 0, 1, size - 9, size - 2, size - 1, size, size + guard} {
			t.Part("%d octets from %d on, of %d", length, off, size)
			memory := fill(make([]byte, guard+size+guard), length)
			want := append([]byte(nil), memory...)
			mr := n.region(n.pd, verbs.RegionConfig{Memory: memory[guard : guard+size : guard+size], Access: allRights})
			inside := off >= 0 && off+length <= size
			write, read := uint16(0x1101), uint16(0x0101)
			if inside {
				write, read = 0, 0
				for i := range length {
					want[guard+off+i] = 0xB7
				}
			}
			data := make([]byte, length)
			for i := range data {
				data[i] = 0xB7
			}
			at := verbs.Remote{STag: mr.STag(), TO: mr.Base() + uint64(off)}
			tries(t, n.newQP(verbs.QPConfig{}), aWrite(uint32(at.STag), at.TO, data), write)
			tries(t, n.newQP(verbs.QPConfig{}), readRequest(1, at, uint32(length)), read)
			require.NoError(t, mr.Deregister())
			require.Equal(t, want, memory, "the slice, its guards included")
		}
	}
}

// managerRules tries the rules of 8.3.2 on one RNIC with little of everything.
func managerRules(t *conformance.T) {
	l := small
	l.QPs, l.CQs, l.Regions, l.PDs = 2, 1, 2, 2
	n := newHost(t, hostConfig{RNIC: verbs.Config{Limits: l}})
	t.Part("what another needs is made by the manager, and as much as there is")
	qp := n.newQP(verbs.QPConfig{})
	_, err := n.nic.CreateQP(n.withDefaults(verbs.QPConfig{}))
	require.ErrorIs(t, err, verbs.ErrInsufficientResources)
	require.NoError(t, qp.Destroy())
	qp = n.newQP(verbs.QPConfig{})
	_, err = n.nic.CreateCQ(verbs.CQConfig{})
	require.ErrorIs(t, err, verbs.ErrInsufficientResources)
	t.Part("a program's own memory")
	_, err = n.pd.RegisterRegion(verbs.RegionConfig{
		Buffers: verbs.PhysicalBuffers{Size: 4096, Addresses: []uint64{4096}, Length: 8}, ZeroBased: true, Access: verbs.LocalRead,
	})
	require.ErrorIs(t, err, verbs.ErrInvalidPhysBufferEntry)
	t.Part("no trust")
	foreign := n.region(n.newPD(), verbs.RegionConfig{Memory: make([]byte, 8), Access: allRights})
	p := rawPeer(t, qp, asInitiator)
	run(t, qp, verbs.Request{SGL: foreign.SGL(0, 8)}, verbs.StatusInvalidPD)
	p.terminatedAs(0x0000)
	require.Equal(t, verbs.StateIdle, n.qp.State(), "the other queue pair")
}

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
		for _, k := range resources(nic, pd, cq, small) {
			var back []func() error
			for i := range k.limit {
				free := must(k.make())(t, "%d of %d %s", i+1, k.limit, k.name)
				back = append(back, free)
			}
			require.ErrorIs(t, second(k.make()), verbs.ErrInsufficientResources, "more than %d %s", k.limit, k.name)
			require.NoError(t, back[0]())
			free := must(k.make())(t, "one of the %s instead of one that was given back", k.name)
			require.ErrorIs(t, second(k.make()), verbs.ErrInsufficientResources, "more than %d %s", k.limit, k.name)
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

package cases

import (
	"reflect"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// r5040_8_api is what the RNIC's owner controls, and other programs do not: RFC
// 5040 8.1.
var r5040_8_api = []conformance.Case{
	apiCase("8.1.1/bind-and-unbind", bindUnbind, "R5040-8.1.1-M5"),
	apiCase("8.1.1/grant-and-revoke", grantRevoke, "R5040-8.1.1-M6"),
	apiCase("8.1.1/stags-hard-to-predict", stagsHardToPredict, "R5040-8.1.1-M9"),
	apiCase("8.1.1/cqs-not-shared", cqsNotShared, "R5040-8.1.1-M10"),
	apiCase("8.1.2/user-handles", onHost(userHandles), "R5040-8.1.2-M1"),
	apiCase("8.1.2/scarce-resources", scarceResources, "R5040-8.1.2-M2", "R5040-8.1.2-M5"),
	apiCase("8.1.2/right-to-buffers", rightToBuffers, "R5040-8.1.2-M4"),
}

// bindUnbind: each way to make memory reachable, and each way back.
func bindUnbind(t *conformance.T) {
	w := newHostPair(t, hostPairConfig{A: hostConfig{QP: verbs.QPConfig{Privileged: true}}})
	n := w.a
	reachable := func(at verbs.Remote) { n.remotely(at, 0, 0) }
	unreachable := func(at verbs.Remote) { n.remotely(at, 0x1100, 0x0100) }

	mr := n.register(64, allRights)
	at := mr.Remote(7)
	reachable(at)
	t.Part("Reregister")
	require.NoError(t, mr.Reregister(nil, verbs.RegionConfig{Memory: make([]byte, 64), Access: allRights, Key: at.STag.Key() + 1}))
	unreachable(at)
	at = mr.Remote(7)
	reachable(at)
	t.Part("Invalidate Local STag")
	run(t, n.qp, verbs.Request{Op: verbs.OpInvalidate, Invalidate: mr.STag()}, verbs.StatusSuccess)
	unreachable(at)
	t.Part("Fast-Register")
	pages := n.pages(1, 4096)
	region := must(n.pd.AllocateRegion(verbs.AllocateConfig{RemoteAccess: true}))(t)
	fast := &verbs.FastRegisterRequest{
		STag: region.WithKey(9), Buffers: pages.List(0, 64), Addressing: verbs.ZeroBased, Access: allRights,
	}
	at = verbs.FastRegisterBuffer(fast).Remote(7)
	unreachable(at)
	run(t, n.qp, verbs.Request{Op: verbs.OpFastRegister, FastRegister: fast}, verbs.StatusSuccess)
	reachable(at)
	require.NoError(t, region.Deregister())
	unreachable(at)
	t.Part("Bind")
	mw := n.newMW()
	bind := mw.BindRequest(n.mr, 100, 50, remoteRights, 3)
	at = verbs.BindBuffer(bind).Remote(7)
	unreachableHere := func(want uint16) {
		p := rawPeer(t, n.newQP(verbs.QPConfig{}), asResponder)
		require.NoError(t, p.Send(aWrite(uint32(at.STag), at.TO, []byte{1})))
		p.terminatedAs(want)
	}
	unreachableHere(0x1100)
	run(t, n.qp, verbs.Request{Op: verbs.OpBind, Bind: bind}, verbs.StatusSuccess)
	writes(t, w.b.endpoint(), at, n.mr.Bytes()[107:150]) // over the queue pair it is bound to
	unreachableHere(0x1102)
	require.NoError(t, mw.Deallocate())
	unreachableHere(0x1100)
}

// grantRevoke: what a peer may do is what the rights say, and follows their change.
func grantRevoke(t *conformance.T) {
	const local = verbs.LocalRead | verbs.LocalWrite
	n := newHost(t, hostConfig{})
	const writeRefused, readRefused = 0x1100, 0x0102
	try := func(mr *verbs.MR, access verbs.Access) {
		var write, read uint16
		if access&verbs.RemoteWrite == 0 {
			write = writeRefused
		}
		if access&verbs.RemoteRead == 0 {
			read = readRefused
		}
		t.Part("rights %v", access)
		n.remotely(mr.Remote(0), write, read)
	}
	rights := []verbs.Access{
		local, local | verbs.RemoteRead, local | verbs.RemoteWrite, allRights,
		verbs.LocalRead, verbs.LocalWrite, verbs.LocalRead | verbs.RemoteRead, verbs.LocalWrite | verbs.RemoteWrite,
	}
	for _, a := range rights {
		try(n.register(8, a), a)
	}
	mr := n.register(8, allRights)
	for _, a := range append(rights, allRights) {
		require.NoError(t, mr.Reregister(nil, verbs.RegionConfig{Memory: make([]byte, 8), Access: a}))
		try(mr, a)
	}
}

// stagsHardToPredict looks for a pattern in the indices of many STags.
func stagsHardToPredict(t *conformance.T) {
	const count = 4096
	var sequences [2][]uint32
	for k := range sequences {
		n := newHost(t, hostConfig{})
		memory := make([]byte, 8)
		for i := range count {
			if i%2 == 0 {
				sequences[k] = append(sequences[k], n.newMW().STag(0).Index())
				continue
			}
			mr := must(n.pd.Register(memory, verbs.LocalRead))(t)
			sequences[k] = append(sequences[k], mr.STag().Index())
		}
		if k == 0 {
			freedStaysAway(t, n)
		}
	}
	equal := 0
	strides := map[uint32]int{}
	var set [24]int
	for i, index := range sequences[0] {
		require.NotZero(t, index)
		if index == sequences[1][i] {
			equal++
		}
		if i > 0 {
			strides[index-sequences[0][i-1]]++
		}
		for bit := range set {
			set[bit] += int(index >> bit & 1)
		}
	}
	require.Less(t, equal, 16, "places at which two RNICs have the same index")
	for stride, n := range strides {
		require.Less(t, n, 16, "the stride %d", stride)
	}
	for bit, n := range set {
		require.InDelta(t, count/2, n, count/10, "how often bit %d is set in %d indices", bit, count)
	}
}

// freedStaysAway: the index of a region that is gone does not soon name another.
func freedStaysAway(t *conformance.T, n *host) {
	mr := n.register(8, verbs.LocalRead)
	old := mr.STag().Index()
	require.NoError(t, mr.Deregister())
	for range 1000 {
		next := n.register(8, verbs.LocalRead)
		require.NotEqual(t, old, next.STag().Index())
		require.NoError(t, next.Deregister())
	}
}

// cqsNotShared: a queue pair completes to CQs of its own RNIC, and only there.
func cqsNotShared(t *conformance.T) {
	a, b := newHost(t, hostConfig{}), newHost(t, hostConfig{})
	for what, c := range map[string]verbs.QPConfig{
		"the send CQ": {SendCQ: b.cq}, "the receive CQ": {RecvCQ: b.cq}, "both": {SendCQ: b.cq, RecvCQ: b.cq},
	} {
		require.ErrorIs(t, second(a.nic.CreateQP(a.withDefaults(c))), verbs.ErrInvalidCQ, "%s of another RNIC", what)
	}
	// Each CQ gives completions of its own queue pairs.
	mine, yours := a.newCQ(16), a.newCQ(16)
	p := a.newQP(verbs.QPConfig{SendCQ: mine, RecvCQ: mine})
	q := a.newQP(verbs.QPConfig{SendCQ: yours, RecvCQ: yours})
	for i, qp := range []*verbs.QP{p, q, p, q} {
		postRecv(t, qp, verbs.Recv{ID: uint64(i)})
	}
	require.NoError(t, p.Modify(verbs.ModifyQP{Next: verbs.StateError}))
	completes(t, mine,
		verbs.Completion{ID: 0, QP: p.ID(), Op: verbs.OpRecv, Status: verbs.StatusFlushed},
		verbs.Completion{ID: 2, QP: p.ID(), Op: verbs.OpRecv, Status: verbs.StatusFlushed},
	)
	empty(t, yours)
	empty(t, mine)
}

// userHandles: what a Non-Privileged Consumer holds can post, poll and ask for
// notifications, on its own objects, and nothing else.
func userHandles(t *conformance.T, n *host) {
	user, err := n.qp.User()
	require.NoError(t, err)
	for _, x := range []struct {
		handle  any
		methods []string
	}{
		{user, []string{"PostRecv", "PostSend"}},
		{n.cq.User(), []string{"Notify", "Poll"}},
		{n.newSRQ(verbs.SRQConfig{}).User(), []string{"PostRecv"}},
	} {
		for _, typ := range []reflect.Type{reflect.TypeOf(x.handle), reflect.PointerTo(reflect.TypeOf(x.handle))} {
			var methods []string
			for i := range typ.NumMethod() {
				methods = append(methods, typ.Method(i).Name)
			}
			require.Equal(t, x.methods, methods, "%v", typ)
		}
		typ := reflect.TypeOf(x.handle)
		for i := range typ.NumField() {
			require.False(t, typ.Field(i).IsExported(), "field %s of %v", typ.Field(i).Name, typ)
		}
	}
	_, err = n.newQP(verbs.QPConfig{Privileged: true}).User()
	require.ErrorIs(t, err, verbs.ErrInvalidModifier, "a handle of a Privileged queue pair")

	// It can fill its queue, and harms nobody.
	other := newHostPair(t, hostPairConfig{})
	for i := 0; ; i++ {
		if _, err := user.PostSend(verbs.Request{}); err != nil {
			require.ErrorIs(t, err, verbs.ErrQueueFull)
			require.GreaterOrEqual(t, i, 64)
			break
		}
		require.Less(t, i, 1<<20, "posts are not bounded")
	}
	moves(t, other.a.endpoint(), other.b.endpoint())
}

// scarceResources: the RNIC hands out what it was told to have, and no more.
func scarceResources(t *conformance.T) {
	l := small
	exhaust(t, openRNIC(t, verbs.Config{Limits: l}), l)

	nic := openRNIC(t, verbs.Config{Limits: l})
	require.ErrorIs(t, second(nic.CreateCQ(verbs.CQConfig{Entries: l.CQE + 1})), verbs.ErrTooManyCQE)
	cq := must(nic.CreateCQ(verbs.CQConfig{Entries: l.CQE}))(t)
	require.ErrorIs(t, cq.Resize(l.CQE+1), verbs.ErrTooManyCQE)
	require.Equal(t, l.CQE, must(cq.Query())(t).Entries, "the CQ after the refusal")
	pd := must(nic.AllocatePD())(t)
	for what, x := range map[string]struct {
		change verbs.QPConfig
		want   error
	}{
		"SendDepth": {verbs.QPConfig{SendDepth: l.WR + 1}, verbs.ErrTooManyWR},
		"RecvDepth": {verbs.QPConfig{RecvDepth: l.WR + 1}, verbs.ErrTooManyWR},
		"SendSGE":   {verbs.QPConfig{SendSGE: l.SGE + 1}, verbs.ErrTooManySGE},
		"RecvSGE":   {verbs.QPConfig{RecvSGE: l.SGE + 1}, verbs.ErrTooManySGE},
		"WriteSGE":  {verbs.QPConfig{WriteSGE: l.WriteSGE + 1}, verbs.ErrTooManySGE},
		"IRD":       {verbs.QPConfig{IRD: l.IRD + 1}, verbs.ErrIRDExceeded},
		"ORD":       {verbs.QPConfig{ORD: l.ORD + 1}, verbs.ErrORDExceeded},
	} {
		x.change.PD, x.change.SendCQ, x.change.RecvCQ = pd, cq, cq
		require.ErrorIs(t, second(nic.CreateQP(x.change)), x.want, what)
	}
}

// rightToBuffers: an STag is made of memory that is the program's: allocated pages,
// and with privileges only.
func rightToBuffers(t *conformance.T) {
	n := newHost(t, hostConfig{QP: verbs.QPConfig{Privileged: true}})
	pages := n.pages(2, 4096)
	last := pages.Address(1)
	freed := n.pages(1, 4096)
	gone := freed.Address(0)
	require.NoError(t, freed.Deallocate())
	for what, list := range map[string][]uint64{
		"address zero": {0}, "behind the pages": {last, last + 4096<<20}, "freed pages": {gone}, "not a page's": {last + 1},
	} {
		_, err := n.pd.RegisterRegion(verbs.RegionConfig{
			Buffers: verbs.PhysicalBuffers{Size: 4096, Addresses: list, Length: 8}, ZeroBased: true, Access: verbs.LocalRead,
		})
		require.ErrorIs(t, err, verbs.ErrInvalidPhysBufferEntry, what)
	}
	_, err := n.pd.RegisterRegion(verbs.RegionConfig{Buffers: pages.List(0, 8), ZeroBased: true, Access: verbs.LocalRead})
	require.NoError(t, err, "pages of the program's")

	region, err := n.pd.AllocateRegion(verbs.AllocateConfig{})
	require.NoError(t, err)
	fast := verbs.Request{Op: verbs.OpFastRegister, FastRegister: &verbs.FastRegisterRequest{
		STag: region.STag(), Buffers: pages.List(0, 8), Addressing: verbs.ZeroBased, Access: verbs.LocalRead,
	}}
	zero := verbs.Request{SGL: []verbs.SGE{{Length: 8, TO: pages.Address(0)}}}
	for x := range inTurn(t, "%s without privileges", []struct {
		what string
		send verbs.Request
		want verbs.Status
	}{
		{"Fast-Register", fast, verbs.StatusNotPrivileged}, {"the STag of zero", zero, verbs.StatusInvalidSTag},
	}) {
		qp := n.newQP(verbs.QPConfig{})
		p := rawPeer(t, qp, asInitiator)
		post(t, qp, x.send)
		completes(t, n.cq, verbs.Completion{QP: qp.ID(), Op: x.send.Op, Status: x.want})
		p.terminatedAs(0x0000)
	}
	t.Part("Fast-Register of what is not the program's")
	fast.FastRegister.Buffers.Addresses = []uint64{gone}
	p := rawPeer(t, n.qp, asInitiator)
	run(t, n.qp, fast, verbs.StatusInvalidPhysBufferEntry)
	p.terminatedAs(0x0000)
}

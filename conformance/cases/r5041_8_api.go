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

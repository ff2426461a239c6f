package cases

import (
	"slices"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// rv5_1 is the RNIC: verbs draft 5.1.
var rv5_1 = []conformance.Case{
	apiCase("5.1/scope", scopeOfObjects, "RV-5.1-M1"),
	apiCase("5.1/scope-of-stags", onHostPair(scopeOfSTags), "RV-5.1-M1"),
	apiCase("5.1.2/opened-empty", openedEmpty, "RV-5.1.2-M1"),
	apiCase("5.1.2/mode", openedInMode, "RV-5.1.2-M2"),
	apiCase("5.1.2/page-mode-always", pageModeAlways, "RV-5.1.2-M3"),
	apiCase("5.1.3/attributes", everyAttribute, "RV-5.1.3-M1"),
	apiCase("5.1.4/close-knows-everything", closeKnowsEverything, "RV-5.1.4-M1"),
	apiCase("5.1.4/close-frees-everything", closeFreesEverything, "RV-5.1.4-M2"),
}

func scopeOfObjects(t *conformance.T) {
	a, b := newFullHost(t, hostConfig{}), newHost(t, hostConfig{})
	here := func() any { return second(b.pd.AllocateRegion(verbs.AllocateConfig{})) }
	for _, c := range []struct {
		name string
		want error
		call func() error
	}{
		{"Create QP, PD", verbs.ErrInvalidPD, func() error { return second(b.nic.CreateQP(b.withDefaults(verbs.QPConfig{PD: a.pd}))) }},
		{"Create QP, send CQ", verbs.ErrInvalidCQ, func() error { return second(b.nic.CreateQP(b.withDefaults(verbs.QPConfig{SendCQ: a.cq}))) }},
		{"Create QP, receive CQ", verbs.ErrInvalidCQ, func() error { return second(b.nic.CreateQP(b.withDefaults(verbs.QPConfig{RecvCQ: a.cq}))) }},
		{"Create QP, S-RQ", verbs.ErrInvalidSRQ, func() error { return second(b.nic.CreateQP(b.withDefaults(verbs.QPConfig{SRQ: a.srq}))) }},
		{"Create S-RQ, PD", verbs.ErrInvalidPD, func() error { return second(b.nic.CreateSRQ(verbs.SRQConfig{PD: a.pd})) }},
		{"Create CQ, handler", verbs.ErrInvalidEventHandler, func() error { return second(b.nic.CreateCQ(verbs.CQConfig{Handler: a.handler})) }},
		{"Register Shared, PD", verbs.ErrInvalidPD, func() error {
			return second(b.mr.RegisterShared(a.pd, verbs.SharedConfig{Access: verbs.LocalRead}))
		}},
		{"Reregister, PD", verbs.ErrInvalidPD, func() error {
			return b.register(8, verbs.LocalRead).Reregister(a.pd, verbs.RegionConfig{Memory: make([]byte, 8), Access: verbs.LocalRead})
		}},
		{"Register, QP", verbs.ErrInvalidModifier, func() error {
			return second(b.pd.RegisterRegion(verbs.RegionConfig{Memory: make([]byte, 8), Access: verbs.LocalRead, QP: a.qp}))
		}},
	} {
		refuses(t, c.name+" of another RNIC", c.want, c.call, here)
	}
	assert.Nil(t, b.nic.SRQ(a.srq.ID()), "an S-RQ by an ID of another RNIC")
	require.NoError(t, a.srq.Destroy(), "nothing of the other RNIC is tied to it")
}

func scopeOfSTags(t *conformance.T, w *hostPair) {
	theirs := w.a.register(64, allRights)
	for theirs.STag().Index() == w.b.mr.STag().Index() {
		theirs = w.a.register(64, allRights)
	}
	fill(theirs.Bytes(), 1)
	before := slices.Clone(theirs.Bytes())

	w.b.remotely(theirs.Remote(0), 0x1100, 0x0100)
	run(t, w.b.qp, verbs.Request{ID: 1, SGL: theirs.SGL(0, 8)}, verbs.StatusInvalidSTag)
	assert.Equal(t, before, theirs.Bytes(), "the memory of the other RNIC")

	// One index may be in use at both, and means two regions.
	n := newHost(t, hostConfig{})
	twin := newHost(t, hostConfig{})
	fill(twin.mr.Bytes(), 2)
	before = slices.Clone(twin.mr.Bytes())
	n.remotely(n.mr.Remote(5), 0, 0)
	assert.Equal(t, byte(0xAB), n.mr.Bytes()[5])
	assert.Equal(t, before, twin.mr.Bytes(), "the memory of the other RNIC")
}

func openedEmpty(t *conformance.T) {
	c := verbs.Config{ID: verbs.NewRNICID(), Limits: small}
	var first verbs.RNICAttributes
	for round := range 3 {
		nic := must(verbs.Open(c))(t)
		t.Cleanup(func() { _ = nic.Close() })
		a := must(nic.Query())(t)
		if round == 0 {
			first = a
		}
		assert.Equal(t, first, a, "as when it was opened first")
		exhaust(t, nic, small)
		require.NoError(t, nic.Close(), "with everything in use")
	}
}

// mixedPages registers a list of pages of which one begins in the middle of
// another.
func mixedPages(n *host) error {
	p := n.pages(4, 4096)
	return second(n.pd.RegisterRegion(verbs.RegionConfig{
		Buffers: verbs.PhysicalBuffers{Size: 4096, Addresses: []uint64{p.Address(0), p.Address(1) + 100}, Length: 8192},
		Access:  verbs.LocalRead, VA: 1 << 20,
	}))
}

func openedInMode(t *conformance.T) {
	for _, c := range []struct {
		mode verbs.Mode
		want error
	}{{verbs.PageMode, verbs.ErrInvalidPhysBufferEntry}, {verbs.BlockMode, nil}} {
		n := newHost(t, hostConfig{RNIC: verbs.Config{Mode: c.mode}})
		assert.Equal(t, c.mode, must(n.nic.Query())(t).Mode)
		assert.ErrorIs(t, mixedPages(n), c.want, "a list of no pages, in %v mode", c.mode)
	}
}

func pageModeAlways(t *conformance.T) {
	without := verbs.FeatureBlockMode | verbs.FeatureSRQ | verbs.FeatureResize | verbs.FeatureChangeIRD | verbs.FeatureRaiseORD
	require.ErrorIs(t, second(verbs.Open(verbs.Config{Mode: verbs.BlockMode, Without: without})), verbs.ErrBlockListNotSupported)
	n := newHost(t, hostConfig{RNIC: verbs.Config{Mode: verbs.PageMode, Without: without}})
	p := n.pages(3, 4096)
	mr := n.region(n.pd, verbs.RegionConfig{Buffers: p.List(10, 8192), Access: allRights, VA: 4096*7 + 10})
	n.remotely(mr.Remote(8191), 0, 0)
	assert.Equal(t, byte(0xAB), p.Bytes()[10+8191])
}

// everyAttribute lists the attributes of 9.2.1.2, of an RNIC with a limit of its own
// for each.
func everyAttribute(t *conformance.T) {
	id := verbs.NewRNICID()
	nic := openRNIC(t, verbs.Config{ID: id, Limits: verbs.Limits{
		PDs: 21, QPs: 22, WR: 23, SGE: 24, WriteSGE: 25, CQs: 26, CQE: 27, EventHandlers: 28, SRQs: 29, SRQWR: 30,
		Regions: 31, Windows: 32, PBL: 33, Physical: 34, IRD: 35, ORD: 36, SharedIRD: 37, SharedORD: 38,
	}})
	a := must(nic.Query())(t)
	for _, c := range []struct {
		name      string
		want, got any
	}{
		{"RNIC", id, a.ID},
		{"vendor", "softrnic", a.Vendor},
		{"PDs", 21, a.Limits.PDs},
		{"QPs", 22, a.Limits.QPs},
		{"WRs of a queue", 23, a.Limits.WR},
		{"SGEs of a Send", 24, a.Limits.SGE},
		{"SGEs of an RDMA Write", 25, a.Limits.WriteSGE},
		{"CQs", 26, a.Limits.CQs},
		{"entries of a CQ", 27, a.Limits.CQE},
		{"CQ event handlers", 28, a.Limits.EventHandlers},
		{"S-RQs", 29, a.Limits.SRQs},
		{"WRs of an S-RQ", 30, a.Limits.SRQWR},
		{"regions", 31, a.Limits.Regions},
		{"windows", 32, a.Limits.Windows},
		{"entries of a buffer list", 33, a.Limits.PBL},
		{"IRD of a QP", 35, a.Limits.IRD},
		{"ORD of a QP", 36, a.Limits.ORD},
		{"IRD of all QPs", 37, a.Limits.SharedIRD},
		{"ORD of all QPs", 38, a.Limits.SharedORD},
		{"modifying IRD", true, a.Features.Has(verbs.FeatureChangeIRD)},
		{"increasing ORD", true, a.Features.Has(verbs.FeatureRaiseORD)},
		{"modifying the WRs of a QP", true, a.Features.Has(verbs.FeatureResize)},
		{"mode", verbs.PageMode, a.Mode},
		{"S-RQs at all", true, a.Features.Has(verbs.FeatureSRQ)},
		{"CQ overflow detection", true, a.DetectCQOverflow},
		{"dequeuing model", verbs.ArrivalOrder, a.DequeueModel},
	} {
		assert.Equal(t, c.want, c.got, c.name)
	}
	assert.Contains(t, a.PageSizes, uint64(4096), "page sizes")
	assert.NotEmpty(t, a.Version, "version")

	without := verbs.FeatureSRQ | verbs.FeatureResize | verbs.FeatureChangeIRD | verbs.FeatureRaiseORD
	a = must(openRNIC(t, verbs.Config{Mode: verbs.BlockMode, Without: without}).Query())(t)
	assert.Equal(t, []any{verbs.BlockMode, false, false, false, false, 0},
		[]any{a.Mode, a.Features.Has(verbs.FeatureSRQ), a.Features.Has(verbs.FeatureResize), a.Features.Has(verbs.FeatureChangeIRD), a.Features.Has(verbs.FeatureRaiseORD), a.Limits.SRQWR}, "without what is optional")
	assert.Positive(t, a.MinBlock, "block sizes")
	assert.Greater(t, a.MaxBlock, a.MinBlock, "block sizes")
}

func closeKnowsEverything(t *conformance.T) {
	e := newFullHost(t, hostConfig{})
	bound, under := e.newMW(), e.register(64, allRights|verbs.BindWindow)
	c := verbs.QPConfig{}
	rts, closing, terminate, failed := e.newQP(c), e.newQP(c), e.newQP(c), e.newQP(c)
	streams := map[string]*verbs.QP{"RTS": rts, "Closing": closing, "Terminate": terminate}
	peers := map[string]*peer{}
	for name, qp := range streams {
		peers[name] = rawPeer(t, qp, asInitiator)
	}
	run(t, rts, verbs.Request{ID: 1, Op: verbs.OpBind, Bind: bound.BindRequest(under, 0, 64, remoteRights, 1)}, verbs.StatusSuccess)
	for next, qp := range map[verbs.State]*verbs.QP{verbs.StateClosing: closing, verbs.StateTerminate: terminate, verbs.StateError: failed} {
		require.NoError(t, qp.Modify(verbs.ModifyQP{Next: next}))
		require.Equal(t, next, qp.State())
	}
	shared := must(e.mr.RegisterShared(nil, verbs.SharedConfig{Access: verbs.LocalRead}))(t)
	empty := must(e.pd.AllocateRegion(verbs.AllocateConfig{}))(t)

	require.NoError(t, e.nic.Close())
	for name, p := range peers {
		require.NotEmpty(t, p.gone(), "the stream of %s", name)
	}
	e.closed()
	for name, query := range map[string]func() error{
		"QP in RTS":       func() error { return second(rts.Query()) },
		"QP in Closing":   func() error { return second(closing.Query()) },
		"QP in Terminate": func() error { return second(terminate.Query()) },
		"QP in Error":     func() error { return second(failed.Query()) },
		"bound window":    func() error { return second(bound.Query()) },
		"its region":      func() error { return second(under.Query()) },
		"shared region":   func() error { return second(shared.Query()) },
		"empty region":    func() error { return second(empty.Query()) },
	} {
		assert.ErrorIs(t, query(), verbs.ErrInvalidRNIC, name)
	}
}

func closeFreesEverything(t *conformance.T) {
	id := verbs.NewRNICID()
	w := newHostPair(t, hostPairConfig{B: hostConfig{RNIC: verbs.Config{ID: id, Limits: small}}})
	sink := w.b.mr
	postRecv(t, w.b.qp, verbs.Recv{ID: 1, SGL: sink.SGL(0, 64)})
	// The peer goes on writing until its stream is gone.
	first := make(chan struct{})
	writer := make(chan struct{})
	go func() {
		defer close(writer)
		for n := 0; ; n++ {
			_, err := w.a.qp.PostSend(verbs.Request{Op: verbs.OpWrite, SGL: w.a.mr.SGL(0, 32<<10), Remote: sink.Remote(1 << 10)})
			if err != nil {
				return
			}
			if _, err := w.a.cq.Wait(t.Context(), make([]verbs.Completion, 1)); err != nil {
				return
			}
			if n == 10 {
				close(first)
			}
		}
	}()
	receive(t, first, "no traffic")
	require.NoError(t, w.b.nic.Close())
	memory := fill(sink.Bytes(), 3) // the program's again
	want := slices.Clone(memory)
	again := openRNIC(t, verbs.Config{ID: id, Limits: small})
	exhaust(t, again, small)
	ends(t, w.a.qp, verbs.StateError)
	<-writer
	assert.Equal(t, want, memory, "what the program wrote after Close")
	assert.ErrorIs(t, second(w.b.cq.PollOne()), verbs.ErrInvalidRNIC)
}

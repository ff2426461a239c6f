package cases

import (
	"slices"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// rv9_2_1 is the verbs of the RNIC: verbs draft 9.2.1.
var rv9_2_1 = []conformance.Case{
	apiCase("9.2.1.1/results", openResults, "RV-9.2.1.1-M1", "PV-5.1.2-M1"),
	apiCase("9.2.1.1/modifiers", openModifiers, "RV-9.2.1.1-M2", "RV-9.2.1.1-M3"),
	apiCase("9.2.1.2/results", queryRNICResults, "RV-9.2.1.2-M1"),
	apiCase("9.2.1.2/limits-are-real", limitsAreReal, "RV-9.2.1.2-M2"),
	apiCase("9.2.1.2/shared-reads", onHost(sharedIRD), "RV-9.2.1.2-M3"),
	apiCase("9.2.1.2/buffer-lists", bufferLists, "RV-9.2.1.2-M4"),
	apiCase("9.2.1.3/results", closeResults, "RV-9.2.1.3-M1"),
	apiCase("9.2.1.3/one-of-two", closeOneOfTwo, "RV-9.2.1.3-M2"),
}

// openResults provokes the results of Open RNIC but Insufficient Resources, which
// takes all RNICs of the process and so would disturb the other cases.
func openResults(t *conformance.T) {
	id := verbs.NewRNICID()
	nic := must(verbs.Open(verbs.Config{ID: id}))(t)
	t.Cleanup(func() { _ = nic.Close() })
	strange := id
	strange[8] = 0x40 // of a variant that names nothing (RFC 9562 4.1)
	for _, c := range []struct {
		name string
		want error
		c    verbs.Config
	}{
		{"the same RNIC again", verbs.ErrRNICInUse, verbs.Config{ID: id}},
		{"a name that is none", verbs.ErrInvalidModifier, verbs.Config{ID: strange}},
		{"block lists of an RNIC without", verbs.ErrBlockListNotSupported, verbs.Config{Mode: verbs.BlockMode, Without: verbs.FeatureBlockMode}},
	} {
		refuses(t, c.name, c.want, func() error { return second(verbs.Open(c.c)) }, queries(nic.Query))
	}
	require.NoError(t, nic.Close())
	require.ErrorIs(t, second(nic.Query()), verbs.ErrInvalidRNIC)
	again := openRNIC(t, verbs.Config{ID: id})
	require.NoError(t, nic.Close())
	require.NoError(t, second(again.Query()), "the old handle does not close the new RNIC")
	require.ErrorIs(t, second(verbs.Open(verbs.Config{ID: id})), verbs.ErrRNICInUse, "nor does it free the name")
}

func openModifiers(t *conformance.T) {
	for _, mode := range []verbs.Mode{verbs.PageMode, verbs.BlockMode} {
		id := verbs.NewRNICID()
		n := newHost(t, hostConfig{RNIC: verbs.Config{ID: id, Mode: mode}})
		a, err := n.nic.Query()
		require.NoError(t, err)
		assert.Equal(t, []any{id, mode}, []any{a.ID, a.Mode})
		_, err = n.nic.AllocatePages(1, 4099)
		if mode == verbs.PageMode {
			assert.ErrorIs(t, err, verbs.ErrInvalidPhysBufferSize, "an odd size is no page")
		} else {
			assert.NoError(t, err, "an odd size is a block")
		}
		p := n.pages(2, 4096)
		mr := n.region(n.pd, verbs.RegionConfig{Buffers: p.List(0, 8192), Access: verbs.LocalRead, ZeroBased: true})
		assert.Equal(t, 8192, mr.Len())
	}
	id := verbs.NewRNICID()
	for _, mode := range []verbs.Mode{2, 7, 255} {
		require.ErrorIs(t, second(verbs.Open(verbs.Config{ID: id, Mode: mode})), verbs.ErrInvalidModifier, "mode %d", mode)
	}
	openRNIC(t, verbs.Config{ID: id}) // the name is free
}

func queryRNICResults(t *conformance.T) {
	nic := openRNIC(t, verbs.Config{})
	require.NoError(t, second(nic.Query()))
	require.NoError(t, nic.Close())
	require.ErrorIs(t, second(nic.Query()), verbs.ErrInvalidRNIC)
}

// limitsAreReal: what Query RNIC tells is what there is, and one more is refused
// with the result that belongs to it.
func limitsAreReal(t *conformance.T) {
	nic := openRNIC(t, verbs.Config{Limits: small})
	exhaust(t, nic, small)
	n := newHost(t, hostConfig{RNIC: verbs.Config{Limits: small}})
	a := must(n.nic.Query())(t)
	assert.Equal(t, []int{3, 4, 64, 8, 6, 2, 512, 2, 2, 32, 3, 2, 16, 8, 8}, []int{
		a.Limits.PDs, a.Limits.QPs, a.Limits.WR, a.Limits.SGE, a.Limits.WriteSGE, a.Limits.CQs, a.Limits.CQE, a.Limits.EventHandlers, a.Limits.SRQs, a.Limits.SRQWR,
		a.Limits.Regions, a.Limits.Windows, a.Limits.PBL, a.Limits.IRD, a.Limits.ORD,
	})
	qp := func(set func(*verbs.QPConfig, int)) func(int) error {
		return func(v int) error {
			c := n.withDefaults(verbs.QPConfig{})
			set(&c, v)
			q, err := n.nic.CreateQP(c)
			if err == nil {
				err = q.Destroy()
			}
			return err
		}
	}
	srq := func(set func(*verbs.SRQConfig, int)) func(int) error {
		return func(v int) error {
			c := verbs.SRQConfig{PD: n.pd}
			set(&c, v)
			s, err := n.nic.CreateSRQ(c)
			if err == nil {
				err = s.Destroy()
			}
			return err
		}
	}
	for _, c := range []struct {
		name  string
		limit int
		want  error
		make  func(int) error
	}{
		{"WRs of an SQ", a.Limits.WR, verbs.ErrTooManyWR, qp(func(c *verbs.QPConfig, v int) { c.SendDepth = v })},
		{"WRs of an RQ", a.Limits.WR, verbs.ErrTooManyWR, qp(func(c *verbs.QPConfig, v int) { c.RecvDepth = v })},
		{"SGEs of a Send", a.Limits.SGE, verbs.ErrTooManySGE, qp(func(c *verbs.QPConfig, v int) { c.SendSGE = v })},
		{"SGEs of a Receive", a.Limits.SGE, verbs.ErrTooManySGE, qp(func(c *verbs.QPConfig, v int) { c.RecvSGE = v })},
		{"SGEs of an RDMA Write", a.Limits.WriteSGE, verbs.ErrTooManySGE, qp(func(c *verbs.QPConfig, v int) { c.WriteSGE = v })},
		{"IRD", a.Limits.IRD, verbs.ErrIRDExceeded, qp(func(c *verbs.QPConfig, v int) { c.IRD = v })},
		{"ORD", a.Limits.ORD, verbs.ErrORDExceeded, qp(func(c *verbs.QPConfig, v int) { c.ORD = v })},
		{"WRs of an S-RQ", a.Limits.SRQWR, verbs.ErrTooManyWR, srq(func(c *verbs.SRQConfig, v int) { c.Depth = v })},
		{"SGEs of an S-RQ", a.Limits.SGE, verbs.ErrTooManySGE, srq(func(c *verbs.SRQConfig, v int) { c.SGE = v })},
		{"entries of a CQ", a.Limits.CQE, verbs.ErrTooManyCQE, n.cq.Resize},
		{"entries of a buffer list", a.Limits.PBL, verbs.ErrInsufficientResources, func(v int) error {
			mr, err := n.pd.AllocateRegion(verbs.AllocateConfig{PBL: v})
			if err == nil {
				err = mr.Deregister()
			}
			return err
		}},
	} {
		assert.NoError(t, c.make(c.limit), "%d %s", c.limit, c.name)
		assert.ErrorIs(t, c.make(c.limit+1), c.want, "more than %d %s", c.limit, c.name)
	}
	assert.EqualValues(t, uint32(1<<32-1), a.MaxMessage, "draft 8.1.3.2")
}

func sharedIRD(t *conformance.T, n *host) {
	a := must(n.nic.Query())(t)
	assert.Zero(t, a.Limits.SharedIRD, "not shared")
	for i := range 20 {
		q := attributes(t, n.newQP(verbs.QPConfig{IRD: a.Limits.IRD}))
		require.Equal(t, a.Limits.IRD, q.IRD, "queue pair %d", i)
	}

	const pool = 10
	n = newHost(t, hostConfig{
		RNIC: verbs.Config{Limits: verbs.Limits{QPs: 6, SharedIRD: pool, SharedORD: pool}},
		QP:   verbs.QPConfig{IRD: 4, ORD: 1},
	})
	a = must(n.nic.Query())(t)
	assert.Equal(t, pool, a.Limits.SharedIRD)
	sum := attributes(t, n.qp).IRD
	for range 4 {
		qp, err := n.nic.CreateQP(n.withDefaults(verbs.QPConfig{IRD: 3, ORD: 1}))
		if err != nil {
			assert.ErrorIs(t, err, verbs.ErrInsufficientResources)
			continue
		}
		sum += attributes(t, qp).IRD
		require.LessOrEqual(t, sum, pool)
	}
	assert.Equal(t, pool, sum, "all that there is")
}

func bufferLists(t *conformance.T) {
	var doubled []uint64
	for size := uint64(4096); size <= 1<<30; size *= 2 {
		doubled = append(doubled, size)
	}
	for _, c := range []struct {
		mode      verbs.Mode
		good, bad []uint64
	}{
		{verbs.PageMode, doubled, []uint64{0, 1, 2048, 4097, 12288, 1<<30 - 1, 1 << 31, 1 << 63}},
		{verbs.BlockMode, []uint64{1, 7, 4096, 4097, 12288, 1<<30 - 1, 1 << 30}, []uint64{0, 1<<30 + 1, 1 << 31, 1 << 63}},
	} {
		n := newHost(t, hostConfig{RNIC: verbs.Config{Mode: c.mode}})
		a := must(n.nic.Query())(t)
		assert.Equal(t, c.mode, a.Mode)
		if c.mode == verbs.PageMode {
			assert.Equal(t, doubled, a.PageSizes)
			assert.Equal(t, []uint64{0, 0}, []uint64{a.MinBlock, a.MaxBlock})
		} else {
			assert.Empty(t, a.PageSizes)
			assert.Equal(t, []uint64{1, 1 << 30}, []uint64{a.MinBlock, a.MaxBlock})
		}
		for _, size := range c.good {
			if size <= 1<<22 {
				mr := n.region(n.pd, verbs.RegionConfig{Buffers: n.pages(1, size).List(0, 1), Access: verbs.LocalRead, ZeroBased: true})
				require.NoError(t, mr.Deregister())
				continue
			}
			// The size is accepted: what is refused is memory that is nobody's.
			assert.ErrorIs(t, n.listOf(size), verbs.ErrInvalidPhysBufferEntry, "%d octets, %v", size, c.mode)
		}
		for _, size := range c.bad {
			assert.ErrorIs(t, n.listOf(size), verbs.ErrInvalidPhysBufferSize, "%d octets, %v", size, c.mode)
		}
	}
}

// listOf registers a list of one buffer of that size, at an address where no memory
// is.
func (n *host) listOf(size uint64) error {
	return second(n.pd.RegisterRegion(verbs.RegionConfig{
		Buffers: verbs.PhysicalBuffers{Size: size, Addresses: []uint64{1 << 50}, Length: 1}, Access: verbs.LocalRead, ZeroBased: true,
	}))
}

func closeResults(t *conformance.T) {
	e := newFullHost(t, hostConfig{})
	require.NoError(t, e.nic.Close())
	e.closed()
	// Close is the one verb that may be called twice: nothing is left to refuse.
	require.NoError(t, e.nic.Close())
	e.closed()
}

func closeOneOfTwo(t *conformance.T) {
	id := verbs.NewRNICID()
	w := newHostPair(t, hostPairConfig{B: hostConfig{RNIC: verbs.Config{ID: id}}})
	third := newHost(t, hostConfig{})
	other := w.a.newQP(verbs.QPConfig{})
	connect(t, other, third.qp)
	raw := rawPeer(t, w.b.newQP(verbs.QPConfig{}), asInitiator)
	here, _ := w.connectMore(verbs.QPConfig{}, verbs.QPConfig{})
	srq := w.b.newSRQ(verbs.SRQConfig{})
	postRecv(t, srq, verbs.Recv{SGL: w.b.mr.SGL(0, 64)})
	bound := w.b.newMW()
	run(t, w.b.qp, verbs.Request{Op: verbs.OpBind, Bind: bound.BindRequest(w.b.mr, 0, 64, remoteRights, 1)}, verbs.StatusSuccess)

	require.NoError(t, w.b.nic.Close())
	memory := fill(w.b.mr.Bytes(), 5)
	want := slices.Clone(memory)
	require.NotEmpty(t, raw.gone(), "the stream of %s", "the closed RNIC")
	ends(t, w.a.qp, verbs.StateError)
	ends(t, here, verbs.StateError)
	moves(t, endpoint{other, w.a.mr}, third.endpoint()) // the other RNICs go on
	assert.Equal(t, want, memory)
	again := openRNIC(t, verbs.Config{ID: id})
	require.NoError(t, second(again.AllocatePD()))
}

// rv9_2_2 is the verbs of Protection Domains: verbs draft 9.2.2.
var rv9_2_2 = []conformance.Case{
	apiCase("9.2.2.1/results", allocPDResults, "RV-9.2.2.1-M1"),
	apiCase("9.2.2.1/modifiers", allocPDModifiers, "RV-9.2.2.1-M2"),
	apiCase("9.2.2.2/results", onHost(deallocPDResults), "RV-9.2.2.2-M1"),
	apiCase("9.2.2.2/modifiers", deallocPDModifiers, "RV-9.2.2.2-M2"),
	apiCase("9.2.2.2/in-use", deallocPDInUse, "RV-9.2.2.2-M3"),
}

func allocPDResults(t *conformance.T) {
	nic := openRNIC(t, verbs.Config{Limits: verbs.Limits{PDs: 3}})
	for range 3 {
		require.NoError(t, second(nic.AllocatePD()))
	}
	refuses(t, "a fourth PD", verbs.ErrInsufficientResources, func() error { return second(nic.AllocatePD()) }, queries(nic.Query))
	require.NoError(t, nic.Close())
	require.ErrorIs(t, second(nic.AllocatePD()), verbs.ErrInvalidRNIC)
}

// allocPDModifiers: the PD is of the RNIC whose handle was given, and of no other.
func allocPDModifiers(t *conformance.T) {
	a, b := newHost(t, hostConfig{}), newHost(t, hostConfig{})
	ids := map[verbs.PDID]bool{}
	for range 50 {
		ids[a.newPD().ID()] = true
	}
	assert.Len(t, ids, 50)
	pd := a.newPD()
	memory := verbs.RegionConfig{Memory: make([]byte, 8), Access: verbs.LocalRead}
	for name, call := range map[string]func(n *host) error{
		"Create QP":  func(n *host) error { return second(n.nic.CreateQP(n.withDefaults(verbs.QPConfig{PD: pd}))) },
		"Create SRQ": func(n *host) error { return second(n.nic.CreateSRQ(verbs.SRQConfig{PD: pd})) },
		"Reregister": func(n *host) error { return n.register(8, verbs.LocalRead).Reregister(pd, memory) },
		"Register Shared": func(n *host) error {
			return second(n.register(8, verbs.LocalRead).RegisterShared(pd, verbs.SharedConfig{Access: verbs.LocalRead}))
		},
	} {
		assert.NoError(t, call(a), "%s, with a PD of the RNIC", name)
		assert.ErrorIs(t, call(b), verbs.ErrInvalidPD, "%s, with a PD of another RNIC", name)
	}
}

func deallocPDResults(t *conformance.T, n *host) {
	pd := n.deadPD()
	require.ErrorIs(t, pd.Deallocate(), verbs.ErrInvalidPD, "deallocated before")
	require.ErrorIs(t, n.pd.Deallocate(), verbs.ErrPDInUse)
	require.NoError(t, n.nic.Close())
	require.ErrorIs(t, n.pd.Deallocate(), verbs.ErrInvalidRNIC)
}

func deallocPDModifiers(t *conformance.T) {
	n := newHost(t, hostConfig{RNIC: verbs.Config{Limits: verbs.Limits{PDs: 3}}})
	gone, other := n.deadPD(), n.newPD()
	memory := verbs.RegionConfig{Memory: make([]byte, 8), Access: verbs.LocalRead}
	for name, call := range map[string]func(pd *verbs.PD) error{
		"Create QP":              func(pd *verbs.PD) error { return second(n.nic.CreateQP(n.withDefaults(verbs.QPConfig{PD: pd}))) },
		"Create S-RQ":            func(pd *verbs.PD) error { return second(n.nic.CreateSRQ(verbs.SRQConfig{PD: pd})) },
		"Register":               func(pd *verbs.PD) error { return second(pd.RegisterRegion(memory)) },
		"Allocate STag":          func(pd *verbs.PD) error { return second(pd.AllocateRegion(verbs.AllocateConfig{})) },
		"Allocate Memory Window": func(pd *verbs.PD) error { return second(pd.AllocateWindow()) },
		"Reregister":             func(pd *verbs.PD) error { return n.register(8, verbs.LocalRead).Reregister(pd, memory) },
		"Register Shared": func(pd *verbs.PD) error {
			return second(n.register(8, verbs.LocalRead).RegisterShared(pd, verbs.SharedConfig{Access: verbs.LocalRead}))
		},
	} {
		assert.ErrorIs(t, call(gone), verbs.ErrInvalidPD, name)
		assert.NoError(t, call(other), "%s, in the other PD", name)
	}
	require.NoError(t, second(n.nic.AllocatePD()), "its place is free")
	require.ErrorIs(t, second(n.nic.AllocatePD()), verbs.ErrInsufficientResources)
}

// deallocPDInUse: each of the six that 9.2.2.2 names keeps the PD, alone.
func deallocPDInUse(t *conformance.T) {
	for _, k := range tenants() {
		n := newHost(t, hostConfig{})
		pd := n.newPD()
		leave := k.enter(n, pd)
		require.ErrorIs(t, pd.Deallocate(), verbs.ErrPDInUse, "with a %s", k.name)
		require.NoError(t, second(pd.Register(make([]byte, 8), verbs.LocalRead)), "with a %s the PD works", k.name)
		require.NoError(t, leave())
		require.ErrorIs(t, pd.Deallocate(), verbs.ErrPDInUse, "with a region")
	}
	// A window keeps it in both states.
	w := newHostPair(t, hostPairConfig{})
	pd := w.a.newPD()
	qp := w.a.newQP(verbs.QPConfig{PD: pd})
	connect(t, qp, w.b.newQP(verbs.QPConfig{}))
	under := w.a.region(pd, verbs.RegionConfig{Memory: make([]byte, 64), Access: allRights | verbs.BindWindow})
	mw := must(pd.AllocateWindow())(t)
	run(t, qp, verbs.Request{Op: verbs.OpBind, Bind: mw.BindRequest(under, 0, 64, remoteRights, 1)}, verbs.StatusSuccess)
	require.ErrorIs(t, pd.Deallocate(), verbs.ErrPDInUse, "with a bound window")
	run(t, qp, verbs.Request{Op: verbs.OpInvalidate, Invalidate: mw.STag(1)}, verbs.StatusSuccess)
	succeed(t, under.Deregister, qp.Destroy)
	require.ErrorIs(t, pd.Deallocate(), verbs.ErrPDInUse, "with an invalidated window alone")
	succeed(t, mw.Deallocate, pd.Deallocate)
	require.ErrorIs(t, pd.Deallocate(), verbs.ErrInvalidPD)
	moves(t, w.a.endpoint(), w.b.endpoint())
}

package cases

import (
	"sync"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// rv5_2 is Protection Domains and what is in them: verbs draft 5.2.
var rv5_2 = []conformance.Case{
	apiCase("5.2/qp-in-one-pd", onIdleHostPair(qpInOnePD), "RV-5.2-M1"),
	apiCase("5.2/many-in-one-pd", onIdleHostPair(manyInOnePD), "RV-5.2-M2", "RV-5.2-M4", "RV-5.2-M6"),
	apiCase("5.2/region-in-one-pd", onHostPair(regionInOnePD), "RV-5.2-M3"),
	apiCase("5.2/window-in-one-pd", onHost(windowInOnePD), "RV-5.2-M5"),
	apiCase("5.2/any-object-in-any-pd", onHost(anyObjectInAnyPD), "RV-5.2-M7"),
	apiCase("5.2/bind-across-pds", onHost(bindAcrossPDs), "RV-5.2-M8", "RV-5.2-M10", "RV-5.2-M11"),
	apiCase("5.2/fast-register-across-pds", onHost(fastRegisterAcrossPDs), "RV-5.2-M9", "RV-5.2-M10", "RV-5.2-M11"),
}

func qpInOnePD(t *conformance.T, w *hostPair) {
	n := w.a
	dead := n.deadPD()
	for name, pd := range map[string]*verbs.PD{"no PD": nil, "a deallocated PD": dead} {
		assert.ErrorIs(t, second(n.nic.CreateQP(verbs.QPConfig{PD: pd, SendCQ: n.cq, RecvCQ: n.cq})), verbs.ErrInvalidPD, name)
	}
	other := n.newPD()
	qp := n.newQP(verbs.QPConfig{PD: other})
	assert.Same(t, other, attributes(t, qp).PD)
	assert.Same(t, n.pd, attributes(t, n.qp).PD)
	connect(t, qp, w.b.qp)
	assert.Same(t, other, attributes(t, qp).PD, "with a stream")
	// It is in no other PD: a region of the first is out of its reach.
	run(t, qp, verbs.Request{ID: 1, SGL: n.mr.SGL(0, 8)}, verbs.StatusInvalidPD)
	ends(t, qp, verbs.StateError)
	assert.Same(t, other, attributes(t, qp).PD, "after the stream")
}

func manyInOnePD(t *conformance.T, w *hostPair) {
	var (
		sgl     []verbs.SGE
		regions []*verbs.MR
		qps     []*verbs.QP
		windows []*verbs.MW
	)
	indexes := map[uint32]bool{}
	for i := range 3 {
		mr := w.a.register(100, allRights|verbs.BindWindow)
		fill(mr.Bytes(), i)
		assert.Equal(t, w.a.pd.ID(), must(mr.Query())(t).PD, "PD of region %d", i)
		mw := w.a.newMW()
		assert.Equal(t, w.a.pd.ID(), must(mw.Query())(t).PD, "PD of window %d", i)
		indexes[mr.STag().Index()], indexes[mw.STag(0).Index()] = true, true
		sgl, regions, windows = append(sgl, mr.SGE(i, 50)), append(regions, mr), append(windows, mw)
		qp, peer := w.connectMore(verbs.QPConfig{}, verbs.QPConfig{})
		assert.Same(t, w.a.pd, attributes(t, qp).PD, "PD of queue pair %d", i)
		qps = append(qps, qp)
		postRecv(t, peer, verbs.Recv{SGL: w.b.mr.SGL(i*256, 256)})
	}
	assert.Len(t, indexes, 6, "STag indexes")
	want := append(append(append([]byte(nil), regions[0].Bytes()[0:50]...), regions[1].Bytes()[1:51]...), regions[2].Bytes()[2:52]...)
	for i, qp := range qps { // each gathers from all regions, and binds a window
		run(t, qp, verbs.Request{ID: 1, SGL: sgl}, verbs.StatusSuccess)
		c := await(t, w.b.cq, 1)[0]
		assert.EqualValues(t, 150, c.Bytes)
		assert.Equal(t, want, w.b.mr.Bytes()[i*256:i*256+150], "what queue pair %d sent", i)
		run(t, qp, verbs.Request{ID: 2, Op: verbs.OpBind, Bind: windows[i].BindRequest(regions[i], 0, 100, remoteRights, 1)}, verbs.StatusSuccess)
	}
}

func regionInOnePD(t *conformance.T, w *hostPair) {
	n := w.a
	dead, other := n.deadPD(), n.newPD()
	require.ErrorIs(t, second(dead.Register(make([]byte, 8), verbs.LocalRead)), verbs.ErrInvalidPD)
	mr := n.region(other, verbs.RegionConfig{Memory: make([]byte, 64), Access: allRights})
	assert.Equal(t, other.ID(), must(mr.Query())(t).PD)
	// A queue pair of that PD may use it, one of another may not, near or far.
	near := n.newQP(verbs.QPConfig{PD: other})
	connect(t, near, w.b.newQP(verbs.QPConfig{}))
	run(t, near, verbs.Request{ID: 1, Op: verbs.OpWrite, SGL: mr.SGL(0, 64), Remote: w.b.mr.Remote(0)}, verbs.StatusSuccess)
	n.remotely(mr.Remote(0), 0x1102, 0x0103)
	assert.Equal(t, make([]byte, 64), mr.Bytes(), "what the peer of another PD wrote")
	run(t, n.qp, verbs.Request{ID: 2, Op: verbs.OpWrite, SGL: mr.SGL(0, 64), Remote: w.b.mr.Remote(0)}, verbs.StatusInvalidPD)
}

func windowInOnePD(t *conformance.T, n *host) {
	dead, other := n.deadPD(), n.newPD()
	require.ErrorIs(t, second(dead.AllocateWindow()), verbs.ErrInvalidPD)
	for _, pd := range []*verbs.PD{n.pd, other} {
		mw := must(pd.AllocateWindow())(t)
		assert.Equal(t, verbs.WindowAttributes{STag: mw.STag(0), PD: pd.ID()}, must(mw.Query())(t), "a fresh window")
	}
}

func anyObjectInAnyPD(t *conformance.T, n *host) {
	for i := range 4 {
		pd := n.newPD()
		for k := range 4 { // the first one made differs from PD to PD
			switch (i + k) % 4 {
			case 0:
				assert.Same(t, pd, attributes(t, n.newQP(verbs.QPConfig{PD: pd})).PD, "QP in PD %d", i)
			case 1:
				assert.Equal(t, pd.ID(), must(n.newSRQ(verbs.SRQConfig{PD: pd}).Query())(t).PD, "S-RQ in PD %d", i)
			case 2:
				q := must(n.region(pd, verbs.RegionConfig{Memory: make([]byte, 8), Access: allRights}).Query())(t)
				assert.Equal(t, pd.ID(), q.PD, "region in PD %d", i)
			case 3:
				mw := must(pd.AllocateWindow())(t)
				assert.Equal(t, pd.ID(), must(mw.Query())(t).PD, "window in PD %d", i)
			}
		}
	}
}

// failsLocally posts one request to a queue pair of the host with a raw peer, and
// says that it completes with this status, that the peer is told 0x0000 (figure 23),
// and that what the queries tell is as it was.
func (n *host) failsLocally(what string, qp *verbs.QP, req verbs.Request, want verbs.Status, queries ...func() any) {
	before := make([]any, len(queries))
	for i, q := range queries {
		before[i] = q()
	}
	p := rawPeer(n.t, qp, asInitiator)
	n.t.Logf("%s", what)
	run(n.t, qp, req, want)
	p.terminatedAs(0x0000)
	for i, q := range queries {
		assert.Equal(n.t, before[i], q(), "%s: nothing has changed", what)
	}
}

func bindAcrossPDs(t *conformance.T, n *host) {
	other := n.newPD()
	foreign := must(other.AllocateWindow())(t)
	under := n.region(other, verbs.RegionConfig{Memory: make([]byte, 64), Access: allRights | verbs.BindWindow})
	home := n.newMW()
	for _, c := range []struct {
		name  string
		mw    *verbs.MW
		mr    *verbs.MR
		flags verbs.Flags
	}{
		{"window of another PD", foreign, n.mr, 0},
		{"region of another PD", home, under, 0},
		{"both of another PD", foreign, under, 0},
		{"window of another PD, unsignaled", foreign, n.mr, verbs.Unsignaled},
		{"region of another PD, unsignaled", home, under, verbs.Unsignaled},
	} {
		b := c.mw.BindRequest(c.mr, 0, 64, remoteRights, 9)
		n.failsLocally(c.name, n.newQP(verbs.QPConfig{}), verbs.Request{ID: 77, Op: verbs.OpBind, Flags: c.flags, Bind: b},
			verbs.StatusInvalidPD, queries(c.mw.Query), queries(c.mr.Query))
		n.remotely(verbs.BindBuffer(b).Remote(0), 0x1100, 0x0100)
	}
	// All of one PD.
	qp := n.newQP(verbs.QPConfig{})
	rawPeer(t, qp, asInitiator)
	run(t, qp, verbs.Request{ID: 78, Op: verbs.OpBind, Bind: home.BindRequest(n.mr, 0, 64, remoteRights, 9)}, verbs.StatusSuccess)
	qp = n.newQP(verbs.QPConfig{PD: other})
	rawPeer(t, qp, asInitiator)
	run(t, qp, verbs.Request{ID: 79, Op: verbs.OpBind, Bind: foreign.BindRequest(under, 0, 64, remoteRights, 9)}, verbs.StatusSuccess)
}

func fastRegisterAcrossPDs(t *conformance.T, n *host) {
	other := n.newPD()
	pages := n.pages(1, 4096)
	foreign := must(other.AllocateRegion(verbs.AllocateConfig{RemoteAccess: true}))(t)
	register := func(mr *verbs.MR) *verbs.FastRegisterRequest {
		return &verbs.FastRegisterRequest{STag: mr.WithKey(5), Buffers: pages.List(0, 4096), Addressing: verbs.ZeroBased, Access: allRights}
	}
	for name, flags := range map[string]verbs.Flags{"signaled": 0, "unsignaled": verbs.Unsignaled} {
		f := register(foreign)
		n.failsLocally(name, n.newQP(verbs.QPConfig{Privileged: true}),
			verbs.Request{ID: 77, Op: verbs.OpFastRegister, Flags: flags, FastRegister: f}, verbs.StatusInvalidPD, queries(foreign.Query))
		n.remotely(verbs.FastRegisterBuffer(f).Remote(0), 0x1100, 0x0100)
	}
	for name, pd := range map[string]*verbs.PD{"own PD": n.pd, "the other PD": other} {
		mr := must(pd.AllocateRegion(verbs.AllocateConfig{RemoteAccess: true}))(t)
		qp := n.newQP(verbs.QPConfig{PD: pd, Privileged: true})
		rawPeer(t, qp, asInitiator)
		run(t, qp, verbs.Request{ID: 78, Op: verbs.OpFastRegister, FastRegister: register(mr)}, verbs.StatusSuccess)
		assert.True(t, must(mr.Query())(t).Valid, name)
	}
}

// rv5_2_pds is the life of Protection Domains: verbs draft 5.2.1 and 5.2.2.
var rv5_2_pds = []conformance.Case{
	apiCase("5.2.1/allocated-here", pdsAllocatedHere, "RV-5.2.1-M1"),
	apiCase("5.2.1/ids-at-once", pdIDsAtOnce, "RV-5.2.1-M2"),
	apiCase("5.2.1/ids-over-time", onHost(pdIDsOverTime), "RV-5.2.1-M3"),
	apiCase("5.2.2/only-by-verb", pdDeallocatedByVerb, "RV-5.2.2-M1"),
	apiCase("5.2.2/in-use", pdInUse, "RV-5.2.2-M2", "RV-5.2.2-M3"),
}

func pdsAllocatedHere(t *conformance.T) {
	n, foreign := newHost(t, hostConfig{}), newHost(t, hostConfig{})
	count := queries(n.mr.Query)
	for name, pd := range map[string]*verbs.PD{"made up": {}, "of another RNIC": foreign.pd} {
		refuses(t, "Create QP in a PD "+name, verbs.ErrInvalidPD, func() error {
			return second(n.nic.CreateQP(verbs.QPConfig{PD: pd, SendCQ: n.cq, RecvCQ: n.cq}))
		})
		refuses(t, "Create S-RQ in a PD "+name, verbs.ErrInvalidPD, func() error {
			return second(n.nic.CreateSRQ(verbs.SRQConfig{PD: pd}))
		})
		refuses(t, "Register Shared in a PD "+name, verbs.ErrInvalidPD, func() error {
			return second(n.mr.RegisterShared(pd, verbs.SharedConfig{Access: verbs.LocalRead}))
		}, count)
		refuses(t, "Reregister into a PD "+name, verbs.ErrInvalidPD, func() error {
			return n.register(8, verbs.LocalRead).Reregister(pd, verbs.RegionConfig{Memory: make([]byte, 8), Access: verbs.LocalRead})
		})
	}
	require.NoError(t, n.nic.Close())
	require.ErrorIs(t, second(n.nic.AllocatePD()), verbs.ErrInvalidRNIC)
}

func pdIDsAtOnce(t *conformance.T) {
	nic := openRNIC(t, verbs.Config{})
	const workers, each = 4, 250
	ids := make(chan verbs.PDID, workers*each)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range each {
				pd, err := nic.AllocatePD()
				if !assert.NoError(t, err) {
					return
				}
				ids <- pd.ID()
			}
		})
	}
	wg.Wait()
	close(ids)
	seen := map[verbs.PDID]bool{}
	for id := range ids {
		assert.NotZero(t, id)
		seen[id] = true
	}
	assert.Len(t, seen, workers*each, "different IDs")
}

func pdIDsOverTime(t *conformance.T, n *host) {
	rng := t.Rand()
	live := map[verbs.PDID]bool{n.pd.ID(): true}
	var pds []*verbs.PD
	for range 500 {
		if len(pds) > 0 && rng.IntN(2) == 0 {
			i := rng.IntN(len(pds))
			require.NoError(t, pds[i].Deallocate())
			delete(live, pds[i].ID())
			pds[i] = pds[len(pds)-1]
			pds = pds[:len(pds)-1]
			continue
		}
		pd := n.newPD()
		require.False(t, live[pd.ID()], "PD ID %d is in use", pd.ID())
		live[pd.ID()] = true
		pds = append(pds, pd)
	}
	assert.Equal(t, n.pd.ID(), must(n.mr.Query())(t).PD)
	assert.Equal(t, n.pd.ID(), attributes(t, n.qp).PD.ID())
}

func pdDeallocatedByVerb(t *conformance.T) {
	nic := openRNIC(t, verbs.Config{Limits: verbs.Limits{PDs: 1}})
	pd := must(nic.AllocatePD())(t)
	mr := must(pd.Register(make([]byte, 8), verbs.LocalRead))(t)
	require.ErrorIs(t, second(nic.AllocatePD()), verbs.ErrInsufficientResources)
	require.NoError(t, mr.Deregister(), "the last thing in it")
	require.ErrorIs(t, second(nic.AllocatePD()), verbs.ErrInsufficientResources, "an empty PD is one all the same")
	require.NoError(t, pd.Deallocate())
	require.NoError(t, second(nic.AllocatePD()))
}

// tenant is something that is in a PD.
type tenant struct {
	name  string
	enter func(n *host, pd *verbs.PD) (leave func() error)
}

// tenants are the kinds of 9.2.2.2. Each returns what takes it out of the PD again.
func tenants() []tenant {
	memory := verbs.RegionConfig{Memory: make([]byte, 64), Access: allRights | verbs.BindWindow}
	return []tenant{
		{"QP", func(n *host, pd *verbs.PD) func() error { return n.newQP(verbs.QPConfig{PD: pd}).Destroy }},
		{"S-RQ", func(n *host, pd *verbs.PD) func() error { return n.newSRQ(verbs.SRQConfig{PD: pd}).Destroy }},
		{"region", func(n *host, pd *verbs.PD) func() error { return n.region(pd, memory).Deregister }},
		{"invalid region", func(n *host, pd *verbs.PD) func() error {
			mr := must(pd.AllocateRegion(verbs.AllocateConfig{}))(n.t)
			return mr.Deregister
		}},
		{"shared region", func(n *host, pd *verbs.PD) func() error {
			mr := must(n.mr.RegisterShared(pd, verbs.SharedConfig{Access: verbs.LocalRead}))(n.t)
			return mr.Deregister
		}},
		{"region moved in", func(n *host, pd *verbs.PD) func() error {
			mr := n.register(8, verbs.LocalRead)
			require.NoError(n.t, mr.Reregister(pd, memory))
			return func() error { return mr.Reregister(n.pd, memory) }
		}},
		{"window", func(n *host, pd *verbs.PD) func() error {
			mw := must(pd.AllocateWindow())(n.t)
			return mw.Deallocate
		}},
	}
}

func pdInUse(t *conformance.T) {
	for _, k := range tenants() {
		n := newHost(t, hostConfig{RNIC: verbs.Config{Limits: verbs.Limits{PDs: 2}}})
		pd := n.newPD()
		leave := k.enter(n, pd)
		require.ErrorIs(t, pd.Deallocate(), verbs.ErrPDInUse, "with a %s", k.name)
		require.ErrorIs(t, second(n.nic.AllocatePD()), verbs.ErrInsufficientResources, "with a %s the PD is still there", k.name)
		require.NoError(t, k.enter(n, pd)(), "one more %s", k.name)
		require.NoError(t, leave(), "the %s works and can be taken away", k.name)
		require.NoError(t, pd.Deallocate(), "without the %s", k.name)
		require.NoError(t, second(n.nic.AllocatePD()), "its place is free")
	}
}

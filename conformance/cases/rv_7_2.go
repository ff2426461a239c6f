package cases

import (
	"bytes"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/stag"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wr"
)

// rv7_2 is what STags are, and their states: verbs draft 7.1, 7.2 and 7.2.2.
var rv7_2 = []conformance.Case{
	apiCase("7.1/region-rights", onProbe(verbs.QPConfig{}, regionRights), "RV-7.1-M1", "RV-7.4-M1", "RV-7.4.1-M1", "RV-7.4.1-M5", "PV-7.5.1-M1"),
	apiCase("7.1/window-rights", onQuietHost(windowRights), "RV-7.1-M2", "RV-7.10.2-M16", "RV-7.10.2-M26", "RV-7.10.6.2-M6"),
	apiCase("7.2/key", onQuietHost(keysAreTheConsumers), "RV-7.2-M1", "PV-7.8-M3"),
	apiCase("7.2/index", onQuietHost(indexIsReturned), "RV-7.2-M2", "RV-7.3.2.1-M4"),
	apiCase("7.2/index-is-followed", onQuietHost(indexIsFollowed), "RV-7.2-M3", "RV-7.3.2.5-M3"),
	apiCase("7.2.2/invalid-is-shut", onProbe(verbs.QPConfig{}, invalidIsShut), "RV-7.2.2-M1", "RV-7.3.2.1-M10", "RV-7.8-M5"),
	apiCase("7.2.2/shared-is-valid", onProbe(verbs.QPConfig{}, sharedIsValid), "RV-7.2.2-M2", "RV-7.8-M3", "PV-7.8-M1"),
	apiCase("7.2.2/deallocated-is-gone", onQuietHost(deallocatedIsGone), "RV-7.2.2-M3"),
}

func regionRights(n *host, s *probe) {
	for _, a := range validRights {
		n.t.Logf("a region with %v", a)
		mr := n.register(40, a)
		require.Equal(n.t, a, queried(n.t, mr).Access, "Query")
		s.checks(mr.Buffer(), 3, mr.Bytes()[3:20], a, noRight)
	}
}

func windowRights(n *host) {
	for _, a := range []verbs.Access{verbs.RemoteRead, verbs.RemoteWrite, remoteRights} {
		s := n.probe(verbs.QPConfig{})
		mw := n.newMW()
		bind := s.binds(mw.BindRequest(n.mr, 100, 50, a, 7))
		require.Equal(n.t, a, queried(n.t, mw).Access, "Query of a window with %v", a)
		b, mem := verbs.BindBuffer(bind), n.mr.Bytes()[110:130]
		if a&verbs.RemoteRead != 0 { // what is allowed first: the other ends the stream
			fill(mem, 2)
			require.Equal(n.t, mem, s.read(b.Remote(10), 20, allowed))
		}
		if a&verbs.RemoteWrite != 0 {
			s.write(b.Remote(10), fill(make([]byte, 20), 4), allowed)
			require.Equal(n.t, fill(make([]byte, 20), 4), mem, "what was written")
		}
		was := append([]byte(nil), mem...)
		switch {
		case a&verbs.RemoteRead == 0:
			s.read(b.Remote(10), 20, noRight.read)
		case a&verbs.RemoteWrite == 0:
			s.write(b.Remote(10), make([]byte, 20), noRight.write)
		}
		require.Equal(n.t, was, mem, "after what is refused")
	}
}

func keysAreTheConsumers(n *host) {
	t, s, pages := n.t, n.probe(verbs.QPConfig{Privileged: true}), n.pages(1, 4096)
	// keyed checks an STag that was given the key: it and no other works.
	keyed := func(how string, st verbs.STag, info verbs.RegionAttributes, base uint64, key uint8) {
		require.Equal(t, key, st.Key(), "%s: the STag", how)
		require.Equal(t, st, info.STag, "%s: Query", how)
		b := verbs.TaggedBuffer{STag: st, Base: base}
		require.Len(t, s.gather(verbs.OpSend, b.SGL(0, 8), verbs.StatusSuccess), 8, "%s: the key given", how)
		b.STag ^= 0x10
		s.gather(verbs.OpSend, b.SGL(0, 8), verbs.StatusInvalidSTag)
	}
	for _, key := range []uint8{0, 1, 0x7F, 0xFF} {
		mr := n.region(n.pd, verbs.RegionConfig{Memory: make([]byte, 16), Access: allRights, Key: key})
		keyed("Register", mr.STag(), queried(t, mr), mr.Base(), key)

		require.NoError(t, mr.Reregister(nil, verbs.RegionConfig{Memory: make([]byte, 16), Access: allRights, Key: key ^ 0x55}))
		keyed("Reregister", mr.STag(), queried(t, mr), mr.Base(), key^0x55)

		// Invalidate Local STag moves it out of Valid with the right key only.
		s.invalidate(invalidations[0], mr.STag()^0x10, cannotBe)
		require.True(t, queried(t, mr).Valid, "after an Invalidate with another key")
		s.invalidate(invalidations[0], mr.STag(), invalidates)
		require.False(t, queried(t, mr).Valid, "after an Invalidate with its key")

		s.runs(fastRegister(mr.WithKey(key), pages.List(0, 16), 4096, allRights), verbs.StatusSuccess)
		keyed("Fast-Register", mr.WithKey(key), queried(t, mr), 4096, key)

		shared := must(mr.RegisterShared(nil, verbs.SharedConfig{Access: allRights, Key: key ^ 0xAA, Existing: mr.WithKey(key)}))(t)
		keyed("Register Shared", shared.STag(), queried(t, shared), shared.Base(), key^0xAA)

		mw := n.newMW()
		bind := s.binds(mw.BindRequest(n.mr, 0, 16, remoteRights, key))
		require.Equal(t, mw.STag(key), queried(t, mw).STag, "Bind: Query")
		b := verbs.BindBuffer(bind)
		s.write(b.Remote(0), []byte{1}, allowed)
		b.STag ^= 0x10
		s.write(b.Remote(0), []byte{1}, noSTag.write)
	}
	s.disconnect()
}

func indexIsReturned(n *host) {
	t, s, pages := n.t, n.probe(verbs.QPConfig{Privileged: true}), n.pages(1, 4096)
	seen := map[uint32]string{n.mr.STag().Index(): "the node's region"}
	fresh := func(what string, st verbs.STag) {
		require.NotZero(t, st.Index(), what)
		require.NotContains(t, seen, st.Index(), what)
		seen[st.Index()] = what
	}
	usable := func(b verbs.TaggedBuffer) { s.gather(verbs.OpWrite, b.SGL(0, 8), verbs.StatusSuccess) }

	mr := must(n.pd.AllocateRegion(verbs.AllocateConfig{RemoteAccess: true}))(t)
	fresh("Allocate", mr.STag())
	r := fastRegister(mr.WithKey(0x42), pages.List(0, 64), 4096, allRights|verbs.BindWindow)
	s.runs(r, verbs.StatusSuccess)
	usable(verbs.FastRegisterBuffer(r.FastRegister))

	registered := n.register(64, allRights)
	fresh("Register", registered.STag())
	usable(registered.Buffer())
	shared := must(registered.RegisterShared(nil, verbs.SharedConfig{Access: allRights, Key: 9}))(t)
	fresh("Register Shared", shared.STag())
	usable(shared.Buffer())

	again := n.register(64, allRights)
	require.NoError(t, again.Reregister(nil, verbs.RegionConfig{Memory: make([]byte, 64), Access: allRights, Key: 77}))
	fresh("Reregister", again.STag())
	usable(again.Buffer())

	mw := n.newMW()
	fresh("Allocate Memory Window", mw.STag(0))
	bind := s.binds(mw.BindRequest(n.mr, 0, 8, remoteRights, 3))
	s.write(verbs.BindBuffer(bind).Remote(0), []byte{1}, allowed)
	require.NoError(t, mw.Deallocate())
	s.disconnect()
}

func indexIsFollowed(n *host) {
	t, s, pages := n.t, n.probe(verbs.QPConfig{Privileged: true}), n.pages(1, 4096)
	var mr [2]*verbs.MR
	var mw [2]*verbs.MW
	for i := range mr {
		mr[i], mw[i] = n.register(64, allRights|verbs.BindWindow), n.newMW()
	}
	// changes says that a verb on the second of two changes only that one.
	changes := func(what string, first, second func() any, verb func()) {
		one, two := first(), second()
		verb()
		require.Equal(t, one, first(), "%s: the other one", what)
		require.NotEqual(t, two, second(), "%s: the one named", what)
	}
	region := func(i int) func() any { return func() any { return queried(t, mr[i]) } }
	window := func(i int) func() any { return func() any { return queried(t, mw[i]) } }
	index := mr[1].STag().Index()

	changes("Reregister", region(0), region(1), func() {
		require.NoError(t, mr[1].Reregister(nil, verbs.RegionConfig{Memory: make([]byte, 32), Access: allRights | verbs.BindWindow}))
	})
	changes("Invalidate", region(0), region(1), func() { s.invalidate(invalidations[0], mr[1].STag(), invalidates) })
	changes("Fast-Register", region(0), region(1), func() {
		s.runs(fastRegister(mr[1].WithKey(5), pages.List(0, 64), 4096, allRights|verbs.BindWindow), verbs.StatusSuccess)
	})
	require.Equal(t, index, queried(t, mr[1]).STag.Index(), "the index after all this")
	changes("Bind", window(0), window(1), func() {
		s.runs(binds(&verbs.BindRequest{Window: mw[1].STag(8), Region: mr[1].WithKey(5), VA: 4096, Length: 9, Access: remoteRights}), verbs.StatusSuccess)
	})
	require.Equal(t, mr[1].WithKey(5), queried(t, mw[1]).Region, "the region bound to")
	changes("Invalidate", window(0), window(1), func() { s.invalidate(invalidations[0], mw[1].STag(8), invalidates) })
	changes("Register Shared", region(0), region(1), func() {
		require.NoError(t, second(mr[1].RegisterShared(nil, verbs.SharedConfig{Access: allRights, Existing: mr[1].WithKey(5)})))
	})
	succeed(t, mr[1].Deregister, mw[1].Deallocate)
	assert.ErrorIs(t, second(mr[1].Query()), verbs.ErrInvalidSTag, "Deallocate")
	assert.ErrorIs(t, second(mw[1].Query()), verbs.ErrInvalidSTag, "Deallocate")
	queried(t, mr[0])
	queried(t, mw[0])
	s.disconnect()
}

func invalidIsShut(n *host, s *probe) {
	t := n.t
	mem := make([]byte, 64)
	used := n.region(n.pd, verbs.RegionConfig{Memory: mem, Access: allRights})
	s.allAllowed(used.Buffer(), 8, mem[8:24])
	s.invalidate(invalidations[0], used.STag(), invalidates)
	require.False(t, queried(t, used).Valid, "an invalidated region")
	s.noneAllowed(used.Buffer(), 8, mem[8:24], noSTag)

	fresh := must(n.pd.AllocateRegion(verbs.AllocateConfig{RemoteAccess: true}))(t)
	require.False(t, queried(t, fresh).Valid, "an allocated region")
	b := verbs.TaggedBuffer{STag: fresh.STag(), Base: used.Base()}
	s.noneAllowed(b, 8, mem[8:24], noSTag)

	// Valid it opens.
	require.NoError(t, fresh.Reregister(nil, verbs.RegionConfig{Memory: mem, Access: allRights}))
	s.allAllowed(fresh.Buffer(), 8, mem[8:24])
}

func sharedIsValid(n *host, s *probe) {
	t := n.t
	one := n.register(64, allRights)
	two := must(one.RegisterShared(nil, verbs.SharedConfig{Access: allRights, Key: 4}))(t)
	for _, mr := range []*verbs.MR{one, two} {
		for _, w := range invalidations {
			s.invalidate(w, mr.STag(), cannotBe)
			i := queried(t, mr)
			require.True(t, i.Valid && i.Shared, "after %s: %+v", w.name, i)
		}
		s.allAllowed(mr.Buffer(), 5, one.Bytes()[5:30])
	}
}

func deallocatedIsGone(n *host) {
	t, s, pages := n.t, n.probe(verbs.QPConfig{Privileged: true}), n.pages(1, 4096)
	for _, invalid := range []bool{false, true} {
		mr := n.register(64, allRights)
		if invalid {
			s.invalidate(invalidations[0], mr.STag(), invalidates)
		}
		require.NoError(t, mr.Deregister(), "already Invalid: %v", invalid)
		for _, v := range []verb{
			{"Query", func() error { return second(mr.Query()) }},
			{"Deallocate", mr.Deregister},
			{"Reregister", func() error {
				return mr.Reregister(nil, verbs.RegionConfig{Memory: make([]byte, 8), Access: allRights})
			}},
			{"Register Shared", func() error { return second(mr.RegisterShared(nil, verbs.SharedConfig{Access: allRights})) }},
		} {
			assert.ErrorIs(t, v.call(), verbs.ErrInvalidSTag, v.name)
		}
		s.runs(fastRegister(mr.WithKey(1), pages.List(0, 8), 4096, allRights), verbs.StatusInvalidSTag)
		s.noneAllowed(mr.Buffer(), 0, mr.Bytes()[:16], noSTag)
	}
	s.disconnect()
}

// rv7_2_1 is the STag of zero: verbs draft 7.2.1.
var rv7_2_1 = []conformance.Case{
	apiCase("7.2.1/local", onProbe(privileged, zeroLocally), "RV-7.2.1-M1", "RV-7.2.1-M9"),
	apiCase("7.2.1/no-pd", onQuietHost(zeroHasNoPD), "RV-7.2.1-M4"),
	apiCase("7.2.1/privileged-only", onQuietHost(zeroIsPrivileged), "RV-7.2.1-M5", "RV-7.2.1-M6"),
	apiCase("7.2.1/not-remotely", onQuietHost(zeroNotRemotely), "RV-7.2.1-M7", "RV-7.2.1-M8"),
	apiCase("7.2.1/not-invalidated", onProbe(privileged, zeroNotInvalidated), "RV-7.2.1-M12", "RV-7.2.1-M13", "RV-7.2.1-M14", "RV-7.8-M12"),
	apiCase("7.2.1/no-key", onProbe(privileged, zeroHasNoKey), "RV-7.2.1-M3"),
	apiCase("7.2.1/not-bound-to", onProbe(privileged, zeroNotBoundTo), "RV-7.2.1-M10", "RV-7.2.1-M11", "RV-7.10.2-M5"),
	apiCase("7.2.1/no-modifier", onQuietHost(zeroNoModifier), "RV-7.2.1-M15", "RV-7.2.1-M16", "RV-7.3.2.5-M5"),
	apiCase("7.2.1/never-an-index", zeroNeverAnIndex, "RV-7.2.1-M2", "RV-7.2.1-M17"),
}

var privileged = verbs.QPConfig{Privileged: true}

// physical is the element for octets of pages through the STag of zero.
func physical(p *verbs.Pages, off, k int) verbs.SGE {
	return verbs.SGE{TO: p.Address(0) + uint64(off), Length: uint32(k)}
}

// zeroWorks says that the STag of zero can be gathered from and scattered into on
// the probe's queue pair.
func (s *probe) zeroWorks(p *verbs.Pages, off int) {
	t, mem := s.t, p.Bytes()
	was := bytes.Clone(fill(mem, 1))
	require.Equal(t, was[off:off+90], s.gather(verbs.OpSend, []verbs.SGE{physical(p, off, 90)}, verbs.StatusSuccess), "gathered from %d", off)
	require.Equal(t, was[off:off+90], s.gather(verbs.OpWrite, []verbs.SGE{physical(p, off, 90)}, verbs.StatusSuccess), "written from %d", off)
	sent := fill(make([]byte, 90), 2)
	s.scatter([]verbs.SGE{physical(p, off, 90)}, sent, verbs.StatusSuccess)
	copy(was[off:], sent)
	require.Equal(t, was, mem, "all pages after a receive at %d", off)
}

func zeroLocally(n *host, s *probe) {
	p := n.pages(3, 4096)
	for _, off := range []int{0, 1, 4095, 4096 - 45, 8192, 3*4096 - 90} {
		s.zeroWorks(p, off)
	}
	require.Equal(n.t, p.Address(0)+2*4096, p.Address(2), "buffers one after the other")
}

func zeroHasNoPD(n *host) {
	p := n.pages(1, 4096)
	for range 3 { // a PD each
		s := n.probe(verbs.QPConfig{Privileged: true, PD: n.newPD()})
		s.zeroWorks(p, 17)
		s.disconnect()
	}
}

func zeroIsPrivileged(n *host) {
	t, p := n.t, n.pages(1, 4096)
	srq := n.newSRQ(verbs.SRQConfig{})
	for _, c := range []verbs.QPConfig{{}, {SRQ: srq}} {
		s, mem := n.probe(c), bytes.Clone(fill(p.Bytes(), 3))
		for _, op := range []verbs.Op{verbs.OpSend, verbs.OpSendSE, verbs.OpSendInvalidate, verbs.OpSendSEInvalidate, verbs.OpWrite} {
			s.gather(op, []verbs.SGE{n.mr.SGE(0, 8), physical(p, 0, 8)}, verbs.StatusInvalidSTag)
		}
		s.scatter([]verbs.SGE{physical(p, 0, 8)}, []byte("untaken."), verbs.StatusInvalidSTag)
		require.Equal(t, mem, p.Bytes(), "the pages")
		s.disconnect()
		c.Privileged = true
		s = n.probe(c)
		s.zeroWorks(p, 100)
		s.disconnect()
	}
}

func zeroNotRemotely(n *host) {
	p := n.pages(1, 4096)
	for _, c := range []verbs.QPConfig{privileged, {}} {
		s := n.probe(c)
		was := bytes.Clone(fill(p.Bytes(), 4))
		at := verbs.Remote{TO: p.Address(0)}
		s.write(at, []byte("physical"), noSTag.write)
		s.read(at, 8, noSTag.read)
		s.sink(physical(p, 0, 8), nil, verbs.StatusInvalidSTag, allowed)
		require.Equal(n.t, was, p.Bytes(), "the pages")
		s.disconnect()
	}
}

func zeroNotInvalidated(n *host, s *probe) {
	t, p := n.t, n.pages(1, 4096)
	s.zeroWorks(p, 5)
	for _, key := range []verbs.STag{0, 1, 0xFF} {
		k, err := s.qp.PostSend(verbs.Request{Op: verbs.OpInvalidate, Invalidate: key})
		require.ErrorIs(t, err, verbs.ErrInvalidModifier, "Invalidate Local STag of %v", key)
		require.Zero(t, k)
		s.zeroWorks(p, 5)

		// An RDMA Read with Invalidate is refused before it sends anything, of
		// whatever length.
		for _, length := range []uint32{0, 8} {
			s.runs(verbs.Request{
				ID: 1, Op: verbs.OpReadInvalidate, Local: verbs.SGE{STag: key, TO: p.Address(0), Length: length},
				Remote: verbs.Remote{STag: 0x00FACE01},
			}, verbs.StatusInvalidSTag)
		}
		for _, op := range []byte{opSendInv, opSendSEInv} {
			sendInvalidate(s, op, key, verbs.StatusInvalidSTag, 0x0109)
		}
		s.connect()
		s.zeroWorks(p, 5)
	}
}

func zeroHasNoKey(n *host, s *probe) {
	p := n.pages(1, 4096)
	for _, key := range []verbs.STag{1, 0x80, 0xFF} {
		e := physical(p, 0, 8)
		e.STag = key
		s.gather(verbs.OpSend, []verbs.SGE{e}, verbs.StatusInvalidSTag)
		s.scatter([]verbs.SGE{e}, []byte("by a key"), verbs.StatusInvalidSTag)
		s.connect()
		k, err := s.qp.PostSend(fastRegister(key, p.List(0, 8), 4096, allRights))
		require.ErrorIs(n.t, err, verbs.ErrInvalidModifier, "Fast-Register of %v", key)
		require.Zero(n.t, k)
	}
	s.zeroWorks(p, 0)
}

func zeroNotBoundTo(n *host, s *probe) {
	mw, p := n.newMW(), n.pages(1, 4096)
	for _, key := range []verbs.STag{0, 1, 0xFF} {
		k, err := s.qp.PostSend(binds(&verbs.BindRequest{Window: mw.STag(1), Region: key, VA: p.Address(0), Length: 8, Access: remoteRights}))
		require.ErrorIs(n.t, err, verbs.ErrInvalidModifier, "Bind to %v", key)
		require.Zero(n.t, k)
		require.False(n.t, queried(n.t, mw).Valid, "the window")
	}
	require.Equal(n.t, verbs.StateRTS, s.qp.State(), "nothing was posted")
}

func zeroNoModifier(n *host) {
	t, s, p := n.t, n.probe(privileged), n.pages(1, 4096)
	// What is behind a refused request in a list is not posted, what is before
	// it is (verbs draft 9.3.1.1).
	good := verbs.Request{ID: 11, SGL: n.mr.SGL(0, 4)}
	mw := n.newMW()
	for _, c := range []struct {
		name string
		bad  verbs.Request
	}{
		{"Bind, region", binds(&verbs.BindRequest{Window: mw.STag(1), VA: n.mr.Base(), Length: 8, Access: remoteRights})},
		{"Bind, window", binds(&verbs.BindRequest{Region: n.mr.STag(), VA: n.mr.Base(), Length: 8, Access: remoteRights})},
		{"Invalidate", verbs.Request{Op: verbs.OpInvalidate}},
		{"Fast-Register", fastRegister(0, p.List(0, 8), 4096, allRights)},
	} {
		k, err := s.qp.PostSend(good, c.bad, good)
		require.ErrorIs(t, err, verbs.ErrInvalidModifier, c.name)
		require.Equal(t, 1, k, c.name)
		completes(t, n.cq, verbs.Completion{ID: 11, QP: s.qp.ID(), Op: verbs.OpSend})
		require.Len(t, s.message(opSend), 4)
	}
	s.zeroWorks(p, 0)
	s.disconnect()

	// The verbs take a handle where the draft has an index; the table below
	// them takes the index.
	for _, key := range []verbs.STag{1, 0xFF} { // zero itself stands for MR.STag
		refuses(t, "Register Shared", verbs.ErrInvalidSTag, func() error {
			return second(n.mr.RegisterShared(nil, verbs.SharedConfig{Access: allRights, Existing: key}))
		}, func() any { return queried(t, n.mr) })
	}
	table := stag.NewTable(stag.Config{})
	defer table.Close()
	memory := stag.RegionConfig{PD: 1, Memory: make([]byte, 8), Access: wr.LocalRead}
	for _, key := range []wr.STag{0, 1, 0xFF} {
		assert.ErrorIs(t, second(table.Reregister(key, memory)), wr.ErrInvalidSTag, "Reregister %v", key)
		assert.ErrorIs(t, second(table.RegisterShared(key, stag.SharedConfig{PD: 1, Access: wr.LocalRead})), wr.ErrInvalidSTag, "Register Shared %v", key)
		assert.ErrorIs(t, second(table.QueryRegion(key)), wr.ErrInvalidSTag, "Query Memory Region %v", key)
		assert.ErrorIs(t, second(table.QueryWindow(key)), wr.ErrInvalidSTag, "Query Memory Window %v", key)
		assert.ErrorIs(t, table.Deallocate(key), wr.ErrInvalidSTag, "Deallocate %v", key)
	}
	require.Zero(t, table.Len(), "nothing was made")
}

// zeroNeverAnIndex makes many STags of each kind. They are drawn at random from
// 2^24.
func zeroNeverAnIndex(t *conformance.T) {
	nic := openRNIC(t, verbs.Config{})
	pd := must(nic.AllocatePD())(t)
	memory := verbs.RegionConfig{Memory: make([]byte, 8), Access: verbs.LocalRead}
	original := must(pd.RegisterRegion(memory))(t)
	for range 20_000 {
		registered := must(pd.RegisterRegion(memory))(t)
		allocated := must(pd.AllocateRegion(verbs.AllocateConfig{PBL: 1}))(t)
		shared := must(original.RegisterShared(nil, verbs.SharedConfig{Access: verbs.LocalRead}))(t)
		mw := must(pd.AllocateWindow())(t)
		if registered.STag().Index() == 0 || allocated.STag().Index() == 0 || shared.STag().Index() == 0 || mw.STag(0).Index() == 0 {
			t.Fatalf("an index of zero: %v %v %v %v", registered.STag(), allocated.STag(), shared.STag(), mw.STag(0))
		}
		require.NoError(t, allocated.Reregister(nil, memory))
		if allocated.STag().Index() == 0 {
			t.Fatalf("Reregister gave the index zero")
		}
		for _, err := range []error{registered.Deregister(), allocated.Deregister(), shared.Deregister(), mw.Deallocate()} {
			require.NoError(t, err)
		}
	}
}

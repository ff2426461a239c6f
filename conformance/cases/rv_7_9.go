package cases

import (
	"bytes"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// rv7_9 is deallocating regions: verbs draft 7.9.
var rv7_9 = []conformance.Case{
	apiCase("7.9/rights-gone", onQuietHost(deallocatedIsShut), "RV-7.9-M1", "RV-7.9-M7"),
	apiCase("7.9/exists", deallocateExists, "RV-7.9-M2"),
	apiCase("7.9/isolation", onProbe(verbs.QPConfig{}, deallocatedAlone), "RV-7.9-M3", "RV-7.9-M4"),
	apiCase("7.9/shared", onProbe(verbs.QPConfig{}, deallocatedShared), "RV-7.9-M5"),
	apiCase("7.9/in-process", onQuietHost(deallocatedInProcess), "RV-7.9-M6", "PV-9.2.6.4-M1"),
	apiCase("7.9/free-at-return", deallocatedAtReturn, "RV-7.9-M8"),
	apiCase("7.9/state-and-key", onProbe(privileged, deallocateAnyState), "RV-7.9-M9"),
	apiCase("7.9/windows", onQuietHost(deallocateWithWindows), "RV-7.9-M10", "RV-7.9-M11"),
}

func deallocatedIsShut(n *host) {
	t, s := n.t, n.probe(verbs.QPConfig{})
	mr := n.register(64, allRights)
	s.allAllowed(mr.Buffer(), 4, mr.Bytes()[4:40])
	require.NoError(t, mr.Deregister())
	s.noneAllowed(mr.Buffer(), 4, mr.Bytes()[4:40], noSTag)
	for _, w := range invalidations {
		s.invalidate(w, mr.STag(), isGone)
	}

	// A Read whose sink goes before the answer comes: refused when it comes.
	sink := n.register(64, allRights)
	s.connect()
	post(t, s.qp, verbs.Request{ID: 1, Op: verbs.OpRead, Local: sink.SGE(0, 8), Remote: verbs.Remote{STag: 0x00FACE01}})
	s.segment(opReadRequest)
	require.NoError(t, sink.Deregister())
	was := bytes.Clone(fill(sink.Bytes(), 1))
	s.send(aReadResponse(uint32(sink.STag()), sink.Base(), []byte("too late")))
	s.fails(noSTag.write.code) // and no event: the request tells
	completes(t, n.cq, verbs.Completion{ID: 1, QP: s.qp.ID(), Op: verbs.OpRead, Status: verbs.StatusInvalidSTag})
	require.Equal(t, was, sink.Bytes(), "the sink")
}

func deallocateExists(t *conformance.T) {
	n := newHost(t, hostConfig{RNIC: verbs.Config{Limits: verbs.Limits{Regions: 3}}})
	mr := n.register(64, allRights)
	require.NoError(t, mr.Deregister())
	require.ErrorIs(t, mr.Deregister(), verbs.ErrInvalidSTag, "twice")
	other := n.register(64, allRights) // perhaps with that index
	refuses(t, "twice", verbs.ErrInvalidSTag, mr.Deregister,
		func() any { return queried(t, other) }, func() any { return queried(t, n.mr) })
	mw := n.newMW()
	require.NoError(t, mw.Deallocate())
	require.ErrorIs(t, mw.Deallocate(), verbs.ErrInvalidSTag, "a window, twice")
	s := n.probe(verbs.QPConfig{})
	s.allAllowed(other.Buffer(), 0, other.Bytes())
	s.disconnect()
	n.quiet()
	require.NoError(t, n.nic.Close())
	require.ErrorIs(t, other.Deregister(), verbs.ErrInvalidRNIC)
}

func deallocatedAlone(n *host, s *probe) {
	for range 3 {
		s.goesAlone(func(mr, same *verbs.MR, mem []byte) {
			// Half a Write through another STag is there when this one goes.
			sent := fill(make([]byte, 100), 9)
			s.connect()
			s.writeHalf(same.Remote(0), sent)
			require.NoError(n.t, mr.Deregister())
			s.writeRest(same.Remote(0), sent)
			s.settled()
			require.Equal(n.t, sent, mem[50:150])
		})
	}
}

func deallocatedShared(n *host, s *probe) {
	t := n.t
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}} {
		mem := make([]byte, 64)
		original := n.region(n.pd, verbs.RegionConfig{Memory: mem, Access: allRights})
		regions := []*verbs.MR{original}
		for key := range uint8(2) {
			shared := must(regions[key].RegisterShared(nil, verbs.SharedConfig{Access: allRights, Key: key}))(t)
			regions = append(regions, shared)
		}
		for i, k := range order {
			left := order[i+1:]
			var before []verbs.RegionAttributes
			for _, l := range left {
				before = append(before, queried(t, regions[l]))
			}
			require.NoError(t, regions[k].Deregister())
			s.noneAllowed(regions[k].Buffer(), 0, mem[:16], noSTag)
			for j, l := range left {
				require.Equal(t, before[j], queried(t, regions[l]))
				s.allAllowed(regions[l].Buffer(), 0, mem)
			}
		}
	}
}

func deallocatedInProcess(n *host) {
	t, s := n.t, n.probe(verbs.QPConfig{})
	gone := func(mr *verbs.MR) { atOnce(t, "Deregister", mr.Deregister) }

	// An inbound Write, half placed.
	mr, sent := n.register(64, allRights), fill(make([]byte, 60), 2)
	s.writeHalf(mr.Remote(0), sent)
	gone(mr)
	s.writeRest(mr.Remote(0), sent)
	s.refused(noSTag.write)
	require.Equal(t, append(bytes.Clone(sent[:30]), make([]byte, 34)...), mr.Bytes(), "the memory")

	// A receive, half filled.
	mr = n.register(64, allRights)
	s.connect()
	postRecv(t, s.qp, verbs.Recv{ID: 1, SGL: mr.SGL(0, 64)})
	s.send(untagged(moreUntagged, opSend, 0, 0, 1, 0, sent[:30]))
	s.settled()
	gone(mr)
	s.send(untagged(lastUntagged, opSend, 0, 0, 1, 30, sent[30:]))
	completes(t, n.cq, verbs.Completion{ID: 1, QP: s.qp.ID(), Op: verbs.OpRecv, Status: verbs.StatusInvalidSTag})
	s.fails(0x0000)
	require.Equal(t, append(bytes.Clone(sent[:30]), make([]byte, 34)...), mr.Bytes(), "the memory")

	// An RDMA Write and a Send of this side, and the answer to a Read, none of
	// which has begun: the stream is full.
	large := n.register(largeRegion, allRights)
	for _, op := range []verbs.Op{verbs.OpWrite, verbs.OpSend} {
		mr = n.register(64, allRights)
		s.stall(large.Remote(0))
		post(t, s.qp, verbs.Request{ID: 2, Op: op, SGL: mr.SGL(0, 8), Remote: verbs.Remote{STag: 0x00FACE01}})
		gone(mr)
		s.skip()
		completes(t, n.cq, verbs.Completion{ID: 2, QP: s.qp.ID(), Op: op, Status: verbs.StatusInvalidSTag})
		s.fails(0x0000)
	}
	mr = n.register(64, allRights)
	s.stall(large.Remote(0))
	s.ask(mr.Remote(0), 8)
	gone(mr)
	s.skip()
	s.refused(noSTag.read)

	// In the middle of an answer.
	s.stall(large.Remote(0))
	gone(large)
	for i := range large.Bytes() {
		large.Bytes()[i] = 0xEE
	}
	require.NotContains(t, s.torn(noSTag.read), byte(0xEE), "the answer")
}

func deallocatedAtReturn(t *conformance.T) {
	n := newHost(t, hostConfig{RNIC: verbs.Config{Limits: verbs.Limits{Regions: 2, Windows: 1}}})
	s := n.probe(verbs.QPConfig{})
	mem := make([]byte, 1000)
	for i := range 20 {
		mr := n.region(n.pd, verbs.RegionConfig{Memory: mem, Access: allRights})
		require.ErrorIs(t, second(n.pd.Register(mem, allRights)), verbs.ErrInsufficientResources)
		s.midway(mr.Buffer(), mem, 100+40*i, func() {
			atOnce(t, "Deregister", mr.Deregister)
			again := must(n.pd.Register(mem, verbs.LocalRead))(t, "its resources are free")
			require.NoError(t, again.Deregister())
		})
		require.ErrorIs(t, second(mr.Query()), verbs.ErrInvalidSTag)
	}
	mw := n.newMW()
	require.ErrorIs(t, second(n.pd.AllocateWindow()), verbs.ErrInsufficientResources)
	require.NoError(t, mw.Deallocate())
	require.NoError(t, second(n.pd.AllocateWindow()))
	n.quiet()
}

func deallocateAnyState(n *host, s *probe) {
	t, p := n.t, n.pages(1, 4096)
	valid, invalid := n.region(n.pd, verbs.RegionConfig{Memory: make([]byte, 8), Access: allRights, Key: 0xAB}), n.register(8, allRights)
	s.invalidate(invalidations[0], invalid.STag(), invalidates)
	shared := must(n.mr.RegisterShared(nil, verbs.SharedConfig{Access: allRights, Key: 0xCD}))(t)
	fast := n.allocated()
	s.runs(fastRegister(fast.WithKey(0x99), p.List(0, 8), 4096, allRights), verbs.StatusSuccess)
	require.NotEqual(t, fast.STag(), queried(t, fast).STag, "it has another key than the handle knows")
	fresh := n.allocated()
	for what, mr := range map[string]*verbs.MR{"Valid": valid, "Invalid": invalid, "Shared": shared, "fast-registered": fast, "allocated": fresh} {
		require.NoError(t, mr.Deregister(), what)
		assert.ErrorIs(t, second(mr.Query()), verbs.ErrInvalidSTag, what)
	}
	unbound, bound := n.newMW(), n.newMW()
	s.runs(binds(bound.BindRequest(n.mr, 0, 8, remoteRights, 0x77)), verbs.StatusSuccess)
	for what, mw := range map[string]*verbs.MW{"unbound": unbound, "bound": bound} {
		require.NoError(t, mw.Deallocate(), what)
		assert.ErrorIs(t, second(mw.Query()), verbs.ErrInvalidSTag, what)
	}
}

func deallocateWithWindows(n *host) {
	t := n.t
	for i, release := range []func(s *probe, mw *verbs.MW){
		func(s *probe, mw *verbs.MW) { s.invalidate(invalidations[0], mw.STag(1), invalidates) },
		func(s *probe, mw *verbs.MW) { s.invalidate(invalidations[3], mw.STag(1), invalidates) },
		func(_ *probe, mw *verbs.MW) { require.NoError(t, mw.Deallocate()) },
	} {
		s, one, two := n.probe(verbs.QPConfig{}), n.newMW(), n.newMW()
		mr := n.register(64, allRights|verbs.BindWindow)
		b := s.binds(one.BindRequest(mr, 0, 32, remoteRights, 1))
		s.runs(binds(two.BindRequest(mr, 16, 32, verbs.RemoteRead, 1)), verbs.StatusSuccess)
		for range 2 {
			refuses(t, "Deregister", verbs.ErrWindowsBound, mr.Deregister,
				func() any { return queried(t, mr) }, func() any { return queried(t, one) }, func() any { return queried(t, two) })
			s.checksPeer(verbs.BindBuffer(b), 0, mr.Bytes()[:32], remoteRights, accessFault{})
			s.allAllowed(mr.Buffer(), 0, mr.Bytes())
		}
		release(s, two)
		require.ErrorIs(t, mr.Deregister(), verbs.ErrWindowsBound, "one is still bound")
		release(s, one)
		require.NoError(t, mr.Deregister(), "released in way %d", i)
		s.disconnect()
	}
}

// rv7_10_4 is invalidating and deallocating windows: verbs draft 7.10.4 and
// 7.10.6.3.
var rv7_10_4 = []conformance.Case{
	apiCase("7.10.4/own-qp", onQuietHost(invalidateBoundWindow), "RV-7.10.4-M1", "RV-7.10.4-M2", "RV-7.10.4-M3", "RV-7.10.6.3-M2"),
	apiCase("7.10.4/unbound", onQuietHost(invalidateUnboundWindow), "RV-7.10.4-M4", "RV-7.10.4-M5", "RV-7.10.6.3-M3", "PV-7.10.4.1-M1"),
	apiCase("7.10.4/freed", windowFreed, "RV-7.10.4-M6", "RV-7.10.4-M7", "PV-7.10.4-M1"),
	apiCase("7.10.4.1/in-process", onQuietHost(windowInvalidatedInProcess), "RV-7.10.4.1-M1"),
	apiCase("7.10.4.1/invalidated", onQuietHost(windowInvalidatedForGood), "RV-7.10.4.1-M2"),
	apiCase("7.10.4.1/deallocated-in-process", onQuietHost(windowDeallocatedInProcess), "RV-7.10.4.1-M3", "PV-9.2.6.4-M1"),
	apiCase("7.10.4.1/deallocated", onQuietHost(windowDeallocatedForGood), "RV-7.10.4.1-M4"),
	apiCase("7.10.6.3/each-way", onQuietHost(invalidateWindowChecks), "RV-7.10.6.3-M1", "RV-7.10.6.3-M4", "RV-7.10.6.3-M5"),
}

func invalidateBoundWindow(n *host) {
	t, mem := n.t, n.mr.Bytes()[10:40]
	for _, w := range invalidations {
		s, mw, b := n.bound(verbs.QPConfig{}, 10, 30, remoteRights)
		x := n.probe(verbs.QPConfig{}) // another queue pair of the PD
		was := queried(t, mw)
		x.invalidate(w, b.STag, isForeign)
		require.Equal(t, was, queried(t, mw), "after %s on another queue pair", w.name)
		s.checksPeer(b, 0, mem, remoteRights, accessFault{})
		s.invalidate(w, b.STag, invalidates)
		require.Equal(t, verbs.WindowAttributes{STag: mw.STag(0), PD: n.pd.ID()}, queried(t, mw), w.name)
		s.checksPeer(b, 0, mem, 0, noSTag)
		x.disconnect()
		s.disconnect()
	}
}

func invalidateUnboundWindow(n *host) {
	t, other := n.t, n.newPD()
	mw := n.newMW()
	for _, w := range invalidations {
		for range 2 { // any queue pair of the PD
			s := n.probe(verbs.QPConfig{})
			s.invalidate(w, mw.STag(9), invalidates)
			require.Equal(t, verbs.WindowAttributes{STag: mw.STag(0), PD: n.pd.ID()}, queried(t, mw), w.name)
			s.disconnect()
		}
		theirs := must(other.AllocateWindow())(t)
		s, was := n.probe(verbs.QPConfig{}), queried(t, theirs)
		s.invalidate(w, theirs.STag(9), isForeign)
		require.Equal(t, was, queried(t, theirs), w.name)
		s.disconnect()
	}
}

func windowFreed(t *conformance.T) {
	n := newHost(t, hostConfig{RNIC: verbs.Config{Limits: verbs.Limits{Windows: 1}}})
	for _, w := range invalidations {
		pd := n.newPD()
		mw := must(pd.AllocateWindow())(t)
		mr := n.region(pd, verbs.RegionConfig{Memory: make([]byte, 64), Access: allRights | verbs.BindWindow})
		receives := n.newSRQ(verbs.SRQConfig{}) // in the host's PD, as its memory
		s, x := n.probe(verbs.QPConfig{PD: pd, SRQ: receives}), n.probe(verbs.QPConfig{PD: pd})
		b := s.binds(mw.BindRequest(mr, 0, 16, remoteRights, 1))
		require.ErrorIs(t, mr.Deregister(), verbs.ErrWindowsBound)
		s.invalidate(w, b.Window, invalidates)

		require.Equal(t, verbs.WindowAttributes{STag: mw.STag(0), PD: pd.ID()}, queried(t, mw), w.name)
		assert.Zero(t, queried(t, mr).Windows)
		require.NoError(t, mr.Deregister(), "nothing is bound to the region after %s", w.name)
		s.disconnect() // nor to the queue pair
		require.ErrorIs(t, second(n.pd.AllocateWindow()), verbs.ErrInsufficientResources, "the window is still there")
		require.ErrorIs(t, pd.Deallocate(), verbs.ErrPDInUse)

		// Any queue pair of its PD may bind it again, and no other.
		mr = n.region(pd, verbs.RegionConfig{Memory: make([]byte, 64), Access: allRights | verbs.BindWindow})
		there := n.probe(verbs.QPConfig{})
		there.runs(binds(mw.BindRequest(n.mr, 0, 16, remoteRights, 2)), verbs.StatusInvalidPD)
		b = x.binds(mw.BindRequest(mr, 0, 16, remoteRights, 2))
		x.checksPeer(verbs.BindBuffer(b), 0, mr.Bytes()[:16], remoteRights, accessFault{})
		require.NoError(t, mw.Deallocate())
		x.disconnect()
		require.NoError(t, mr.Deregister())
		require.NoError(t, pd.Deallocate(), "all of it is gone")
	}
	n.quiet()
}

// underway has half a Write through a window there, and then a Read Request, when
// it goes.
func underway(n *host, what string, stop func(s *probe, mw *verbs.MW, b verbs.TaggedBuffer)) {
	t, mem := n.t, n.mr.Bytes()[:100]
	sent := fill(make([]byte, 100), 6)
	s, mw, b := n.bound(verbs.QPConfig{}, 0, 100, remoteRights)
	clear(mem)
	s.writeHalf(b.Remote(0), sent)
	stop(s, mw, b)
	s.writeRest(b.Remote(0), sent)
	s.refused(noSTag.write)
	require.Equal(t, append(bytes.Clone(sent[:50]), make([]byte, 50)...), mem, "half a Write, then %s", what)

	large := n.register(largeRegion, allRights)
	s.narrow()
	mw = n.newMW()
	bind := s.binds(mw.BindRequest(n.mr, 0, 100, remoteRights, 0x61))
	s.stuff(large.Remote(0))
	s.ask(verbs.BindBuffer(bind).Remote(0), 100)
	stop(s, mw, verbs.BindBuffer(bind))
	s.skip()
	s.refused(noSTag.read)
}

func windowInvalidatedInProcess(n *host) {
	underway(n, "Send with Invalidate", func(s *probe, _ *verbs.MW, b verbs.TaggedBuffer) {
		s.invalidate(invalidations[2], b.STag, invalidates)
	})
	t := n.t
	s, _, b := n.bound(verbs.QPConfig{}, 0, 100, remoteRights)
	sent := fill(make([]byte, 100), 6)
	clear(n.mr.Bytes()[:100])
	s.writeHalf(b.Remote(0), sent)
	s.invalidate(invalidations[0], b.STag, invalidates)
	s.writeRest(b.Remote(0), sent)
	s.refused(noSTag.write)
	require.Equal(t, append(bytes.Clone(sent[:50]), make([]byte, 50)...), n.mr.Bytes()[:100], "half a Write, then Invalidate Local STag")
}

func windowDeallocatedInProcess(n *host) {
	underway(n, "Deallocate STag", func(_ *probe, mw *verbs.MW, _ verbs.TaggedBuffer) {
		atOnce(n.t, "Deallocate", mw.Deallocate)
	})
}

func windowInvalidatedForGood(n *host) {
	mem := n.mr.Bytes()[:64]
	for _, write := range []bool{true, false} {
		s, _, b := n.bound(verbs.QPConfig{}, 0, 64, remoteRights)
		s.flood(b, mem, write, func() {
			run(n.t, s.qp, verbs.Request{ID: 1, Op: verbs.OpInvalidate, Invalidate: b.STag}, verbs.StatusSuccess)
		})
	}
	s, mw, b := n.bound(verbs.QPConfig{}, 0, 64, remoteRights)
	s.midway(b, mem, 40, func() {
		run(n.t, s.qp, verbs.Request{ID: 1, Op: verbs.OpInvalidate, Invalidate: b.STag}, verbs.StatusSuccess)
	})
	require.NoError(n.t, mw.Deallocate())
}

func windowDeallocatedForGood(n *host) {
	mem := n.mr.Bytes()[:1000]
	for i := range 10 {
		s, mw, b := n.bound(verbs.QPConfig{}, 0, 1000, remoteRights)
		s.midway(b, mem, 30+90*i, func() { atOnce(n.t, "Deallocate", mw.Deallocate) })
	}
	for _, write := range []bool{true, false} {
		s, mw, b := n.bound(verbs.QPConfig{}, 0, 64, remoteRights)
		s.flood(b, mem[:64], write, func() { atOnce(n.t, "Deallocate", mw.Deallocate) })
	}
}

func invalidateWindowChecks(n *host) {
	t, other, mem := n.t, n.newPD(), n.mr.Bytes()[10:40]
	gone := n.newMW()
	require.NoError(t, gone.Deallocate())
	for _, w := range invalidations {
		s, mw, b := n.bound(verbs.QPConfig{}, 10, 30, remoteRights)
		x := n.probe(verbs.QPConfig{})
		theirs := must(other.AllocateWindow())(t)
		for _, c := range []struct {
			name string
			st   verbs.STag
			want invalidationFault
		}{
			{"Valid, another queue pair's", b.STag, isForeign},
			{"Valid, another key", b.STag ^ 1, cannotBe},
			{"Invalid, another PD's", theirs.STag(0), isForeign},
			{"deallocated", gone.STag(0x61), isGone},
		} {
			t.Logf("%s", c.name)
			was := []verbs.WindowAttributes{queried(t, mw), queried(t, theirs)}
			x.connect()
			x.invalidate(w, c.st, c.want)
			require.Equal(t, was, []verbs.WindowAttributes{queried(t, mw), queried(t, theirs)}, "%s: %s", w.name, c.name)
			s.checksPeer(b, 0, mem, remoteRights, accessFault{})
		}
		s.invalidate(w, b.STag, invalidates)
		s.disconnect()
		x.disconnect()
	}
}

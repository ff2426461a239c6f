package cases

import (
	"bytes"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

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

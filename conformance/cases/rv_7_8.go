package cases

import (
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// rv7_8 is invalidating regions: verbs draft 7.8.
var rv7_8 = []conformance.Case{
	apiCase("7.8/isolation", onProbe(verbs.QPConfig{}, invalidatedAlone), "RV-7.8-M1", "RV-7.8-M2"),
	apiCase("7.8/invalid-state", onProbe(verbs.QPConfig{}, invalidatedState), "RV-7.8-M4", "RV-7.8-M11", "PV-7.8-M2"),
	apiCase("7.8/under-access", onQuietHost(invalidatedUnderAccess), "RV-7.8-M6"),
	apiCase("7.8/retained", onQuietHost(invalidatedRetains), "RV-7.8-M7", "RV-7.8-M8", "RV-7.8-M9"),
	apiCase("7.8/checks", onQuietHost(invalidateChecks), "RV-7.8-M10", "RV-7.8-M16", "RV-7.8-M17", "PV-7.8-M3"),
	apiCase("7.8/pd", onQuietHost(invalidatePD), "RV-7.8-M13"),
	apiCase("7.8/windows", onQuietHost(invalidateWithWindows), "RV-7.8-M14"),
	apiCase("7.8/remote-rights", onQuietHost(invalidateRemoteRights), "RV-7.8-M15"),
	apiCase("7.8/reported", onQuietHost(invalidateReported), "RV-7.8-M18", "RV-7.8-M19"),
}

func invalidatedAlone(n *host, s *probe) {
	for w := range inTurn(n.t, "%s", invalidations) {
		s.goesAlone(func(mr, _ *verbs.MR, _ []byte) {
			s.invalidate(w, mr.STag(), invalidates)
			require.False(n.t, queried(n.t, mr).Valid)
		})
		s.connect()
	}
}

// goesAlone has a region go whose memory others have too, all of it, a part, and more. Of those
// nothing changes.
func (s *probe) goesAlone(gone func(mr, same *verbs.MR, mem []byte)) {
	t, mem := s.t, make([]byte, 200)
	over := func(off, k int) *verbs.MR {
		return s.region(s.pd, verbs.RegionConfig{Memory: mem[off : off+k], Access: allRights})
	}
	mr, same, part, more := over(50, 100), over(50, 100), over(60, 10), over(0, 200)
	before := []verbs.RegionAttributes{queried(t, same), queried(t, part), queried(t, more)}
	gone(mr, same, mem)
	require.Equal(t, before, []verbs.RegionAttributes{queried(t, same), queried(t, part), queried(t, more)}, "the others")
	s.allAllowed(same.Buffer(), 0, mem[50:150])
	s.allAllowed(part.Buffer(), 0, mem[60:70])
	s.allAllowed(more.Buffer(), 40, mem[40:160])
	s.noneAllowed(mr.Buffer(), 0, mem[50:60], noSTag)
}

func invalidatedState(n *host, s *probe) {
	t := n.t
	for _, w := range invalidations {
		mr := n.register(64, allRights)
		require.True(t, queried(t, mr).Valid)
		s.invalidate(w, mr.STag(), invalidates)
		require.False(t, queried(t, mr).Valid, w.name)
		// It may be Invalid already.
		s.invalidate(w, mr.STag(), invalidates)
		require.False(t, queried(t, mr).Valid, "%s of an Invalid STag", w.name)

		// A Shared one cannot be, nor one that is gone.
		one := n.register(64, allRights)
		require.NoError(t, second(one.RegisterShared(nil, verbs.SharedConfig{Access: allRights})))
		s.invalidate(w, one.STag(), cannotBe)
		require.True(t, queried(t, one).Valid, w.name)
		require.NoError(t, one.Deregister())
		s.invalidate(w, one.STag(), isGone)
		s.connect()
	}
}

func invalidatedUnderAccess(n *host) {
	for _, write := range []bool{true, false} {
		s, mr := n.probe(verbs.QPConfig{}), n.register(64, allRights)
		s.flood(mr.Buffer(), mr.Bytes(), write, func() {
			run(n.t, s.qp, verbs.Request{ID: 1, Op: verbs.OpInvalidate, Invalidate: mr.STag()}, verbs.StatusSuccess)
		})
	}
}

func invalidatedRetains(n *host) {
	t, p, other := n.t, n.pages(12, 4096), n.newPD()
	const local = verbs.LocalRead | verbs.LocalWrite
	s, there := n.probe(privileged), n.probe(verbs.QPConfig{PD: other, Privileged: true})
	// keeps invalidates an STag and says what it still has.
	keeps := func(what string, x *probe, mr *verbs.MR, st verbs.STag, pages int, flag bool, pd *verbs.PD) {
		before := queried(t, mr)
		x.invalidate(invalidations[0], st, invalidates)
		after := queried(t, mr)
		require.False(t, after.Valid, what)
		require.Equal(t, before.PBL, after.PBL, "%s: the list size", what)
		require.GreaterOrEqual(t, after.PBL, pages, "%s: the list size", what)
		require.Equal(t, flag, after.RemoteAccess, "%s: the flag", what)
		require.Equal(t, pd.ID(), after.PD, "%s: the PD", what)
		a := local
		if flag {
			a |= remoteRights
		}
		r := fastRegister(mr.WithKey(0x5A), p.List(0, pages*4096), 4096, a)
		x.runs(r, verbs.StatusSuccess)
		require.Len(t, x.gather(verbs.OpSend, verbs.FastRegisterBuffer(r.FastRegister).SGL(pages*4096-8, 8), verbs.StatusSuccess), 8, what)
		x.invalidate(invalidations[0], r.FastRegister.STag, invalidates)
	}
	for _, flag := range []bool{false, true} {
		c := verbs.RegionConfig{Buffers: p.List(0, 5*4096), Access: local, RemoteAccess: flag, VA: 4096}
		mr := n.region(n.pd, c)
		keeps("Register", s, mr, mr.STag(), 5, flag, n.pd)

		allocated := must(n.pd.AllocateRegion(verbs.AllocateConfig{PBL: 7, RemoteAccess: flag}))(t)
		s.runs(fastRegister(allocated.WithKey(1), p.List(0, 2*4096), 4096, local), verbs.StatusSuccess)
		keeps("Allocate", s, allocated, allocated.WithKey(1), 7, flag, n.pd)

		again := n.region(n.pd, verbs.RegionConfig{Memory: make([]byte, 8), Access: allRights})
		c.Buffers, c.RemoteAccess = p.List(0, 9*4096), !flag
		require.NoError(t, again.Reregister(other, c))
		keeps("Reregister", there, again, again.STag(), 9, !flag, other)
		s.runs(fastRegister(again.WithKey(1), p.List(0, 4096), 4096, local), verbs.StatusInvalidPD)
		s.connect()
	}
	s.disconnect()
	there.disconnect()
}

func invalidateChecks(n *host) {
	t, s := n.t, n.probe(verbs.QPConfig{})
	foreign, gone, shared := n.newPD(), n.register(8, allRights), n.register(8, allRights)
	require.NoError(t, gone.Deregister())
	require.NoError(t, second(shared.RegisterShared(nil, verbs.SharedConfig{Access: allRights})))
	under := n.register(64, allRights|verbs.BindWindow)
	x, mw := n.probe(verbs.QPConfig{}), n.newMW()
	bind := x.binds(mw.BindRequest(under, 0, 8, remoteRights, 1))
	good := n.register(64, allRights)
	alien := n.region(foreign, verbs.RegionConfig{Memory: make([]byte, 8), Access: allRights})
	rightless := n.register(8, verbs.LocalRead|verbs.LocalWrite)
	for _, c := range []struct {
		name string
		st   verbs.STag
		mr   *verbs.MR
		want invalidationFault
	}{
		{"Shared", shared.STag(), shared, cannotBe},
		{"another PD", alien.STag(), alien, isForeign},
		{"a window bound", under.STag(), under, hasWindows},
		{"another key", good.STag() ^ 4, good, cannotBe},
		{"deallocated", gone.STag(), nil, isGone},
		{"never there", 0x12345678, nil, isGone},
		{"no remote right", rightless.STag(), rightless, hasNoRemoteUse},
	} {
		for _, w := range invalidations {
			if c.want == hasNoRemoteUse && !w.remote {
				continue
			}
			t.Logf("%s: %s", c.name, w.name)
			s.invalidate(w, c.st, c.want)
			if c.mr != nil {
				require.True(t, queried(t, c.mr).Valid, "%s: %s", c.name, w.name)
			}
		}
	}
	s.connect()
	for _, w := range invalidations { // nothing of this is broken
		mr := n.register(64, allRights)
		s.invalidate(w, mr.STag(), invalidates)
	}
	s.disconnect()
	x.invalidate(invalidations[0], bind.Window, invalidates)
	x.disconnect()
}

func invalidatePD(n *host) {
	t, other := n.t, n.newPD()
	s, there := n.probe(verbs.QPConfig{}), n.probe(verbs.QPConfig{PD: other})
	for _, w := range invalidations {
		mr := n.region(other, verbs.RegionConfig{Memory: make([]byte, 64), Access: allRights})
		s.invalidate(w, mr.STag(), isForeign)
		require.True(t, queried(t, mr).Valid, w.name)
		there.allAllowed(mr.Buffer(), 0, mr.Bytes())
		// The host's receives are of its own PD.
		if !w.remote {
			there.invalidate(w, mr.STag(), invalidates)
			s.invalidate(w, mr.STag(), isForeign) // Invalid or not
		}
	}
	s.disconnect()
	there.disconnect()
}

func invalidateWithWindows(n *host) {
	t := n.t
	for _, w := range invalidations {
		s, x, mw := n.probe(verbs.QPConfig{}), n.probe(verbs.QPConfig{}), n.newMW()
		mr := n.register(64, allRights|verbs.BindWindow)
		bind := s.binds(mw.BindRequest(mr, 8, 32, remoteRights, 1))
		x.invalidate(w, mr.STag(), hasWindows)
		require.True(t, queried(t, mr).Valid, "the region, after %s", w.name)
		require.True(t, queried(t, mw).Valid, "the window, after %s", w.name)
		s.checksPeer(verbs.BindBuffer(bind), 0, mr.Bytes()[8:40], remoteRights, accessFault{})
		s.invalidate(invalidations[0], bind.Window, invalidates)
		s.invalidate(w, mr.STag(), invalidates)
		s.disconnect()
		x.disconnect()
	}
}

func invalidateRemoteRights(n *host) {
	t := n.t
	const local = verbs.LocalRead | verbs.LocalWrite
	for _, noRead := range []bool{false, true} {
		for _, noWrite := range []bool{false, true} {
			s := n.probe(verbs.QPConfig{NoInboundRead: noRead, NoInboundWrite: noWrite})
			for _, remote := range []verbs.Access{0, verbs.RemoteRead, verbs.RemoteWrite, remoteRights} {
				for _, w := range invalidations[2:] {
					t.Logf("QP without read %v, without write %v; STag with %v", noRead, noWrite, remote)
					want := either(noRead && noWrite || remote == 0, hasNoRemoteUse, invalidates)
					mr := n.register(64, local|remote)
					s.invalidate(w, mr.STag(), want)
					require.Equal(t, want != invalidates, queried(t, mr).Valid)
				}
			}
			s.disconnect()
		}
	}
}

func invalidateReported(n *host) {
	t, s := n.t, n.probe(verbs.QPConfig{})
	alien := n.region(n.newPD(), verbs.RegionConfig{Memory: make([]byte, 8), Access: allRights})
	// A refused request is reported even if it is unsignaled. What is behind it
	// is flushed.
	for _, flags := range []func(*verbs.Request){func(*verbs.Request) {}, func(r *verbs.Request) { r.Flags = verbs.Unsignaled }} {
		for _, op := range []verbs.Op{verbs.OpInvalidate, verbs.OpReadInvalidate} {
			s.connect()
			r := verbs.Request{ID: 77, Op: op, Invalidate: alien.STag(), Local: verbs.SGE{STag: alien.STag()}, Remote: verbs.Remote{STag: 0x00FACE01}}
			flags(&r)
			// Behind a Read it would go out before the answer comes.
			behind := verbs.Request{ID: 78, Flags: verbs.ReadFence}
			post(t, s.qp, r, behind)
			if op == verbs.OpReadInvalidate {
				s.segment(opReadRequest)
				s.send(aReadResponse(uint32(alien.STag()), 0, nil))
			}
			completes(t, n.cq, verbs.Completion{ID: 77, QP: s.qp.ID(), Op: op, Status: verbs.StatusInvalidPD},
				verbs.Completion{ID: 78, QP: s.qp.ID(), Status: verbs.StatusFlushed})
			s.fails(0x0000)
		}
	}

	// An inbound one: its data is placed, its receive completes in error, and
	// the stream ends: through Terminate, which lasts until the peer has closed.
	for _, op := range []byte{opSendInv, opSendSEInv} {
		s.connect()
		postRecv(t, s.qp, verbs.Recv{ID: 1, SGL: n.mr.SGL(0, 8)}, verbs.Recv{ID: 2})
		clear(n.mr.Bytes()[:8])
		s.send(untagged(lastUntagged, op, uint32(alien.STag()), 0, 1, 0, []byte("farewell")))
		completes(t, n.cq, verbs.Completion{ID: 1, QP: s.qp.ID(), Op: verbs.OpRecv, Status: verbs.StatusInvalidateSTag},
			verbs.Completion{ID: 2, QP: s.qp.ID(), Op: verbs.OpRecv, Status: verbs.StatusFlushed})
		require.Equal(t, "farewell", string(n.mr.Bytes()[:8]))
		require.Equal(t, verbs.StateTerminate, s.qp.State(), "before the peer closes")
		require.ErrorIs(t, second(s.qp.PostSend(verbs.Request{})), verbs.ErrInvalidState)
		s.fails(0x0109)
	}
}

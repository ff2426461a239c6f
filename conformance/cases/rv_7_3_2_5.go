package cases

import (
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// rv7_3_2_5 is Fast-Register: verbs draft 7.3.2.5.
var rv7_3_2_5 = []conformance.Case{
	apiCase("7.3.2.5/from-each-source", staged(fastFromEach), "RV-7.3.2.5-M1", "RV-7.5.2-M3"),
	apiCase("7.3.2.5/key", staged(fastKey), "RV-7.3.2.5-M2"),
	apiCase("7.3.2.5/pd-and-window", staged(fastChecks), "RV-7.3.2.5-M4", "RV-7.3.2.5-M6", "RV-7.3.2.5-M7"),
	apiCase("7.3.2.5/state", staged(fastState), "RV-7.3.2.5-M8", "RV-7.3.2.5-M9"),
	apiCase("7.3.2.5/list-size", staged(fastList), "RV-7.3.2.5-M10"),
	apiCase("7.3.2.5/remote-rights", staged(fastNoRemote), "RV-7.3.2.5-M11", "RV-7.3.2.5-M13"),
	apiCase("7.3.2.5/rights", staged(fastRights), "RV-7.3.2.5-M12"),
	apiCase("7.3.2.5/privileged", staged(fastPrivileged), "RV-7.3.2.5-M14", "RV-7.3.2.5-M15"),
	apiCase("7.3.2.5/order", staged(fastOrder), "RV-7.3.2.5-M16", "RV-7.3.2.5-M17"),
}

// allocated is an STag that may have remote rights, with room for eight pages.
func (n *node) allocated() *verbs.MR {
	return must(n.pd.AllocateRegion(verbs.AllocateConfig{PBL: 8, RemoteAccess: true, RemoteInvalidate: true}))(n.t)
}

func fastFromEach(n *node) {
	t, s, p := n.t, n.seat(privileged), n.pages(1, 4096)
	for _, flag := range []bool{false, true} {
		c := verbs.RegionConfig{Memory: make([]byte, 64), Access: verbs.LocalRead, RemoteAccess: flag}
		allocated := must(n.pd.AllocateRegion(verbs.AllocateConfig{RemoteAccess: flag}))(t)
		registered, again := n.region(n.pd, c), n.region(n.pd, verbs.RegionConfig{Memory: c.Memory, Access: verbs.LocalRead, RemoteAccess: !flag})
		require.NoError(t, again.Reregister(nil, c))
		for i, mr := range []*verbs.MR{allocated, registered, again} {
			what := []string{"Allocate", "Register", "Reregister"}[i]
			if queried(t, mr).Valid {
				s.invalidate(ways[0], mr.STag(), invalidates)
			}
			local := fastRegister(mr.WithKey(1), p.List(8, 64), 4096+8, verbs.LocalRead|verbs.LocalWrite)
			s.does(local, verbs.StatusSuccess)
			s.judged(verbs.FastRegisterBuffer(local.FastRegister), 0, p.Bytes()[8:40], verbs.LocalRead|verbs.LocalWrite, noRight)
			s.invalidate(ways[0], local.FastRegister.STag, invalidates)
			remote := fastRegister(mr.WithKey(2), p.List(8, 64), 4096+8, allRights)
			if !flag {
				s.does(remote, verbs.StatusInvalidAccessRights)
				require.False(t, queried(t, mr).Valid, what)
				continue
			}
			s.does(remote, verbs.StatusSuccess)
			s.opens(verbs.FastRegisterBuffer(remote.FastRegister), 0, p.Bytes()[8:40])
		}
	}
	// Not once it is shared.
	mr := n.register(64, allRights)
	shared := must(mr.RegisterShared(nil, verbs.SharedConfig{Access: allRights}))(t)
	for _, m := range []*verbs.MR{mr, shared} {
		was := queried(t, m)
		s.does(fastRegister(m.STag(), p.List(0, 64), 4096, allRights), verbs.StatusInvalidSTag)
		require.Equal(t, was, queried(t, m), "Query")
	}
	s.leave()
}

func fastKey(n *node) {
	t, s, p, mr := n.t, n.seat(privileged), n.pages(1, 4096), n.allocated()
	for _, key := range []uint8{0, 1, 0x7F, 0xFF} {
		r := fastRegister(mr.WithKey(key), p.List(0, 64), 4096, allRights)
		s.does(r, verbs.StatusSuccess)
		require.Equal(t, mr.WithKey(key), queried(t, mr).STag, "Query")
		b := verbs.FastRegisterBuffer(r.FastRegister)
		s.opens(b, 4, p.Bytes()[4:60])
		for _, bit := range []verbs.STag{1, 0x80} {
			wrong := b
			wrong.STag ^= bit
			s.shuts(wrong, 4, p.Bytes()[4:60], noSTag)
		}
		s.invalidate(ways[0], b.STag, invalidates)
	}
	s.leave()
}

func fastChecks(n *node) {
	t, s, p, mr, mw := n.t, n.seat(privileged), n.pages(1, 4096), n.allocated(), n.newMW()
	r := fastRegister(mr.WithKey(1), p.List(0, 64), 4096, allRights)
	there := n.seat(verbs.QPConfig{Privileged: true, PD: n.newPD()})
	was := queried(t, mr)
	there.does(r, verbs.StatusInvalidPD)
	require.Equal(t, was, queried(t, mr), "the STag of another PD")
	there.leave()
	s.does(r, verbs.StatusSuccess)

	window := queried(t, mw)
	s.does(fastRegister(mw.STag(1), p.List(0, 64), 4096, allRights), verbs.StatusInvalidSTag)
	require.Equal(t, window, queried(t, mw), "the window")
	bind := mw.BindRequest(n.mr, 0, 64, remoteRights, 1)
	s.sit()
	s.does(binds(bind), verbs.StatusSuccess)
	s.peers(verbs.BindBuffer(bind), 0, n.mr.Bytes()[:64], remoteRights, denial{})
	s.invalidate(ways[0], bind.Window, invalidates)

	s.does(fastRegister(mr.STag()+1<<8, p.List(0, 64), 4096, allRights), verbs.StatusInvalidSTag)
	s.sit()
	k, err := s.qp.PostSend(fastRegister(0, p.List(0, 64), 4096, allRights))
	require.ErrorIs(t, err, verbs.ErrInvalidModifier, "the STag of zero")
	require.Zero(t, k)
	s.leave()
}

func fastState(n *node) {
	t, s, p, mr := n.t, n.seat(privileged), n.pages(2, 4096), n.allocated()
	one, two := fastRegister(mr.WithKey(1), p.List(0, 64), 4096, allRights), fastRegister(mr.WithKey(2), p.List(4096, 64), 4096, allRights)
	s.does(one, verbs.StatusSuccess)
	was := queried(t, mr)
	s.does(two, verbs.StatusSTagNotInvalid)
	s.does(one, verbs.StatusSTagNotInvalid)
	require.Equal(t, was, queried(t, mr), "the Valid STag")
	s.opens(verbs.FastRegisterBuffer(one.FastRegister), 0, p.Bytes()[:64])
	registered := n.register(64, allRights)
	s.does(fastRegister(registered.STag(), p.List(0, 64), 4096, allRights), verbs.StatusSTagNotInvalid)
	s.opens(registered.Buffer(), 0, registered.Bytes())

	// What counts is the state when the request is executed, not posted.
	one.ID, two.ID = 1, 3
	post(t, s.qp, verbs.Request{ID: 2, Op: verbs.OpInvalidate, Invalidate: mr.WithKey(1)}, two)
	completes(t, n.cq, verbs.Completion{ID: 2, QP: s.qp.ID(), Op: verbs.OpInvalidate},
		verbs.Completion{ID: 3, QP: s.qp.ID(), Op: verbs.OpFastRegister})
	s.opens(verbs.FastRegisterBuffer(two.FastRegister), 0, p.Bytes()[4096:4160])
	s.leave()
}

func fastList(n *node) {
	t, s, p := n.t, n.seat(privileged), n.pages(20, 4096)
	registered := n.region(n.pd, verbs.RegionConfig{Buffers: p.List(0, 3*4096), Access: verbs.LocalRead, VA: 4096})
	s.invalidate(ways[0], registered.STag(), invalidates)
	for _, mr := range []*verbs.MR{n.allocated(), registered} {
		most := queried(t, mr).PBL
		require.Less(t, most, 20)
		for _, k := range []int{most + 1, 20} {
			s.does(fastRegister(mr.WithKey(1), p.List(0, k*4096), 4096, verbs.LocalRead), verbs.StatusPhysBufferListTooLong)
			require.False(t, queried(t, mr).Valid, "after a list of %d of %d", k, most)
		}
		s.does(fastRegister(mr.WithKey(1), p.List(0, most*4096), 4096, verbs.LocalRead), verbs.StatusSuccess)
	}
	s.leave()
}

func fastNoRemote(n *node) {
	t, s, p := n.t, n.seat(privileged), n.pages(1, 4096)
	const local = verbs.LocalRead | verbs.LocalWrite
	mr := must(n.pd.AllocateRegion(verbs.AllocateConfig{}))(t)
	for _, a := range []verbs.Access{verbs.RemoteRead, verbs.RemoteWrite, remoteRights} {
		r := fastRegister(mr.WithKey(1), p.List(0, 64), 4096, local|a)
		s.does(r, verbs.StatusInvalidAccessRights)
		require.False(t, queried(t, mr).Valid, "the STag")
		s.shuts(verbs.FastRegisterBuffer(r.FastRegister), 0, p.Bytes()[:64], noSTag)
	}
	s.does(fastRegister(mr.WithKey(1), p.List(0, 64), 4096, local), verbs.StatusSuccess)
	s.leave()
}

func fastRights(n *node) {
	t, s, p, mr := n.t, n.seat(privileged), n.pages(1, 4096), n.allocated()
	for i, a := range validRights {
		r := fastRegister(mr.WithKey(uint8(i)), p.List(0, 64), 4096, a)
		s.does(r, verbs.StatusSuccess)
		require.Equal(t, a, queried(t, mr).Access, "Query")
		s.judged(verbs.FastRegisterBuffer(r.FastRegister), 0, p.Bytes()[:64], a, noRight)
		s.invalidate(ways[0], r.FastRegister.STag, invalidates)
	}
	s.leave()
}

func fastPrivileged(n *node) {
	t, p, mr := n.t, n.pages(1, 4096), n.allocated()
	r, was := fastRegister(mr.WithKey(1), p.List(0, 64), 4096, allRights), queried(t, mr)
	plain := n.seat(verbs.QPConfig{})
	plain.does(r, verbs.StatusNotPrivileged)
	require.Equal(t, was, queried(t, mr), "the STag")
	plain.shuts(verbs.FastRegisterBuffer(r.FastRegister), 0, p.Bytes()[:64], noSTag)
	plain.leave()
	s := n.seat(privileged)
	s.does(r, verbs.StatusSuccess)
	s.leave()
}

func fastOrder(n *node) {
	t, s, p, mr := n.t, n.seat(privileged), n.pages(4, 4096), n.allocated()
	for i := range 20 {
		r := fastRegister(mr.WithKey(uint8(i)), p.List(100, 5000), 0x4000+100, allRights)
		b := verbs.FastRegisterBuffer(r.FastRegister)
		want := string(fill(p.Bytes()[100:5100], i))
		send := verbs.Request{ID: 2, SGL: b.SGL(0, 5000)}
		post(t, s.qp, r, send, verbs.Request{ID: 3, Op: verbs.OpInvalidate, Invalidate: b.STag})
		completes(t, n.cq, verbs.Completion{ID: r.ID, QP: s.qp.ID(), Op: verbs.OpFastRegister},
			verbs.Completion{ID: 2, QP: s.qp.ID()}, verbs.Completion{ID: 3, QP: s.qp.ID(), Op: verbs.OpInvalidate})
		require.Equal(t, want, string(s.message(opSend)), "sent through it at once")
	}

	// At the completion it is as it was asked for.
	r := fastRegister(mr.WithKey(0x99), p.List(100, 5000), 0x4000+100, allRights)
	s.does(r, verbs.StatusSuccess)
	require.Equal(t, verbs.RegionAttributes{
		STag: mr.WithKey(0x99), Valid: true, PD: n.pd.ID(), RemoteAccess: true, PBL: queried(t, mr).PBL,
		Access: allRights, Base: 0x4000 + 100, Length: 5000, RemoteInvalidate: true,
	}, queried(t, mr), "Query")
	s.opens(verbs.FastRegisterBuffer(r.FastRegister), 4900, p.Bytes()[5000:5100])
	s.invalidate(ways[0], r.FastRegister.STag, invalidates)

	// A Send before it comes too early.
	b := verbs.FastRegisterBuffer(r.FastRegister)
	post(t, s.qp, verbs.Request{ID: 4, SGL: b.SGL(0, 8)}, r)
	completes(t, n.cq, verbs.Completion{ID: 4, QP: s.qp.ID(), Status: verbs.StatusInvalidSTag},
		verbs.Completion{ID: r.ID, QP: s.qp.ID(), Op: verbs.OpFastRegister, Status: verbs.StatusFlushed})
	s.falls(0x0000)
	require.False(t, queried(t, mr).Valid, "the STag of the flushed request")
}

package cases

import (
	"bytes"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// rv7_6_3 is the checks of each access to a region: verbs draft 7.6.3; and Query
// Memory Region, 7.7.
var rv7_6_3 = []conformance.Case{
	apiCase("7.6.3/each-check", staged(eachCheck),
		"RV-7.6.3-M1", "PV-7.6.3-M1", "PV-7.6.3-M2", "PV-7.6.3-M3", "PV-7.6.3-M4", "PV-7.6.3-M5", "PV-7.6.3-M6",
		"PV-9.5.3-M5", "PV-9.5.3-M6"),
	apiCase("7.6.3/to-the-octet", staged(toTheOctet), "RV-7.6.3-M2", "PV-7.6.3-M6"),
	apiCase("7.6.3/no-octets", staged(noOctets), "RV-7.6.3-M3"),
	apiCase("7.7/attributes", staged(regionAttributes), "RV-7.7-M1"),
}

func eachCheck(n *node) {
	t, foreign := n.t, n.newPD()
	own := n.register(64, allRights)
	alien := n.region(foreign, verbs.RegionConfig{Memory: make([]byte, 64), Access: allRights})
	none := n.register(64, verbs.LocalRead)
	mem := own.Bytes()
	plain, shared := verbs.QPConfig{}, verbs.QPConfig{SRQ: n.newSRQ(verbs.SRQConfig{})}
	for i, c := range []verbs.QPConfig{plain, shared} {
		t.Logf("with an S-RQ: %v", i == 1)
		s := n.seat(c)
		s.opens(own.Buffer(), 0, mem)
		s.shuts(alien.Buffer(), 0, alien.Bytes(), noPD)
		s.judged(none.Buffer(), 0, none.Bytes(), verbs.LocalRead, noRight)
		s.shuts(own.Buffer(), 60, mem[56:61], noBounds) // 5 octets, of which 4 are there
		s.shuts(verbs.TaggedBuffer{STag: own.STag(), Base: 1<<64 - 4}, 0, mem[:8], noWrap)
		s.leave()

		// The rights of the queue pair: the peer's, and those of answers.
		c.NoInboundWrite = true
		s = n.seat(c)
		was := bytes.Clone(fill(mem, 1))
		require.Equal(t, was[:8], s.read(own.Remote(0), 8, taken))
		s.write(own.Remote(0), []byte("unwanted"), refusal{verbs.EventWriteNotEnabled, 0x1100})
		s.sink(own.SGE(0, 8), []byte("unwanted"), verbs.StatusSuccess, refusal{verbs.EventWriteNotEnabled, 0x1100})
		require.Equal(t, was, mem)
		s.leave()
		c.NoInboundWrite, c.NoInboundRead = false, true
		s = n.seat(c)
		s.writeUnanswered(own.Remote(0), []byte("welcome!"))
		s.read(own.Remote(0), 8, refusal{verbs.EventReadNotEnabled, 0x1201})
		require.Equal(t, "welcome!", string(mem[:8]))
		s.leave()
	}

	// An S-RQ of another PD: what a Send fills belongs to the S-RQ's, all else
	// to the queue pair's.
	s := n.seat(verbs.QPConfig{SRQ: n.newSRQ(verbs.SRQConfig{PD: foreign})})
	s.scatter(alien.SGL(0, 8), []byte("in S-RQ."), verbs.StatusSuccess)
	require.Equal(t, "in S-RQ.", string(alien.Bytes()[:8]))
	s.scatter(own.SGL(0, 8), []byte("unwanted"), verbs.StatusInvalidPD)
	s.gather(verbs.OpSend, own.SGL(0, 8), verbs.StatusSuccess)
	s.gather(verbs.OpWrite, own.SGL(0, 8), verbs.StatusSuccess)
	s.gather(verbs.OpSend, alien.SGL(0, 8), verbs.StatusInvalidPD)
	s.gather(verbs.OpWrite, alien.SGL(0, 8), verbs.StatusInvalidPD)
	s.peers(own.Buffer(), 0, mem[:8], remoteRights, denial{})
	s.peers(alien.Buffer(), 0, alien.Bytes()[:8], 0, noPD)
	s.leave()
}

// writeUnanswered has the peer write, on a queue pair that answers no Reads: a Send behind
// it tells that it is dealt with.
func (s *seat) writeUnanswered(at verbs.Remote, b []byte) {
	s.sit()
	s.tell(aWrite(uint32(at.STag), at.TO, b))
	s.scatter(nil, nil, verbs.StatusSuccess)
}

func toTheOctet(n *node) {
	t, s := n.t, n.seat(verbs.QPConfig{})
	mem := fill(make([]byte, 300), 1)
	mr := n.region(n.pd, verbs.RegionConfig{Memory: mem[100:200], Access: allRights, VA: 0x10000})
	b := mr.Buffer()
	for _, in := range [][2]int{{0, 1}, {99, 1}, {0, 100}, {1, 99}, {37, 50}} {
		s.opens(b, in[0], mem[100+in[0]:][:in[1]])
	}
	fill(mem, 1)
	for _, out := range [][2]int{{-1, 1}, {100, 1}, {0, 101}, {-1, 101}, {99, 2}, {-1, 2}, {1, 100}, {-100, 300}} {
		t.Logf("octets %d to %d of 100", out[0], out[0]+out[1]-1)
		s.shuts(b, out[0], mem[100+out[0]:][:out[1]], noBounds)
	}
	s.leave()
}

func noOctets(n *node) {
	t := n.t
	foreign := n.region(n.newPD(), verbs.RegionConfig{Memory: make([]byte, 8), Access: allRights})
	gone := n.register(8, allRights)
	require.NoError(t, gone.Deregister())
	invalid := must(n.pd.AllocateRegion(verbs.AllocateConfig{}))(t)
	bad := []verbs.TaggedBuffer{
		foreign.Buffer(), gone.Buffer(), invalid.Buffer(), {}, {STag: 0xFFFFFFFF, Base: 1<<64 - 1},
		{STag: n.mr.STag(), Base: n.mr.Base() - 5}, {STag: n.mr.STag() ^ 1, Base: n.mr.Base()},
		n.register(8, verbs.LocalWrite).Buffer(), n.register(8, verbs.LocalRead).Buffer(),
	}
	for _, c := range []verbs.QPConfig{{}, {SRQ: n.newSRQ(verbs.SRQConfig{})}} {
		s := n.seat(c)
		qp := s.qp
		for _, b := range bad {
			sge := b.SGE(0, 0)
			require.Equal(t, 8, len(s.gather(verbs.OpSend, []verbs.SGE{sge, n.mr.SGE(0, 8), sge}, verbs.StatusSuccess)))
			s.gather(verbs.OpSend, []verbs.SGE{sge}, verbs.StatusSuccess)
			s.gather(verbs.OpWrite, []verbs.SGE{sge}, verbs.StatusSuccess)
			s.scatter([]verbs.SGE{sge, n.mr.SGE(0, 8), sge}, []byte("received"), verbs.StatusSuccess)
			s.write(b.Remote(0), nil, taken)
			s.read(b.Remote(0), 0, taken)
			s.sink(sge, nil, verbs.StatusSuccess, taken)
		}
		require.Same(t, qp, s.qp, "the stream")
		s.leave()
	}
	// Also without rights on the queue pair for what the peer writes.
	s := n.seat(verbs.QPConfig{NoInboundWrite: true})
	s.write(verbs.Remote{STag: 0x00FACE01}, nil, taken)
	s.sink(verbs.SGE{STag: 0x00FACE01}, nil, verbs.StatusSuccess, taken)
	s.leave()
}

func regionAttributes(n *node) {
	t, s, p := n.t, n.seat(privileged), n.pages(3, 4096)
	const rights = verbs.LocalRead | verbs.LocalWrite | verbs.RemoteWrite | verbs.BindWindow
	tells := func(what string, mr *verbs.MR, want verbs.RegionAttributes) {
		got := queried(t, mr)
		require.GreaterOrEqual(t, got.PBL, want.PBL, "%s: the list size", what)
		want.PBL = got.PBL
		if !got.Valid {
			want.Access = got.Access // meaningless
			require.Equal(t, mr.STag().Index(), got.STag.Index(), what)
			want.STag = got.STag
		}
		require.Equal(t, want, got, what)
	}
	pd := n.newPD()
	there := n.seat(verbs.QPConfig{PD: pd, Privileged: true})
	mr := must(pd.AllocateRegion(verbs.AllocateConfig{PBL: 5, RemoteAccess: true, RemoteInvalidate: true}))(t)
	tells("allocated", mr, verbs.RegionAttributes{PD: pd.ID(), RemoteAccess: true, PBL: 5, RemoteInvalidate: true})
	there.does(fastRegister(mr.WithKey(7), p.List(100, 5000), 0x7000+100, rights), verbs.StatusSuccess)
	want := verbs.RegionAttributes{
		STag: mr.WithKey(7), Valid: true, PD: pd.ID(), RemoteAccess: true, PBL: 5, RemoteInvalidate: true,
		Access: rights, Base: 0x7000 + 100, Length: 5000,
	}
	tells("fast-registered", mr, want)
	mw := must(pd.AllocateWindow())(t)
	there.does(binds(&verbs.BindRequest{Window: mw.STag(1), Region: mr.WithKey(7), VA: 0x7000 + 100, Length: 8, Access: verbs.RemoteRead}), verbs.StatusSuccess)
	want.Windows = 1
	tells("with a window", mr, want)
	there.invalidate(ways[0], mw.STag(1), invalidates)
	there.invalidate(ways[0], mr.WithKey(7), invalidates)
	tells("invalidated", mr, verbs.RegionAttributes{PD: pd.ID(), RemoteAccess: true, PBL: 5, RemoteInvalidate: true})
	there.leave()

	mr = n.region(n.pd, verbs.RegionConfig{Buffers: p.List(0, 3*4096), Access: verbs.LocalWrite, ZeroBased: true, Key: 0xFE, QP: s.qp})
	want = verbs.RegionAttributes{
		STag: mr.WithKey(0xFE), Valid: true, PD: n.pd.ID(), PBL: 3, Access: verbs.LocalWrite,
		Addressing: verbs.ZeroBased, Length: 3 * 4096, QP: s.qp.ID(), RemoteInvalidate: true,
	}
	tells("registered", mr, want)
	shared := must(mr.RegisterShared(pd, verbs.SharedConfig{Access: verbs.LocalRead, RemoteAccess: true, ZeroBased: true, Key: 3}))(t)
	want.Shared = true
	tells("shared", mr, want)
	tells("shared with it", shared, verbs.RegionAttributes{
		STag: shared.WithKey(3), Valid: true, Shared: true, PD: pd.ID(), RemoteAccess: true, PBL: 3, Access: verbs.LocalRead,
		Addressing: verbs.ZeroBased, Length: 3 * 4096,
	})
	require.NoError(t, mr.Deregister())
	require.ErrorIs(t, second(mr.Query()), verbs.ErrInvalidSTag)
	closed := newNode(t, nodeConfig{})
	require.NoError(t, closed.nic.Close())
	require.ErrorIs(t, second(closed.mr.Query()), verbs.ErrInvalidRNIC)
	s.leave()
}

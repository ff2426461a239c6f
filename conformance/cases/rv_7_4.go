package cases

import (
	"bytes"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// rv7_4 is the rights of regions: verbs draft 7.4 to 7.5.
var rv7_4 = []conformance.Case{
	apiCase("7.4/each-octet", onProbe(verbs.QPConfig{}, eachOctet), "RV-7.4-M2"),
	apiCase("7.4/changing-rights", onProbe(privileged, changingRights), "RV-7.4-M3"),
	apiCase("7.4/remote-access-flag", onProbe(privileged, remoteAccessFlag), "RV-7.4-M4", "RV-7.4-M5", "RV-7.4-M6"),
	apiCase("7.4/all-32-bits", onProbe(verbs.QPConfig{}, all32Bits), "RV-7.4-M7"),
	apiCase("7.4.1/no-local-right", onProbe(privileged, noLocalRight), "RV-7.4.1-M2"),
	apiCase("7.4.1/sources", onProbe(verbs.QPConfig{}, sourcesNeedLocalRead), "RV-7.4.1-M3", "RV-7.5.1-M1"),
	apiCase("7.4.1/receives", onQuietHost(receivesNeedLocalWrite), "RV-7.4.1-M4", "RV-7.5.1-M2"),
	apiCase("7.4.1/remote-rights-do-not-count", onProbe(verbs.QPConfig{}, remoteDoesNotCount), "RV-7.4.1-M6"),
	apiCase("7.4.2/figure-18", onProbe(privileged, exactlyFigure18), "RV-7.4.2-M1", "RV-7.4.2-M2", "RV-7.4.2-M8"),
	apiCase("7.4.2/peer", onProbe(verbs.QPConfig{}, peerNeedsRights), "RV-7.4.2-M3", "RV-7.4.2-M4", "RV-7.4.2-M5", "RV-7.5.2-M1", "RV-7.5.2-M2"),
	apiCase("7.4.2/peer-only", onProbe(verbs.QPConfig{}, remoteIsForPeersOnly), "RV-7.4.2-M6", "RV-7.4.2-M7"),
}

func eachOctet(n *host, s *probe) {
	t, mem := n.t, make([]byte, 1000)
	yes := n.region(n.pd, verbs.RegionConfig{Memory: mem, Access: allRights})
	read := n.region(n.pd, verbs.RegionConfig{Memory: mem, Access: verbs.LocalRead | verbs.RemoteRead})
	write := n.region(n.pd, verbs.RegionConfig{Memory: mem, Access: verbs.LocalWrite | verbs.RemoteWrite})
	ranges := [][2]int{{0, 1}, {999, 1}, {0, 1000}}
	for range 5 {
		off := t.Rand().IntN(1000)
		ranges = append(ranges, [2]int{off, 1 + t.Rand().IntN(1000-off)})
	}
	for _, r := range ranges {
		t.Logf("%d octets from %d", r[1], r[0])
		part := mem[r[0] : r[0]+r[1]]
		s.allAllowed(yes.Buffer(), r[0], part)
		s.checks(read.Buffer(), r[0], part, verbs.LocalRead|verbs.RemoteRead, noRight)
		s.checks(write.Buffer(), r[0], part, verbs.LocalWrite|verbs.RemoteWrite, noRight)
	}
}

func changingRights(n *host, s *probe) {
	t, p := n.t, n.pages(1, 4096)
	const local = verbs.LocalRead | verbs.LocalWrite
	mr := n.region(n.pd, verbs.RegionConfig{Memory: make([]byte, 64), Access: local, Key: 1})
	closed := func(b verbs.TaggedBuffer, what string) {
		n.t.Logf("closed to the peer after %s", what)
		s.checksPeer(b, 0, mr.Bytes()[:8], 0, noRight)
	}
	closed(mr.Buffer(), "Register")

	// Fast-Register cannot open it.
	s.invalidate(invalidations[0], mr.STag(), invalidates)
	s.runs(fastRegister(mr.WithKey(1), p.List(0, 64), 4096, allRights), verbs.StatusInvalidAccessRights)
	r := fastRegister(mr.WithKey(1), p.List(0, 64), 4096, local)
	s.runs(r, verbs.StatusSuccess)
	closed(verbs.FastRegisterBuffer(r.FastRegister), "Fast-Register")

	// Nor can sharing: another STag gets the rights, not this one.
	opened := must(mr.RegisterShared(nil, verbs.SharedConfig{Access: allRights, Existing: mr.WithKey(1), Key: 2}))(t)
	s.checksPeer(opened.Buffer(), 0, p.Bytes()[:8], remoteRights, accessFault{})
	closed(verbs.FastRegisterBuffer(r.FastRegister), "Register Shared")
	require.Equal(t, local, queried(t, mr).Access)

	// Reregister does, and Deallocate with a new registration.
	other := n.register(64, local)
	require.NoError(t, other.Reregister(nil, verbs.RegionConfig{Memory: other.Bytes(), Access: allRights}))
	s.checksPeer(other.Buffer(), 0, other.Bytes()[:8], remoteRights, accessFault{})
	mem := mr.Bytes()
	require.NoError(t, mr.Deregister())
	again := n.region(n.pd, verbs.RegionConfig{Memory: mem, Access: allRights})
	s.checksPeer(again.Buffer(), 0, mem[:8], remoteRights, accessFault{})
}

func remoteAccessFlag(n *host, s *probe) {
	t, p := n.t, n.pages(1, 4096)
	mem := make([]byte, 64)
	for _, flag := range []bool{false, true} {
		c := verbs.RegionConfig{Memory: mem, Access: verbs.LocalRead, RemoteAccess: flag}
		allocated := must(n.pd.AllocateRegion(verbs.AllocateConfig{RemoteAccess: flag}))(t)
		registered, again := n.region(n.pd, c), n.register(8, allRights)
		require.NoError(t, again.Reregister(nil, c))
		for i, mr := range []*verbs.MR{allocated, registered, again} {
			require.Equal(t, flag, queried(t, mr).RemoteAccess, "the flag of STag %d", i)
			if i > 0 {
				s.invalidate(invalidations[0], mr.STag(), invalidates)
			}
			s.flagged(mr, p, flag)
			require.Equal(t, flag, queried(t, mr).RemoteAccess, "it stays")
		}
	}
	// Remote rights go with the flag.
	for _, a := range validRights {
		mr := n.region(n.pd, verbs.RegionConfig{Memory: mem, Access: a, RemoteAccess: true})
		require.Equal(t, a, queried(t, mr).Access, "Register with the flag")
		info := queried(t, n.region(n.pd, verbs.RegionConfig{Memory: mem, Access: a}))
		require.False(t, info.Access&remoteRights != 0 && !info.RemoteAccess, "remote rights without the flag: %+v", info)
	}
}

func all32Bits(n *host, s *probe) {
	mr := n.register(64, allRights)
	for bit := range 32 {
		b := mr.Buffer()
		b.STag ^= 1 << bit
		if b.STag.Index() == n.mr.STag().Index() {
			continue
		}
		s.noneAllowed(b, 8, mr.Bytes()[8:40], noSTag)
	}
	s.allAllowed(mr.Buffer(), 8, mr.Bytes()[8:40])
}

func noLocalRight(n *host, s *probe) {
	t, p, mr := n.t, n.pages(1, 4096), n.allocated()
	for _, a := range []verbs.Access{0, verbs.RemoteRead, verbs.RemoteWrite, remoteRights, verbs.BindWindow} {
		assert.ErrorIs(t, second(n.pd.RegisterRegion(verbs.RegionConfig{Memory: make([]byte, 8), Access: a})), verbs.ErrInvalidAccess, "Register with %v", a)
		assert.ErrorIs(t, second(n.mr.RegisterShared(nil, verbs.SharedConfig{Access: a})), verbs.ErrInvalidAccess, "Register Shared with %v", a)
		assert.ErrorIs(t, n.register(8, allRights).Reregister(nil, verbs.RegionConfig{Memory: make([]byte, 8), Access: a}), verbs.ErrInvalidAccess, "Reregister with %v", a)
		s.runs(fastRegister(mr.WithKey(1), p.List(0, 8), 4096, a), verbs.StatusInvalidAccessRights)
		require.False(t, queried(t, mr).Valid)
	}
	require.False(t, queried(t, n.mr).Shared)
}

func sourcesNeedLocalRead(n *host, s *probe) {
	t := n.t
	yes, no := n.register(64, verbs.LocalRead), n.register(64, verbs.LocalWrite|verbs.RemoteWrite)
	fill(yes.Bytes(), 1)
	for _, op := range []verbs.Op{verbs.OpSend, verbs.OpSendSE, verbs.OpSendInvalidate, verbs.OpSendSEInvalidate, verbs.OpWrite} {
		sgl := []verbs.SGE{yes.SGE(0, 5), yes.SGE(5, 6), yes.SGE(20, 7), yes.SGE(40, 8)}
		want := append(append(bytes.Clone(yes.Bytes()[:11]), yes.Bytes()[20:27]...), yes.Bytes()[40:48]...)
		require.Equal(t, want, s.gather(op, sgl, verbs.StatusSuccess), "what %v sent", op)
		for i := range sgl {
			bad := append([]verbs.SGE(nil), sgl...)
			bad[i] = no.SGE(0, 5)
			s.gather(op, bad, verbs.StatusAccess)
		}
	}
}

func receivesNeedLocalWrite(n *host) {
	t := n.t
	for _, c := range []verbs.QPConfig{{}, {SRQ: n.newSRQ(verbs.SRQConfig{})}} {
		s := n.probe(c)
		yes, no := n.register(64, verbs.LocalWrite), n.register(64, verbs.LocalRead|verbs.RemoteRead)
		sgl := []verbs.SGE{yes.SGE(0, 5), yes.SGE(5, 6), yes.SGE(20, 7), yes.SGE(40, 8)}
		sent := fill(make([]byte, 26), 1)
		s.scatter(sgl, sent, verbs.StatusSuccess)
		want := make([]byte, 64)
		copy(want, sent[:11])
		copy(want[20:], sent[11:18])
		copy(want[40:], sent[18:])
		require.Equal(t, want, yes.Bytes(), "the memory")
		for i := range sgl {
			bad := append([]verbs.SGE(nil), sgl...)
			bad[i] = no.SGE(0, int(sgl[i].Length))
			s.scatter(bad, sent, verbs.StatusAccess)
			require.Equal(t, make([]byte, 64), no.Bytes(), "element %d", i)
		}
		// An element that is not filled is not looked at.
		s.scatter([]verbs.SGE{yes.SGE(0, 26), no.SGE(0, 5)}, sent, verbs.StatusSuccess)
		s.disconnect()
	}
}

func remoteDoesNotCount(n *host, s *probe) {
	for _, c := range []struct {
		access        verbs.Access
		send, receive verbs.Status
	}{
		{verbs.LocalWrite | verbs.RemoteWrite, verbs.StatusAccess, verbs.StatusSuccess},
		{verbs.LocalRead | verbs.RemoteRead, verbs.StatusSuccess, verbs.StatusAccess},
		{verbs.LocalRead, verbs.StatusSuccess, verbs.StatusAccess},
		{verbs.LocalWrite, verbs.StatusAccess, verbs.StatusSuccess},
		{verbs.LocalRead | verbs.LocalWrite, verbs.StatusSuccess, verbs.StatusSuccess},
		{allRights, verbs.StatusSuccess, verbs.StatusSuccess},
	} {
		mr := n.register(64, c.access)
		n.t.Logf("elements of a region with %v", c.access)
		s.gather(verbs.OpSend, mr.SGL(0, 9), c.send)
		s.gather(verbs.OpWrite, mr.SGL(0, 9), c.send)
		s.scatter(mr.SGL(0, 9), []byte("received."), c.receive)
	}
}

// exactlyFigure18 goes through all 16 combinations by each of the four ways to
// set rights.
func exactlyFigure18(n *host, s *probe) {
	t, p := n.t, n.pages(1, 4096)
	valid := map[verbs.Access]bool{}
	for _, a := range validRights {
		valid[a] = true
	}
	require.Len(t, valid, 8)
	fast := n.allocated()
	for a := verbs.Access(0); a <= allRights; a++ {
		var want error
		if !valid[a] {
			want = verbs.ErrInvalidAccess
		}
		mem := make([]byte, 8)
		mr, err := n.pd.RegisterRegion(verbs.RegionConfig{Memory: mem, Access: a, RemoteAccess: true})
		require.ErrorIs(t, err, want, "Register with %v", a)
		if want == nil {
			require.Equal(t, a, queried(t, mr).Access)
		}
		again := n.register(8, allRights)
		require.ErrorIs(t, again.Reregister(nil, verbs.RegionConfig{Memory: mem, Access: a, RemoteAccess: true}), want, "Reregister with %v", a)
		shared, err := n.mr.RegisterShared(nil, verbs.SharedConfig{Access: a, RemoteAccess: true})
		require.ErrorIs(t, err, want, "Register Shared with %v", a)
		r := fastRegister(fast.WithKey(uint8(a)), p.List(0, 8), 4096, a)
		if want != nil {
			require.Nil(t, shared)
			s.runs(r, verbs.StatusInvalidAccessRights)
			continue
		}
		require.Equal(t, a, queried(t, again).Access)
		require.Equal(t, a, queried(t, shared).Access)
		s.runs(r, verbs.StatusSuccess)
		require.Equal(t, a, queried(t, fast).Access)
		s.invalidate(invalidations[0], r.FastRegister.STag, invalidates)
	}
	const local = verbs.LocalRead | verbs.LocalWrite
	for _, x := range []struct {
		access verbs.Access
		want   error
	}{ // beyond the figure: the right to Atomics needs both local ones, and there is none besides
		{verbs.RemoteAtomic | local, nil},
		{verbs.RemoteAtomic | verbs.LocalRead, verbs.ErrInvalidAccess},
		{verbs.RemoteAtomic | verbs.LocalWrite, verbs.ErrInvalidAccess},
		{verbs.RemoteAtomic, verbs.ErrInvalidAccess},
		{local | verbs.RemoteAtomic<<1, verbs.ErrInvalidAccess},
		{local | 1<<7, verbs.ErrInvalidAccess},
	} {
		_, err := n.pd.RegisterRegion(verbs.RegionConfig{Memory: make([]byte, 8), Access: x.access, RemoteAccess: true})
		require.ErrorIs(t, err, x.want, "Register with %#x", x.access)
	}
}

func peerNeedsRights(n *host, s *probe) {
	t, mem := n.t, fill(make([]byte, 64), 1)
	over := func(a verbs.Access) *verbs.MR { return n.region(n.pd, verbs.RegionConfig{Memory: mem, Access: a}) }
	const local = verbs.LocalRead | verbs.LocalWrite

	was := bytes.Clone(mem)
	s.write(over(local|verbs.RemoteRead).Remote(0), []byte("unwanted"), noRight.write)
	require.Equal(t, was, mem, "after a refused Write")
	s.write(over(verbs.LocalWrite|verbs.RemoteWrite).Remote(0), []byte("welcome!"), allowed)
	require.Equal(t, "welcome!", string(mem[:8]))

	s.read(over(local|verbs.RemoteWrite).Remote(0), 8, noRight.read)
	require.Equal(t, "welcome!", string(s.read(over(verbs.LocalRead|verbs.RemoteRead).Remote(0), 8, allowed)))

	// The rights on the sink of a Read are those of the answer: the request
	// goes out.
	s.sink(over(local|verbs.RemoteRead).SGE(0, 8), []byte("unwanted"), verbs.StatusAccess, peerFault{code: 0x1100})
	require.Equal(t, "welcome!", string(mem[:8]), "after a refused answer")
	s.sink(over(verbs.LocalWrite|verbs.RemoteWrite).SGE(0, 8), []byte("answered"), verbs.StatusSuccess, allowed)
	require.Equal(t, "answered", string(mem[:8]))
}

func remoteIsForPeersOnly(n *host, s *probe) {
	const local = verbs.LocalRead | verbs.LocalWrite
	for _, remote := range []verbs.Access{0, verbs.RemoteRead, verbs.RemoteWrite, remoteRights} {
		mr := n.register(64, local|remote|verbs.BindWindow)
		s.checks(mr.Buffer(), 4, mr.Bytes()[4:20], local|remote, noRight)

		mw := n.newMW()
		b := mw.BindRequest(mr, 4, 16, remoteRights, 1)
		s.connect()
		s.runs(binds(b), verbs.StatusSuccess)
		s.checksPeer(verbs.BindBuffer(b), 0, mr.Bytes()[4:20], remoteRights, accessFault{})
		s.invalidate(invalidations[0], b.Window, invalidates)

		for _, w := range invalidations {
			want := either(w.remote && remote == 0, hasNoRemoteUse, invalidates)
			over := n.register(64, local|remote)
			s.invalidate(w, over.STag(), want)
			require.Equal(n.t, want != invalidates, queried(n.t, over).Valid, "%s with %v", w.name, remote)
			s.connect()
		}
	}
}

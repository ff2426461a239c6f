package cases

import (
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/stag"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wr"
)

// rv7_10 is allocating and binding windows: verbs draft 7.10.1 to 7.10.3.
var rv7_10 = []conformance.Case{
	apiCase("7.10.1/allocated", onProbe(verbs.QPConfig{}, windowAllocated), "RV-7.10.1-M1", "PV-7.10.1-M1"),
	apiCase("7.10.1/not-a-region", onQuietHost(windowIsNoRegion), "RV-7.10.1-M2"),
	apiCase("7.10.2/kinds-of-region", onProbe(privileged, windowOnEachRegion), "RV-7.10.2-M1", "RV-7.10.2-M2", "RV-7.10.2-M12"),
	apiCase("7.10.2/all-to-one-region", allToOneRegion, "RV-7.10.2-M3"),
	apiCase("7.10.2/all-to-one-qp", allToOneQP, "RV-7.10.2-M4"),
	apiCase("7.10.2/addressing", onQuietHost(windowAddressing), "RV-7.10.2-M10", "RV-7.10.2-M11", "RV-7.10.2-M18", "RV-7.10.2-M19"),
	apiCase("7.10.2/bound", onQuietHost(windowBound), "RV-7.10.2-M14", "RV-7.10.2-M15", "RV-7.10.2-M17", "RV-7.10.2-M20"),
	apiCase("7.10.2/rebind", onProbe(verbs.QPConfig{}, windowRebound), "RV-7.10.2-M30", "RV-7.10.2-M31", "RV-7.10.2-M32"),
	apiCase("7.10.2/former-key", onQuietHost(windowFormerKey), "RV-7.10.2-M33"),
	apiCase("7.10.3/attributes", onQuietHost(windowAttributes), "RV-7.10.3-M1"),
}

// bound is a new window on octets of the host's region, bound through a new probe,
// and how it is named.
func (n *host) bound(c verbs.QPConfig, off, k int, a verbs.Access) (*probe, *verbs.MW, verbs.TaggedBuffer) {
	s, mw := n.probe(c), n.newMW()
	b := s.binds(mw.BindRequest(n.mr, off, k, a, 0x61))
	return s, mw, verbs.BindBuffer(b)
}

func windowAllocated(n *host, s *probe) {
	t, mw := n.t, n.newMW()
	require.Equal(t, verbs.WindowAttributes{STag: mw.STag(0), PD: n.pd.ID()}, queried(t, mw), "Query of a new window")
	for _, key := range []uint8{0, 1, 0x80, 0xFF} {
		b := verbs.TaggedBuffer{STag: mw.STag(key), Base: n.mr.Base()}
		s.checksPeer(b, 0, n.mr.Bytes()[:16], 0, noSTag)
		b.Base = 0
		s.checksPeer(b, 0, n.mr.Bytes()[:16], 0, noSTag)
	}
}

func windowIsNoRegion(n *host) {
	t, s, p := n.t, n.probe(privileged), n.pages(1, 4096)
	mw := n.newMW()
	was := queried(t, mw)
	s.runs(fastRegister(mw.STag(1), p.List(0, 8), 4096, allRights), verbs.StatusInvalidSTag)
	require.Equal(t, was, queried(t, mw))
	s.disconnect()

	// The handle of a window has no such verbs; the index has.
	table := stag.NewTable(stag.Config{})
	defer table.Close()
	st := must(table.AllocateWindow(1))(t)
	assert.ErrorIs(t, second(table.Reregister(st, stag.RegionConfig{PD: 1, Memory: make([]byte, 8), Access: wr.LocalRead})), wr.ErrInvalidSTag, "Reregister")
	assert.ErrorIs(t, second(table.RegisterShared(st, stag.SharedConfig{PD: 1, Access: wr.LocalRead})), wr.ErrInvalidSTag, "Register Shared")
	assert.ErrorIs(t, second(table.QueryRegion(st)), wr.ErrInvalidSTag, "Query Memory Region")
	require.Equal(t, stag.WindowInfo{STag: st, PD: 1}, must(table.QueryWindow(st))(t), "the window")
}

func windowOnEachRegion(n *host, s *probe) {
	t, p := n.t, n.pages(1, 4096)
	const rights = allRights | verbs.BindWindow
	registered, fast := n.register(64, rights), n.allocated()
	s.runs(fastRegister(fast.WithKey(1), p.List(0, 64), 4096, rights), verbs.StatusSuccess)
	original := n.register(64, rights)
	shared := must(original.RegisterShared(nil, verbs.SharedConfig{Access: rights, VA: original.Base() + 1<<40, Key: 2}))(t)
	for _, r := range []struct {
		name string
		b    verbs.TaggedBuffer
		mem  []byte
	}{
		{"registered", registered.Buffer(), registered.Bytes()},
		{"fast-registered", verbs.TaggedBuffer{STag: fast.WithKey(1), Base: 4096}, p.Bytes()},
		{"the original of a Shared one", original.Buffer(), original.Bytes()},
		{"a Shared one", shared.Buffer(), original.Bytes()},
	} {
		for _, a := range []verbs.Addressing{verbs.VABased, verbs.ZeroBased} {
			t.Logf("%s, window %v", r.name, a)
			mw := n.newMW()
			b := &verbs.BindRequest{Window: mw.STag(3), Region: r.b.STag, VA: r.b.Base + 8, Length: 20, Access: remoteRights, Addressing: a}
			s.runs(binds(b), verbs.StatusSuccess)
			s.checksPeer(verbs.BindBuffer(b), 0, r.mem[8:28], remoteRights, accessFault{})
			s.invalidate(invalidations[0], b.Window, invalidates)
		}
	}
}

func allToOneRegion(t *conformance.T) {
	n := newHost(t, hostConfig{RNIC: verbs.Config{Limits: verbs.Limits{Windows: 100}}})
	seats := []*probe{n.probe(verbs.QPConfig{}), n.probe(verbs.QPConfig{})}
	mem := n.mr.Bytes()
	var all []verbs.TaggedBuffer
	for i := range 100 {
		mw := n.newMW()
		b := seats[i%2].binds(mw.BindRequest(n.mr, 10*i, 10, remoteRights, uint8(i)))
		all = append(all, verbs.BindBuffer(b))
	}
	require.ErrorIs(t, second(n.pd.AllocateWindow()), verbs.ErrInsufficientResources)
	require.Equal(t, 100, queried(t, n.mr).Windows)
	for i, b := range all {
		seats[i%2].checksPeer(b, 0, mem[10*i:10*i+10], remoteRights, accessFault{})
	}
	n.quiet()
}

func allToOneQP(t *conformance.T) {
	n := newHost(t, hostConfig{RNIC: verbs.Config{Limits: verbs.Limits{Windows: 100}}})
	s := n.probe(verbs.QPConfig{})
	var windows []*verbs.MW
	for i := range 100 {
		mr, mw := n.register(32, allRights|verbs.BindWindow), n.newMW()
		b := s.binds(mw.BindRequest(mr, 1, 30, remoteRights, uint8(i)))
		s.checksPeer(verbs.BindBuffer(b), 0, mr.Bytes()[1:31], remoteRights, accessFault{})
		windows = append(windows, mw)
	}
	for i, mw := range windows {
		require.ErrorIs(t, s.qp.Destroy(), verbs.ErrWindowsBound, "with %d windows", 100-i)
		info := queried(t, mw)
		require.True(t, info.Valid)
		require.Equal(t, s.qp.ID(), info.QP)
		s.invalidate(invalidations[0], mw.STag(uint8(i)), invalidates)
	}
	s.disconnect()
	n.quiet()
}

func windowAddressing(n *host) {
	t, mem := n.t, n.mr.Bytes()
	for _, a := range []verbs.Addressing{verbs.ZeroBased, verbs.VABased} {
		s, mw := n.probe(verbs.QPConfig{}), n.newMW()
		bind := mw.BindRequest(n.mr, 100, 50, remoteRights, 1)
		bind.Addressing = a
		s.runs(binds(bind), verbs.StatusSuccess)
		info := queried(t, mw)
		require.Equal(t, a, info.Addressing)
		at := func(to uint64) verbs.Remote { return verbs.Remote{STag: bind.Window, TO: to} }
		base, other := uint64(0), n.mr.Base()+100
		if a == verbs.VABased {
			base, other = other, base
		}
		require.Equal(t, base, info.Base)
		clear(mem)
		s.write(at(base), []byte{1}, allowed)
		s.write(at(base+49), []byte{2}, allowed)
		require.Equal(t, []byte{0, 1, 0}, mem[99:102], "%v: around its first octet", a)
		require.Equal(t, []byte{0, 2, 0}, mem[148:151], "%v: around its last octet", a)
		require.Equal(t, mem[100:150], s.read(at(base), 50, allowed))
		require.NoError(t, mw.Deallocate())
		for _, out := range []uint64{base - 1, base + 50, other} {
			s, mw = n.probe(verbs.QPConfig{}), n.newMW()
			bind.Window = mw.STag(1)
			s.runs(binds(bind), verbs.StatusSuccess)
			s.write(at(out), []byte{3}, noBounds.write)
			require.NoError(t, mw.Deallocate())
		}
		s.disconnect()
	}
}

func windowBound(n *host) {
	t := n.t
	for _, key := range []uint8{0, 1, 255} {
		s, x, mw := n.probe(verbs.QPConfig{}), n.probe(verbs.QPConfig{}), n.newMW()
		mr := n.register(64, allRights|verbs.BindWindow)
		require.False(t, queried(t, mw).Valid, "before")
		bind := s.binds(mw.BindRequest(mr, 8, 32, remoteRights, key))
		info := queried(t, mw)
		require.True(t, info.Valid, "after")
		require.Equal(t, mw.STag(key), info.STag, "its key")
		require.Equal(t, mr.STag(), info.Region, "its region")
		require.Equal(t, s.qp.ID(), info.QP, "its queue pair")
		require.ErrorIs(t, mr.Deregister(), verbs.ErrWindowsBound)
		require.ErrorIs(t, s.qp.Destroy(), verbs.ErrWindowsBound)
		b := verbs.BindBuffer(bind)
		s.checksPeer(b, 0, mr.Bytes()[8:40], remoteRights, accessFault{})
		x.checksPeer(b, 0, mr.Bytes()[8:40], 0, noPD)
		s.connect()
		b.STag ^= 0x40
		s.write(b.Remote(0), []byte{1}, noSTag.write) // by another key
		succeed(t, mw.Deallocate, mr.Deregister)
		x.disconnect()
	}
}

func windowRebound(n *host, s *probe) {
	t, mw, mem := n.t, n.newMW(), n.mr.Bytes()
	index := mw.STag(0).Index()
	var former verbs.TaggedBuffer
	for i := range 300 {
		b := s.binds(mw.BindRequest(n.mr, i, 40, remoteRights, uint8(i)))
		info := queried(t, mw)
		require.Equal(t, uint8(i), info.STag.Key(), "the key of Bind %d", i)
		require.Equal(t, index, info.STag.Index(), "the index after Bind %d", i)
		require.Equal(t, index, mw.STag(0).Index())
		s.write(verbs.BindBuffer(b).Remote(0), []byte{byte(i), 0xC3}, allowed)
		require.Equal(t, []byte{byte(i), 0xC3}, mem[i:i+2])
		if i < 299 {
			s.invalidate(invalidations[0], b.Window, invalidates)
		}
		if i == 298 {
			former = verbs.BindBuffer(b)
		}
	}
	s.write(former.Remote(5), []byte{1}, noSTag.write)
	require.NoError(t, mw.Deallocate())

	// A bound window cannot be bound, with this key or another.
	for _, key := range []uint8{0x61, 0x62} {
		s, mw, b := n.bound(verbs.QPConfig{}, 10, 20, remoteRights)
		was := queried(t, mw)
		s.runs(binds(mw.BindRequest(n.mr, 50, 20, remoteRights, key)), verbs.StatusSTagNotInvalid)
		require.Equal(t, was, queried(t, mw), "the former binding")
		s.checksPeer(b, 0, mem[10:20], 0, noPD) // that of a queue pair that has ended
		require.NoError(t, mw.Deallocate())
		s.disconnect()
	}
	s, mw, b := n.bound(verbs.QPConfig{}, 10, 20, remoteRights)
	again := mw.BindRequest(n.mr, 50, 20, remoteRights, 0x62)
	post(t, s.qp, verbs.Request{ID: 1, Op: verbs.OpInvalidate, Invalidate: b.STag}, verbs.Request{ID: 2, Op: verbs.OpBind, Bind: again})
	completes(t, n.cq, verbs.Completion{ID: 1, QP: s.qp.ID(), Op: verbs.OpInvalidate}, verbs.Completion{ID: 2, QP: s.qp.ID(), Op: verbs.OpBind})
	s.checksPeer(verbs.BindBuffer(again), 0, mem[50:70], remoteRights, accessFault{})
	s.invalidate(invalidations[0], again.Window, invalidates)
}

func windowFormerKey(n *host) {
	t := n.t
	for _, write := range []bool{true, false} {
		s, mw, b := n.bound(verbs.QPConfig{}, 0, 64, remoteRights)
		s.flood(b, n.mr.Bytes()[:64], write, func() {
			post(t, s.qp, verbs.Request{ID: 1, Op: verbs.OpInvalidate, Invalidate: b.STag}, verbs.Request{ID: 2, Op: verbs.OpBind, Bind: mw.BindRequest(n.mr, 0, 64, remoteRights, 0x62)})
			completes(t, n.cq, verbs.Completion{ID: 1, QP: s.qp.ID(), Op: verbs.OpInvalidate}, verbs.Completion{ID: 2, QP: s.qp.ID(), Op: verbs.OpBind})
		})
		require.Equal(t, mw.STag(0x62), queried(t, mw).STag, "the window with its new key")
		require.NoError(t, mw.Deallocate())
	}
}

func windowAttributes(n *host) {
	t, pd := n.t, n.newPD()
	mw := must(pd.AllocateWindow())(t)
	fresh := verbs.WindowAttributes{STag: mw.STag(0), PD: pd.ID()}
	require.Equal(t, fresh, queried(t, mw), "new")
	mr := n.region(pd, verbs.RegionConfig{Memory: make([]byte, 64), Access: allRights | verbs.BindWindow})
	s := n.probe(verbs.QPConfig{PD: pd})
	for i, a := range []verbs.Access{verbs.RemoteRead, verbs.RemoteWrite, remoteRights} {
		b := s.binds(mw.BindRequest(mr, 8, 30, a, uint8(i+5)))
		require.Equal(t, verbs.WindowAttributes{
			STag: mw.STag(uint8(i + 5)), Valid: true, PD: pd.ID(), QP: s.qp.ID(), Access: a,
			Base: mr.Base() + 8, Length: 30, Region: mr.STag(),
		}, queried(t, mw), "bound")
		s.invalidate(invalidations[0], b.Window, invalidates)
		require.Equal(t, fresh, queried(t, mw), "invalidated")
	}
	s.disconnect()
	require.NoError(t, mw.Deallocate())
	require.ErrorIs(t, second(mw.Query()), verbs.ErrInvalidSTag)
	closed := newHost(t, hostConfig{})
	mw = closed.newMW()
	require.NoError(t, closed.nic.Close())
	require.ErrorIs(t, second(mw.Query()), verbs.ErrInvalidRNIC)
}

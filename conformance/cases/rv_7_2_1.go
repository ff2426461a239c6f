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

// rv7_2_1 is the STag of zero: verbs draft 7.2.1.
var rv7_2_1 = []conformance.Case{
	apiCase("7.2.1/local", onQuietHost(zeroLocally), "RV-7.2.1-M1", "RV-7.2.1-M9"),
	apiCase("7.2.1/no-pd", onQuietHost(zeroHasNoPD), "RV-7.2.1-M4"),
	apiCase("7.2.1/privileged-only", onQuietHost(zeroIsPrivileged), "RV-7.2.1-M5", "RV-7.2.1-M6"),
	apiCase("7.2.1/not-remotely", onQuietHost(zeroNotRemotely), "RV-7.2.1-M7", "RV-7.2.1-M8"),
	apiCase("7.2.1/not-invalidated", onQuietHost(zeroNotInvalidated), "RV-7.2.1-M12", "RV-7.2.1-M13", "RV-7.2.1-M14", "RV-7.8-M12"),
	apiCase("7.2.1/no-key", onQuietHost(zeroHasNoKey), "RV-7.2.1-M3"),
	apiCase("7.2.1/not-bound-to", onQuietHost(zeroNotBoundTo), "RV-7.2.1-M10", "RV-7.2.1-M11", "RV-7.10.2-M5"),
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

func zeroLocally(n *host) {
	s, p := n.probe(privileged), n.pages(3, 4096)
	for _, off := range []int{0, 1, 4095, 4096 - 45, 8192, 3*4096 - 90} {
		s.zeroWorks(p, off)
	}
	require.Equal(n.t, p.Address(0)+2*4096, p.Address(2), "buffers one after the other")
	s.disconnect()
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

func zeroNotInvalidated(n *host) {
	t, s, p := n.t, n.probe(privileged), n.pages(1, 4096)
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
	s.disconnect()
}

func zeroHasNoKey(n *host) {
	s, p := n.probe(privileged), n.pages(1, 4096)
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
	s.disconnect()
}

func zeroNotBoundTo(n *host) {
	s, mw, p := n.probe(privileged), n.newMW(), n.pages(1, 4096)
	for _, key := range []verbs.STag{0, 1, 0xFF} {
		k, err := s.qp.PostSend(binds(&verbs.BindRequest{Window: mw.STag(1), Region: key, VA: p.Address(0), Length: 8, Access: remoteRights}))
		require.ErrorIs(n.t, err, verbs.ErrInvalidModifier, "Bind to %v", key)
		require.Zero(n.t, k)
		require.False(n.t, queried(n.t, mw).Valid, "the window")
	}
	require.Equal(n.t, verbs.StateRTS, s.qp.State(), "nothing was posted")
	s.disconnect()
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

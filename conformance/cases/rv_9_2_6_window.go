package cases

import (
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// rv9_2_6_window is allocating and querying Memory Windows: verbs draft 9.2.6.7 and
// 9.2.6.8.
var rv9_2_6_window = []conformance.Case{
	apiCase("9.2.6.7/results", allocateWindowResults, "RV-9.2.6.7-M1"),
	apiCase("9.2.6.7/modifiers", onNode(allocateWindowModifiers), "RV-9.2.6.7-M2"),
	apiCase("9.2.6.8/results", inWorld(queryWindowResults), "RV-9.2.6.8-M1"),
	apiCase("9.2.6.8/modifiers", inWorld(queryWindowModifiers), "RV-9.2.6.8-M2"),
}

func allocateWindowResults(t *conformance.T) {
	n := newNode(t, nodeConfig{RNIC: verbs.Config{Limits: verbs.Limits{Windows: 3}}})
	dead := n.deadPD()
	require.ErrorIs(t, second(dead.AllocateWindow()), verbs.ErrInvalidPD)
	for range 3 {
		n.newMW()
	}
	refuses(t, "a fourth window", verbs.ErrInsufficientResources, func() error { return second(n.pd.AllocateWindow()) }, queries(n.nic.Query))
	require.NoError(t, n.nic.Close())
	require.ErrorIs(t, second(n.pd.AllocateWindow()), verbs.ErrInvalidRNIC)
}

func allocateWindowModifiers(t *conformance.T, n *node) {
	other := n.newPD()
	mw := must(other.AllocateWindow())(t)
	q := must(mw.Query())(t)
	assert.Equal(t, verbs.WindowAttributes{STag: verbs.MakeSTag(mw.STag(0).Index(), 0), PD: other.ID()}, q)
	require.ErrorIs(t, other.Deallocate(), verbs.ErrPDInUse)
	n.remotely(verbs.Remote{STag: mw.STag(0)}, 0x1100, 0x0100)
	n.remotely(verbs.Remote{STag: mw.STag(1), TO: n.mr.Base()}, 0x1100, 0x0100)
	under := n.region(other, verbs.RegionConfig{Memory: make([]byte, 64), Access: allRights | verbs.BindWindow})
	for _, c := range []struct {
		pd   *verbs.PD
		want verbs.Status
	}{{n.pd, verbs.StatusInvalidPD}, {other, verbs.StatusSuccess}} {
		qp := n.newQP(verbs.QPConfig{PD: c.pd})
		rawPeer(t, qp, asInitiator)
		run(t, qp, verbs.Request{ID: 1, Op: verbs.OpBind, Bind: mw.BindRequest(under, 0, 64, remoteRights, 1)}, c.want)
	}
}

func queryWindowResults(t *conformance.T, w *world) {
	n := w.a
	mw := n.newMW()
	require.NoError(t, second(mw.Query()), "unbound")
	run(t, n.qp, verbs.Request{Op: verbs.OpBind, Bind: mw.BindRequest(n.mr, 0, 64, remoteRights, 1)}, verbs.StatusSuccess)
	require.NoError(t, second(mw.Query()), "bound")
	run(t, n.qp, verbs.Request{Op: verbs.OpInvalidate, Invalidate: mw.STag(1)}, verbs.StatusSuccess)
	require.NoError(t, second(mw.Query()), "invalidated")
	last := n.newMW()
	require.NoError(t, mw.Deallocate())
	require.ErrorIs(t, second(mw.Query()), verbs.ErrInvalidSTag)
	require.NoError(t, n.nic.Close())
	require.ErrorIs(t, second(mw.Query()), verbs.ErrInvalidRNIC)
	require.ErrorIs(t, second(last.Query()), verbs.ErrInvalidRNIC)
}

func queryWindowModifiers(t *conformance.T, w *world) {
	n := w.a
	mw, other := n.newMW(), n.newMW()
	invalid := verbs.WindowAttributes{STag: mw.STag(0), PD: n.pd.ID()}
	shows := func(mw *verbs.MW, want verbs.WindowAttributes) {
		require.Equal(t, want, must(mw.Query())(t))
	}
	for i, access := range []verbs.Access{verbs.RemoteRead, verbs.RemoteWrite, remoteRights} {
		key := uint8(100 + i)
		run(t, n.qp, verbs.Request{Op: verbs.OpBind, Bind: mw.BindRequest(n.mr, 8, 100+i, access, key)}, verbs.StatusSuccess)
		shows(mw, verbs.WindowAttributes{
			STag: verbs.MakeSTag(mw.STag(0).Index(), key), Valid: true, PD: n.pd.ID(), QP: n.qp.ID(), Access: access,
			Base: n.mr.Base() + 8, Length: uint64(100 + i), Region: n.mr.STag(),
		})
		shows(other, verbs.WindowAttributes{STag: other.STag(0), PD: n.pd.ID()})
		run(t, n.qp, verbs.Request{Op: verbs.OpInvalidate, Invalidate: mw.STag(key)}, verbs.StatusSuccess)
		shows(mw, invalid)
	}
}

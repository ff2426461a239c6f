package verbs_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// TestWindowRefusals: the results of Allocate Memory Window (9.2.6.7), and of
// Deallocate STag, which a bound window does not stop (7.10.4).
func TestWindowRefusals(t *testing.T) {
	refuse(t, verbs.Config{}, []refusal{
		{
			"all in use", verbs.ErrInsufficientResources,
			func(w *world) { require.NoError(w.t, second(w.pd.AllocateWindow())) },
			func(w *world) error { return second(w.pd.AllocateWindow()) },
		},
	})
	w := newWorld(t, verbs.Config{})
	w.bind()
	require.NoError(t, w.mw.Deallocate())
	require.NoError(t, w.mr.Deregister(), "nothing is bound to it any more")
	require.NoError(t, w.qp.Destroy())
}

// TestWindow takes one through its states (7.10.5), with Query in each.
func TestWindow(t *testing.T) {
	w := newWorld(t, verbs.Config{})
	invalid := verbs.WindowAttributes{STag: w.mw.STag(0), PD: w.pd.ID()}
	check := func(want verbs.WindowAttributes) {
		t.Helper()
		got, err := w.mw.Query()
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	check(invalid)
	w.connect()
	b := w.mw.BindRequest(w.mr, 100, 50, verbs.RemoteWrite, 9)
	assert.Equal(t, w.mw.STag(9), b.Window)
	require.Equal(t, verbs.StatusSuccess, w.run(verbs.Request{Op: verbs.OpBind, Bind: b}).Status)
	valid := verbs.WindowAttributes{
		STag: w.mw.STag(9), Valid: true, PD: w.pd.ID(), QP: w.qp.ID(), Access: verbs.RemoteWrite,
		Base: w.mr.Base() + 100, Length: 50, Region: w.mr.STag(),
	}
	check(valid)
	window := verbs.BindBuffer(b)
	w.peer.mr.Bytes()[0] = 0x5A
	require.NoError(t, second(w.qp.PostRecv(verbs.Recv{})))
	_, err := w.peer.qp.PostSend(
		verbs.Request{Op: verbs.OpWrite, SGL: w.peer.mr.SGL(0, 1), Remote: window.Remote(49)},
		verbs.Request{Op: verbs.OpSendInvalidate, Invalidate: window.STag})
	require.NoError(t, err)
	c := waitOne(t, w.cq)
	assert.Equal(t, []any{verbs.StatusSuccess, true, window.STag}, []any{c.Status, c.HasInvalidated, c.Invalidated})
	assert.EqualValues(t, 0x5A, w.mr.Bytes()[149])
	check(invalid)

	zero := w.mw.BindRequest(w.mr, 0, 8192, verbs.RemoteRead, 1)
	zero.Addressing = verbs.ZeroBased
	require.Equal(t, verbs.StatusSuccess, w.run(verbs.Request{Op: verbs.OpBind, Bind: zero}).Status)
	assert.Equal(t, verbs.TaggedBuffer{STag: w.mw.STag(1)}, verbs.BindBuffer(zero))
	w.peer.wait(t, 2)
	require.NoError(t, second(w.peer.qp.PostSend(verbs.Request{
		Op: verbs.OpRead, Local: w.peer.mr.SGE(8, 1), Remote: verbs.BindBuffer(zero).Remote(149),
	})))
	w.peer.wait(t, 1)
	assert.EqualValues(t, 0x5A, w.peer.mr.Bytes()[8])
}

// TestWindowOfAnotherQP: what a window opens is open to one queue pair's peer
// only (RV-7.10.6.2-M2).
func TestWindowOfAnotherQP(t *testing.T) {
	w := newWorld(t, verbs.Config{})
	w.bind()
	stranger := newNode(t, verbs.QPConfig{})
	join(t, stranger.qp, w.sharing, false)
	remote := verbs.Remote{STag: w.mw.STag(7), TO: w.mr.Base()}
	require.NoError(t, second(stranger.qp.PostSend(verbs.Request{Op: verbs.OpWrite, SGL: stranger.mr.SGL(0, 1), Remote: remote})))
	<-w.sharing.Done()
	assert.Equal(t, verbs.StateError, w.sharing.State())
	require.NoError(t, second(w.peer.qp.PostSend(verbs.Request{Op: verbs.OpWrite, SGL: w.peer.mr.SGL(0, 1), Remote: remote})))
	w.peer.wait(t, 1)
}

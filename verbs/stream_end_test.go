package verbs_test

import (
	"io"
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/verbs"
)

// TestStreamEndsItselfAlone: what is asked of a stream that is over does not reach the
// queue pair's next one.
func TestStreamEndsItselfAlone(t *testing.T) {
	a, b := newNode(t, verbs.QPConfig{}), newNode(t, verbs.QPConfig{})
	none := a.qp.LLPStream()
	require.NoError(t, none.Drain(t.Context()))
	require.ErrorIs(t, none.Close(), verbs.ErrInvalidState)
	join(t, a.qp, b.qp, false)
	require.ErrorIs(t, none.Reset(), verbs.ErrInvalidState)

	first, there := a.qp.LLPStream(), b.qp.LLPStream()
	require.NoError(t, first.Drain(t.Context()))
	require.NoError(t, first.Reset())
	require.Error(t, first.Err())
	<-there.Done()
	for _, q := range []*verbs.QP{a.qp, b.qp} {
		require.NoError(t, q.Modify(verbs.ModifyQP{Next: verbs.StateIdle}))
	}
	join(t, a.qp, b.qp, false)
	require.NoError(t, first.Drain(t.Context()))
	require.ErrorIs(t, first.Close(), verbs.ErrInvalidState)
	require.ErrorIs(t, first.Reset(), verbs.ErrInvalidState)
	require.Equal(t, verbs.StateRTS, a.qp.State())

	second := a.qp.LLPStream()
	require.NoError(t, second.Close())
	<-second.Done()
	require.NoError(t, second.Err())
	require.Equal(t, verbs.StateIdle, a.qp.State())
}

// TestPeerResetIsTold, as what it is, in RTS and in Closing.
func TestPeerResetIsTold(t *testing.T) {
	for _, closing := range []bool{false, true} {
		a := newNode(t, verbs.QPConfig{})
		x, y := tcpConns(t)
		start(t, a.qp, x, mpa.Initiator, false)
		l := a.qp.LLPStream()
		if closing {
			require.NoError(t, l.Close())
			_, err := io.Copy(io.Discard, y) // until its close has come
			require.NoError(t, err)
		}
		require.NoError(t, y.(*net.TCPConn).SetLinger(0))
		require.NoError(t, y.Close())
		<-l.Done()
		require.ErrorIs(t, l.Err(), syscall.ECONNRESET)
		require.NotErrorIs(t, l.Err(), net.ErrClosed)
		require.ErrorContains(t, l.Err(), "reset by the peer")
	}
}

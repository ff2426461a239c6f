package nd2_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/nd2"
)

// Each parameter of CreateQueuePair one beyond its limit, and below.
func TestScenarioTooDeepQueuePair(t *testing.T) {
	s := newSide(t, shape{})
	i := s.a.Query()
	for want, p := range map[nd2.Status][5]int{
		nd2.ErrInvalidParameter5: {i.MaxReceiveQueueDepth + 1, 1, 1, 1, 0},
		nd2.ErrInvalidParameter6: {1, i.MaxInitiatorQueueDepth + 1, 1, 1, 0},
		nd2.ErrInvalidParameter7: {1, 1, i.MaxReceiveSge + 1, 1, 0},
		nd2.ErrInvalidParameter8: {1, 1, 1, i.MaxInitiatorSge + 1, 0},
		nd2.ErrInvalidParameter9: {1, 1, 1, 1, i.MaxInlineDataSize + 1},
	} {
		_, err := s.a.CreateQueuePair(s.in, s.out, nil, p[0], p[1], p[2], p[3], p[4])
		require.ErrorIs(t, err, want)
		for k := range p {
			if p[k] > 1 {
				p[k] = -1
			}
		}
		_, err = s.a.CreateQueuePair(s.in, s.out, nil, p[0], p[1], p[2], p[3], p[4])
		require.ErrorIs(t, err, want)
	}
	other := newSide(t, shape{})
	_, err := s.a.CreateQueuePair(nil, s.out, nil, 1, 1, 1, 1, 0)
	require.ErrorIs(t, err, nd2.ErrInvalidParameter2)
	_, err = s.a.CreateQueuePair(s.in, other.out, nil, 1, 1, 1, 1, 0)
	require.ErrorIs(t, err, nd2.ErrInvalidParameter3)
	_, err = s.a.CreateCompletionQueue(i.MaxCompletionQueueDepth + 1)
	require.ErrorIs(t, err, nd2.ErrInvalidParameter3)
	_, err = s.a.CreateCompletionQueue(0)
	require.ErrorIs(t, err, nd2.ErrInvalidParameter3)
}

// All parameters at their limits: the queue pair works, to its last place.
func TestScenarioQueuePairAtAllMaxima(t *testing.T) {
	s, peer := newSide(t, shape{}), newSide(t, shape{depth: 8})
	i := s.a.Query()
	var err error
	s.in, err = s.a.CreateCompletionQueue(i.MaxReceiveQueueDepth)
	require.NoError(t, err)
	s.out, err = s.a.CreateCompletionQueue(i.MaxInitiatorQueueDepth)
	require.NoError(t, err)
	s.qp, err = s.a.CreateQueuePair(s.in, s.out, s, i.MaxReceiveQueueDepth, i.MaxInitiatorQueueDepth,
		i.MaxReceiveSge, i.MaxInitiatorSge, i.MaxInlineDataSize)
	require.NoError(t, err)
	join(t, s, peer, i.MaxInboundReadLimit)
	list := make([]nd2.SGE, i.MaxInitiatorSge)
	for k := range list {
		list[k] = s.sge(k, 1)[0]
	}
	for k := range i.MaxReceiveQueueDepth {
		require.NoError(t, s.qp.Receive(k, list))
	}
	require.ErrorIs(t, s.qp.Receive(0, list), nd2.ErrNoMoreEntries)
	for k := range i.MaxInitiatorQueueDepth {
		require.NoError(t, s.qp.Read(k, list[:i.MaxReadSge], peer.at(0), peer.mr.GetRemoteToken(), nd2.OpFlagReadFence))
	}
	require.ErrorIs(t, s.qp.Read(0, nil, 0, 0, 0), nd2.ErrNoMoreEntries)
	require.NoError(t, s.qp.Close())
	for k := range i.MaxInitiatorQueueDepth { // of two work requests each, none is lost
		r := wait(t, s.out)
		require.Equal(t, k, r.RequestContext)
		require.Contains(t, []nd2.Status{nd2.Success, nd2.ErrCanceled}, r.Status)
	}
	for k := range i.MaxReceiveQueueDepth {
		s.done(k, nd2.RequestTypeReceive, nd2.ErrCanceled)
	}
	s.none()
}

// Receives before any connection; a flush cancels them, and one notification tells,
// though it is asked for afterwards. The queue pair can still be connected.
func TestScenarioFlushReceives(t *testing.T) {
	s, peer := newSide(t, shape{}), newSide(t, shape{})
	require.NoError(t, s.qp.Receive(1, nil))
	require.NoError(t, s.qp.Receive(2, nil))
	require.NoError(t, s.qp.Flush())
	require.NoError(t, s.in.Notify(bounded(t), nd2.CQNotifyAny))
	var r [3]nd2.Result
	require.Equal(t, 2, s.in.GetResults(r[:]))
	for i, r := range r[:2] {
		require.Equal(t, nd2.ErrCanceled, r.Status)
		require.Equal(t, i+1, r.RequestContext)
	}
	again := nd2.Overlap(t.Context(), func(ctx context.Context) error { return s.in.Notify(ctx, nd2.CQNotifyAny) })
	require.ErrorIs(t, again.GetOverlappedResult(false), nd2.Pending)
	require.NoError(t, again.CancelOverlappedRequests())
	require.ErrorIs(t, again.GetOverlappedResult(false), nd2.ErrCanceled)
	join(t, s, peer, 1)
	sync(peer, s)
}

// A flush of a connection cancels this queue pair's requests and no other's on the
// same completion queues (ND-Flush-M1, M4), and ends the connection.
func TestScenarioFlushConnected(t *testing.T) {
	a, b := pair(t, shape{})
	neighbour, err := a.a.CreateQueuePair(a.in, a.out, "neighbour", 4, 4, 1, 1, 0)
	require.NoError(t, err)
	require.NoError(t, neighbour.Receive("neighbour", nil))
	sync(a, b)
	require.NoError(t, b.qp.Receive("last", b.sge(0, 64)))
	require.NoError(t, a.qp.Send(0, a.sge(0, 64), nd2.OpFlagSilentSuccess))
	for i := range 3 {
		require.NoError(t, a.qp.Receive(i, nil))
	}
	require.NoError(t, a.qp.Flush())
	for i := range 3 {
		a.done(i, nd2.RequestTypeReceive, nd2.ErrCanceled)
	}
	require.ErrorIs(t, a.qp.Send(1, nil, 0), nd2.ErrConnectionInvalid)
	b.done("last", nd2.RequestTypeReceive, nd2.Success) // what was sent arrives
	a.gone()
	b.gone()
	require.NoError(t, a.qp.Flush(), "there is nothing to cancel")
	require.NoError(t, a.conn.Disconnect(bounded(t)))
	a.none()
	require.NoError(t, neighbour.Close())
	require.Equal(t, "neighbour", wait(t, a.in).RequestContext)
}

// A Send that finds no Receive ends the connection (ND-Receive-M2). The sender's
// result is that the network took it, which it did.
func TestScenarioSendWithNoReceive(t *testing.T) {
	a, b := pair(t, shape{})
	require.NoError(t, a.qp.Receive(1, nil))
	require.NoError(t, a.qp.Send(2, a.sge(0, 64), 0))
	a.done(2, nd2.RequestTypeSend, nd2.Success)
	a.done(1, nd2.RequestTypeReceive, nd2.ErrCanceled)
	a.gone()
	b.gone()
	b.none()
}

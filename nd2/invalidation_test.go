package nd2_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/nd2"
	"github.com/softrnic/softrnic/verbs"
)

// TestTokenIsNotTakenAway: NetworkDirect has no Send with Invalidate, but a peer need
// not be one of its programs. Such a Send ends that peer's connection, and the region
// goes on to serve the others.
func TestTokenIsNotTakenAway(t *testing.T) {
	b := newSide(t, shape{})
	l, addr := b.listen()

	nic, err := verbs.Open(verbs.Config{})
	require.NoError(t, err)
	defer nic.Close()
	pd, err := nic.AllocatePD()
	require.NoError(t, err)
	cq, err := nic.CreateCQ(verbs.CQConfig{Entries: 16})
	require.NoError(t, err)
	hostile, err := nic.CreateQP(verbs.QPConfig{PD: pd, SendCQ: cq, RecvCQ: cq, CloseTimeout: time.Minute})
	require.NoError(t, err)
	accepted := nd2.Overlap(bounded(t), func(ctx context.Context) error {
		if err := l.GetConnectionRequest(ctx, b.conn); err != nil {
			return err
		}
		return b.conn.Accept(ctx, b.qp, 4, 4, nil)
	})
	conn, err := cm.Dial(bounded(t), addr.String(), hostile, cm.Config{})
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, accepted.GetOverlappedResult(true))
	require.NoError(t, b.qp.Receive("victim", nil))
	_, err = hostile.PostSend(verbs.Request{Op: verbs.OpSendInvalidate, Invalidate: verbs.STag(b.mr.GetRemoteToken())})
	require.NoError(t, err)
	require.NotEqual(t, nd2.Success, wait(t, b.in).Status)
	b.gone()

	honest := newSide(t, shape{})
	next, err := b.a.CreateQueuePair(b.in, b.out, b, 4, 4, 4, 4, 0)
	require.NoError(t, err)
	c, err := b.a.CreateConnector()
	require.NoError(t, err)
	accepted = nd2.Overlap(bounded(t), func(ctx context.Context) error {
		if err := l.GetConnectionRequest(ctx, c); err != nil {
			return err
		}
		return c.Accept(ctx, next, 4, 4, nil)
	})
	require.NoError(t, honest.conn.Connect(bounded(t), honest.qp, addr, 4, 4, nil))
	require.NoError(t, honest.conn.CompleteConnect(bounded(t)))
	require.NoError(t, accepted.GetOverlappedResult(true))
	require.NoError(t, honest.qp.Read("read", honest.sge(0, 8), b.at(0), b.mr.GetRemoteToken(), 0))
	honest.done("read", nd2.RequestTypeRead, nd2.Success)
}

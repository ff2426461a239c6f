package nd2_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/lab/fault"
	"github.com/softrnic/softrnic/nd2"
)

// stuck makes a connection whose stream has come to a stop: a has sent more than the
// network takes, and b, whose shared receive queue is empty, does not read on.
func stuck(t *testing.T) (a, b *side) {
	a, b = newSide(t, shape{bufBytes: 32 << 20}), newSide(t, shape{bufBytes: 32 << 20, srq: true})
	join(t, a, b, 4)
	require.NoError(t, a.qp.Send("big", a.sge(0, 32<<20), 0))
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	require.Error(t, a.qp.Verbs().Drain(ctx), "the peer waits, and is not gone")
	return a, b
}

// A Send that finds the shared receive queue empty waits, and those behind it; octets
// given inline are those of the call.
func TestEmptySharedReceiveQueueHoldsThePeer(t *testing.T) {
	a, b := stuck(t)
	word := make([]byte, 4)
	for i := range 6 {
		word[0] = byte('a' + i)
		require.NoError(t, a.qp.Send(i, []nd2.SGE{{Buffer: word}}, nd2.OpFlagInline))
	}
	require.NoError(t, b.srq.Receive("big", b.sge(0, 32<<20)))
	for i := range 6 {
		require.NoError(t, b.srq.Receive(i, b.sge(4*i, 4)))
	}
	b.done("big", nd2.RequestTypeReceive, nd2.Success)
	a.done("big", nd2.RequestTypeSend, nd2.Success)
	for i := range 6 {
		b.done(i, nd2.RequestTypeReceive, nd2.Success)
		a.done(i, nd2.RequestTypeSend, nd2.Success)
		require.Equal(t, byte('a'+i), b.buf[4*i])
	}
}

// ND-Bind-M2: while an Invalidate has not happened, another queue pair cannot bind.
func TestInvalidateUnderWay(t *testing.T) {
	a, b := newSide(t, shape{bufBytes: 32 << 20}), newSide(t, shape{srq: true})
	join(t, a, b, 1)
	w := a.window(0, 64, nd2.OpFlagAllowRead)
	first, peer := a.qp, newSide(t, shape{})
	require.NoError(t, first.Send("big", a.sge(0, 32<<20), 0))
	require.NoError(t, first.Invalidate("invalidate", w, 0))
	require.ErrorIs(t, first.Invalidate("invalidate", w, 0), nd2.ErrInvalidDeviceRequest)
	var err error
	a.qp, err = a.a.CreateQueuePair(a.in, a.out, a, 4, 4, 1, 1, 0)
	require.NoError(t, err)
	a.conn, err = a.a.CreateConnector()
	require.NoError(t, err)
	join(t, a, peer, 1)
	require.ErrorIs(t, a.qp.Bind(1, a.mr, w, a.buf[:64], nd2.OpFlagAllowRead), nd2.ErrInvalidDeviceState)
	fault.Provoke(b.srq.Verbs()) // ends the first connection
	a.done("big", nd2.RequestTypeSend, nd2.ErrCanceled)
	a.done("invalidate", nd2.RequestTypeInvalidate, nd2.ErrCanceled)
	require.NoError(t, a.qp.Bind(1, a.mr, w, a.buf[:64], nd2.OpFlagAllowRead))
	a.done(1, nd2.RequestTypeBind, nd2.Success)
}

// What was sent before a Flush arrives, however late the peer reads it.
func TestFlushLosesNothingSent(t *testing.T) {
	const n = 256 << 10 // more than the peer takes in before there is a Receive, and less than TCP does
	a, b := newSide(t, shape{bufBytes: n}), newSide(t, shape{srq: true, bufBytes: n})
	join(t, a, b, 1)
	a.buf[n-1] = 77
	require.NoError(t, a.qp.Send(1, a.sge(0, n), 0))
	a.done(1, nd2.RequestTypeSend, nd2.Success)
	require.NoError(t, a.qp.Flush())
	require.NoError(t, b.srq.Receive(2, b.sge(0, n)))
	b.done(2, nd2.RequestTypeReceive, nd2.Success)
	require.Equal(t, byte(77), b.buf[n-1])
	a.gone()
	b.gone()
}

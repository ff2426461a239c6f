package nd2_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/nd2"
)

// Messages and requests of no octets, with a nil list and with empty entries.
func TestZeroBytes(t *testing.T) {
	a, b := pair(t, shape{})
	for _, list := range [][]nd2.SGE{nil, {{}}, {{}, {Buffer: a.buf[:0], MemoryRegionToken: 99}}} {
		require.NoError(t, b.qp.Receive(1, list))
		require.NoError(t, a.qp.Send(2, list, 0))
		a.done(2, nd2.RequestTypeSend, nd2.Success)
		require.Zero(t, b.done(1, nd2.RequestTypeReceive, nd2.Success).BytesTransferred)
		require.NoError(t, a.qp.Write(3, list, 0, 0, 0))
		a.done(3, nd2.RequestTypeWrite, nd2.Success)
		require.NoError(t, a.qp.Read(4, list, 0, 0, 0))
		a.done(4, nd2.RequestTypeRead, nd2.Success)
	}
	a.none()
	b.none()
}

// ND-Read-M1: header and payload of one read, in entries of several regions, in order;
// empty ones do not matter. Limits on Reads of 1 let them go one after the other.
func TestReadOfSeveralEntries(t *testing.T) {
	a, b := newSide(t, shape{sge: 8, depth: 2}), newSide(t, shape{})
	join(t, a, b, 1)
	other, err := a.a.CreateMemoryRegion()
	require.NoError(t, err)
	elsewhere := make([]byte, 5000)
	require.NoError(t, other.Register(elsewhere, nd2.MRFlagRDMAReadSink))
	for i := range b.buf {
		b.buf[i] = byte(i * 7)
	}
	list := []nd2.SGE{
		a.sge(10, 20)[0], {Buffer: elsewhere, MemoryRegionToken: other.GetLocalToken()},
		{}, a.sge(100, 1)[0], a.sge(200, 3000)[0],
	}
	for range 3 {
		for range 2 {
			require.NoError(t, a.qp.Read("read", list, b.at(17), b.mr.GetRemoteToken(), 0))
		}
		require.ErrorIs(t, a.qp.Read("read", nil, 0, 0, 0), nd2.ErrNoMoreEntries)
		for range 2 {
			a.done("read", nd2.RequestTypeRead, nd2.Success)
		}
		a.none()
		got := bytes.Join([][]byte{a.buf[10:30], elsewhere, a.buf[100:101], a.buf[200:3200]}, nil)
		require.Equal(t, b.buf[17:17+len(got)], got)
	}
	require.Equal(t, byte(0), a.buf[30])
}

// ND-Bind-M1, M6: the token can be sent before the Bind has a result, and works when it
// arrives. It differs from one Bind to the next, so that an old one opens nothing.
func TestTokenRightAfterBind(t *testing.T) {
	a, b := pair(t, shape{})
	w, err := b.a.CreateMemoryWindow()
	require.NoError(t, err)
	require.Zero(t, w.GetRemoteToken())
	var last uint32
	for i := range 5 {
		require.NoError(t, b.qp.Bind("bind", b.mr, w, b.buf[:64], nd2.OpFlagAllowRead))
		token := w.GetRemoteToken()
		require.NotEqual(t, last, token)
		last = token
		require.NoError(t, a.qp.Receive("token", nil))
		require.NoError(t, b.qp.Send("send", nil, nd2.OpFlagSilentSuccess))
		a.done("token", nd2.RequestTypeReceive, nd2.Success)
		b.buf[0] = byte(i + 1)
		require.NoError(t, a.qp.Read("read", a.sge(0, 1), b.at(0), token, 0))
		a.done("read", nd2.RequestTypeRead, nd2.Success)
		require.Equal(t, byte(i+1), a.buf[0])
		require.NoError(t, b.qp.Invalidate("invalidate", w, 0))
		b.done("bind", nd2.RequestTypeBind, nd2.Success)
		b.done("invalidate", nd2.RequestTypeInvalidate, nd2.Success)
	}
	require.NoError(t, w.Close())
	require.ErrorIs(t, w.Close(), nd2.ErrInvalidHandle)
}

// ND-Bind-M2, M3: one queue pair at a time; another after an Invalidate, or when the
// connection, which alone could invalidate, is gone.
func TestWindowMovesBetweenQueuePairs(t *testing.T) {
	a, b := pair(t, shape{})
	second := newSide(t, shape{})
	qp2, err := b.a.CreateQueuePair(b.in, b.out, b, 4, 4, 1, 1, 0)
	require.NoError(t, err)
	first := b.qp
	w := b.window(0, 64, nd2.OpFlagAllowRead)
	b.qp = qp2
	b.conn, err = b.a.CreateConnector()
	require.NoError(t, err)
	join(t, second, b, 1)
	bind := func(qp *nd2.QueuePair) error { return qp.Bind(1, b.mr, w, b.buf[:64], nd2.OpFlagAllowRead) }
	require.ErrorIs(t, bind(qp2), nd2.ErrInvalidDeviceState)
	require.ErrorIs(t, qp2.Invalidate(1, w, 0), nd2.ErrInvalidDeviceRequest)
	require.NoError(t, first.Invalidate(2, w, 0))
	b.done(2, nd2.RequestTypeInvalidate, nd2.Success)
	require.NoError(t, bind(qp2))
	b.done(1, nd2.RequestTypeBind, nd2.Success)
	require.NoError(t, b.conn.Disconnect(bounded(t)))
	second.gone()
	require.ErrorIs(t, b.mr.Deregister(), nd2.ErrDeviceBusy)
	require.NoError(t, bind(first))
	b.done(1, nd2.RequestTypeBind, nd2.Success)
	require.NoError(t, a.qp.Read(1, a.sge(0, 64), b.at(0), w.GetRemoteToken(), 0))
	a.done(1, nd2.RequestTypeRead, nd2.Success)
	require.NoError(t, first.Close(), "with the window bound")
	require.NoError(t, b.mr.Deregister(), "it is not any more")
}

// ND-Receive-M4: too long a message is ND_BUFFER_OVERFLOW at the receiver, of which the
// sender, whose Send the network has taken, learns by the end of the connection.
func TestSendLongerThanReceive(t *testing.T) {
	a, b := pair(t, shape{})
	for i := range b.buf {
		b.buf[i] = 0xEE
	}
	require.NoError(t, b.qp.Receive(1, []nd2.SGE{b.sge(0, 10)[0], b.sge(20, 10)[0]}))
	require.NoError(t, b.qp.Receive(2, b.sge(100, 100)))
	require.NoError(t, a.qp.Receive(3, nil))
	require.NoError(t, a.qp.Send(4, a.sge(0, 21), 0))
	a.done(4, nd2.RequestTypeSend, nd2.Success)
	b.done(1, nd2.RequestTypeReceive, nd2.ErrBufferOverflow)
	b.done(2, nd2.RequestTypeReceive, nd2.ErrCanceled) // ND-Receive-M8
	a.done(3, nd2.RequestTypeReceive, nd2.ErrCanceled)
	a.gone()
	b.gone()
	assert.Equal(t, bytes.Repeat([]byte{0xEE}, 10), b.buf[10:20], "between the entries")
	assert.Equal(t, bytes.Repeat([]byte{0xEE}, 70), b.buf[30:100], "behind them")
}

// ND-Flush-M2: Disconnect cancels what is outstanding on both sides; what was sent
// before arrives.
func TestDisconnectFlushes(t *testing.T) {
	a, b := pair(t, shape{})
	require.NoError(t, b.qp.Receive(1, b.sge(0, 64)))
	for i := range 3 {
		require.NoError(t, a.qp.Receive(i, nil))
		require.NoError(t, b.qp.Receive(10+i, nil))
	}
	copy(a.buf, "farewell")
	require.NoError(t, a.qp.Send(2, a.sge(0, 8), nd2.OpFlagSilentSuccess))
	require.NoError(t, a.conn.Disconnect(bounded(t)))
	b.done(1, nd2.RequestTypeReceive, nd2.Success)
	require.Equal(t, "farewell", string(b.buf[:8]))
	for i := range 3 {
		a.done(i, nd2.RequestTypeReceive, nd2.ErrCanceled)
		b.done(10+i, nd2.RequestTypeReceive, nd2.ErrCanceled)
	}
	require.ErrorIs(t, a.conn.Disconnect(bounded(t)), nd2.ErrConnectionInvalid)
	a.none()
}

// A peer that does not take what is sent: Disconnect cancels it.
func TestDisconnectCancelsWhatIsStuck(t *testing.T) {
	impatient := nd2.Provider{CM: cm.Config{CloseTimeout: 50 * time.Millisecond}}
	a, b := newSide(t, shape{bufBytes: 64 << 20, provider: impatient}), newSide(t, shape{srq: true})
	join(t, a, b, 1)
	require.NoError(t, a.qp.Send(1, a.sge(0, 64<<20), 0)) // the shared receive queue is empty: it waits
	require.NoError(t, a.qp.Send(2, nil, nd2.OpFlagSilentSuccess))
	require.NoError(t, a.conn.Disconnect(bounded(t)))
	a.done(1, nd2.RequestTypeSend, nd2.ErrCanceled)
	a.done(2, nd2.RequestTypeSend, nd2.ErrCanceled)
	a.none()
}

// Results of a queue pair can be retrieved after its release, with its context; its
// number is not given to another before.
func TestResultsAfterRelease(t *testing.T) {
	for _, srq := range []bool{false, true} {
		a, b := newSide(t, shape{}), newSide(t, shape{srq: srq})
		join(t, a, b, 1)
		receive := b.qp.Receive
		if srq {
			receive = b.srq.Receive
		}
		require.NoError(t, receive("received", nil))
		require.NoError(t, a.qp.Send(1, nil, 0))
		a.done(1, nd2.RequestTypeSend, nd2.Success)
		require.NoError(t, b.qp.Send("sent", nil, 0)) // a has no Receive: it ends
		a.gone()
		b.gone()
		require.NoError(t, b.qp.Close())
		require.ErrorIs(t, b.qp.Close(), nd2.ErrInvalidHandle)
		require.ErrorIs(t, b.qp.Send(1, nil, 0), nd2.ErrConnectionInvalid)
		var others []*nd2.QueuePair
		for i := range 4 {
			qp, err := b.a.CreateQueuePair(b.in, b.out, i, 1, 1, 1, 1, 0)
			require.NoError(t, err)
			require.NoError(t, qp.Receive(i, nil))
			others = append(others, qp)
		}
		b.done("received", nd2.RequestTypeReceive, nd2.Success)
		b.done("sent", nd2.RequestTypeSend, nd2.Success)
		b.none()
		for i, qp := range others {
			require.NoError(t, qp.Close())
			r := wait(t, b.in)
			require.Equal(t, i, r.RequestContext)
			require.Equal(t, i, r.QueuePairContext)
			require.ErrorIs(t, qp.Receive(1, nil), nd2.ErrInvalidHandle)
		}
	}
}

// Closing a connected queue pair disconnects it in order.
func TestCloseDisconnects(t *testing.T) {
	a, b := pair(t, shape{})
	require.NoError(t, b.qp.Receive(1, b.sge(0, 64)))
	require.NoError(t, a.qp.Send(1, a.sge(0, 64), nd2.OpFlagSilentSuccess))
	require.NoError(t, a.qp.Close())
	b.done(1, nd2.RequestTypeReceive, nd2.Success)
	b.gone()
	require.NoError(t, a.in.Close())
	require.NoError(t, a.out.Close())
	require.ErrorIs(t, b.in.Close(), nd2.ErrDeviceBusy)
	_, err := a.in.Wait(bounded(t), make([]nd2.Result, 1))
	require.ErrorIs(t, err, nd2.ErrCanceled)
	require.ErrorIs(t, a.in.Notify(bounded(t), nd2.CQNotifyAny), nd2.ErrCanceled)
}

// Who waits for the end of a connection need not for that of its connector.
func TestCloseEndsNotifyDisconnect(t *testing.T) {
	a, _ := pair(t, shape{})
	ov := nd2.Overlap(t.Context(), a.conn.NotifyDisconnect)
	require.ErrorIs(t, ov.GetOverlappedResult(false), nd2.Pending)
	require.NoError(t, a.conn.Close())
	select {
	case <-ov.Done():
	case <-bounded(t).Done():
		require.Fail(t, "it waits on")
	}
	require.ErrorIs(t, ov.GetOverlappedResult(true), nd2.ErrCanceled)
}

// Either side may send first (peer-to-peer mode of MPA).
func TestAcceptingSideSendsFirst(t *testing.T) {
	a, b := pair(t, shape{})
	sync(b, a)
	local, err := a.conn.GetLocalAddress()
	require.NoError(t, err)
	peer, err := b.conn.GetPeerAddress()
	require.NoError(t, err)
	assert.Equal(t, local, peer)
}

// Overlapped operations can be canceled, and are pending until then.
func TestOverlapped(t *testing.T) {
	a, b := pair(t, shape{})
	for name, f := range map[string]func(context.Context) error{
		"NotifyDisconnect": a.conn.NotifyDisconnect,
		"Notify":           func(ctx context.Context) error { return b.in.Notify(ctx, nd2.CQNotifyErrors) },
		"Wait": func(ctx context.Context) error {
			_, err := b.out.Wait(ctx, make([]nd2.Result, 1))
			return err
		},
	} {
		ov := nd2.Overlap(t.Context(), f)
		require.ErrorIs(t, ov.GetOverlappedResult(false), nd2.Pending, name)
		require.NoError(t, ov.CancelOverlappedRequests(), name)
		require.ErrorIs(t, ov.GetOverlappedResult(true), nd2.ErrCanceled, name)
		<-ov.Done()
	}
	sync(a, b)
}

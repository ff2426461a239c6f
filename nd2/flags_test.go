package nd2_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/nd2"
)

// all posts a request of every kind, with flags that every kind has; w is a window that
// is not bound.
func (s *side) all(to *side, w *nd2.MemoryWindow, flags nd2.OpFlags) (typ []nd2.RequestType) {
	t := s.t
	require.NoError(t, s.qp.Send(0, s.sge(0, 8), flags))
	require.NoError(t, s.qp.Write(1, s.sge(0, 8), to.at(0), to.mr.GetRemoteToken(), flags))
	require.NoError(t, s.qp.Read(2, []nd2.SGE{s.sge(8, 8)[0], s.sge(16, 8)[0]}, to.at(0), to.mr.GetRemoteToken(), flags))
	require.NoError(t, s.qp.Bind(3, s.mr, w, s.buf[:64], flags|nd2.OpFlagAllowRead))
	require.NoError(t, s.qp.Invalidate(4, w, flags))
	return []nd2.RequestType{
		nd2.RequestTypeSend, nd2.RequestTypeWrite, nd2.RequestTypeRead, nd2.RequestTypeBind, nd2.RequestTypeInvalidate,
	}
}

// ND-Send-F1, ND-Write-F1, ND-Read-F1, ND-Bind-F1, ND-Invalidate-F1: no result of what
// succeeds, and all of what does not.
func TestSilentSuccess(t *testing.T) {
	a, b := pair(t, shape{})
	w, err := a.a.CreateMemoryWindow()
	require.NoError(t, err)
	for range 10 { // longer than the queue
		require.NoError(t, b.qp.Receive(0, b.sge(0, 64)))
		a.all(b, w, nd2.OpFlagSilentSuccess)
		b.done(0, nd2.RequestTypeReceive, nd2.Success)
		sync(a, b)
		a.none()
	}
	require.NoError(t, b.qp.Flush())
	a.gone()
	a.none()

	// A request that fails has its result though it is silent.
	a, b = pair(t, shape{})
	require.NoError(t, a.qp.Read(5, a.sge(0, 8), b.at(0), 1, nd2.OpFlagSilentSuccess))
	a.done(5, nd2.RequestTypeRead, nd2.ErrRemoteError)
}

// Silent requests alone never block the queue, though no result of any is retrieved.
func TestSilentSuccessAlone(t *testing.T) {
	a, b := pair(t, shape{depth: 4, sge: 1})
	for i := range 100 {
		require.NoError(t, b.qp.Receive(i, b.sge(0, 8)))
		// The peer may have a message before this side knows that it is out.
		require.Eventually(t, func() bool {
			err := a.qp.Send(i, a.sge(0, 8), nd2.OpFlagSilentSuccess)
			require.True(t, err == nil || errors.Is(err, nd2.ErrNoMoreEntries), "%v", err)
			return err == nil
		}, time.Minute, time.Millisecond)
		b.done(i, nd2.RequestTypeReceive, nd2.Success)
	}
	a.none()
}

// Each kind succeeds without flags, with its result, and with a read fence.
func TestResults(t *testing.T) {
	a, b := pair(t, shape{})
	w, err := a.a.CreateMemoryWindow()
	require.NoError(t, err)
	for _, flags := range []nd2.OpFlags{0, nd2.OpFlagReadFence} {
		require.NoError(t, b.qp.Receive("r", b.sge(1000, 64)))
		for i, typ := range a.all(b, w, flags) {
			r := a.done(i, typ, nd2.Success)
			require.NoError(t, r.Err())
			require.Zero(t, r.BytesTransferred)
		}
		require.EqualValues(t, 8, b.done("r", nd2.RequestTypeReceive, nd2.Success).BytesTransferred)
	}
}

// ND-Send-F2, ND-Write-F2, ND-Read-F2, ND-Bind-F2, ND-Invalidate-F2. A Read fetches what
// a Write of the peer will change later; the fenced request comes behind it and takes
// the fetched octets on: without the fence they would not be there yet.
func TestReadFence(t *testing.T) {
	a, b := newSide(t, shape{bufBytes: 4 << 20}), newSide(t, shape{bufBytes: 4 << 20})
	join(t, a, b, 4)
	const n = 1 << 20
	token := b.mr.GetRemoteToken()
	for round := range 8 {
		want := bytes.Repeat([]byte{byte(round + 1)}, n)
		copy(b.buf, want)
		require.NoError(t, a.qp.Read(0, a.sge(0, n), b.at(0), token, nd2.OpFlagSilentSuccess))
		require.NoError(t, a.qp.Write(1, a.sge(0, n), b.at(n), token, nd2.OpFlagReadFence|nd2.OpFlagSilentSuccess))
		require.NoError(t, a.qp.Read(2, a.sge(n, n), b.at(n), token, nd2.OpFlagReadFence|nd2.OpFlagSilentSuccess))
		require.NoError(t, b.qp.Receive(3, b.sge(2*n, n)))
		require.NoError(t, a.qp.Send(3, a.sge(n, n), nd2.OpFlagReadFence))
		a.done(3, nd2.RequestTypeSend, nd2.Success)
		b.done(3, nd2.RequestTypeReceive, nd2.Success)
		require.True(t, bytes.Equal(want, b.buf[n:2*n]), "the Write waited for the Read")
		require.True(t, bytes.Equal(want, b.buf[2*n:3*n]), "the Send waited for the second Read")
	}
}

// A fenced Bind and Invalidate do not take effect while a Read is under way: the peer
// answers only when it is told to, by the end of a message that it waits for.
func TestReadFenceOfMemoryRequests(t *testing.T) {
	a, b := pair(t, shape{})
	w := a.window(0, 64, nd2.OpFlagAllowRead)
	for range 20 {
		require.NoError(t, a.qp.Read(0, a.sge(0, 4096), b.at(0), b.mr.GetRemoteToken(), 0))
		require.NoError(t, a.qp.Invalidate(1, w, nd2.OpFlagReadFence))
		require.NoError(t, a.qp.Bind(2, a.mr, w, a.buf[:64], nd2.OpFlagReadFence|nd2.OpFlagAllowRead))
		a.done(0, nd2.RequestTypeRead, nd2.Success)
		a.done(1, nd2.RequestTypeInvalidate, nd2.Success)
		a.done(2, nd2.RequestTypeBind, nd2.Success)
	}
}

// ND-Send-F3: of several Sends the solicited one wakes who asked for that; an error does
// too.
func TestSendAndSolicitEvent(t *testing.T) {
	a, b := pair(t, shape{})
	for i := range 4 {
		require.NoError(t, b.qp.Receive(i, nil))
	}
	waiting := notify(t, b.in, nd2.CQNotifySolicited)
	for i := range 2 {
		require.NoError(t, a.qp.Send(i, nil, 0))
		b.done(i, nd2.RequestTypeReceive, nd2.Success)
	}
	require.ErrorIs(t, waiting.GetOverlappedResult(false), nd2.Pending)
	require.NoError(t, a.qp.Send(2, nil, nd2.OpFlagSendAndSolicitEvent))
	require.NoError(t, waiting.GetOverlappedResult(true))
	b.done(2, nd2.RequestTypeReceive, nd2.Success)

	waiting = notify(t, b.in, nd2.CQNotifySolicited)
	require.NoError(t, b.qp.Flush())
	require.NoError(t, waiting.GetOverlappedResult(true))
	b.done(3, nd2.RequestTypeReceive, nd2.ErrCanceled)
}

// ND-Send-F4, ND-Write-F3, ND-SGE-M1: octets of any memory, in longer lists than the
// queue pair has, up to the limit; the program may change them at once.
func TestInline(t *testing.T) {
	const size, entries = 256, 40
	a, b := pair(t, shape{sge: 2, inline: size})
	require.NoError(t, b.qp.Receive(1, b.sge(0, 512)))
	var list []nd2.SGE
	var want []byte
	for i := range entries {
		piece := []byte{byte(i), byte(i + 1), byte(i + 2)}
		want = append(want, piece...)
		if i == 7 { // registered memory will do too, and a token is not looked at
			copy(a.buf, piece)
			piece = a.buf[:3]
		}
		list = append(list, nd2.SGE{Buffer: piece, MemoryRegionToken: uint32(i)})
	}
	require.NoError(t, a.qp.Send(2, list, nd2.OpFlagInline))
	for _, s := range list {
		clear(s.Buffer)
	}
	a.done(2, nd2.RequestTypeSend, nd2.Success)
	require.EqualValues(t, 3*entries, b.done(1, nd2.RequestTypeReceive, nd2.Success).BytesTransferred)
	assert.Equal(t, want, b.buf[:3*entries])

	full := bytes.Repeat([]byte{7}, size+1)
	require.NoError(t, a.qp.Write(3, []nd2.SGE{{Buffer: full[:size]}}, b.at(1000), b.mr.GetRemoteToken(), nd2.OpFlagInline))
	a.done(3, nd2.RequestTypeWrite, nd2.Success)
	sync(a, b)
	assert.Equal(t, full[:size], b.buf[1000:1000+size])
	assert.Zero(t, b.buf[1000+size])

	tooMuch := []nd2.SGE{{Buffer: full}}
	require.ErrorIs(t, a.qp.Send(4, tooMuch, nd2.OpFlagInline), nd2.ErrBufferOverflow)
	require.ErrorIs(t, a.qp.Write(4, tooMuch, b.at(0), b.mr.GetRemoteToken(), nd2.OpFlagInline), nd2.ErrBufferOverflow)
	require.NoError(t, a.qp.Send(5, nil, nd2.OpFlagInline|nd2.OpFlagSilentSuccess), "nothing is within any limit")
}

// ND-Bind-F3, ND-Bind-F4: each right alone works; the scenarios have it refuse.
func TestWindowRights(t *testing.T) {
	a, b := pair(t, shape{})
	r, w := b.window(0, 64, nd2.OpFlagAllowRead), b.window(64, 64, nd2.OpFlagAllowWrite)
	copy(b.buf, "to be read")
	require.NoError(t, a.qp.Read(1, a.sge(0, 64), b.at(0), r.GetRemoteToken(), 0))
	a.done(1, nd2.RequestTypeRead, nd2.Success)
	require.NoError(t, a.qp.Write(2, a.sge(0, 64), b.at(64), w.GetRemoteToken(), 0))
	a.done(2, nd2.RequestTypeWrite, nd2.Success)
	sync(a, b)
	assert.Equal(t, "to be read", string(b.buf[64:74]))
}

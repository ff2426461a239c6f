package nd2_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/nd2"
)

// window binds a new window to n octets of s's region and waits until it is.
func (s *side) window(off, n int, flags nd2.OpFlags) *nd2.MemoryWindow {
	s.t.Helper()
	w, err := s.a.CreateMemoryWindow()
	require.NoError(s.t, err)
	require.NoError(s.t, s.qp.Bind(w, s.mr, w, s.buf[off:off+n], flags))
	s.done(w, nd2.RequestTypeBind, nd2.Success)
	return w
}

const readWrite = nd2.OpFlagAllowRead | nd2.OpFlagAllowWrite

// refused says that a Read or Write of a has been refused by b: the Read has
// ErrRemoteError; the Write had been taken by the network, mostly; either way the
// connection is gone on both sides, what is posted is canceled, and b's memory is as it was.
func refused(t *testing.T, a, b *side, op string, at uint64, token uint32, n int) {
	t.Helper()
	for i := range b.buf {
		b.buf[i] = byte(i)
	}
	before := bytes.Clone(b.buf)
	require.NoError(t, a.qp.Receive("recv", nil))
	require.NoError(t, b.qp.Receive("recv", nil))
	if op == "read" {
		require.NoError(t, a.qp.Read(1, a.sge(0, n), at, token, 0))
		a.done(1, nd2.RequestTypeRead, nd2.ErrRemoteError) // ND-Read-R6
	} else {
		require.NoError(t, a.qp.Write(1, a.sge(0, n), at, token, 0))
		r := wait(t, a.out)
		require.Contains(t, []nd2.Status{nd2.Success, nd2.ErrCanceled}, r.Status)
	}
	a.done("recv", nd2.RequestTypeReceive, nd2.ErrCanceled)
	b.done("recv", nd2.RequestTypeReceive, nd2.ErrCanceled)
	a.gone()
	b.gone()
	require.Equal(t, before, b.buf)
	require.ErrorIs(t, a.qp.Read(2, nil, 0, 0, 0), nd2.ErrConnectionInvalid)
}

func TestScenarioInvalidatedWindow(t *testing.T) {
	for _, op := range []string{"read", "write"} {
		t.Run(op, func(t *testing.T) {
			a, b := pair(t, shape{})
			w := b.window(100, 1000, readWrite)
			sync(b, a)
			require.NoError(t, a.qp.Write(1, a.sge(0, 1000), b.at(100), w.GetRemoteToken(), 0))
			a.done(1, nd2.RequestTypeWrite, nd2.Success)
			require.NoError(t, a.qp.Read(2, a.sge(0, 1000), b.at(100), w.GetRemoteToken(), 0))
			a.done(2, nd2.RequestTypeRead, nd2.Success)
			require.NoError(t, b.qp.Invalidate(3, w, 0))
			b.done(3, nd2.RequestTypeInvalidate, nd2.Success)
			require.ErrorIs(t, b.qp.Invalidate(3, w, 0), nd2.ErrInvalidDeviceRequest)
			refused(t, a, b, op, b.at(100), w.GetRemoteToken(), 1000)
		})
	}
}

// One octet too many.
func TestScenarioOverReadAndOverWrite(t *testing.T) {
	for _, op := range []string{"read", "write"} {
		t.Run(op+" window", func(t *testing.T) {
			a, b := pair(t, shape{})
			w := b.window(100, 1000, readWrite)
			refused(t, a, b, op, b.at(100), w.GetRemoteToken(), 1001)
		})
		t.Run(op+" region", func(t *testing.T) {
			a, b := newSide(t, shape{bufBytes: 4097}), newSide(t, shape{bufBytes: 4096})
			join(t, a, b, 1)
			refused(t, a, b, op, b.at(0), b.mr.GetRemoteToken(), 4097)
		})
	}
}

// What the window or the region does not allow.
func TestScenarioWriteViolation(t *testing.T) {
	for _, op := range []string{"read", "write"} {
		other := map[string]nd2.OpFlags{"read": nd2.OpFlagAllowWrite, "write": nd2.OpFlagAllowRead}[op]
		t.Run(op+" window", func(t *testing.T) {
			a, b := pair(t, shape{})
			refused(t, a, b, op, b.at(0), b.window(0, 64, other).GetRemoteToken(), 64)
		})
		t.Run(op+" region", func(t *testing.T) {
			a, b := newSide(t, shape{}), newSide(t, shape{flags: nd2.MRFlagAllowLocalWrite})
			join(t, a, b, 1)
			refused(t, a, b, op, b.at(0), b.mr.GetRemoteToken(), 64)
		})
	}
}

func TestScenarioDeregisterWithBoundWindow(t *testing.T) {
	_, b := pair(t, shape{})
	w := b.window(0, 64, nd2.OpFlagAllowRead)
	require.ErrorIs(t, b.mr.Deregister(), nd2.ErrDeviceBusy)
	require.NoError(t, b.qp.Invalidate(1, w, 0))
	b.done(1, nd2.RequestTypeInvalidate, nd2.Success)
	require.NoError(t, b.mr.Deregister())
	require.ErrorIs(t, b.mr.Deregister(), nd2.ErrInvalidDeviceState)
	require.NoError(t, b.mr.Close())
	require.Zero(t, b.mr.GetLocalToken())
	require.ErrorIs(t, b.qp.Bind(1, b.mr, w, b.buf, nd2.OpFlagAllowRead), nd2.ErrInvalidParameter2)
}

// The document names ND_ACCESS_VIOLATION for a buffer that is not valid.
func TestScenarioNullAndZeroBuffers(t *testing.T) {
	s := newSide(t, shape{})
	mr, err := s.a.CreateMemoryRegion()
	require.NoError(t, err)
	require.ErrorIs(t, mr.Register(nil, nd2.MRFlagAllowLocalWrite), nd2.ErrAccessViolation)
	require.ErrorIs(t, mr.Register(make([]byte, 10)[:0], nd2.MRFlagAllowLocalWrite), nd2.ErrAccessViolation)
	require.ErrorIs(t, mr.Register(make([]byte, 10), 0x100), nd2.ErrInvalidParameter)
	require.NoError(t, mr.Register(make([]byte, 10), 0))
	require.ErrorIs(t, mr.Register(make([]byte, 10), 0), nd2.ErrInvalidDeviceState)
}

// A window of 64 MiB, filled and read back, to its last octet.
func TestScenario64MiBWindow(t *testing.T) {
	const size = 64 << 20
	a, b := newSide(t, shape{bufBytes: size}), newSide(t, shape{bufBytes: size})
	join(t, a, b, 4)
	w := b.window(0, size, readWrite)
	for i := 0; i < size; i += 4096 {
		a.buf[i], a.buf[i+4095] = byte(i>>12), byte(i>>20)
	}
	require.NoError(t, a.qp.Write(1, a.sge(0, size), b.at(0), w.GetRemoteToken(), 0))
	a.done(1, nd2.RequestTypeWrite, nd2.Success)
	sync(a, b)
	require.True(t, bytes.Equal(a.buf, b.buf))
	clear(a.buf)
	require.NoError(t, a.qp.Read(2, a.sge(0, size), b.at(0), w.GetRemoteToken(), 0))
	a.done(2, nd2.RequestTypeRead, nd2.Success)
	require.True(t, bytes.Equal(a.buf, b.buf))
	assert.Equal(t, byte(63), a.buf[size-1])
}

package nd2_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/nd2"
)

// initiators calls every method of the Initiator queue with one list and flags.
func initiators(a, b *side, w *nd2.MemoryWindow) map[string]func([]nd2.SGE, nd2.OpFlags) error {
	token := b.mr.GetRemoteToken()
	return map[string]func([]nd2.SGE, nd2.OpFlags) error{
		"Send":       func(l []nd2.SGE, f nd2.OpFlags) error { return a.qp.Send(1, l, f) },
		"Write":      func(l []nd2.SGE, f nd2.OpFlags) error { return a.qp.Write(1, l, b.at(0), token, f) },
		"Read":       func(l []nd2.SGE, f nd2.OpFlags) error { return a.qp.Read(1, l, b.at(0), token, f) },
		"Bind":       func(_ []nd2.SGE, f nd2.OpFlags) error { return a.qp.Bind(1, a.mr, w, a.buf[:8], f|nd2.OpFlagAllowRead) },
		"Invalidate": func(_ []nd2.SGE, f nd2.OpFlags) error { return a.qp.Invalidate(1, w, f) },
	}
}

// ND-Send-R2 and its like: nothing but Receive works before the connection, nor after.
func TestNotConnected(t *testing.T) {
	a, b := newSide(t, shape{}), newSide(t, shape{})
	w, err := a.a.CreateMemoryWindow()
	require.NoError(t, err)
	for name, post := range initiators(a, b, w) {
		require.ErrorIs(t, post(nil, 0), nd2.ErrConnectionInvalid, name)
	}
	join(t, a, b, 1)
	require.NoError(t, b.conn.Disconnect(bounded(t)))
	a.gone()
	for name, post := range initiators(a, b, w) {
		require.ErrorIs(t, post(nil, 0), nd2.ErrConnectionInvalid, name)
	}
	a.none()
}

// ND-Send-R6, ND-Write-R6: each method refuses the flags of others, and those that are
// none.
func TestInvalidFlags(t *testing.T) {
	a, b := pair(t, shape{})
	w, err := a.a.CreateMemoryWindow()
	require.NoError(t, err)
	const unknown = 0x40
	for name, c := range map[string]struct {
		want  nd2.Status
		flags []nd2.OpFlags
	}{
		"Send":       {nd2.ErrInvalidParameter4, []nd2.OpFlags{nd2.OpFlagAllowRead, nd2.OpFlagAllowWrite, unknown}},
		"Write":      {nd2.ErrInvalidParameter6, []nd2.OpFlags{nd2.OpFlagSendAndSolicitEvent, nd2.OpFlagAllowRead, nd2.OpFlagAllowWrite, unknown}},
		"Read":       {nd2.ErrInvalidParameter6, []nd2.OpFlags{nd2.OpFlagInline, nd2.OpFlagSendAndSolicitEvent, nd2.OpFlagAllowRead, nd2.OpFlagAllowWrite, unknown}},
		"Bind":       {nd2.ErrInvalidParameter6, []nd2.OpFlags{nd2.OpFlagInline, nd2.OpFlagSendAndSolicitEvent, unknown}},
		"Invalidate": {nd2.ErrInvalidParameter3, []nd2.OpFlags{nd2.OpFlagInline, nd2.OpFlagSendAndSolicitEvent, nd2.OpFlagAllowRead, nd2.OpFlagAllowWrite, unknown}},
	} {
		for _, f := range c.flags {
			require.ErrorIs(t, initiators(a, b, w)[name](nil, f), c.want, "%s %#x", name, uint32(f))
		}
	}
	require.ErrorIs(t, a.qp.Bind(1, a.mr, w, a.buf, nd2.OpFlagSilentSuccess), nd2.ErrInvalidParameter6, "no right")
	sync(a, b) // ND-Send-M1: nothing has happened
	a.none()
}

// ND-Send-R5 and its likes, ND-Receive-R4.
func TestTooLongLists(t *testing.T) {
	a, b := pair(t, shape{sge: 3, flags: nd2.MRFlagAllowRemoteWrite})
	four := make([]nd2.SGE, 4)
	for _, name := range []string{"Send", "Write", "Read"} {
		require.ErrorIs(t, initiators(a, b, nil)[name](four, 0), nd2.ErrDataOverrun, name)
	}
	require.ErrorIs(t, a.qp.Receive(1, four), nd2.ErrDataOverrun)
	sync(a, b)
}

// ND-Send-R4 and its likes, ND-Receive-R3: as many requests as the depth says, counted
// until their results are retrieved; a Read of several entries is one.
func TestNoMoreEntries(t *testing.T) {
	const depth = 5 // not a power of two
	a, b := pair(t, shape{depth: depth})
	w := a.window(0, 8, nd2.OpFlagAllowRead)
	methods := initiators(a, b, w)
	lists := map[string][]nd2.SGE{
		"Read": {a.sge(0, 8)[0], a.sge(8, 8)[0], a.sge(16, 8)[0]}, "Write": a.sge(0, 8),
	}
	for _, name := range []string{"Write", "Read"} {
		for range depth {
			require.NoError(t, methods[name](lists[name], nd2.OpFlagReadFence))
		}
		sideEffect := func() {
			for other, post := range methods {
				if other != "Bind" {
					require.ErrorIs(t, post(nil, 0), nd2.ErrNoMoreEntries, other)
				}
			}
		}
		sideEffect()
		for range depth {
			require.Equal(t, nd2.Success, wait(t, a.out).Status)
		}
	}
	require.NoError(t, a.qp.Invalidate(1, w, 0))
	for range depth - 1 {
		require.NoError(t, methods["Write"](nil, 0))
	}
	require.ErrorIs(t, methods["Bind"](nil, 0), nd2.ErrNoMoreEntries)
	for range depth {
		require.Equal(t, nd2.Success, wait(t, a.out).Status)
	}
	for i := range depth {
		require.NoError(t, a.qp.Receive(i, nil))
	}
	require.ErrorIs(t, a.qp.Receive(1, nil), nd2.ErrNoMoreEntries)
}

// ND-Bind-R4, and what else Bind refuses before it is posted.
func TestBindRefusals(t *testing.T) {
	a, b := newSide(t, shape{flags: nd2.MRFlagAllowRemoteRead}), newSide(t, shape{})
	join(t, b, a, 1)
	w, err := a.a.CreateMemoryWindow()
	require.NoError(t, err)
	foreign, err := b.a.CreateMemoryWindow()
	require.NoError(t, err)
	bind := func(mr *nd2.MemoryRegion, w *nd2.MemoryWindow, buf []byte, f nd2.OpFlags) error {
		return a.qp.Bind(1, mr, w, buf, f)
	}
	const read, write = nd2.OpFlagAllowRead, nd2.OpFlagAllowWrite
	outside := make([]byte, 8)
	require.ErrorIs(t, bind(a.mr, w, a.buf, write), nd2.ErrAccessViolation)
	sink, err := a.a.CreateMemoryRegion()
	require.NoError(t, err)
	require.NoError(t, sink.Register(outside, nd2.MRFlagRDMAReadSink))
	require.ErrorIs(t, bind(sink, w, outside, write), nd2.ErrAccessViolation, "its own Reads may write there, its peers not")
	require.ErrorIs(t, bind(a.mr, w, outside, read), nd2.ErrAccessViolation)
	require.ErrorIs(t, bind(a.mr, w, a.buf[:0], read), nd2.ErrAccessViolation)
	require.ErrorIs(t, bind(b.mr, w, a.buf, read), nd2.ErrInvalidParameter2)
	require.ErrorIs(t, bind(nil, w, a.buf, read), nd2.ErrInvalidParameter2)
	require.ErrorIs(t, bind(a.mr, foreign, a.buf, read), nd2.ErrInvalidParameter3)
	require.ErrorIs(t, bind(a.mr, nil, a.buf, read), nd2.ErrInvalidParameter3)
	require.ErrorIs(t, a.qp.Invalidate(1, nil, 0), nd2.ErrInvalidParameter2)
	require.ErrorIs(t, a.qp.Invalidate(1, foreign, 0), nd2.ErrInvalidParameter2)
	require.ErrorIs(t, a.qp.Invalidate(1, w, 0), nd2.ErrInvalidDeviceRequest, "it is not bound")
	require.NoError(t, bind(a.mr, w, a.buf, read))
	a.done(1, nd2.RequestTypeBind, nd2.Success)
	require.ErrorIs(t, bind(a.mr, w, a.buf, read), nd2.ErrInvalidDeviceState, "ND-Bind-M2")
	sync(b, a)
	a.none()
}

// A Read into memory that is not said to be a sink is refused, not sent.
func TestReadNeedsSink(t *testing.T) {
	a, b := newSide(t, shape{flags: nd2.MRFlagAllowLocalWrite}), newSide(t, shape{})
	join(t, a, b, 1)
	token := b.mr.GetRemoteToken()
	require.ErrorIs(t, a.qp.Read(1, a.sge(0, 8), b.at(0), token, 0), nd2.ErrAccessViolation)
	require.NoError(t, a.qp.Read(2, a.sge(0, 0), b.at(0), token, 0))
	a.done(2, nd2.RequestTypeRead, nd2.Success)
	require.NoError(t, a.mr.Deregister())
	require.NoError(t, a.mr.Register(a.buf, nd2.MRFlagRDMAReadSink))
	require.NoError(t, a.qp.Read(3, a.sge(0, 8), b.at(0), token, 0))
	a.done(3, nd2.RequestTypeRead, nd2.Success)
}

// Memory that is not the program's to use: a token of nothing, memory beyond the
// region, a region without the right to be written to.
func TestAccessViolation(t *testing.T) {
	outside := func(s *side) []nd2.SGE {
		return []nd2.SGE{{Buffer: make([]byte, 8), MemoryRegionToken: s.mr.GetLocalToken()}}
	}
	for name, post := range map[string]func(a, b *side) (nd2.RequestType, error){
		"Send": func(a, _ *side) (nd2.RequestType, error) {
			return nd2.RequestTypeSend, a.qp.Send(1, outside(a), 0)
		},
		"Write": func(a, b *side) (nd2.RequestType, error) {
			return nd2.RequestTypeWrite, a.qp.Write(1, []nd2.SGE{{Buffer: a.buf, MemoryRegionToken: 77}}, b.at(0), b.mr.GetRemoteToken(), 0)
		},
		"Read": func(a, b *side) (nd2.RequestType, error) {
			list := append(a.sge(0, 8), outside(a)...)
			return nd2.RequestTypeRead, a.qp.Read(1, list, b.at(0), b.mr.GetRemoteToken(), 0)
		},
		"Receive": func(a, b *side) (nd2.RequestType, error) {
			if err := a.mr.Deregister(); err != nil {
				return 0, err
			}
			if err := a.mr.Register(a.buf, 0); err != nil { // without local write
				return 0, err
			}
			err := a.qp.Receive(1, a.sge(0, 8))
			return nd2.RequestTypeReceive, errors.Join(err, b.qp.Send(1, b.sge(0, 8), nd2.OpFlagSilentSuccess))
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t, shape{})
			typ, err := post(a, b)
			require.NoError(t, err)
			a.done(1, typ, nd2.ErrAccessViolation)
			a.gone()
			a.none()
		})
	}
}

func TestStatus(t *testing.T) {
	assert.Equal(t, "ND_CANCELED", nd2.ErrCanceled.Error())
	assert.Equal(t, "ND_STATUS(0x12345678)", nd2.Status(0x12345678).String())
	assert.NoError(t, nd2.Success.Err())
	assert.ErrorIs(t, nd2.ErrRemoteError.Err(), nd2.ErrRemoteError)
	assert.Equal(t, "Invalidate", nd2.RequestTypeInvalidate.String())
	assert.Equal(t, "RequestType(6)", nd2.RequestType(6).String())
	assert.EqualValues(t, uint32(0x8000001A), nd2.ErrNoMoreEntries)
}

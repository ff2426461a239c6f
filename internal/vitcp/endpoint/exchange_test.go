package endpoint_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/vitcp/endpoint"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
)

var levels = []segment.Level{segment.Unreliable, segment.ReliableDelivery, segment.ReliableReception}

// everywhere runs f over all transports, at all levels, with and without CRC.
func everywhere(t *testing.T, f func(t *testing.T, tr transport, c endpoint.Config)) {
	for _, tr := range transports {
		for _, l := range levels {
			for _, crc := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%v/crc=%v", tr.name, l, crc), func(t *testing.T) {
					f(t, tr, endpoint.Config{Level: l, CRC: crc})
				})
			}
		}
	}
}

func TestSendArrives(t *testing.T) {
	everywhere(t, func(t *testing.T, tr transport, c endpoint.Config) {
		a, b := newPair(t, tr, c)
		for _, n := range []int{0, 1, 4096, 65511, 65512, 200000} {
			src, dst := a.register(n+1, allRights), b.register(n+1, allRights)
			pattern(src.buf, n)
			b.recv(dst.span(0, n/3), dst.span(n/3, 0), dst.span(n/3, n-n/3))
			if n == 0 {
				a.Start()
				b.Start()
			}
			require.NoError(t, a.PostSend(&endpoint.Request{Op: endpoint.OpSend, HasImmediate: n%2 == 1, Immediate: uint32(n),
				Spans: []endpoint.Span{src.span(0, n/2), src.span(n/2, n-n/2)}, Context: n}))
			want := result(endpoint.OpSend, 0, n)
			want.Context = n
			require.Equal(t, want, a.expect("send").result)
			want = result(endpoint.OpReceive, 0, n)
			if n%2 == 1 {
				want.HasImmediate, want.Immediate = true, uint32(n)
			}
			require.Equal(t, want, b.expect("receive").result)
			require.Equal(t, src.buf[:n], dst.buf[:n])
			assert.Zero(t, dst.buf[n], "beyond the message")
		}
		a.Close()
		a.ended(endpoint.CauseClosed)
		a.drained()
		b.ended(endpoint.CausePeerClosed)
		b.drained()
	})
}

func TestWriteArrives(t *testing.T) {
	everywhere(t, func(t *testing.T, tr transport, c endpoint.Config) {
		a, b := startPair(t, tr, c)
		const n = 150000
		src, dst := a.register(n, allRights), b.register(n+20, allRights)
		pattern(src.buf, 1)
		b.recv()
		w := &endpoint.Request{Op: endpoint.OpWrite, RemoteAddr: dst.addr + 10, RemoteHandle: dst.handle, Spans: src.all()}
		require.NoError(t, a.PostSend(w))
		w.HasImmediate, w.Immediate, w.Spans = true, 77, []endpoint.Span{src.span(0, 5)}
		require.NoError(t, a.PostSend(w))
		a.sent(endpoint.OpWrite, 0, n)
		a.sent(endpoint.OpWrite, 0, 5)
		require.Equal(t, endpoint.Result{Op: endpoint.OpRemoteWrite, HasImmediate: true, Immediate: 77}, b.expect("receive").result)
		require.Equal(t, src.buf, dst.buf[10:10+n])
		assert.Equal(t, make([]byte, 10), dst.buf[:10])
		assert.Equal(t, make([]byte, 10), dst.buf[10+n:])
	})
}

func TestReadBrings(t *testing.T) {
	everywhere(t, func(t *testing.T, tr transport, c endpoint.Config) {
		if c.Level == segment.Unreliable {
			c.Level = segment.ReliableDelivery
		}
		a, b := startPair(t, tr, c)
		const n = 150000
		dst, src := a.register(n, allRights), b.register(n, allRights)
		pattern(src.buf, 1)
		for range 10 { // more than the window
			require.NoError(t, a.PostSend(&endpoint.Request{Op: endpoint.OpRead, RemoteAddr: src.addr, RemoteHandle: src.handle,
				HasImmediate: true, Immediate: 5, Spans: []endpoint.Span{dst.span(0, 7), dst.span(7, n-7)}}))
		}
		for range 10 {
			a.sent(endpoint.OpRead, 0, n)
		}
		require.Equal(t, src.buf, dst.buf)
		require.NoError(t, a.PostSend(&endpoint.Request{Op: endpoint.OpRead}))
		a.sent(endpoint.OpRead, 0, 0)
	})
}

func TestResultsInOrderOfPosting(t *testing.T) {
	// A Send that passes a Read completes behind it (VI Architecture 6.3.1.1: dequeued in order).
	a, h := byHand(t, transports[1], endpoint.Config{Level: segment.ReliableDelivery})
	a.Start()
	m := a.register(100, allRights)
	require.NoError(t, a.PostSend(&endpoint.Request{Op: endpoint.OpRead, Spans: m.all(), RemoteAddr: 1, RemoteHandle: 2}))
	a.send(m.all()...)
	require.Equal(t, segment.RDMAReadRequest, h.get().Type)
	require.Equal(t, segment.Send, h.get().Type, "passes the Read")
	assert.Empty(t, a.calls)
	h.put(segment.Header{Type: segment.RDMAReadResponse, Flags: segment.EndOfMessage, Number: 101}, nil, make([]byte, 100))
	a.sent(endpoint.OpRead, 0, 100)
	a.sent(endpoint.OpSend, 0, 100)
}

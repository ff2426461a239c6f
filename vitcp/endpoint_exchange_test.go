package vitcp_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/vitcp"
)

var levels = []vitcp.Level{vitcp.Unreliable, vitcp.ReliableDelivery, vitcp.ReliableReception}

// everywhere runs f over all transports, at all levels, with and without CRC.
func everywhere(t *testing.T, f func(t *testing.T, tr transport, c vitcp.EndpointConfig)) {
	for _, tr := range transports {
		for _, l := range levels {
			for _, crc := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%v/crc=%v", tr.name, l, crc), func(t *testing.T) {
					f(t, tr, vitcp.EndpointConfig{Level: l, CRC: crc})
				})
			}
		}
	}
}

func TestSendArrives(t *testing.T) {
	everywhere(t, func(t *testing.T, tr transport, c vitcp.EndpointConfig) {
		a, b := newPair(t, tr, c)
		for _, n := range []int{0, 1, 4096, 65511, 65512, 200000} {
			src, dst := a.register(n+1, allRights), b.register(n+1, allRights)
			pattern(src.buf, n)
			b.recv(dst.span(0, n/3), dst.span(n/3, 0), dst.span(n/3, n-n/3))
			if n == 0 {
				a.Start()
				b.Start()
			}
			require.NoError(t, a.PostSend(&vitcp.Request{Op: vitcp.OpSend, HasImmediate: n%2 == 1, Immediate: uint32(n),
				Spans: []vitcp.Span{src.span(0, n/2), src.span(n/2, n-n/2)}, Context: n}))
			want := result(vitcp.OpSend, 0, n)
			want.Context = n
			require.Equal(t, want, a.expect("send").result)
			want = result(vitcp.OpReceive, 0, n)
			if n%2 == 1 {
				want.HasImmediate, want.Immediate = true, uint32(n)
			}
			require.Equal(t, want, b.expect("receive").result)
			require.Equal(t, src.buf[:n], dst.buf[:n])
			assert.Zero(t, dst.buf[n], "beyond the message")
		}
		a.Close()
		a.ended(vitcp.CauseClosed)
		a.drained()
		b.ended(vitcp.CausePeerClosed)
		b.drained()
	})
}

func TestWriteArrives(t *testing.T) {
	everywhere(t, func(t *testing.T, tr transport, c vitcp.EndpointConfig) {
		a, b := startPair(t, tr, c)
		const n = 150000
		src, dst := a.register(n, allRights), b.register(n+20, allRights)
		pattern(src.buf, 1)
		b.recv()
		w := &vitcp.Request{Op: vitcp.OpWrite, RemoteAddr: dst.addr + 10, RemoteHandle: dst.handle, Spans: src.all()}
		require.NoError(t, a.PostSend(w))
		w.HasImmediate, w.Immediate, w.Spans = true, 77, []vitcp.Span{src.span(0, 5)}
		require.NoError(t, a.PostSend(w))
		a.sent(vitcp.OpWrite, 0, n)
		a.sent(vitcp.OpWrite, 0, 5)
		require.Equal(t, vitcp.Result{Op: vitcp.OpRemoteWrite, HasImmediate: true, Immediate: 77}, b.expect("receive").result)
		require.Equal(t, src.buf, dst.buf[10:10+n])
		assert.Equal(t, make([]byte, 10), dst.buf[:10])
		assert.Equal(t, make([]byte, 10), dst.buf[10+n:])
	})
}

func TestReadBrings(t *testing.T) {
	everywhere(t, func(t *testing.T, tr transport, c vitcp.EndpointConfig) {
		if c.Level == vitcp.Unreliable {
			c.Level = vitcp.ReliableDelivery
		}
		a, b := startPair(t, tr, c)
		const n = 150000
		dst, src := a.register(n, allRights), b.register(n, allRights)
		pattern(src.buf, 1)
		for range 10 { // more than the window
			require.NoError(t, a.PostSend(&vitcp.Request{Op: vitcp.OpRead, RemoteAddr: src.addr, RemoteHandle: src.handle,
				HasImmediate: true, Immediate: 5, Spans: []vitcp.Span{dst.span(0, 7), dst.span(7, n-7)}}))
		}
		for range 10 {
			a.sent(vitcp.OpRead, 0, n)
		}
		require.Equal(t, src.buf, dst.buf)
		require.NoError(t, a.PostSend(&vitcp.Request{Op: vitcp.OpRead}))
		a.sent(vitcp.OpRead, 0, 0)
	})
}

func TestResultsInOrderOfPosting(t *testing.T) {
	// A Send that passes a Read completes behind it (VI Architecture 6.3.1.1: dequeued in order).
	a, h := byHand(t, transports[1], vitcp.EndpointConfig{Level: vitcp.ReliableDelivery})
	a.Start()
	m := a.register(100, allRights)
	require.NoError(t, a.PostSend(&vitcp.Request{Op: vitcp.OpRead, Spans: m.all(), RemoteAddr: 1, RemoteHandle: 2}))
	a.send(m.all()...)
	require.Equal(t, vitcp.RDMAReadRequest, h.get().Type)
	require.Equal(t, vitcp.Send, h.get().Type, "passes the Read")
	assert.Empty(t, a.calls)
	h.put(vitcp.Header{Type: vitcp.RDMAReadResponse, Flags: vitcp.EndOfMessage, Number: 101}, nil, make([]byte, 100))
	a.sent(vitcp.OpRead, 0, 100)
	a.sent(vitcp.OpSend, 0, 100)
}

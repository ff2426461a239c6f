package endpoint_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/vitcp/endpoint"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
)

func TestSegmentsOfAMessage(t *testing.T) {
	const longest = 256
	for _, op := range []endpoint.Op{endpoint.OpSend, endpoint.OpWrite} {
		for _, crc := range []bool{false, true} {
			for _, immediate := range []bool{false, true} {
				s, h := byHand(t, transports[0], endpoint.Config{Level: segment.ReliableDelivery, CRC: crc, Segment: longest})
				s.Start()
				m := s.register(1000, allRights)
				pattern(m.buf, 3)
				want := segment.RDMA{Address: 0x1122334455667788, Handle: 0x99aabbcc, Length: 1000}
				require.NoError(t, s.PostSend(&endpoint.Request{Op: op, HasImmediate: immediate, Immediate: 42, Spans: m.all(),
					RemoteAddr: want.Address, RemoteHandle: 0x99aabbcc}))
				var got []byte
				for last := false; !last; {
					g := h.get()
					assert.Equal(t, uint32(101), g.Number)
					assert.Equal(t, uint32(len(got)), g.Offset)
					assert.Zero(t, g.Ack)
					assert.Zero(t, g.Code)
					assert.False(t, g.Failed())
					data, valid := g.ImmediateData()
					assert.Equal(t, immediate, valid) // VT-3.2-M1
					if immediate {
						assert.Equal(t, uint32(42), data) // VT-3.2-M5
					} else {
						assert.Zero(t, g.Immediate) // VT-3.2-M6
					}
					if op == endpoint.OpWrite {
						assert.Equal(t, segment.RDMAWrite, g.Type)
						assert.Equal(t, want, g.RDMA())
					} else {
						assert.Equal(t, segment.Send, g.Type)
					}
					got = append(got, g.Payload()...)
					if last = g.Last(); !last {
						assert.Equal(t, uint16(longest), g.Length)
					}
				}
				assert.Equal(t, m.buf, got)
				s.sent(op, 0, 1000)
			}
		}
	}
}

func TestMessageNumbersAreSequential(t *testing.T) {
	s, h := byHand(t, transports[0], endpoint.Config{Level: segment.ReliableDelivery, PeerFlowControl: true})
	s.recv()
	s.Start()
	n := h.get()
	assert.Equal(t, segment.NOP, n.Type)
	assert.Equal(t, uint32(100), n.Number, "that of the segment of establishment")
	s.send()
	s.send()
	require.NoError(t, s.PostSend(&endpoint.Request{Op: endpoint.OpRead, HasImmediate: true, Immediate: 9}))
	assert.Equal(t, uint32(101), h.get().Number)
	assert.Equal(t, uint32(102), h.get().Number)
	r := h.get()
	assert.Equal(t, uint32(103), r.Number)
	assert.Equal(t, segment.EndOfMessage, r.Flags) // VT-3.2-M2
	assert.Zero(t, r.Immediate)                    // VT-3.2-M7
	h.put(segment.Header{Type: segment.RDMAReadRequest, Flags: segment.EndOfMessage, Number: 201}, &segment.RDMA{}, nil)
	a := h.get()
	assert.Equal(t, segment.RDMAReadResponse, a.Type)
	assert.Equal(t, uint32(201), a.Number, "of the request")
	h.put(segment.Header{Type: segment.Send, Flags: segment.EndOfMessage, Number: 202}, nil, nil)
	s.sent(endpoint.OpSend, 0, 0)
	s.sent(endpoint.OpSend, 0, 0)
	s.received(endpoint.OpReceive, 0, 0)
	s.recv()
	n = h.get()
	assert.Equal(t, segment.NOP, n.Type)
	assert.Equal(t, uint32(103), n.Number) // VT-3.2-M11
	assert.Equal(t, uint16(2), n.RxPosted)
}

// An endless Send and an endless answer share the stream segment by segment.
func TestAnswersAreInterleaved(t *testing.T) {
	const n = 1 << 20 // more than one batch
	s, h := byDeafHand(t, transports[0], endpoint.Config{Level: segment.ReliableDelivery, Segment: 1024})
	src := s.register(n, allRights)
	pattern(src.buf, 1)
	s.send(src.all()...)
	s.Start()
	h.put(segment.Header{Type: segment.RDMAReadRequest, Flags: segment.EndOfMessage, Number: 201},
		&segment.RDMA{Address: src.addr, Handle: uint32(src.handle), Length: n}, nil)
	h.put(segment.Header{Type: segment.RDMAReadRequest, Flags: segment.EndOfMessage, Number: 202},
		&segment.RDMA{Address: src.addr, Handle: uint32(src.handle), Length: n}, nil)
	h.hear()
	var sizes [numStreams]int
	var streak, longest int
	previous := segment.NOP
	for sizes[0] < n || sizes[1] < n || sizes[2] < n {
		g := h.get()
		i := 0
		if g.Type == segment.RDMAReadResponse {
			i = int(g.Number - 200)
		}
		assert.Equal(t, uint32(sizes[i]), g.Offset)
		require.Equal(t, src.buf[sizes[i]:sizes[i]+g.Size()], g.Payload())
		sizes[i] += g.Size()
		assert.Equal(t, sizes[i] == n, g.Last())
		if i == 2 {
			assert.Equal(t, n, sizes[1], "answers come one after the other")
		}
		if streak++; g.Type != previous {
			streak = 1
		}
		previous = g.Type
		if sizes[1] > 0 && sizes[0] < n && sizes[2] < n {
			longest = max(longest, streak)
		}
	}
	assert.Equal(t, 1, longest, "turn by turn")
}

const numStreams = 3

// A Send that waits for a receive of the peer holds no answer up, and an answer that
// the peer does not ask for in full holds no Send up.
func TestAWaitingSendDoesNotDelayAnswers(t *testing.T) {
	s, h := byHand(t, transports[0], endpoint.Config{Level: segment.ReliableDelivery, FlowControl: true})
	s.Start()
	s.send()
	h.put(segment.Header{Type: segment.RDMAReadRequest, Flags: segment.EndOfMessage, Number: 201}, &segment.RDMA{}, nil)
	assert.Equal(t, segment.RDMAReadResponse, h.get().Type)
	h.put(segment.Header{Type: segment.NOP, RxPosted: 1}, nil, nil)
	assert.Equal(t, segment.Send, h.get().Type)
}

func TestFenceWaitsForAllBefore(t *testing.T) {
	for _, op := range []endpoint.Op{endpoint.OpSend, endpoint.OpWrite, endpoint.OpRead} {
		synctest.Test(t, func(t *testing.T) {
			s, h := byHand(t, transports[0], endpoint.Config{Level: segment.ReliableDelivery})
			s.Start()
			require.NoError(t, s.PostSend(&endpoint.Request{Op: endpoint.OpRead}))
			s.send()
			require.NoError(t, s.PostSend(&endpoint.Request{Op: op, Fence: true})) // VA-6.3.1.2-M1
			s.send()
			synctest.Wait()
			assert.Equal(t, segment.RDMAReadRequest, h.get().Type)
			assert.Equal(t, segment.Send, h.get().Type)
			assert.Empty(t, h.rx)
			h.put(segment.Header{Type: segment.RDMAReadResponse, Flags: segment.EndOfMessage, Number: 101}, nil, nil)
			synctest.Wait()
			assert.Equal(t, uint32(103), h.get().Number)
			assert.Equal(t, uint32(104), h.get().Number, "and what is behind follows")
		})
	}
}

// At Reliable Reception all before have completed only when they are acknowledged.
func TestFenceAtReception(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := byHand(t, transports[0], endpoint.Config{Level: segment.ReliableReception})
		s.Start()
		s.send()
		require.NoError(t, s.PostSend(&endpoint.Request{Op: endpoint.OpSend, Fence: true}))
		synctest.Wait()
		assert.Len(t, h.rx, 1)
		h.put(segment.Header{Type: segment.NOP, Ack: 101}, nil, nil)
		synctest.Wait()
		assert.Len(t, h.rx, 2)
	})
}

func TestReadWindowOfThePeerIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := byHand(t, transports[0], endpoint.Config{Level: segment.ReliableDelivery, OutboundReads: 2})
		s.Start()
		for range 4 {
			require.NoError(t, s.PostSend(&endpoint.Request{Op: endpoint.OpRead}))
		}
		s.send()
		synctest.Wait()
		require.Len(t, h.rx, 2) // VT-2.2.2.2.6-M2
		h.put(segment.Header{Type: segment.RDMAReadResponse, Flags: segment.EndOfMessage, Number: 101}, nil, nil)
		synctest.Wait()
		require.Len(t, h.rx, 3)
		h.put(segment.Header{Type: segment.RDMAReadResponse, Flags: segment.EndOfMessage, Number: 102}, nil, nil)
		synctest.Wait()
		require.Len(t, h.rx, 5, "the Send behind them too")
	})
}

func TestReadWindowIsEnforced(t *testing.T) {
	for _, tr := range transports {
		s, h := byDeafHand(t, tr, endpoint.Config{Level: segment.ReliableDelivery, OutboundReads: 2, InboundReads: 2, MTU: 64 << 20})
		m := s.register(32<<20, allRights)
		s.Start()
		for i := range uint32(3) { // none is answered: nobody reads
			h.put(segment.Header{Type: segment.RDMAReadRequest, Flags: segment.EndOfMessage, Number: 201 + i},
				&segment.RDMA{Address: m.addr, Handle: uint32(m.handle), Length: 32 << 20}, nil)
		}
		assert.ErrorContains(t, s.endedBy(endpoint.CauseMalformed), "more RDMA Reads")
		h.conn.Close()
		s.drained()
	}
}

// A Reception endpoint sends nothing behind a Read before that is answered.
func TestReceptionDoesNotPassReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := byHand(t, transports[0], endpoint.Config{Level: segment.ReliableReception})
		s.Start()
		require.NoError(t, s.PostSend(&endpoint.Request{Op: endpoint.OpRead}))
		s.send()
		synctest.Wait()
		require.Len(t, h.rx, 1)
		h.put(segment.Header{Type: segment.NOP, Ack: 101}, nil, nil)
		synctest.Wait()
		require.Empty(t, s.calls, "an ACK is not the answer")
		h.put(segment.Header{Type: segment.RDMAReadResponse, Flags: segment.EndOfMessage, Number: 101, Ack: 101}, nil, nil)
		synctest.Wait()
		require.Len(t, h.rx, 2)
		s.sent(endpoint.OpRead, 0, 0)
		assert.Empty(t, s.calls)
	})
}

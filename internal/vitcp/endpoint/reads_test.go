package endpoint_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/vitcp/endpoint"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
	"github.com/softrnic/softrnic/wr"
)

// The answer to a Read that failed there has a transmit error, at either level.
func TestReadThatFailsThere(t *testing.T) {
	for _, l := range levels[1:] {
		for _, first := range []int{0, 10} {
			s, h := byHand(t, transports[1], endpoint.Config{Level: l})
			m := s.register(100, allRights)
			s.Start()
			require.NoError(t, s.PostSend(&endpoint.Request{Op: endpoint.OpRead, Spans: m.all()}))
			h.get()
			if first > 0 {
				h.put(segment.Header{Type: segment.RDMAReadResponse, Number: 101}, nil, make([]byte, first))
			}
			h.put(segment.Header{Type: segment.RDMAReadResponse, Flags: eom | tre, Number: 101, Offset: uint32(first)}, nil, nil)
			s.ended(endpoint.CauseAborted)
			s.sent(endpoint.OpRead, endpoint.FlawRemoteProtection, 0)
			h.conn.Close()
			s.drained()
		}
	}
}

func TestAnswersThatAreWrong(t *testing.T) {
	for _, c := range []struct {
		name string
		put  func(*hand)
	}{
		{"too long", func(h *hand) {
			h.put(segment.Header{Type: segment.RDMAReadResponse, Flags: eom, Number: 101}, nil, make([]byte, 101))
		}},
		{"too short", func(h *hand) {
			h.put(segment.Header{Type: segment.RDMAReadResponse, Flags: eom, Number: 101}, nil, make([]byte, 99))
		}},
		{"without an end", func(h *hand) {
			h.put(segment.Header{Type: segment.RDMAReadResponse, Number: 101}, nil, make([]byte, 100))
		}},
		{"of the second", func(h *hand) {
			h.put(segment.Header{Type: segment.RDMAReadResponse, Flags: eom, Number: 102}, nil, make([]byte, 100))
		}},
		{"not from the beginning", func(h *hand) {
			h.put(segment.Header{Type: segment.RDMAReadResponse, Flags: eom, Number: 101, Offset: 50}, nil, make([]byte, 50))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, h := byHand(t, transports[1], endpoint.Config{Level: segment.ReliableDelivery})
			m := s.register(200, allRights)
			s.Start()
			for range 2 {
				require.NoError(t, s.PostSend(&endpoint.Request{Op: endpoint.OpRead, Spans: []endpoint.Span{m.span(0, 100)}}))
				h.get()
			}
			c.put(h)
			s.ended(endpoint.CauseMalformed)
			s.sent(endpoint.OpRead, endpoint.FlawTransport, 0)
			s.sent(endpoint.OpRead, endpoint.FlawFlushed, 0)
			h.conn.Close()
			s.drained()
			assert.Equal(t, make([]byte, 100), m.buf[100:])
		})
	}
	t.Run("CRC", func(t *testing.T) {
		for _, l := range levels[1:] {
			s, h := byHand(t, transports[1], endpoint.Config{Level: l, CRC: true})
			m := s.register(10, allRights)
			s.Start()
			require.NoError(t, s.PostSend(&endpoint.Request{Op: endpoint.OpRead, Spans: m.all()}))
			h.get()
			b := h.frame(segment.Header{Type: segment.RDMAReadResponse, Flags: eom, Number: 101}, nil, []byte("0123456789"))
			b[len(b)-1] ^= 0x80
			h.write(b)
			s.ended(endpoint.CauseCRC)
			s.sent(endpoint.OpRead, endpoint.FlawTransport, 0)
			assert.Equal(t, make([]byte, 10), m.buf, "nothing is placed")
			h.conn.Close()
		}
	})
}

// VA-6.3.1.1-M1, VA-6.3.1.1-M2: a peer that passes its own Reads at Reliable Reception
// gets no effect before they are answered; at Reliable Delivery it does.
func TestBypassingAtReception(t *testing.T) {
	for _, l := range levels[1:] {
		synctest.Test(t, func(t *testing.T) {
			const n = 1 << 20
			s, h := byDeafHand(t, transports[0], endpoint.Config{Level: l})
			src, dst := s.register(n, allRights), s.register(10, allRights)
			s.recv(dst.span(0, 4))
			s.recv()
			s.Start()
			h.put(segment.Header{Type: segment.RDMAReadRequest, Flags: eom, Number: 201},
				&segment.RDMA{Address: src.addr, Handle: uint32(src.handle), Length: n}, nil)
			go func() {
				h.put(segment.Header{Type: segment.Send, Flags: eom, Number: 202}, nil, []byte("send"))
				h.put(segment.Header{Type: segment.RDMAWrite, Flags: eom | idv, Number: 203},
					&segment.RDMA{Address: dst.addr + 5, Handle: uint32(dst.handle), Length: 5}, []byte("write"))
			}()
			synctest.Wait()
			if l == segment.ReliableDelivery {
				require.Len(t, s.calls, 2)
				assert.Equal(t, []byte("send\x00write"), dst.buf)
				return
			}
			require.Empty(t, s.calls)
			assert.Equal(t, make([]byte, 10), dst.buf)
			h.hear()
			synctest.Wait()
			require.Len(t, s.calls, 2)
			assert.Equal(t, []byte("send\x00write"), dst.buf)
		})
	}
}

// VA-6.3.1.1-M3: behind a Read that fails nothing has an effect.
func TestBypassingAFailedRead(t *testing.T) {
	s, h := byHand(t, transports[1], endpoint.Config{Level: segment.ReliableReception})
	m := s.register(10, wr.LocalRead|wr.LocalWrite|wr.RemoteWrite)
	s.recv()
	s.Start()
	rdma := &segment.RDMA{Address: m.addr, Handle: uint32(m.handle), Length: 5}
	h.write(append(append(h.frame(segment.Header{Type: segment.RDMAReadRequest, Flags: eom, Number: 201}, rdma, nil),
		h.frame(segment.Header{Type: segment.RDMAWrite, Flags: eom, Number: 202}, rdma, []byte("write"))...),
		h.frame(segment.Header{Type: segment.Send, Flags: eom, Number: 203}, nil, nil)...))
	assert.Equal(t, endpoint.EventReadProtection, s.expect("event").event)
	s.ended(endpoint.CauseInbound)
	s.received(endpoint.OpReceive, endpoint.FlawFlushed, 0)
	assert.Equal(t, make([]byte, 10), m.buf)
	assert.Equal(t, eom|tre, h.get().Flags)
	assert.Equal(t, segment.RDMAProtection, h.get().Code)
	h.closed()
}

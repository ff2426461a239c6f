package endpoint_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/vitcp/endpoint"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
)

// Memory that is deregistered in mid-message is not touched any more, and the peer is
// told by the transmit error bit that the message is none.
func TestSourceVanishes(t *testing.T) {
	for _, tr := range transports {
		for _, l := range levels {
			for _, crc := range []bool{false, true} {
				for _, read := range []bool{false, true} {
					if read && l == segment.Unreliable {
						continue
					}
					name := tr.name + "/" + l.String() + map[bool]string{true: "/CRC"}[crc] + map[bool]string{true: "/answer"}[read]
					t.Run(name, func(t *testing.T) { sourceVanishes(t, tr, l, crc, read) })
				}
			}
		}
	}
}

func sourceVanishes(t *testing.T, tr transport, l segment.Level, crc, read bool) {
	const n = 16 << 20 // more than a socket takes
	s, h := byDeafHand(t, tr, endpoint.Config{Level: l, CRC: crc, MTU: n, Segment: 20000})
	m := s.register(n, allRights)
	fill(m.buf, 0xaa)
	s.Start()
	typ := segment.Send
	if read {
		typ = segment.RDMAReadResponse
		h.put(segment.Header{Type: segment.RDMAReadRequest, Flags: eom, Number: 201},
			&segment.RDMA{Address: m.addr, Handle: uint32(m.handle), Length: n}, nil)
	} else {
		s.send(m.all()...)
		s.send()
	}
	// The first octet says that the message is on its way.
	var first [1]byte
	_, err := h.conn.Read(first[:])
	require.NoError(t, err)
	require.NoError(t, s.table.Deallocate(m.handle))
	fill(m.buf, 0x55) // must not be seen
	h.conn = &replay{h.conn, first[:]}
	h.hear()
	size := 0
	for {
		g := h.get()
		if read && l == segment.ReliableReception && g.Type == segment.NOP && g.Code == 0 {
			continue
		}
		require.Equal(t, typ, g.Type)
		require.Equal(t, uint32(size), g.Offset)
		require.Equal(t, -1, bytes.IndexByte(g.Payload(), 0x55), "touched")
		require.Equal(t, -1, bytes.IndexByte(g.Payload(), 0), "it is whole")
		size += g.Size()
		if g.Last() {
			require.True(t, g.Failed())
			require.Zero(t, g.Size())
			break
		}
		require.False(t, g.Failed())
	}
	require.Less(t, size, n)
	switch {
	case l == segment.Unreliable:
		s.sent(endpoint.OpSend, endpoint.FlawProtection|endpoint.FlawPartial, 0)
		s.sent(endpoint.OpSend, 0, 0)
		assert.Equal(t, uint32(102), h.get().Number)
		h.conn.Close()
	case read:
		assert.Equal(t, endpoint.EventReadProtection, s.expect("event").event)
		s.ended(endpoint.CauseInbound)
		if l == segment.ReliableReception {
			assert.Equal(t, segment.RDMAProtection, h.get().Code)
		}
		h.closed()
	default:
		s.ended(endpoint.CauseRequest)
		s.sent(endpoint.OpSend, endpoint.FlawProtection|endpoint.FlawPartial, 0)
		s.sent(endpoint.OpSend, endpoint.FlawFlushed, 0)
		if l == segment.ReliableReception {
			assert.Zero(t, h.get().Code)
		}
		h.closed()
	}
}

func TestSinkVanishes(t *testing.T) {
	for _, tr := range transports {
		for _, l := range levels {
			for _, write := range []bool{false, true} {
				t.Run(tr.name+"/"+l.String()+map[bool]string{true: "/Write"}[write], func(t *testing.T) { sinkVanishes(t, tr, l, write) })
			}
		}
	}
}

func sinkVanishes(t *testing.T, tr transport, l segment.Level, write bool) {
	s, h := byHand(t, tr, endpoint.Config{Level: l})
	m := s.register(100000, allRights)
	other := s.register(10, allRights)
	hd := segment.Header{Type: segment.Send, Number: 201}
	rdma := &segment.RDMA{Address: m.addr, Handle: uint32(m.handle), Length: 100000}
	code := segment.DescriptorError
	if write {
		hd.Type, code = segment.RDMAWrite, segment.RDMAProtection
	} else {
		s.recv(m.all()...)
	}
	s.recv(other.all()...)
	s.Start()
	b := h.frame(hd, rdma, make([]byte, 50000))
	h.write(b[:30000])
	require.NoError(t, s.table.Deallocate(m.handle))
	fill(m.buf, 0x55)
	written := make(chan struct{})
	go func() {
		defer close(written)
		h.write(b[30000:])
	}()
	check := func() {
		if write {
			assert.Equal(t, endpoint.EventWriteProtection, s.expect("event").event)
		}
	}
	if l == segment.Unreliable {
		check()
		if !write {
			s.received(endpoint.OpReceive, endpoint.FlawProtection, 0)
		}
		<-written
		hd.Flags, hd.Offset = eom, 50000
		h.put(hd, rdma, make([]byte, 50000))
		h.put(segment.Header{Type: segment.Send, Flags: eom, Number: 202}, nil, make([]byte, 10))
		s.received(endpoint.OpReceive, 0, 10)
	} else {
		check()
		s.ended(endpoint.CauseInbound)
		if !write {
			s.received(endpoint.OpReceive, endpoint.FlawProtection, 0)
		}
		s.received(endpoint.OpReceive, endpoint.FlawFlushed, 0)
		for l == segment.ReliableReception {
			if g := h.get(); g.Code != 0 {
				assert.Equal(t, code, g.Code)
				break
			}
		}
	}
	require.Equal(t, len(m.buf), bytes.Count(m.buf, []byte{0x55}), "touched")
}

func TestSinkOfAReadVanishes(t *testing.T) {
	for _, tr := range transports {
		s, h := byHand(t, tr, endpoint.Config{Level: segment.ReliableDelivery})
		m := s.register(100, allRights)
		s.Start()
		require.NoError(t, s.PostSend(&endpoint.Request{Op: endpoint.OpRead, Spans: m.all()}))
		h.get()
		require.NoError(t, s.table.Deallocate(m.handle))
		h.put(segment.Header{Type: segment.RDMAReadResponse, Flags: eom, Number: 101}, nil, []byte{1})
		s.ended(endpoint.CauseMalformed)
		s.sent(endpoint.OpRead, endpoint.FlawTransport, 0)
		h.conn.Close()

		s, h = byHand(t, tr, endpoint.Config{Level: segment.ReliableDelivery})
		m = s.register(100, allRights)
		s.Start()
		require.NoError(t, s.PostSend(&endpoint.Request{Op: endpoint.OpRead, Spans: m.all()}))
		h.get()
		require.NoError(t, s.table.Deallocate(m.handle))
		p := make([]byte, 100)
		pattern(p, 1)
		h.put(segment.Header{Type: segment.RDMAReadResponse, Flags: eom, Number: 101}, nil, p)
		s.ended(endpoint.CauseRequest)
		s.sent(endpoint.OpRead, endpoint.FlawProtection, 0)
		h.conn.Close()
		assert.Equal(t, make([]byte, 100), m.buf)
	}
}

func fill(b []byte, v byte) {
	b[0] = v
	for n := 1; n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}

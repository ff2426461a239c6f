package endpoint_test

import (
	"net"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/vitcp/endpoint"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
)

// What is wrong with a request is told in its turn. A reliable connection ends then, an
// Unreliable one carries the next request.
func TestFlawedRequests(t *testing.T) {
	for _, c := range []struct {
		name  string
		level []segment.Level
		make  func(*memory) endpoint.Request
		flaws endpoint.Flaws
	}{
		{"posted with a flaw", levels, func(*memory) endpoint.Request {
			return endpoint.Request{Flaws: endpoint.FlawFormat | endpoint.FlawLength}
		},
			endpoint.FlawFormat | endpoint.FlawLength},
		{"no such operation", levels, func(*memory) endpoint.Request { return endpoint.Request{Op: endpoint.OpRemoteWrite} }, endpoint.FlawFormat},
		{"RDMA Read at Unreliable", levels[:1], func(m *memory) endpoint.Request { return endpoint.Request{Op: endpoint.OpRead, Spans: m.all()} },
			endpoint.FlawFormat},
		{"longer than the MTU", levels, func(m *memory) endpoint.Request {
			return endpoint.Request{Spans: []endpoint.Span{m.span(0, 100), m.span(0, 51)}}
		}, endpoint.FlawLength},
		{"longer than 32 bits tell", levels, func(m *memory) endpoint.Request {
			s := endpoint.Span{Length: 1 << 31}
			return endpoint.Request{Spans: []endpoint.Span{s, s, m.span(0, 1)}}
		}, endpoint.FlawLength},
		{"memory not there", levels, func(m *memory) endpoint.Request {
			return endpoint.Request{Spans: []endpoint.Span{m.span(0, 1), {Addr: m.addr, Handle: m.handle + 1, Length: 1}}}
		}, endpoint.FlawProtection},
		{"beyond the region", levels, func(m *memory) endpoint.Request { return endpoint.Request{Spans: []endpoint.Span{m.span(60, 41)}} },
			endpoint.FlawProtection},
		{"sink not there", levels[1:], func(m *memory) endpoint.Request {
			return endpoint.Request{Op: endpoint.OpRead, Spans: []endpoint.Span{{Addr: m.addr, Handle: m.handle + 1, Length: 1}}}
		}, endpoint.FlawProtection},
	} {
		for _, l := range c.level {
			t.Run(c.name+"/"+l.String(), func(t *testing.T) {
				a, b := newPair(t, transports[1], endpoint.Config{Level: l, MTU: 150})
				m, dst := a.register(100, allRights), b.register(100, allRights)
				r := c.make(m)
				for range 3 {
					b.recv(dst.all()...)
				}
				a.send(m.all()...)
				require.NoError(t, a.PostSend(&r))
				a.send(m.span(0, 50))
				a.Start() // only now: the flaw may end it at once
				b.Start()
				a.sent(endpoint.OpSend, 0, 100)
				if l == segment.Unreliable {
					a.sent(r.Op, c.flaws, 0)
					a.sent(endpoint.OpSend, 0, 50)
					b.received(endpoint.OpReceive, 0, 100)
					b.received(endpoint.OpReceive, 0, 50)
					return
				}
				a.ended(endpoint.CauseRequest)
				a.sent(r.Op, c.flaws, 0)
				a.sent(endpoint.OpSend, endpoint.FlawFlushed, 0)
				a.drained()
				b.received(endpoint.OpReceive, 0, 100)
				b.ended(endpoint.CausePeerClosed)
				b.received(endpoint.OpReceive, endpoint.FlawFlushed, 0)
			})
		}
	}
	t.Run("no read window", func(t *testing.T) {
		x, _ := pipe(t)
		a := newSide(t, x, endpoint.Config{Level: segment.ReliableDelivery})
		a.Start()
		require.NoError(t, a.PostSend(&endpoint.Request{Op: endpoint.OpRead}))
		a.ended(endpoint.CauseRequest)
		a.sent(endpoint.OpRead, endpoint.FlawFormat, 0)
	})
}

// VT-3.2-M12: a Send or Write completes when it is acknowledged, whichever way.
func TestAcknowledgement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := byHand(t, transports[0], endpoint.Config{Level: segment.ReliableReception})
		s.Start()
		s.recv()
		nop := func(ack uint32) {
			h.put(segment.Header{Type: segment.NOP, Ack: ack}, nil, nil)
			synctest.Wait()
		}
		for range 4 {
			s.send()
		}
		synctest.Wait()
		for _, ack := range []uint32{0, 100, 105, 1 << 31, 1<<32 - 1} { // of nothing outstanding
			nop(ack)
			require.Empty(t, s.calls)
		}
		nop(102)
		require.Len(t, s.calls, 2)
		nop(101) // old news
		require.Len(t, s.calls, 2)
		h.put(segment.Header{Type: segment.Send, Flags: eom, Number: 201, Ack: 104}, nil, nil)
		synctest.Wait()
		require.Len(t, s.calls, 5)
		for range 4 {
			s.sent(endpoint.OpSend, 0, 0)
		}
		s.received(endpoint.OpReceive, 0, 0)
	})
}

// VT-3.2-M13, VT-3.2-M16: at the other levels ACK and error code mean nothing.
func TestAcknowledgementIsIgnored(t *testing.T) {
	for _, l := range levels[:2] {
		s, h := byHand(t, transports[0], endpoint.Config{Level: l})
		s.Start()
		s.send()
		s.sent(endpoint.OpSend, 0, 0)
		h.put(segment.Header{Type: segment.NOP, Ack: 101, Code: 7}, nil, nil)
		s.recv()
		h.put(segment.Header{Type: segment.Send, Flags: eom, Number: 201}, nil, nil)
		s.received(endpoint.OpReceive, 0, 0)
		s.send()
		s.sent(endpoint.OpSend, 0, 0)
		assert.Zero(t, h.get().Ack)
	}
}

// What was received is acknowledged after its result, by a NOP if nothing else is sent.
func TestAcknowledging(t *testing.T) {
	for _, tr := range transports {
		s, h := byHand(t, tr, endpoint.Config{Level: segment.ReliableReception})
		m := s.register(10, allRights)
		gate := make(chan struct{})
		telling := make(chan struct{}, 16)
		s.hook = func(told) {
			telling <- struct{}{}
			<-gate
		}
		rests := s.WriterRests
		s.recv()
		s.Start()
		rdma := &segment.RDMA{Address: m.addr, Handle: uint32(m.handle), Length: 10}
		h.put(segment.Header{Type: segment.RDMAWrite, Flags: eom, Number: 201}, rdma, make([]byte, 10))
		assert.Equal(t, uint32(201), h.get().Ack)
		until(t, "the writer rests, and is not who tells", rests)
		h.put(segment.Header{Type: segment.Send, Flags: eom, Number: 202}, nil, nil)
		<-telling // the reader: so nobody else does
		s.send()
		g := h.get()
		assert.Equal(t, segment.Send, g.Type)
		assert.Equal(t, uint32(201), g.Ack, "not before the handler has returned") // VT-3.2-S3
		close(gate)
		g = h.get()
		assert.Equal(t, segment.NOP, g.Type)
		assert.Equal(t, uint32(202), g.Ack)
		assert.Equal(t, uint32(101), g.Number)
		h.put(segment.Header{Type: segment.RDMAReadRequest, Flags: eom, Number: 203}, rdma, nil)
		assert.Equal(t, segment.RDMAReadResponse, h.get().Type)
		assert.Equal(t, uint32(203), h.get().Ack)
		h.conn.Close()
	}
}

// VT-3.2-M15: each error code at each operation, in the middle of others.
func TestRemoteErrors(t *testing.T) {
	const mpe, vde, ute = segment.RDMAProtection, segment.DescriptorError, segment.TransportError
	for _, c := range []struct {
		name  string
		r     endpoint.Request
		code  segment.ErrorCode
		flaws endpoint.Flaws
	}{
		{"Write MPE", endpoint.Request{Op: endpoint.OpWrite}, mpe, endpoint.FlawRemoteProtection},
		{"Write with immediate data MPE", endpoint.Request{Op: endpoint.OpWrite, HasImmediate: true}, mpe, endpoint.FlawRemoteProtection},
		{"Write with immediate data VDE", endpoint.Request{Op: endpoint.OpWrite, HasImmediate: true}, vde, endpoint.FlawRemoteDescriptor},
		{"Write UTE", endpoint.Request{Op: endpoint.OpWrite}, ute, endpoint.FlawTransport},
		{"Write VDE", endpoint.Request{Op: endpoint.OpWrite}, vde, endpoint.FlawTransport},
		{"Send VDE", endpoint.Request{Op: endpoint.OpSend}, vde, endpoint.FlawRemoteDescriptor},
		{"Send UTE", endpoint.Request{Op: endpoint.OpSend}, ute.WithIS(9), endpoint.FlawTransport},
		{"Send MPE", endpoint.Request{Op: endpoint.OpSend}, mpe, endpoint.FlawTransport},
		{"Send VDE and UTE", endpoint.Request{Op: endpoint.OpSend}, vde | ute, endpoint.FlawRemoteDescriptor | endpoint.FlawTransport},
		{"Read MPE", endpoint.Request{Op: endpoint.OpRead}, mpe, endpoint.FlawRemoteProtection},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, h := byHand(t, transports[1], endpoint.Config{Level: segment.ReliableReception})
			s.recv()
			s.Start()
			s.send()
			require.NoError(t, s.PostSend(&c.r))
			s.send()
			h.get()
			h.get()
			h.put(segment.Header{Type: segment.NOP, Ack: 102, Code: c.code}, nil, nil)
			s.sent(endpoint.OpSend, 0, 0)
			s.ended(endpoint.CauseRemote)
			s.sent(c.r.Op, c.flaws, 0)
			s.sent(endpoint.OpSend, endpoint.FlawFlushed, 0)
			s.received(endpoint.OpReceive, endpoint.FlawFlushed, 0)
			h.conn.Close()
			s.drained()
		})
	}
	t.Run("of nothing", func(t *testing.T) {
		s, h := byHand(t, transports[1], endpoint.Config{Level: segment.ReliableReception})
		s.Start()
		h.put(segment.Header{Type: segment.NOP, Ack: 102, Code: ute}, nil, nil)
		s.ended(endpoint.CauseRemote)
		h.conn.Close()
	})
	t.Run("of a message on its way", func(t *testing.T) {
		s, h := byDeafHand(t, transports[0], endpoint.Config{Level: segment.ReliableReception})
		m := s.register(1<<20, allRights)
		s.Start()
		s.send(m.all()...)
		_, err := h.conn.Read(make([]byte, 1))
		require.NoError(t, err)
		h.put(segment.Header{Type: segment.NOP, Ack: 101, Code: vde}, nil, nil)
		s.ended(endpoint.CauseRemote)
		h.conn.Close()
		s.sent(endpoint.OpSend, endpoint.FlawRemoteDescriptor, 0)
	})
}

// An error of a message that is none of those in flight: what became of the oldest is as
// unknown as if the connection had been lost (VI Architecture 2.5.3, 10.2 bit 6), and none
// has succeeded.
func TestRemoteErrorOfAnotherMessage(t *testing.T) {
	for _, number := range []uint32{0, 100, 104, 1<<32 - 1} {
		s, h := byHand(t, transports[1], endpoint.Config{Level: segment.ReliableReception})
		s.Start()
		for range 3 {
			s.send()
		}
		for range 3 {
			h.get()
		}
		h.put(segment.Header{Type: segment.NOP, Ack: number, Code: segment.TransportError}, nil, nil)
		s.ended(endpoint.CauseRemote)
		s.sent(endpoint.OpSend, endpoint.FlawTransport, 0)
		s.sent(endpoint.OpSend, endpoint.FlawFlushed, 0)
		s.sent(endpoint.OpSend, endpoint.FlawFlushed, 0)
		h.conn.Close()
		s.drained()
	}
}

// damaging is a connection that damages one octet of what is written first.
type damaging struct {
	hidden
	at   int
	with byte
}

func (c *damaging) Write(b []byte) (int, error) {
	if c.with != 0 {
		b = slices.Clone(b)
		b[c.at] ^= c.with
		c.with = 0
	}
	return c.hidden.Write(b)
}

// A message number is damaged on its way. Whichever number it becomes, the sender does not
// take a message for received that was not.
func TestDamagedMessageNumber(t *testing.T) {
	const lastOctet = 15 // of the number in the first segment
	for _, crc := range []bool{false, true} {
		for to := range uint32(256) {
			if to == 101 {
				continue
			}
			x, y := loopback(t)
			tr := transport{"", func(testing.TB) (net.Conn, net.Conn) {
				return &damaging{hidden{x}, lastOctet, byte(to ^ 101)}, hidden{y}
			}}
			a, b := newPair(t, tr, endpoint.Config{Level: segment.ReliableReception, CRC: crc})
			for range 3 {
				a.send()
				b.recv()
			}
			a.Start()
			b.Start()
			a.ended(endpoint.CauseRemote)
			a.sent(endpoint.OpSend, endpoint.FlawTransport, 0)
			a.sent(endpoint.OpSend, endpoint.FlawFlushed, 0)
			a.sent(endpoint.OpSend, endpoint.FlawFlushed, 0)
			if crc {
				b.ended(endpoint.CauseCRC)
				b.received(endpoint.OpReceive, endpoint.FlawTransport, 0)
			} else {
				b.ended(endpoint.CauseMalformed)
				b.received(endpoint.OpReceive, endpoint.FlawFlushed, 0)
			}
			b.received(endpoint.OpReceive, endpoint.FlawFlushed, 0)
			b.received(endpoint.OpReceive, endpoint.FlawFlushed, 0)
			a.drained()
			b.drained()
		}
	}
}

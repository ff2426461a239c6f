package endpoint_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/vitcp/endpoint"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
)

// scene is an endpoint with a hand and a region of 100 octets.
type scene struct {
	*side
	h *hand
	m *memory
}

func (s *scene) put(typ segment.Type, flags segment.Flags, number, offset uint32, rdma *segment.RDMA, n int) {
	p := make([]byte, n)
	pattern(p, int(number))
	s.h.put(s.head(typ, flags, number, offset), rdma, p)
}

func (s *scene) head(typ segment.Type, flags segment.Flags, number, offset uint32) segment.Header {
	h := segment.Header{Type: typ, Flags: flags, Number: number, Offset: offset}
	if flags&segment.ImmediateValid != 0 {
		h.Immediate = 5
	}
	return h
}

// spoiled is put with a wrong CRC.
func (s *scene) spoiled(typ segment.Type, flags segment.Flags, number, offset uint32, rdma *segment.RDMA, n int) {
	b := s.h.frame(s.head(typ, flags, number, offset), rdma, make([]byte, n))
	b[len(b)-1] ^= 1
	s.h.write(b)
}

func (s *scene) target(off, n int) *segment.RDMA {
	return &segment.RDMA{Address: s.m.addr + uint64(off), Handle: uint32(s.m.handle), Length: uint32(n)}
}

const (
	eom = segment.EndOfMessage
	idv = segment.ImmediateValid
	tre = segment.TransmitError
)

// refusedMessage is an inbound message that cannot be taken, and what becomes of it.
type refusedMessage struct {
	name string
	crc  bool
	// receives are posted first; nil: one of 100 octets.
	receives func(s *scene)
	// does plays the peer.
	does func(s *scene)
	// event is told if not eventNone; flaws are those of the first receive, if any.
	event      endpoint.Event
	none       bool // no event
	op         endpoint.Op
	flaws      endpoint.Flaws
	immediate  bool
	cause      endpoint.Cause
	code       segment.ErrorCode
	reliable   bool // only there
	unreliable bool
	// good is the number of the next message, for Unreliable; 202 if zero.
	good uint32
}

func oneReceive(s *scene) { s.recv(s.m.span(0, 50)) }
func noReceive(*scene)    {}

var refusedMessages = []refusedMessage{
	{name: "no receive for a Send", receives: noReceive, does: func(s *scene) { s.put(segment.Send, eom, 201, 0, nil, 10) },
		event: endpoint.EventReceiveQueueEmpty, cause: endpoint.CauseInbound, code: segment.DescriptorError},
	{name: "no receive for a Write with immediate data", receives: noReceive,
		does:  func(s *scene) { s.put(segment.RDMAWrite, eom|idv, 201, 0, s.target(60, 10), 10) },
		event: endpoint.EventReceiveQueueEmpty, cause: endpoint.CauseInbound, code: segment.DescriptorError},
	{name: "receive too small", does: func(s *scene) { s.put(segment.Send, eom|idv, 201, 0, nil, 51) }, none: true,
		op: endpoint.OpReceive, flaws: endpoint.FlawLength, immediate: true, cause: endpoint.CauseInbound, code: segment.DescriptorError},
	{name: "receive too small for the second segment", does: func(s *scene) {
		s.put(segment.Send, 0, 201, 0, nil, 50)
		s.put(segment.Send, eom, 201, 50, nil, 1)
	}, none: true, op: endpoint.OpReceive, flaws: endpoint.FlawLength, cause: endpoint.CauseInbound, code: segment.DescriptorError},
	{name: "receive with wrong memory", receives: func(s *scene) {
		s.recv(endpoint.Span{Addr: s.m.addr + 99, Handle: s.m.handle, Length: 2})
		s.recv(s.m.span(0, 50))
	}, does: func(s *scene) { s.put(segment.Send, eom, 201, 0, nil, 1) }, none: true, op: endpoint.OpReceive,
		flaws: endpoint.FlawProtection, cause: endpoint.CauseInbound, code: segment.DescriptorError},
	{name: "receive posted with a flaw", receives: func(s *scene) {
		_ = s.PostReceive(&endpoint.Receive{Flaws: endpoint.FlawFormat})
		s.recv(s.m.span(0, 50))
	}, does: func(s *scene) { s.put(segment.Send, eom, 201, 0, nil, 1) }, none: true, op: endpoint.OpReceive,
		flaws: endpoint.FlawFormat, cause: endpoint.CauseInbound, code: segment.DescriptorError},
	{name: "receive posted with a flaw, for immediate data", receives: func(s *scene) {
		_ = s.PostReceive(&endpoint.Receive{Flaws: endpoint.FlawFormat})
		s.recv(s.m.span(0, 50))
	}, does: func(s *scene) { s.put(segment.RDMAWrite, eom|idv, 201, 0, s.target(60, 10), 10) }, none: true,
		op: endpoint.OpRemoteWrite, immediate: true, flaws: endpoint.FlawFormat, cause: endpoint.CauseInbound, code: segment.DescriptorError},
	{name: "Write beyond the region", does: func(s *scene) { s.put(segment.RDMAWrite, eom, 201, 0, s.target(95, 6), 6) },
		event: endpoint.EventWriteProtection, cause: endpoint.CauseInbound, code: segment.RDMAProtection},
	{name: "Write that ends beyond the region", does: func(s *scene) { s.put(segment.RDMAWrite, 0, 201, 0, s.target(60, 41), 10) },
		event: endpoint.EventWriteProtection, cause: endpoint.CauseInbound, code: segment.RDMAProtection},
	{name: "Write with an unknown handle", does: func(s *scene) {
		r := s.target(60, 10)
		r.Handle ^= 1
		s.put(segment.RDMAWrite, eom, 201, 0, r, 10)
	}, event: endpoint.EventWriteProtection, cause: endpoint.CauseInbound, code: segment.RDMAProtection},
	{name: "Write with immediate data beyond the region",
		does: func(s *scene) { s.put(segment.RDMAWrite, eom|idv, 201, 0, s.target(95, 6), 6) }, none: true,
		op: endpoint.OpRemoteWrite, flaws: endpoint.FlawProtection, immediate: true, cause: endpoint.CauseInbound, code: segment.RDMAProtection},
	{name: "Send with a transmit error", does: func(s *scene) {
		s.put(segment.Send, 0, 201, 0, nil, 10)
		s.put(segment.Send, eom|tre, 201, 10, nil, 0)
	}, none: true, op: endpoint.OpReceive, flaws: endpoint.FlawPartial, cause: endpoint.CauseAborted, code: segment.TransportError},
	{name: "transmit error in the first segment", does: func(s *scene) {
		s.put(segment.Send, tre, 201, 0, nil, 10)
		s.put(segment.Send, eom, 201, 10, nil, 10)
	}, none: true, op: endpoint.OpReceive, flaws: endpoint.FlawPartial, cause: endpoint.CauseAborted, code: segment.TransportError},
	{name: "Write with a transmit error", does: func(s *scene) {
		s.put(segment.RDMAWrite, 0, 201, 0, s.target(60, 30), 10)
		s.put(segment.RDMAWrite, eom|tre, 201, 10, s.target(60, 30), 0)
	}, event: endpoint.EventWriteAbort, cause: endpoint.CauseAborted, code: segment.TransportError},
	{name: "Write with immediate data and a transmit error",
		does: func(s *scene) { s.put(segment.RDMAWrite, eom|tre|idv, 201, 0, s.target(60, 10), 0) }, none: true,
		op: endpoint.OpRemoteWrite, flaws: endpoint.FlawPartial, immediate: true, cause: endpoint.CauseAborted, code: segment.TransportError},
	{name: "CRC error in a Send", crc: true, does: func(s *scene) { s.spoiled(segment.Send, eom, 201, 0, nil, 10) }, none: true,
		op: endpoint.OpReceive, flaws: endpoint.FlawTransport, cause: endpoint.CauseCRC, code: segment.TransportError},
	{name: "CRC error in the number of a Send", crc: true, does: func(s *scene) { s.spoiled(segment.Send, eom, 203, 0, nil, 10) }, none: true,
		op: endpoint.OpReceive, flaws: endpoint.FlawTransport, cause: endpoint.CauseCRC, code: segment.TransportError},
	{name: "CRC error in an answer", crc: true, reliable: true,
		does: func(s *scene) { s.spoiled(segment.RDMAReadResponse, eom, 203, 0, nil, 10) }, none: true,
		cause: endpoint.CauseCRC, code: segment.TransportError},
	{name: "CRC error within a Send", crc: true, does: func(s *scene) {
		s.put(segment.Send, 0, 201, 0, nil, 10)
		s.spoiled(segment.NOP, 0, 999, 77, nil, 0) // whatever it says
	}, none: true, op: endpoint.OpReceive, flaws: endpoint.FlawTransport, cause: endpoint.CauseCRC, code: segment.TransportError},
	{name: "CRC error in a Send, and no receive", crc: true, receives: noReceive, reliable: true,
		does: func(s *scene) { s.spoiled(segment.Send, eom, 201, 0, nil, 10) }, none: true,
		cause: endpoint.CauseCRC, code: segment.TransportError},
	{name: "CRC error in a Write", crc: true, does: func(s *scene) { s.spoiled(segment.RDMAWrite, eom, 201, 0, s.target(60, 10), 10) },
		event: endpoint.EventWriteData, cause: endpoint.CauseCRC, code: segment.TransportError},
	{name: "CRC error in a Write with immediate data", crc: true,
		does: func(s *scene) { s.spoiled(segment.RDMAWrite, eom|idv, 201, 0, s.target(60, 10), 10) }, none: true,
		op: endpoint.OpRemoteWrite, flaws: endpoint.FlawTransport, cause: endpoint.CauseCRC, code: segment.TransportError},
	{name: "CRC error in a NOP", crc: true, does: func(s *scene) { s.spoiled(segment.NOP, 0, 201, 0, nil, 0) }, none: true,
		cause: endpoint.CauseCRC, code: segment.TransportError, good: 201},
	{name: "CRC error in the number of a NOP", crc: true, does: func(s *scene) { s.spoiled(segment.NOP, 0, 204, 0, nil, 0) }, none: true,
		cause: endpoint.CauseCRC, code: segment.TransportError, good: 201},
	{name: "message number left out", reliable: true, does: func(s *scene) { s.put(segment.Send, eom, 202, 0, nil, 10) }, none: true,
		cause: endpoint.CauseMalformed, code: segment.TransportError},
	{name: "message number repeated", does: func(s *scene) { s.put(segment.Send, eom, 200, 0, nil, 10) }, none: true,
		cause: endpoint.CauseMalformed, code: segment.TransportError},
	{name: "damaged segment behind a damaged one", crc: true, unreliable: true, does: func(s *scene) {
		s.recv(s.m.span(0, 50))
		s.spoiled(segment.Send, 0, 201, 0, nil, 10)
		s.spoiled(segment.Send, eom, 201, 10, nil, 10)
	}, none: true, op: endpoint.OpReceive, flaws: endpoint.FlawTransport},
	{name: "beginning left out", does: func(s *scene) { s.put(segment.Send, eom, 201, 10, nil, 10) }, none: true,
		cause: endpoint.CauseMalformed, code: segment.TransportError},
	{name: "segment left out", does: func(s *scene) {
		s.put(segment.Send, 0, 201, 0, nil, 10)
		s.put(segment.Send, eom, 201, 11, nil, 10)
	}, unreliable: true, none: true, op: endpoint.OpReceive, flaws: endpoint.FlawPartial},
	{name: "segment left out", does: func(s *scene) {
		s.put(segment.Send, 0, 201, 0, nil, 10)
		s.put(segment.Send, eom, 201, 11, nil, 10)
	}, reliable: true, none: true, op: endpoint.OpReceive, flaws: endpoint.FlawPartial | endpoint.FlawTransport,
		cause: endpoint.CauseMalformed, code: segment.TransportError},
	{name: "immediate data not in each segment", does: func(s *scene) {
		s.put(segment.Send, idv, 201, 0, nil, 10)
		s.put(segment.Send, eom, 201, 10, nil, 10)
	}, reliable: true, none: true, op: endpoint.OpReceive, flaws: endpoint.FlawPartial | endpoint.FlawTransport,
		cause: endpoint.CauseMalformed, code: segment.TransportError},
	{name: "other message between the segments", does: func(s *scene) {
		s.put(segment.RDMAWrite, 0, 201, 0, s.target(60, 30), 10)
		s.put(segment.RDMAReadRequest, eom, 202, 0, s.target(0, 1), 0)
	}, reliable: true, event: endpoint.EventWriteAbort, cause: endpoint.CauseMalformed, code: segment.TransportError},
	{name: "message broken off", does: func(s *scene) {
		s.put(segment.RDMAWrite, 0, 201, 0, s.target(60, 30), 10)
	}, unreliable: true, event: endpoint.EventWriteAbort},
	{name: "Write with another target in the second segment", does: func(s *scene) {
		s.put(segment.RDMAWrite, 0, 201, 0, s.target(60, 20), 10)
		s.put(segment.RDMAWrite, eom, 201, 10, s.target(70, 20), 10)
	}, reliable: true, event: endpoint.EventWriteAbort, cause: endpoint.CauseMalformed, code: segment.TransportError},
	{name: "Write above the MTU", does: func(s *scene) { s.put(segment.RDMAWrite, 0, 201, 0, s.target(0, 1<<21), 10) },
		event: endpoint.EventWriteAbort, cause: endpoint.CauseMalformed, code: segment.TransportError},
	{name: "Write with immediate data above the MTU",
		does: func(s *scene) { s.put(segment.RDMAWrite, idv, 201, 0, s.target(0, 1<<21), 10) }, none: true,
		op: endpoint.OpRemoteWrite, flaws: endpoint.FlawTransport | endpoint.FlawPartial, immediate: true, cause: endpoint.CauseMalformed, code: segment.TransportError},
	{name: "Read above the MTU", reliable: true, does: func(s *scene) { s.put(segment.RDMAReadRequest, eom, 201, 0, s.target(0, 1<<21), 0) },
		none: true, cause: endpoint.CauseMalformed, code: segment.TransportError},
	{name: "answer to nothing", reliable: true, does: func(s *scene) { s.put(segment.RDMAReadResponse, eom, 101, 0, nil, 10) }, none: true,
		cause: endpoint.CauseMalformed, code: segment.TransportError},
	{name: "segment of establishment", does: func(s *scene) { s.put(segment.ConnectReject, eom, 201, 0, nil, 0) }, none: true,
		cause: endpoint.CauseMalformed, code: segment.TransportError, good: 201},
	{name: "unknown type", does: func(s *scene) {
		b := s.h.frame(segment.Header{Type: segment.NOP, Number: 201}, nil, nil)
		b[1] = 31
		s.h.write(b)
	}, none: true, cause: endpoint.CauseMalformed, code: segment.TransportError, good: 201},
	{name: "Read Request at Unreliable", unreliable: true, none: true,
		does: func(s *scene) { s.put(segment.RDMAReadRequest, eom, 201, 0, s.target(0, 1), 0) }},
	{name: "answer at Unreliable", unreliable: true, none: true,
		does: func(s *scene) { s.put(segment.RDMAReadResponse, eom, 201, 0, nil, 5) }},
}

func TestInboundThatCannotBeTaken(t *testing.T) {
	for _, tr := range transports[:2] {
		for i := range refusedMessages {
			for _, l := range levels {
				c := refusedMessages[i]
				if c.reliable && l == segment.Unreliable || c.unreliable && l != segment.Unreliable {
					continue
				}
				t.Run(tr.name+"/"+c.name+"/"+l.String(), func(t *testing.T) { c.play(t, tr, l) })
			}
		}
	}
}

func (c *refusedMessage) play(t *testing.T, tr transport, l segment.Level) {
	side, h := byHand(t, tr, endpoint.Config{Level: l, CRC: c.crc})
	s := &scene{side, h, side.register(100, allRights)}
	if c.receives == nil {
		c.receives = oneReceive
		s.recv(s.m.span(0, 50))
	}
	c.receives(s)
	s.Start()
	c.does(s)
	if l == segment.Unreliable {
		c.goesOn(s)
		return
	}
	if !c.none {
		require.Equal(t, c.event, s.expect("event").event)
	}
	s.ended(c.cause)
	c.first(s)
	if l == segment.ReliableReception {
		for { // of what was taken before it
			n := h.get()
			require.Equal(t, segment.NOP, n.Type)
			if n.Code != 0 {
				assert.Equal(t, c.code, n.Code)
				assert.Equal(t, uint32(201), n.Ack, "the first message that has not come, whatever a segment says")
				break
			}
		}
	}
	h.closed()
	<-s.Done()
	for len(s.calls) > 0 {
		s.received(endpoint.OpReceive, endpoint.FlawFlushed, 0)
	}
	assert.Equal(t, make([]byte, 10), s.m.buf[50:60], "outside of all that was named")
}

// first expects the result of the receive that was used up.
func (c *refusedMessage) first(s *scene) {
	s.t.Helper()
	if c.flaws == 0 {
		return
	}
	want := result(c.op, c.flaws, 0)
	if c.immediate {
		want.HasImmediate, want.Immediate = true, 5
	}
	got := s.expect("receive").result
	if c.flaws&endpoint.FlawTransport != 0 {
		got.HasImmediate, got.Immediate = want.HasImmediate, want.Immediate
	}
	require.Equal(s.t, want, got)
}

// goesOn expects that an Unreliable connection survives, and takes the next message.
func (c *refusedMessage) goesOn(s *scene) {
	s.t.Helper()
	if c.good == 0 {
		c.good = 203
	}
	if c.event == endpoint.EventReceiveQueueEmpty && !c.none {
		require.Equal(s.t, c.event, s.expect("event").event)
		s.recv(s.m.span(0, 50))
	}
	s.put(segment.Send, eom, c.good, 0, nil, 33)
	if !c.none && c.event != endpoint.EventReceiveQueueEmpty {
		require.Equal(s.t, c.event, s.expect("event").event)
	}
	c.first(s)
	s.received(endpoint.OpReceive, 0, 33)
	want := make([]byte, 33)
	pattern(want, int(c.good))
	assert.Equal(s.t, want, s.m.buf[:33])
	s.h.conn.Close()
	s.ended(endpoint.CausePeerClosed)
}

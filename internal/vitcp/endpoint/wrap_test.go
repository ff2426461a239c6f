package endpoint_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/vitcp/endpoint"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
)

// Both counts, of receives modulo 2^16 and of messages modulo 2^32, wrap in mid-traffic. A
// message that needs a receive waits for it and comes when it is there.
func TestCountsWrap(t *testing.T) {
	const before = 5 // so many messages and receives before the wrap
	for _, tr := range transports {
		for _, l := range levels {
			t.Run(tr.name+"/"+l.String(), func(t *testing.T) {
				a, b := newPair(t, tr, endpoint.Config{
					Level: l, FlowControl: true, PeerFlowControl: true,
					Number: 1<<32 - 1 - before, PeerNumber: 1<<32 - 1 - 3*before,
				})
				for _, s := range []*side{a, b} {
					s.Skip(1<<16 - before)
					s.Start()
				}
				for i := range 4 * before {
					from, to := a, b
					if i%2 == 1 {
						from, to = b, a
					}
					r := endpoint.Request{Op: endpoint.OpSend, HasImmediate: true, Immediate: uint32(i)}
					want := endpoint.Result{Op: endpoint.OpReceive, HasImmediate: true, Immediate: uint32(i)}
					if i%3 == 0 {
						r.Op, want.Op = endpoint.OpWrite, endpoint.OpRemoteWrite
					}
					require.NoError(t, from.PostSend(&r))
					to.recv()
					require.Equal(t, want, to.expect("receive").result)
					from.sent(r.Op, 0, 0)
					if l != segment.Unreliable {
						require.NoError(t, from.PostSend(&endpoint.Request{Op: endpoint.OpRead}))
						from.sent(endpoint.OpRead, 0, 0)
					}
				}
			})
		}
	}
}

// The same, as the peer sees it.
func TestCountOfReceivesWraps(t *testing.T) {
	s, h := byHand(t, transports[0], endpoint.Config{Level: segment.ReliableDelivery, PeerFlowControl: true})
	s.Skip(1<<16 - 2)
	s.Start()
	for i, want := range []uint16{1<<16 - 1, 0, 1} {
		s.recv()
		assert.Equal(t, want, h.get().RxPosted)
		h.put(segment.Header{Type: segment.Send, Flags: eom, Number: 201 + uint32(i)}, nil, nil)
		s.received(endpoint.OpReceive, 0, 0)
	}
}

// VT-3.2-M12, VT-3.2-M15: ACKs and errors find their messages across the wrap of the
// numbers.
func TestAcknowledgementAcrossTheWrap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := byHand(t, transports[0], endpoint.Config{Level: segment.ReliableReception, Number: 1<<32 - 3, PeerNumber: 1<<32 - 1})
		s.recv()
		s.Start()
		for range 5 {
			s.send()
		}
		synctest.Wait()
		for _, want := range []uint32{1<<32 - 2, 1<<32 - 1, 0, 1, 2} {
			require.Equal(t, want, h.get().Number)
		}
		for _, c := range []struct {
			ack  uint32
			done int
		}{{1<<32 - 3, 0}, {3, 0}, {1<<32 - 2, 1}, {0, 3}, {1<<32 - 1, 3}} {
			h.put(segment.Header{Type: segment.NOP, Ack: c.ack}, nil, nil)
			synctest.Wait()
			require.Len(t, s.calls, c.done, "ACK %d", c.ack)
		}
		h.put(segment.Header{Type: segment.Send, Flags: eom, Number: 0, Ack: 1}, nil, nil)
		require.Zero(t, h.get().Ack, "of message 0")
		h.put(segment.Header{Type: segment.NOP, Ack: 2, Code: segment.DescriptorError}, nil, nil)
		for range 4 {
			s.sent(endpoint.OpSend, 0, 0)
		}
		s.received(endpoint.OpReceive, 0, 0)
		s.ended(endpoint.CauseRemote)
		s.sent(endpoint.OpSend, endpoint.FlawRemoteDescriptor, 0)
		h.conn.Close()
	})
}

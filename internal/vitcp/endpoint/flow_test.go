package endpoint_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/vitcp/endpoint"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
)

// VT-3.2-M10: what consumes a receive waits for one, also across the wrap of the count.
func TestFlowControlHoldsBack(t *testing.T) {
	for _, before := range []uint16{0, 1<<16 - 2, 1<<16 - 1} {
		for _, c := range []struct {
			r    endpoint.Request
			held bool
		}{
			{endpoint.Request{Op: endpoint.OpSend}, true},
			{endpoint.Request{Op: endpoint.OpWrite}, false},
			{endpoint.Request{Op: endpoint.OpWrite, HasImmediate: true}, true},
			{endpoint.Request{Op: endpoint.OpRead}, false},
		} {
			t.Run(fmt.Sprintf("%v, immediate data %v, after %d", c.r.Op, c.r.HasImmediate, before), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s, h := byHand(t, transports[0], endpoint.Config{Level: segment.ReliableDelivery, FlowControl: true})
					s.Skip(before)
					s.Start()
					tell := func(n uint16) {
						h.put(segment.Header{Type: segment.NOP, RxPosted: before + n}, nil, nil)
						synctest.Wait()
					}
					tell(1)
					s.send() // uses it up
					synctest.Wait()
					require.Len(t, h.rx, 1)
					require.NoError(t, s.PostSend(&c.r))
					synctest.Wait()
					if !c.held {
						require.Len(t, h.rx, 2)
						return
					}
					require.Len(t, h.rx, 1)
					tell(2)
					require.Len(t, h.rx, 2)
				})
			})
		}
	}
}

// Each end on its own: without the attribute here nothing waits, whatever the peer does.
func TestNoFlowControlHoldsNothingBack(t *testing.T) {
	s, h := byHand(t, transports[0], endpoint.Config{Level: segment.ReliableDelivery, PeerFlowControl: true})
	s.Start()
	s.send()
	assert.Equal(t, segment.Send, h.get().Type)
}

// VT-3.3-M3, VT-3.2-S2: the peer is told of receives as it needs to know, and not of each;
// likewise when the count wraps.
func TestReceivesAreTold(t *testing.T) {
	for _, before := range []uint16{0, 1<<16 - 1, 1<<16 - 500, 1<<16 - 1000} {
		t.Run(fmt.Sprint(before), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { receivesAreTold(t, before) })
		})
	}
}

// receivesAreTold posts 1000 receives and uses them up, after so many others.
func receivesAreTold(t *testing.T, before uint16) {
	s, h := byHand(t, transports[0], endpoint.Config{Level: segment.ReliableDelivery, PeerFlowControl: true, ReceiveDepth: 2000})
	s.Skip(before)
	s.Start()
	told, nops := uint16(0), 0
	for posted := range uint16(1000) {
		s.recv()
		synctest.Wait()
		for len(h.rx) > 0 {
			told = h.get().RxPosted - before
			nops++
		}
		assert.GreaterOrEqual(t, told, (posted+1)/2)
	}
	assert.Less(t, nops, 15, "not one for each")
	// When they run out again, it hears of each.
	for i := range uint32(told) {
		h.put(segment.Header{Type: segment.Send, Flags: segment.EndOfMessage, Number: 201 + i}, nil, nil)
		s.received(endpoint.OpReceive, 0, 0)
	}
	synctest.Wait()
	for len(h.rx) > 0 {
		told = h.get().RxPosted - before
	}
	assert.Equal(t, uint16(1000), told)
}

// VT-3.3-O1: an end that does not ask for it gets no NOPs, but the field is right.
func TestReceivesAreNotToldUnasked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := byHand(t, transports[0], endpoint.Config{Level: segment.ReliableDelivery, Posted: 2})
		s.Start()
		for range 5 {
			s.recv()
		}
		synctest.Wait()
		assert.Empty(t, h.rx)
		s.send()
		assert.Equal(t, uint16(5), h.get().RxPosted)
	})
}

// Receives that the segment of establishment told are not told again.
func TestReceivesToldBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := byHand(t, transports[0], endpoint.Config{Level: segment.ReliableDelivery, PeerFlowControl: true, Posted: 2})
		s.recv()
		s.recv()
		s.Start()
		synctest.Wait()
		assert.Empty(t, h.rx)
	})
}

func TestPostingLimits(t *testing.T) {
	x, _ := pipe(t)
	s := newSide(t, x, endpoint.Config{SendDepth: 2, ReceiveDepth: 3})
	s.send()
	s.send()
	require.ErrorIs(t, s.PostSend(&endpoint.Request{}), endpoint.ErrQueueFull)
	for range 3 {
		s.recv()
	}
	require.ErrorIs(t, s.PostReceive(&endpoint.Receive{}), endpoint.ErrQueueFull)
	s.Close() // without a Start
	s.ended(endpoint.CauseClosed)
	for range 2 {
		s.sent(endpoint.OpSend, endpoint.FlawFlushed, 0)
	}
	for range 3 {
		s.received(endpoint.OpReceive, endpoint.FlawFlushed, 0)
	}
	s.drained()
	require.ErrorIs(t, s.PostSend(&endpoint.Request{}), endpoint.ErrEnded)
	require.ErrorIs(t, s.PostReceive(&endpoint.Receive{}), endpoint.ErrEnded)
}

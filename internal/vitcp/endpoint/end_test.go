package endpoint_test

import (
	"fmt"
	"io"
	"net"
	"runtime"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/vitcp/endpoint"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
)

// Everything posted has one result, in order, when this end closes.
func TestCloseFlushes(t *testing.T) {
	for _, tr := range transports {
		for _, l := range levels {
			t.Run(tr.name+"/"+l.String(), func(t *testing.T) {
				const n = 16 << 20
				s, h := byDeafHand(t, tr, endpoint.Config{Level: l, MTU: n, FlowControl: true, PeerPosted: 1, Linger: 10 * time.Millisecond})
				m := s.register(n, allRights)
				s.Start()
				post := func(op endpoint.Op, i int, spans ...endpoint.Span) {
					require.NoError(t, s.PostSend(&endpoint.Request{Op: op, Context: i, Spans: spans}))
				}
				post(endpoint.OpSend, 0, m.all()...) // gets stuck
				for i := 1; i < 10; i++ {
					post(endpoint.OpSend, i)
					require.NoError(t, s.PostReceive(&endpoint.Receive{Context: i}))
				}
				_, err := h.conn.Read(make([]byte, 1))
				require.NoError(t, err)
				s.Close()
				s.ended(endpoint.CauseClosed)
				want := endpoint.Result{Op: endpoint.OpSend, Flaws: endpoint.FlawFlushed | endpoint.FlawPartial, Context: 0}
				assert.Equal(t, want, s.expect("send").result)
				for i := 1; i < 10; i++ {
					want = endpoint.Result{Op: endpoint.OpSend, Flaws: endpoint.FlawFlushed, Context: i}
					assert.Equal(t, want, s.expect("send").result)
				}
				for i := 1; i < 10; i++ {
					want = endpoint.Result{Op: endpoint.OpReceive, Flaws: endpoint.FlawFlushed, Context: i}
					assert.Equal(t, want, s.expect("receive").result)
				}
				s.drained()
				s.Close()
				s.Abort()
				_, err = io.Copy(io.Discard, h.conn)
				if err != nil {
					assert.NotErrorIs(t, err, net.ErrClosed)
				}
			})
		}
	}
}

// What is in flight when the connection is lost: VI Architecture table 1 and 10.2.
func TestLostConnection(t *testing.T) {
	reset := func(h *hand) {
		if c, ok := h.conn.(*net.TCPConn); ok {
			_ = c.SetLinger(0)
		}
		h.conn.Close()
	}
	for _, c := range []struct {
		name  string
		level segment.Level
		lose  func(*hand)
		cause []endpoint.Cause
		send  endpoint.Flaws // of a Send that the peer has and did not acknowledge
		read  endpoint.Flaws // of a Read without an answer
	}{
		{"close", segment.ReliableReception, func(h *hand) { h.conn.Close() }, []endpoint.Cause{endpoint.CausePeerClosed}, endpoint.FlawTransport, endpoint.FlawFlushed},
		{"close", segment.ReliableDelivery, func(h *hand) { h.conn.Close() }, []endpoint.Cause{endpoint.CausePeerClosed}, 0, endpoint.FlawTransport},
		{"reset", segment.ReliableReception, reset, []endpoint.Cause{endpoint.CauseLost}, endpoint.FlawTransport, endpoint.FlawFlushed},
		{"reset", segment.ReliableDelivery, reset, []endpoint.Cause{endpoint.CauseLost}, 0, endpoint.FlawTransport},
		{"within a segment", segment.ReliableDelivery, func(h *hand) { h.write([]byte{1, 4, 0}); h.conn.Close() }, []endpoint.Cause{endpoint.CauseLost}, 0, endpoint.FlawTransport},
		{"close here", segment.ReliableDelivery, nil, []endpoint.Cause{endpoint.CauseClosed}, 0, endpoint.FlawFlushed},
		{"close here", segment.ReliableReception, nil, []endpoint.Cause{endpoint.CauseClosed}, endpoint.FlawFlushed, endpoint.FlawFlushed},
	} {
		t.Run(fmt.Sprintf("%s/%v", c.name, c.level), func(t *testing.T) {
			s, h := byHand(t, transports[1], endpoint.Config{Level: c.level, Linger: 10 * time.Millisecond})
			s.recv()
			s.Start()
			s.send()
			require.NoError(t, s.PostSend(&endpoint.Request{Op: endpoint.OpRead}))
			require.NoError(t, s.PostSend(&endpoint.Request{Op: endpoint.OpRead}))
			require.NoError(t, s.PostSend(&endpoint.Request{Op: endpoint.OpSend, Fence: true}))
			for range 3 {
				h.get()
			}
			if c.send == 0 {
				s.sent(endpoint.OpSend, 0, 0)
			}
			if c.lose != nil {
				c.lose(h)
			} else {
				s.Close()
			}
			e := s.expect("ended")
			assert.Contains(t, c.cause, e.cause, "%v", e.err)
			if c.send != 0 {
				s.sent(endpoint.OpSend, c.send, 0)
			}
			s.sent(endpoint.OpRead, c.read, 0)
			s.sent(endpoint.OpRead, endpoint.FlawFlushed, 0)
			s.sent(endpoint.OpSend, endpoint.FlawFlushed, 0)
			s.received(endpoint.OpReceive, endpoint.FlawFlushed, 0)
			s.drained()
		})
	}
}

func TestLostWithinAMessage(t *testing.T) {
	for _, l := range levels {
		s, h := byHand(t, transports[1], endpoint.Config{Level: l})
		m := s.register(100, allRights)
		s.recv(m.all()...)
		s.recv()
		s.Start()
		h.put(segment.Header{Type: segment.Send, Number: 201}, nil, make([]byte, 10))
		h.conn.Close()
		s.ended(endpoint.CauseLost)
		s.received(endpoint.OpReceive, endpoint.FlawTransport|endpoint.FlawPartial, 0)
		s.received(endpoint.OpReceive, endpoint.FlawFlushed, 0)
		s.drained()

		s, h = byHand(t, transports[1], endpoint.Config{Level: l})
		m = s.register(100, allRights)
		s.Start()
		h.put(segment.Header{Type: segment.RDMAWrite, Number: 201}, &segment.RDMA{Address: m.addr, Handle: uint32(m.handle), Length: 100}, make([]byte, 10))
		h.conn.Close()
		assert.Equal(t, endpoint.EventWriteAbort, s.expect("event").event)
		s.ended(endpoint.CauseLost)
		s.drained()

		s, h = byHand(t, transports[1], endpoint.Config{Level: l})
		m = s.register(100, allRights)
		s.recv()
		s.Start()
		h.put(segment.Header{Type: segment.RDMAWrite, Flags: idv, Immediate: 5, Number: 201},
			&segment.RDMA{Address: m.addr, Handle: uint32(m.handle), Length: 100}, make([]byte, 10))
		h.conn.Close()
		s.ended(endpoint.CauseLost)
		assert.Equal(t, endpoint.Result{Op: endpoint.OpRemoteWrite, Flaws: endpoint.FlawTransport | endpoint.FlawPartial, HasImmediate: true, Immediate: 5},
			s.expect("receive").result)
		s.drained()
	}
}

// The ACK of the last message is sent also if the connection is closed at once.
func TestCloseAcknowledges(t *testing.T) {
	for range 20 {
		for _, tr := range transports {
			a, b := newPair(t, tr, endpoint.Config{Level: segment.ReliableReception})
			b.recv()
			b.hook = func(c told) {
				if c.kind == "receive" {
					b.Abort()
				}
			}
			a.Start()
			b.Start()
			a.send()
			a.sent(endpoint.OpSend, 0, 0)
			a.ended(endpoint.CausePeerClosed)
			b.received(endpoint.OpReceive, 0, 0)
			b.ended(endpoint.CauseClosed)
			a.drained()
			b.drained()
		}
	}
}

// Nothing is closed before the Handler has returned and its message can be acknowledged.
func TestCloseWaitsForTheHandler(t *testing.T) {
	for _, tr := range transports {
		s, h := byHand(t, tr, endpoint.Config{Level: segment.ReliableReception})
		s.hook = func(c told) {
			if c.kind == "receive" {
				s.Abort()
				for range 1000 { // the end comes as far as it can
					runtime.Gosched()
				}
			}
		}
		s.recv()
		s.Start()
		h.put(segment.Header{Type: segment.Send, Flags: eom, Number: 201}, nil, nil)
		assert.Equal(t, uint32(201), h.get().Ack)
		h.closed()
	}
}

// A Handler may post and Abort; posting from it after the end is flushed too, and what
// ErrEnded refuses comes after all results.
func TestPostingFromTheHandler(t *testing.T) {
	for _, tr := range transports {
		a, b := newPair(t, tr, endpoint.Config{Level: segment.ReliableDelivery})
		posted, left := 0, 5
		a.hook = func(c told) {
			if c.kind == "receive" && left > 0 {
				left--
				if a.PostReceive(&endpoint.Receive{}) == nil {
					posted++
				}
			}
		}
		a.recv()
		a.Start()
		b.Start()
		b.Abort()
		a.ended(endpoint.CausePeerClosed)
		<-a.Done()
		for range 1 + posted {
			a.received(endpoint.OpReceive, endpoint.FlawFlushed, 0)
		}
		require.Equal(t, 5, posted)
		require.ErrorIs(t, a.PostReceive(&endpoint.Receive{}), endpoint.ErrEnded)
		a.drained()
	}
}

// An error code has its time whatever Linger is: to be told to a peer that is slow to read.
func TestErrorCodeToldInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := byDeafHand(t, transports[0], endpoint.Config{Level: segment.ReliableReception, Linger: time.Nanosecond})
		s.Start()
		h.put(segment.Header{Type: segment.Send, Flags: eom, Number: 201}, nil, nil)
		time.Sleep(900 * time.Millisecond)
		h.hear()
		got := h.get()
		assert.Equal(t, segment.DescriptorError, got.Code)
		assert.EqualValues(t, 201, got.Ack)
		h.closed()
		assert.Equal(t, endpoint.EventReceiveQueueEmpty, s.expect("event").event)
		s.ended(endpoint.CauseInbound)
		s.drained()
	})
}

// deaf is a connection whose peer does not take anything any more.
type deaf struct{ net.Conn }

func (deaf) Write([]byte) (int, error) { return 0, syscall.EPIPE }

// And to be heard, after a write has failed.
func TestErrorCodeHeardInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, y := net.Pipe()
		given := transport{make: func(testing.TB) (net.Conn, net.Conn) { return deaf{x}, y }}
		s, h := byDeafHand(t, given, endpoint.Config{Level: segment.ReliableReception, Linger: time.Nanosecond})
		s.Start()
		s.send()
		time.Sleep(900 * time.Millisecond)
		h.put(segment.Header{Type: segment.NOP, Flags: eom, Number: 200, Ack: 101, Code: segment.DescriptorError}, nil, nil)
		s.ended(endpoint.CauseRemote)
		s.sent(endpoint.OpSend, endpoint.FlawRemoteDescriptor, 0)
		s.drained()
	})
}

// A peer that neither reads nor closes costs Linger, no more.
func TestLingerIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := byDeafHand(t, transports[0], endpoint.Config{Level: segment.ReliableReception, Linger: 3 * time.Second})
		s.Start()
		s.send()
		synctest.Wait()
		begin := time.Now()
		s.Close()
		assert.LessOrEqual(t, time.Since(begin), 3*time.Second)
		s.ended(endpoint.CauseClosed)
		s.sent(endpoint.OpSend, endpoint.FlawFlushed, 0)
		s.drained()
	})
	x, y := loopback(t)
	defer y.Close()
	s := newSide(t, x, endpoint.Config{Level: segment.ReliableDelivery, Linger: time.Millisecond})
	s.Start()
	s.Close() // the peer's half stays open
	s.ended(endpoint.CauseClosed)
	s.drained()
}

// Of many segments an early one ends the connection, and what is behind it has filled the buffer. What still comes is read over, and
// the peer's close is heard.
func TestEndAmidMany(t *testing.T) {
	s, h := byDeafHand(t, transports[1], endpoint.Config{Level: segment.ReliableReception, Linger: time.Hour})
	var many []byte
	for i := range uint32(2000) {
		many = append(many, h.frame(segment.Header{Type: segment.Send, Flags: eom, Number: 201 + i}, nil, nil)...)
	}
	h.write(many)
	s.Start()
	h.hear()
	assert.Equal(t, segment.DescriptorError, h.get().Code)
	h.closed()
	assert.Equal(t, endpoint.EventReceiveQueueEmpty, s.expect("event").event)
	s.ended(endpoint.CauseInbound)
	s.drained()
}

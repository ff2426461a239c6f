package endpoint_test

import (
	"bytes"
	"io"
	"net"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/netpoll"
	"github.com/softrnic/softrnic/internal/vitcp/endpoint"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
)

// arrived is how many octets wait to be read from a connection.
func arrived(t *testing.T, c net.Conn) (n int) {
	rc, err := tcp(c).SyscallConn()
	require.NoError(t, err)
	buf := make([]byte, 1<<16)
	require.NoError(t, rc.Control(func(fd uintptr) {
		n, _, _ = syscall.Recvfrom(int(fd), buf, syscall.MSG_DONTWAIT|syscall.MSG_PEEK)
	}))
	return max(n, 0)
}

// A post to an idle endpoint has written when it returns, though whoever serves the group is
// busy.
func TestPostWrites(t *testing.T) {
	for _, l := range levels {
		s, h := byDeafHand(t, transports[1], endpoint.Config{Level: l})
		entered, gate := holdReader(s)
		s.recv()
		s.Start()
		h.put(segment.Header{Type: segment.Send, Flags: eom, Number: 201}, nil, nil)
		<-entered // the group's keeper has the turn and does not go on
		s.send()
		assert.Equal(t, segment.SegmentHeader, arrived(t, h.conn), "%v", l)
		gate()
		h.conn.Close()
	}
}

// A post does not send for ever what others post meanwhile, the Handler here.
func TestPostReturns(t *testing.T) {
	s, h := byDeafHand(t, transports[1], endpoint.Config{Level: segment.ReliableDelivery})
	var returned atomic.Bool
	s.hook = func(told) {
		if !returned.Load() {
			s.send()
		}
	}
	s.recorder.calls = make(chan told, 1<<20)
	go func() { _, _ = io.Copy(io.Discard, h.conn) }()
	s.Start()
	s.send()
	returned.Store(true)
	h.conn.Close()
}

// Who polls a group drives its endpoints, and nobody else has to. The ACK of what it has received goes with what it posts
// then, the answer say, or with its next look.
func TestPollerReceives(t *testing.T) {
	g := new(netpoll.Group)
	s, h := byHand(t, transports[1], endpoint.Config{Level: segment.ReliableReception, Group: g})
	s.Start()
	require.True(t, g.Claim()) // the background poller serves no more
	comes := func(number uint32) {
		s.recv()
		h.put(segment.Header{Type: segment.Send, Flags: eom, Number: number}, nil, nil)
		for !g.Drive() {
			runtime.Gosched()
		}
		require.Len(t, s.calls, 1)
		s.received(endpoint.OpReceive, 0, 0)
	}
	comes(201)
	s.send()
	answer := h.get()
	assert.Equal(t, []any{segment.Send, uint32(201)}, []any{answer.Type, answer.Ack}, "the answer has the ACK")
	g.Drive()
	comes(202)
	g.Drive()
	alone := h.get()
	assert.Equal(t, []any{segment.NOP, uint32(202)}, []any{alone.Type, alone.Ack}, "the next look sends it")
	g.Leave()
}

// The ACK of what comes while nobody looks goes at once.
func TestBackgroundAcknowledges(t *testing.T) {
	s, h := byHand(t, transports[1], endpoint.Config{Level: segment.ReliableReception})
	s.recv()
	s.Start()
	h.put(segment.Header{Type: segment.Send, Flags: eom, Number: 201}, nil, nil)
	s.received(endpoint.OpReceive, 0, 0)
	assert.Equal(t, uint32(201), h.get().Ack)
}

// Endpoints of a group have no goroutines.
func TestGoroutines(t *testing.T) {
	g := new(netpoll.Group)
	for range 10 {
		s, h := byDeafHand(t, transports[1], endpoint.Config{Group: g})
		s.recv()
		s.Start()
		h.put(segment.Header{Type: segment.Send, Flags: eom, Number: 201}, nil, nil)
		s.received(endpoint.OpReceive, 0, 0)
	}
	until(t, "the last goroutine has gone", func() bool { // those of the end of other tests
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		return !bytes.Contains(stacks, []byte("created by github.com/softrnic/softrnic/internal/vitcp/endpoint."))
	})
}

// waitingForAnswers is an endpoint with an answer that the socket does not take whole, whose
// reader has a Send that must not overtake it.
func waitingForAnswers(t *testing.T) (*side, *hand) {
	const n = 16 << 20
	s, h := byDeafHand(t, transports[1], endpoint.Config{Level: segment.ReliableReception, MTU: n})
	m := s.register(n, allRights)
	s.recv()
	s.Start()
	h.put(segment.Header{Type: segment.RDMAReadRequest, Flags: eom, Number: 201},
		&segment.RDMA{Address: m.addr, Handle: uint32(m.handle), Length: n}, nil)
	h.put(segment.Header{Type: segment.Send, Flags: eom, Number: 202}, nil, nil)
	until(t, "the reader waits", s.ReaderWaits)
	return s, h
}

// A reader that waits does not keep what it waits for from leaving.
func TestAnswersLeaveMeanwhile(t *testing.T) {
	s, h := waitingForAnswers(t)
	require.Empty(t, s.calls)
	h.hear()
	for h.get().Type != segment.RDMAReadResponse {
	}
	s.received(endpoint.OpReceive, 0, 0)
}

// A reset ends what waits.
func TestResetMeanwhile(t *testing.T) {
	s, h := waitingForAnswers(t)
	require.NoError(t, tcp(h.conn).SetLinger(0))
	require.NoError(t, h.conn.Close())
	require.ErrorIs(t, s.endedBy(endpoint.CauseLost), syscall.ECONNRESET)
	s.received(endpoint.OpReceive, endpoint.FlawFlushed, 0)
	s.drained()
}

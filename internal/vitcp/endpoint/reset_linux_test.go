package endpoint_test

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/vitcp/endpoint"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
)

// Linux gives the error of a connection to one system call only. Whichever that is, what
// becomes of a connection that the peer has reset is the same.
func TestResetSeenByEither(t *testing.T) {
	for _, tr := range transports[1:] {
		for _, l := range levels {
			for i, name := range []string{"read", "write"} {
				writeFirst := i == 1
				t.Run(tr.name+"/"+l.String()+"/first to a "+name, func(t *testing.T) { resetSeen(t, tr, l, writeFirst) })
			}
		}
	}
}

func resetSeen(t *testing.T, tr transport, l segment.Level, writeFirst bool) {
	near, far := tr.make(t)
	also, err := tcp(near).File() // near is the endpoint's
	require.NoError(t, err)
	t.Cleanup(func() { also.Close() })
	given := transport{make: func(testing.TB) (net.Conn, net.Conn) { return near, far }}
	s, h := byDeafHand(t, given, endpoint.Config{Level: l})
	entered, gate := holdReader(s)
	rests := s.WriterRests
	s.recv()
	s.recv()
	s.Start()
	s.send()
	_, err = io.ReadFull(far, make([]byte, segment.SegmentHeader))
	require.NoError(t, err)
	if l != segment.ReliableReception {
		s.sent(endpoint.OpSend, 0, 0)
	}
	until(t, "the writer has sent it and rests", rests)
	h.put(segment.Header{Type: segment.Send, Flags: eom, Number: 201}, nil, nil)
	<-entered
	require.NoError(t, tcp(far).SetLinger(0))
	require.NoError(t, far.Close())
	until(t, "the reset has come", func() bool { return isReset(t, also) })
	if writeFirst {
		s.send()
		more := 0 // what is hidden takes some before it finds out
		until(t, "the write has failed", func() bool {
			if tr.name != "tcp" && more < 900 {
				more++
				s.send()
			}
			return s.Broken() != nil
		})
		if tr.name == "tcp" { // else a read of the pump may have been first
			require.ErrorIs(t, s.Broken(), syscall.ECONNRESET)
		}
	}
	gate()

	c, received := s.next(), 0
	for ; c.kind != "ended"; c = s.next() {
		if require.Zero(t, c.result.Flaws); c.kind == "receive" {
			received++
		} else { // what is hidden has taken some
			require.True(t, writeFirst && tr.name != "tcp")
		}
	}
	require.Equal(t, 1, received)
	require.Equal(t, endpoint.CauseLost, c.cause)
	require.ErrorIs(t, c.err, syscall.ECONNRESET)
	if l == segment.ReliableReception {
		s.sent(endpoint.OpSend, endpoint.FlawTransport, 0)
	}
	c = s.next()
	for ; writeFirst && c.kind == "send"; c = s.next() {
		require.Equal(t, endpoint.FlawFlushed, c.result.Flaws&^endpoint.FlawPartial)
	}
	require.Equal(t, result(endpoint.OpReceive, endpoint.FlawFlushed, 0), c.result)
	s.drained()
}

// A peer that closes first has closed, whatever a write met afterwards.
func TestCloseSeenBeforeTheReset(t *testing.T) {
	for _, tr := range transports {
		s, h := byDeafHand(t, tr, endpoint.Config{Level: segment.ReliableDelivery})
		entered, gate := holdReader(s)
		rests := s.WriterRests
		s.recv()
		s.Start()
		until(t, "the writer rests", rests)
		h.put(segment.Header{Type: segment.Send, Flags: eom, Number: 201}, nil, nil)
		<-entered
		require.NoError(t, h.conn.Close())
		until(t, "a write has failed", func() bool {
			s.send() // the first one is answered by a reset
			return s.Broken() != nil
		})
		gate()
		c := s.next()
		for c.kind != "ended" {
			assert.Zero(t, c.result.Flaws)
			c = s.next()
		}
		assert.Equal(t, endpoint.CausePeerClosed, c.cause, "%s: %v", tr.name, c.err)
	}
}

// holdReader has the Handler hold who tells it of a receive until the gate is opened. That is
// the reader, which does not read meanwhile, if the writer rests: else the writer may come first.
func holdReader(s *side) (entered <-chan struct{}, gate func()) {
	in, out := make(chan struct{}, 2), make(chan struct{})
	gate = sync.OnceFunc(func() { close(out) })
	s.t.Cleanup(gate) // before that of the endpoint, which would wait for the reader
	s.hook = func(c told) {
		if c.kind == "receive" {
			in <- struct{}{}
			<-out
		}
	}
	return in, gate
}

// tcp is the TCP connection that c is or hides.
func tcp(c net.Conn) *net.TCPConn {
	if h, ok := c.(hidden); ok {
		c = h.Conn
	}
	return c.(*net.TCPConn)
}

// isReset reports whether the peer's reset has arrived.
func isReset(t *testing.T, c *os.File) bool {
	raw, err := c.SyscallConn()
	require.NoError(t, err)
	const closed = 7 // TCP_CLOSE
	var info int
	var failed error
	require.NoError(t, raw.Control(func(fd uintptr) {
		info, failed = syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_INFO)
	}))
	require.NoError(t, failed)
	start := int32(info)
	return *(*uint8)(unsafe.Pointer(&start)) == closed // struct tcp_info begins with the state
}

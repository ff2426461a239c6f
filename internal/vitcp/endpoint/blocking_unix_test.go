//go:build unix

package endpoint_test

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/vitcp/endpoint"
)

// blocking makes the sockets of a connection block, as programs do that ask for a
// descriptor to set options with.
func blocking(t testing.TB) (net.Conn, net.Conn) {
	t.Helper()
	a, b := loopback(t)
	for _, c := range []net.Conn{a, b} {
		f, err := c.(*net.TCPConn).File()
		require.NoError(t, err)
		_ = f.Fd()
		require.NoError(t, f.Close())
	}
	return a, b
}

// An endpoint does not come to rest in a system call because its descriptor blocks.
func TestBlockingDescriptor(t *testing.T) {
	for _, l := range levels {
		a, b := startPair(t, transport{make: blocking}, endpoint.Config{Level: l})
		m, n := a.register(1<<16, allRights), b.register(1<<16, allRights)
		pattern(m.buf, 1)
		b.recv(n.all()...)
		a.send(m.all()...)
		a.sent(endpoint.OpSend, 0, len(m.buf))
		b.received(endpoint.OpReceive, 0, len(m.buf))
		require.Equal(t, m.buf, n.buf)
		a.Close()
		b.ended(endpoint.CausePeerClosed)
		b.drained()
	}
}

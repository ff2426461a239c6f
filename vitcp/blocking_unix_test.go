//go:build unix

package vitcp_test

import (
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/vitcp"
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
		a, b := startPair(t, transport{make: blocking}, vitcp.EndpointConfig{Level: l})
		m, n := a.register(1<<16, allRights), b.register(1<<16, allRights)
		pattern(m.buf, 1)
		b.recv(n.all()...)
		a.send(m.all()...)
		a.sent(vitcp.OpSend, 0, len(m.buf))
		b.received(vitcp.OpReceive, 0, len(m.buf))
		require.Equal(t, m.buf, n.buf)
		a.Close()
		b.ended(vitcp.CausePeerClosed)
		b.drained()
	}
}

// A context ends establishment over a blocking descriptor too.
func TestBlockingDescriptorWhileConnecting(t *testing.T) {
	for name, establish := range map[string]func(context.Context, net.Conn) error{
		"Connect": func(ctx context.Context, c net.Conn) error {
			_, err := vitcp.Connect(ctx, c, "a", "b", vitcp.Config{})
			return err
		},
		"Await": func(ctx context.Context, c net.Conn) error {
			_, err := vitcp.Await(ctx, c, vitcp.Filter{})
			return err
		},
	} {
		near, far := blocking(t)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- establish(ctx, near) }()
		cancel()
		require.ErrorIs(t, <-done, context.Canceled, name)
		require.NoError(t, far.Close())
	}
}

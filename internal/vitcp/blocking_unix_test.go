//go:build unix

package vitcp_test

import (
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/vitcp"
)

// blocking is a connection whose near socket blocks, as programs make it that ask for a
// descriptor to set options with.
func blocking(t testing.TB) (near, far net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	near, err = net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	far, err = l.Accept()
	require.NoError(t, err)
	f, err := near.(*net.TCPConn).File()
	require.NoError(t, err)
	_ = f.Fd()
	require.NoError(t, f.Close())
	return near, far
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

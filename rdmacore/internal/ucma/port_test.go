//go:build linux && (amd64 || arm64)

package ucma

import (
	"context"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRefusedInItsTurn: a connect that is refused has its time from rdma_connect on, and not from its turn: behind others that were
// refused it is tried once.
func TestRefusedInItsTurn(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	dst := netip.MustParseAddrPort(l.Addr().String())
	require.NoError(t, l.Close())
	tried := 0
	d := dialer{
		own: func(int) {}, tos: -1, limit: limits{Refused: time.Minute, Again: time.Millisecond}, begun: time.Now().Add(-time.Minute),
		find: func(_ context.Context, _, dst netip.AddrPort) netip.AddrPort { tried++; return dst },
		src:  netip.MustParseAddrPort("127.0.0.1:0"),
	}
	_, err = d.dial(t.Context(), dst)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	assert.Equal(t, 1, tried)
}

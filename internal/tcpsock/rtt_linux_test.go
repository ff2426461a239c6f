package tcpsock

import (
	"crypto/tls"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/rawpeer"
)

// TestRTT: TCP has measured it when the connection is there; nothing else has one.
func TestRTT(t *testing.T) {
	c, far, err := rawpeer.Pair()
	require.NoError(t, err)
	defer func() { _, _ = c.Close(), far.Close() }()
	for _, c := range []net.Conn{c, tls.Client(c, nil)} {
		require.Positive(t, RTT(c))
		require.Less(t, RTT(c), time.Minute)
	}
	p, q := net.Pipe()
	defer func() { _, _ = p.Close(), q.Close() }()
	require.Zero(t, RTT(p))
	require.NoError(t, c.Close())
	require.Zero(t, RTT(c))
}

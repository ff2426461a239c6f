package sockio

import (
	"crypto/tls"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestRTT: TCP has measured it when the connection is there; nothing else has one.
func TestRTT(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	c, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
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

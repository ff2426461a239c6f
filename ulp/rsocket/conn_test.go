package rsocket_test

import (
	"net"
	"testing"

	"golang.org/x/net/nettest"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/leakcheck"
	"github.com/softrnic/softrnic/ulp/rsocket"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

// pair is the two ends of a connection over loopback: that which dialled, and that which accepted.
func pair(t testing.TB, c rsocket.Config) (a, b *rsocket.Conn) {
	l, err := c.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	accepted := make(chan net.Conn, 1)
	go func() {
		nc, err := l.Accept()
		if err != nil {
			close(accepted)
			return
		}
		accepted <- nc
	}()
	nc, err := c.DialContext(t.Context(), "tcp", l.Addr().String())
	require.NoError(t, err)
	other, ok := <-accepted
	require.True(t, ok)
	t.Cleanup(func() { _, _ = nc.Close(), other.Close() })
	return nc.(*rsocket.Conn), other.(*rsocket.Conn)
}

func TestNetConn(t *testing.T) {
	for name, c := range map[string]rsocket.Config{
		"default":   {},
		"small":     {RecvBuffer: 1, SendBuffer: 1},
		"crc":       {CRC: true},
		"immediate": {Immediate: true},
	} {
		t.Run(name, func(t *testing.T) {
			nettest.TestConn(t, func() (net.Conn, net.Conn, func(), error) {
				a, b := pair(t, c)
				return a, b, func() { _, _ = a.Close(), b.Close() }, nil
			})
		})
	}
}

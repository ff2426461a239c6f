package nd2_test

import (
	"context"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/nd2"
)

// Peers that connect and say nothing keep nobody out, however short the backlog.
func TestListenerOfOneAndSilentPeers(t *testing.T) {
	patient := nd2.Provider{CM: cm.Config{Timeout: time.Hour}} // none of them loses its place by its time
	server, client := newSide(t, shape{provider: patient}), newSide(t, shape{})
	l, err := server.a.CreateListener()
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	require.NoError(t, l.Bind(netip.MustParseAddrPort("127.0.0.1:0")))
	require.NoError(t, l.Listen(1))
	at, err := l.GetLocalAddress()
	require.NoError(t, err)
	for range 3 {
		nc, err := net.Dial("tcp", at.String())
		require.NoError(t, err)
		t.Cleanup(func() { nc.Close() })
	}
	accepted := nd2.Overlap(bounded(t), func(ctx context.Context) error {
		if err := l.GetConnectionRequest(ctx, server.conn); err != nil {
			return err
		}
		return server.conn.Accept(ctx, server.qp, 1, 1, nil)
	})
	require.NoError(t, client.conn.Connect(bounded(t), client.qp, at, 1, 1, nil))
	require.NoError(t, client.conn.CompleteConnect(bounded(t)))
	require.NoError(t, accepted.GetOverlappedResult(true))
}

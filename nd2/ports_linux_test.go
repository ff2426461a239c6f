package nd2_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/exhaustion"
	"github.com/softrnic/softrnic/nd2"
)

// TestConnectWithoutPorts: a local port of zero, and none to be had (IND2Connector::Bind).
func TestConnectWithoutPorts(t *testing.T) {
	exhaustion.Ports(t, func(server string) {
		for _, bound := range []bool{false, true} {
			s := newSide(t, shape{})
			if bound {
				require.NoError(t, s.conn.Bind(loopback))
			}
			err := s.conn.Connect(bounded(t), s.qp, netip.MustParseAddrPort(server), 0, 0, nil)
			require.ErrorIs(t, err, nd2.ErrTooManyAddresses)
			require.ErrorContains(t, err, "no local port")
		}
	})
}

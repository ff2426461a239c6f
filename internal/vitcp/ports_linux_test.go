package vitcp_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/exhaustion"
	"github.com/softrnic/softrnic/internal/vitcp"
)

// TestDialWithoutPorts: what is lacking is said, whether the program has given an address of this host or not.
func TestDialWithoutPorts(t *testing.T) {
	exhaustion.Ports(t, func(server string) {
		to := vitcp.Address{Host: netip.MustParseAddrPort(server), Discriminator: "bob"}
		for _, from := range []string{"127.0.0.1:0", "0.0.0.0:0"} {
			local := vitcp.Address{Host: netip.MustParseAddrPort(from), Discriminator: "alice"}
			_, err := vitcp.Dial(bounded(t), local, to, vitcp.Config{})
			require.ErrorContains(t, err, "no local port")
		}
	})
}

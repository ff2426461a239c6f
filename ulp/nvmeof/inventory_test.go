package nvmeof

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/leakcheck"
)

// TestInventory: when a target and a host are closed, nothing is left of queues, controllers, transfers and calls.
func TestInventory(t *testing.T) {
	for name, c := range map[string]Config{"own receives": {}, "shared receives": {SharedReceives: 64}} {
		t.Run(name, func(t *testing.T) {
			leakcheck.Inventory(t)
			addr, _ := serve(t, c, subsystem(t, Memory(1<<20)))
			h := dialHost(t, addr, HostConfig{Queues: 2})
			n := diskOf(t, h, 1)
			want, got := pattern(1, 64<<10), make([]byte, 64<<10)
			_, err := n.WriteAt(want, 0)
			require.NoError(t, err)
			_, err = n.ReadAt(got, 0)
			require.NoError(t, err)
			require.Equal(t, want, got)
			require.NoError(t, h.Close())
			broken := dialHost(t, addr, HostConfig{})
			require.NoError(t, broken.admin.conn.Abort())
			<-broken.Done()
		})
	}
}

package rsocket_test

import (
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/leakcheck"
	"github.com/softrnic/softrnic/ulp/rsocket"
	"github.com/softrnic/softrnic/verbs"
)

// TestInventory: connections give back what the RNIC has made for them, however far they came.
func TestInventory(t *testing.T) {
	nic, err := verbs.Open(verbs.Config{Limits: verbs.Limits{Regions: 5}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, nic.Close()) })
	leakcheck.Inventory(t) // behind the RNIC, which goes later than all that is left
	c := rsocket.Config{NIC: nic, Mapped: 4}
	a, b := pair(t, c)
	require.NoError(t, a.Map(make([]byte, 4096), 0))
	_, err = a.Write([]byte("something"))
	require.NoError(t, err)
	_, err = io.ReadFull(b, make([]byte, 9))
	require.NoError(t, err)

	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	_, err = c.DialContext(t.Context(), "tcp", l.Addr().String())
	require.ErrorIs(t, err, verbs.ErrInsufficientResources, "five regions there are")
	require.NoError(t, a.Close())
	require.NoError(t, b.Close())
}

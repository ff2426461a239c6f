package cm

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNothingHandedOutBehindTheLast: a Request that Accept has taken and not handed out when Shutdown has seen the last is not.
func TestNothingHandedOutBehindTheLast(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	var h handed
	require.True(t, h.request(&Request{nc: a}))
	for o := range h.open {
		close(o.(*undecided).done)
	}
	require.Zero(t, h.drain(t.Context()))
	require.False(t, h.request(&Request{nc: b}))
}

package cm_test

import (
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

// TestDestroyedUnderneath: a connection whose queue pair was destroyed, or whose
// RNIC was closed, says so, and so does a queue pair that is to be connected.
func TestDestroyedUnderneath(t *testing.T) {
	for name, c := range map[string]struct {
		want error
		end  func(*host) error
	}{
		"queue pair": {verbs.ErrInvalidQP, func(h *host) error { return h.qp.Destroy() }},
		"RNIC":       {verbs.ErrInvalidRNIC, func(h *host) error { return h.nic.Close() }},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := newHost(t, verbs.QPConfig{}), newHost(t, verbs.QPConfig{})
			x, y := connect(t, tcpLink, a, b, cm.Config{}, cm.Config{}, nil)
			require.Equal(t, 16, x.ORD())
			require.NoError(t, x.Err(), "it is up")
			require.NoError(t, c.end(a))
			require.Zero(t, x.ORD())
			err := x.Close()
			require.ErrorIs(t, err, net.ErrClosed)
			require.ErrorIs(t, err, c.want)
			<-y.Done()
			require.ErrorIs(t, y.Close(), syscall.ECONNRESET)
			require.NotErrorIs(t, y.Err(), net.ErrClosed)
			p, q := pipeLink(t)
			_, err = cm.Connect(t.Context(), p, a.qp, cm.Config{})
			require.ErrorIs(t, err, c.want)
			_, err = q.Read(make([]byte, 1))
			require.Error(t, err, "it was closed")
		})
	}
}

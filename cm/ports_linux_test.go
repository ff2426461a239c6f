package cm_test

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/test/exhaustion"
	"github.com/softrnic/softrnic/verbs"
)

// TestDialWithoutPorts: with no local port left, the error says so, and does not send anybody to look for the server.
func TestDialWithoutPorts(t *testing.T) {
	exhaustion.Ports(t, func(server string) {
		_, err := cm.Dial(bounded(t), server, newHost(t, verbs.QPConfig{}).qp, cm.Config{})
		var ce *cm.ConnectError
		require.ErrorAs(t, err, &ce)
		assert.Equal(t, cm.CauseLocal, ce.Cause)
		assert.Equal(t, cm.StepTCP, ce.Step)
		require.ErrorIs(t, err, syscall.EADDRNOTAVAIL)
		assert.ErrorContains(t, err, "no local port")
		assert.NotContains(t, err.Error(), "server")
	})
}

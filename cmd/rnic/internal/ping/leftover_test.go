package ping

import (
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/rnic/internal/clitest"
	"github.com/softrnic/softrnic/internal/test/droppedpeer"
)

// Of connections that end while they are made, a server for any number of clients keeps nothing, and serves the next.
func TestNothingStaysOfBrokenConnections(t *testing.T) {
	s := clitest.StartServer(t, "ping", "-s", "-P", "-a", "127.0.0.1", "-p", "0")
	script := droppedpeer.MPA(nil)
	script.Answer = nil // of more than --clients at a time some are refused
	droppedpeer.Leave(t, s.Addr, script)
	host, port, err := net.SplitHostPort(s.Addr)
	require.NoError(t, err)
	c := clitest.Run(t.Context(), "ping", "-c", "-a", host, "-p", port, "-C", "3")
	assert.Zero(t, c.Status, c.Stderr)
	s.Stop()
	assert.Zero(t, (<-s.Done).Status)
}

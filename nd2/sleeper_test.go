package nd2

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSleeperKeepsRetired: while a goroutine is in Wait, which may have taken completions of a closed queue pair that it
// has not translated, GetResults of another, which finds the queue empty, forgets nothing. It does once the
// sleeper is back.
func TestSleeperKeepsRetired(t *testing.T) {
	var p Provider
	id, err := p.ResolveAddress(netip.MustParseAddr("127.0.0.1"))
	require.NoError(t, err)
	a, err := p.OpenAdapter(id)
	require.NoError(t, err)
	defer func() { require.NoError(t, a.Close()) }()
	c, err := a.CreateCompletionQueue(8)
	require.NoError(t, err)
	woken := make(chan error, 1)
	go func() {
		_, err := c.Wait(t.Context(), make([]Result, 1))
		woken <- err
	}()
	require.Eventually(t, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.asleep == 1
	}, time.Minute, time.Millisecond)

	forgotten := 0
	r := &retirement{forget: func() { forgotten++ }}
	r.left.Store(1)
	c.retire(r)
	require.Zero(t, c.GetResults(make([]Result, 1)))
	require.Zero(t, forgotten, "the sleeper may have something of it")

	q, err := a.CreateQueuePair(c, c, nil, 1, 1, 1, 1, 0)
	require.NoError(t, err)
	require.NoError(t, q.Receive(1, nil))
	require.NoError(t, q.Flush())
	require.NoError(t, <-woken)
	require.Zero(t, c.GetResults(make([]Result, 1)))
	require.Equal(t, 1, forgotten, "nobody sleeps any more")
}

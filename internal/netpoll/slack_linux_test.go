package netpoll

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSlack: behind a waiter that has gone nobody serves for as long as Slack says, and what the waiter could not send is sent all the same.
func TestSlack(t *testing.T) {
	g := newGroup(t)
	g.Slack = time.Hour
	p := add(t, g)
	require.True(t, g.Claim())
	g.Leave()
	until(t, g, Nobody)
	p.fill()
	p.sock.WantOutput(true) // nobody looks, so the keeper has to be told
	p.drain()
	require.Eventually(t, func() bool { return p.room.Load() == 1 }, patience, time.Millisecond)
}

// TestWatchdogWithSlack: no look comes before the slack is over.
func TestWatchdogWithSlack(t *testing.T) {
	start := time.Now()
	w := watchdog{at: start, tick: time.Hour, least: time.Hour}
	require.False(t, w.look(100, start.Add(time.Hour)))
	require.Equal(t, time.Hour, w.tick)
	require.True(t, w.look(100, start.Add(2*time.Hour)), "they have gone")
	require.False(t, w.look(100, start.Add(9*time.Hour)), "who knows")
	require.Equal(t, time.Hour, w.tick)
}

// TestLeaveHandsOver: where somebody else waits the background poller serves at once when the waiter has gone, however
// long the slack.
func TestLeaveHandsOver(t *testing.T) {
	g, q := newGroup(t), new(queue)
	g.Slack = time.Hour
	g.Serve(q)
	add(t, g)
	until(t, g, BackgroundPoller)
	require.True(t, g.Claim())
	until(t, g, Nobody)
	q.awaited.Store(true)
	g.Leave()
	until(t, g, BackgroundPoller)
}

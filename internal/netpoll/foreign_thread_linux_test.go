package netpoll

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestWatch: a thread that sleeps on what it is told wakes at an arrival though the keeper does nothing, and drives.
func TestWatch(t *testing.T) {
	g := newGroup(t)
	fds, got := g.Watch(nil)
	require.False(t, got)
	require.Empty(t, fds, "no sockets")
	p := add(t, g)
	pollersServe(t, g)
	g.mu.Lock()
	g.set.setLowWater(p.sock)
	g.mu.Unlock()
	for n := int64(1); n <= 3; n++ {
		for {
			if fds, got = g.Watch(fds[:0]); !got {
				break
			}
		}
		require.Len(t, fds, 1)
		g.mu.Lock()
		require.Nil(t, g.set.low, "the system tells of all that arrives")
		g.mu.Unlock()
		g.undisturbed()
		g.mu.Lock()
		require.Nil(t, g.set.low, "and goes on")
		g.mu.Unlock()
		again, _ := g.Watch(fds)
		require.Equal(t, fds, again, "once")
		p.send(1)
		if p.octets.Load() < n { // else the keeper has come
			ready := []unix.PollFd{{Fd: int32(fds[0]), Events: unix.POLLIN}}
			_, err := unix.Poll(ready, int(patience.Milliseconds()))
			require.NoError(t, err)
		}
		require.Eventually(t, func() bool { g.Watch(nil); return p.octets.Load() == n }, patience, 1)
	}
	g.Drive()
	require.False(t, g.now().has(watched), "who polls needs not be told")
}

package qp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/wr"
)

// TestGracefulPausedByPoller has a poller find the message, and then poll no more: the
// keeper goes on when a receive is posted.
func TestGracefulPausedByPoller(t *testing.T) {
	for _, sharing := range []bool{false, true} {
		var shared *sharedQueue
		if sharing {
			shared = newShared(t, ownPD)
		}
		r := newRig(t, graceful(setup{config: func(c *Config) { c.Tuning.Drive = 1 }}, shared))
		r.pollersServe()
		r.send(rawpeer.Send(1, nil).Octets())
		require.Eventually(t, func() bool {
			r.rcq.Poll(make([]wr.Completion, 1))
			return r.s.rx.locked(func(rx *receiver) bool { return rx.in.kept != nil })
		}, patience, 1e6)
		if sharing {
			shared.post(wr.Recv{ID: 1})
		} else {
			r.postRecv(wr.Recv{ID: 1})
		}
		require.Eventually(t, func() bool { return r.rcq.Len() == 1 }, patience, 1e6)
	}
}

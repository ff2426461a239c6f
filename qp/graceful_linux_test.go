package qp

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/wire"
	"github.com/softrnic/softrnic/wr"
)

// TestGracefulPausedByPoller has a poller find the message while receiveLoop is
// asleep in the network poller, and then poll no more: receiveLoop goes on when a
// receive is posted.
func TestGracefulPausedByPoller(t *testing.T) {
	for _, sharing := range []bool{false, true} {
		var shared *sharedQueue
		if sharing {
			shared = newShared(t, ownPD)
		}
		r := newRig(t, graceful(setup{}, shared))
		require.Eventually(t, r.s.llp.parked.Load, patience, 1e6)
		r.s.llp.raw.setLowWater(true) // nothing that arrives wakes it
		r.send(wire.Send(1, nil).Octets())
		require.Eventually(t, func() bool {
			r.s.rx.Drive()
			return r.s.rx.locked(func(rx *receiver) bool { return rx.in.kept != nil })
		}, patience, 1e6)
		r.s.llp.raw.setLowWater(false)
		if sharing {
			shared.post(wr.Recv{ID: 1})
		} else {
			r.postRecv(wr.Recv{ID: 1})
		}
		require.Eventually(t, func() bool { return r.rcq.Len() == 1 }, patience, 1e6)
	}
}

// TestPausedReadsNothing: a reader that was woken, and comes when a poller has
// paused the stream, leaves the receive buffer alone.
func TestPausedReadsNothing(t *testing.T) {
	var (
		r  rawIO
		mu sync.Mutex
		in = intake{kept: []byte{1}}
	)
	r.rd.in, r.rd.l, r.rd.token = &in, new(llp), &mu
	require.True(t, r.tryRead(^uintptr(0)), "it does not go to sleep again")
	require.Equal(t, ioAgain, r.rd.out)
	require.True(t, r.rd.owned)
}

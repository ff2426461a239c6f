package qp

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/srq"
	"github.com/softrnic/softrnic/wr"
)

// A stream that waits for a receive of an S-RQ has a turn, which must not be lost on it.

// TestEndingKeepsNoTurn: a stream that is over, but for a write that its peer holds up,
// leaves the receive to the next one.
func TestEndingKeepsNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := srq.New(srq.Config{ID: 5, PD: ownPD, Depth: 4, SGE: 1})
		r := newRig(t, setup{pipe: true, closeTimeout: time.Minute, config: func(c *Config) { c.SRQ, c.GracefulReceive = q, true }})
		r.postSend(wr.Request{ID: 2, SGL: r.full.sgl(0, slabSize)}) // nobody reads
		r.send(rawpeer.Send(1, filled(9)).Octets())
		synctest.Wait()
		other := make(waiterChan, 1)
		q.Await(other)
		require.NoError(t, r.q.Modify(Modify{Next: wr.StateClosing}))
		begun := time.Now()
		_, err := q.Post(wr.Recv{ID: 1, SGL: r.full.sgl(0, 9)})
		require.NoError(t, err)
		<-other
		require.Zero(t, time.Since(begun))
	})
}

// TestPolledTakesItsTurn: a stream whose program polled, and does no more, takes the
// receive by itself.
func TestPolledTakesItsTurn(t *testing.T) {
	q := srq.New(srq.Config{ID: 5, PD: ownPD, Depth: 4, SGE: 1})
	r := newRig(t, setup{config: func(c *Config) { c.SRQ, c.GracefulReceive, c.Tuning.Drive = q, true, 1 }})
	r.pollersServe()
	r.send(rawpeer.Send(1, filled(9)).Octets())
	require.Eventually(t, func() bool {
		r.rcq.Poll(make([]wr.Completion, 1))
		return r.s.rx.locked(func(rx *receiver) bool { return rx.in.kept != nil })
	}, patience, time.Millisecond)
	_, err := q.Post(wr.Recv{ID: 1, SGL: r.full.sgl(0, 9)})
	require.NoError(t, err)
	// No poll: that would drive.
	require.Eventually(t, func() bool { return r.rcq.Len() > 0 }, patience, time.Millisecond)
}

// waiterChan is an srq.Waiter that gets a token.
type waiterChan chan struct{}

func (c waiterChan) Wake() { signal(c) }

func (waiterChan) Holds() {}

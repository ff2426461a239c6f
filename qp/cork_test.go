package qp

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cq"
	"github.com/softrnic/softrnic/internal/wire"
	"github.com/softrnic/softrnic/wr"
)

// corked is a rig whose program has posted eager requests, and then Sends with the
// IDs from 1 to n, of 10 octets, that are held back until it looks: no timer runs
// out.
func corked(t *testing.T, n int) *rig {
	const eager = 2
	r := newRig(t, setup{config: func(c *Config) {
		c.Tuning = Tuning{Drive: 1, Eager: eager, Hold: 4 * (corkEach + 10), HoldTime: time.Hour}
	}})
	r.s.rx.single = false
	require.Eventually(t, r.s.llp.parked.Load, patience, time.Millisecond) // the CQs know of the session
	for range eager {
		r.postSend(wr.Send{Flags: wr.Unsignaled})
	}
	for i := range n {
		r.postSend(wr.Send{ID: uint64(1 + i), SGL: r.full.sgl(0, 10)})
	}
	for msn := range uint32(eager) {
		require.Equal(t, wire.Send(1+msn, nil).Octets(), r.next(), "the first go out at once")
	}
	return r
}

// requireSent reads the Sends that were held back.
func (r *rig) requireSent(n int) {
	r.t.Helper()
	for i := range uint32(n) {
		require.Equal(r.t, wire.Send(3+i, r.full.mem()[:10]).Octets(), r.next())
	}
}

// TestHeldBack: requests behind the first few stay on the Send Queue until
// something sends them.
func TestHeldBack(t *testing.T) {
	tests := map[string]func(r *rig){
		"an empty poll": func(r *rig) { r.rcq.Poll(make([]wr.Completion, 1)) },
		"Request":       func(r *rig) { require.NoError(r.t, r.scq.Request(cq.NotifyNext)) },
		"a wait": func(r *rig) {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			_, err := r.rcq.Wait(ctx, make([]wr.Completion, 1))
			require.Error(r.t, err)
		},
		"Drain":        func(r *rig) { require.NoError(r.t, r.q.Drain(context.Background())) },
		"Modify":       func(r *rig) { ord := 1; require.NoError(r.t, r.q.Modify(Modify{Next: RTS, ORD: &ord})) },
		"a good close": func(r *rig) { require.NoError(r.t, r.q.Modify(Modify{Next: Closing})) },
		"the timer":    func(r *rig) { r.s.tx.cork.timer.Reset(0) },
	}
	for name, look := range tests {
		t.Run(name, func(t *testing.T) {
			r := corked(t, 2)
			assert.True(t, r.peer.Silent(time.Millisecond))
			assert.Equal(t, uint64(2), r.q.sq.framed.Load())
			look(r)
			r.requireSent(2)
		})
	}
}

// TestHeldBackFull: so much is held back and no more.
func TestHeldBackFull(t *testing.T) {
	r := corked(t, 3)
	assert.True(t, r.peer.Silent(time.Millisecond))
	r.postSend(wr.Send{ID: 4, SGL: r.full.sgl(0, 10)})
	r.requireSent(4)
	assert.Len(t, r.wait(r.scq, 4), 4)
	assert.Zero(t, r.s.tx.cork.held.Load())
	// The poll that found all was no look; an empty one is.
	r.postSend(wr.Send{ID: 5, SGL: r.full.sgl(0, 10)})
	assert.Equal(t, uint64(6), r.q.sq.framed.Load())
	r.all(r.scq)
	assert.Equal(t, uint64(7), r.q.sq.framed.Load())
	r.postSend(wr.Send{ID: 6, SGL: r.full.sgl(0, 10)})
	assert.Equal(t, uint64(8), r.q.sq.framed.Load(), "the first after a look")
}

// TestNeverHeldBack: where nothing is held back, nothing is.
func TestNeverHeldBack(t *testing.T) {
	for name, set := range map[string]setup{
		"turned off": {config: func(c *Config) { c.Tuning.Eager = -1 }},
		"pipe":       {pipe: true, config: func(c *Config) { c.Tuning.Eager = 1 }},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, set)
			for i := range 8 {
				go r.postSend(wr.Send{SGL: r.full.sgl(i, 10)})
				r.next()
			}
			assert.Zero(t, r.s.tx.cork.held.Load())
		})
	}
}

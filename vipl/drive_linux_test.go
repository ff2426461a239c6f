package vipl

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/engine"
)

// Who asks a queue of a VI, or a CQ that one is tied to, drives the connection. Nobody else
// has to.
func TestLookingDrives(t *testing.T) {
	a, b := newHost(t, Config{}), newHost(t, Config{})
	one, two := b.cq(4), b.cq(4)
	for name, c := range map[string]struct{ send, recv *CQ }{
		"no CQ": {}, "one CQ": {one, one}, "two": {one, two}, "for sends": {one, nil}, "for receives": {nil, two},
	} {
		va, vb := a.vi(ServiceReliableReception, nil, nil), b.vi(ServiceReliableReception, c.send, c.recv)
		connect(t, a, va, b, vb)
		require.True(t, vb.group.Claim(), name) // its keeper serves no more
		// What a receive completes is told by the segment itself, a Send by the answer.
		r := b.postRecv(vb)
		d := a.desc()
		d.SetSend()
		a.postSend(va, d)
		looked := func(done func() (*Descriptor, error), q *CQ, recv bool, want *Descriptor) {
			for q != nil {
				v, isRecv, err := q.CQDone()
				if err == nil {
					require.Same(t, vb, v)
					require.Equal(t, recv, isRecv)
					break
				}
				require.ErrorIs(t, err, ErrNotDone)
				runtime.Gosched()
			}
			for {
				d, err := done()
				if err == nil {
					require.Same(t, want, d)
					break
				}
				require.ErrorIs(t, err, ErrNotDone)
				runtime.Gosched()
			}
		}
		looked(vb.RecvDone, c.recv, true, r)
		r, d = a.postRecv(va), b.desc()
		d.SetSend()
		b.postSend(vb, d)
		wait(t, va.RecvWait, r)
		looked(vb.SendDone, c.send, false, d)
		vb.group.Leave()
		require.NoError(t, vb.Disconnect())
		require.NoError(t, va.Disconnect())
	}
}

// A program that waits sleeps in the group that serves its VI, and is woken by what arrives.
func TestWaiterServes(t *testing.T) {
	p := newPair(t, ServiceReliableDelivery, Config{})
	r := p.b.postRecv(p.vb)
	got := make(chan *Descriptor)
	go func() {
		d, _ := p.vb.RecvWait(within(t))
		got <- d
	}()
	for p.vb.group.Server() != engine.Waiter {
		runtime.Gosched()
	}
	d := p.a.desc()
	d.SetSend()
	p.a.postSend(p.va, d)
	require.Same(t, r, <-got)
}

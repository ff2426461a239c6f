package vipl

import (
	"context"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/netpoll"
)

// claimed has another goroutine claim the poller slot of g, so that this one can wait elsewhere, until leave.
func claimed(t *testing.T, g *group) (leave func()) {
	ok, end, left := make(chan bool), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(left)
		got := g.Claim()
		if ok <- got; got {
			<-end
			g.Leave()
		}
	}()
	require.True(t, <-ok)
	return func() { close(end); <-left }
}

// Who asks a queue of a VI, or a CQ that one is tied to, drives the connection. Nobody else
// has to.
func TestLookingDrives(t *testing.T) {
	a, b := newHost(t, Config{}), newHost(t, Config{})
	one, two := b.cq(4), b.cq(4)
	for _, c := range map[string]struct{ send, recv *CQ }{
		"no CQ": {}, "one CQ": {one, one}, "two": {one, two}, "for sends": {one, nil}, "for receives": {nil, two},
	} {
		va, vb := a.vi(ServiceReliableReception, nil, nil), b.vi(ServiceReliableReception, c.send, c.recv)
		connect(t, a, va, b, vb)
		leave := claimed(t, vb.group) // its keeper serves no more
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
		leave()
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
	for p.vb.group.Server() != netpoll.Waiter {
		runtime.Gosched()
	}
	d := p.a.desc()
	d.SetSend()
	p.a.postSend(p.va, d)
	require.Same(t, r, <-got)
}

// TestChurn: VIs of one CQ come, exchange messages and go, while programs poll it, wait on it
// and have themselves notified. Nobody gets stuck, and no message is lost.
func TestChurn(t *testing.T) {
	a, b := newHost(t, Config{}), newHost(t, Config{})
	ca, cb := a.cq(1024), b.cq(1024)
	const vis, messages, rounds = 4, 30, 5
	var looking, working sync.WaitGroup
	ctx, stop := context.WithCancel(within(t))
	defer stop()
	for _, q := range []*CQ{ca, cb} {
		looking.Go(func() { // it polls
			for ctx.Err() == nil {
				_, _, _ = q.CQDone()
				runtime.Gosched()
			}
		})
		for range 2 { // they wait
			looking.Go(func() {
				for ctx.Err() == nil {
					_, _, _ = q.CQWait(ctx)
				}
			})
		}
		var again CQHandler
		again = func(*Nic, *Vi, bool) { _ = q.CQNotify(again) }
		require.NoError(t, q.CQNotify(again))
	}
	descs := make([][2]*Descriptor, vis*messages)
	for i := range descs {
		descs[i] = [2]*Descriptor{a.desc(), b.desc()}
	}
	for round := range rounds {
		pairs := make([][2]*Vi, vis)
		for i := range pairs {
			pairs[i] = [2]*Vi{a.vi(levels[1+i%2], ca, ca), b.vi(levels[1+i%2], cb, cb)}
			connect(t, a, pairs[i][0], b, pairs[i][1])
		}
		for i, p := range pairs {
			working.Go(func() {
				for n := range messages {
					d, r := descs[i*messages+n][0], descs[i*messages+n][1]
					r.SetRecv(b.data(1<<17*i, 1<<16))
					assert.NoError(t, p[1].PostRecv(r, b.dh))
					d.SetSend(a.data(0, 1+(n<<11)%(1<<16)))
					assert.NoError(t, p[0].PostSend(d, a.dh))
					for _, done := range []func() (*Descriptor, error){p[0].SendDone, p[1].RecvDone} {
						got, err := done()
						for ; ReturnOf(err) == ErrNotDone; got, err = done() {
							runtime.Gosched()
						}
						assert.NoError(t, err)
						assert.Zero(t, got.Control.Status.Errors())
					}
					if round%2 == 1 && n == messages/2 { // in the middle
						return
					}
				}
			})
		}
		working.Wait()
		for _, p := range pairs {
			working.Go(func() { assert.NoError(t, p[0].Disconnect()) })
			working.Go(func() { assert.NoError(t, p[1].Disconnect()) })
		}
		working.Wait()
		for _, p := range pairs {
			require.NoError(t, p[0].DestroyVi())
			require.NoError(t, p[1].DestroyVi())
		}
	}
	stop()
	looking.Wait()
}

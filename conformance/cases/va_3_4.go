package cases

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/vipl"
)

// va3_4 is Completion Queues: VI Architecture 3.4, 9.6 and 9.7.
var va3_4 = []conformance.Case{
	apiCase("3.4/vi-cq-first", onVIHost(viCQFirst), "VA-3.4-M1"),
	apiCase("3.4/vi-cq-1024", viCQ1024, "VA-3.4-M2", "VA-9.7.1-M2"),
	apiCase("3.4/vi-cq-refused", onVIHost(viCQRefused), "VA-3.4-M3", "VA-3.4-M4", "VA-9.7.1-M1"),
	apiCase("3.4/vi-cq-in-use", onVIHost(viCQInUse), "VA-3.4-M5"),
	apiCase("9.7.3/vi-cq-resized", onVIHost(viCQResized), "VA-9.7.3-M2", "VA-9.7.1-M2"),
	apiCase("11.3.14/vi-cq-resized-within", onVIHost(viCQResizedWithin), "VA-11.3.14-M1", "VA-9.7.3-M2"),
	apiCase("11.3.14/vi-cq-resized-at-work", onVIHost(viCQResizedAtWork), "VA-11.3.14-M1", "VA-3.4-S1", "VA-3.4-S2"),
	apiCase("6/vi-cq-only-tells", onVIHost(viCQOnlyTells), "VA-6-M1", "VA-6.1-M4", "VA-6-S1"),
	apiCase("9.6.7/vi-dequeued-meanwhile", onVIHost(viDequeuedMeanwhile), "VA-9.6.7-M1", "VA-9.6.8-M1"),
	apiCase("6.4.2/vi-cq-burst", onVIHost(viCQBurst), "VA-6.1-M4", "VA-6.4.2-S1"),
	apiCase("9.6.9/vi-notify-once", onVIHost(viNotifyOnce), "VA-9.6.9-M1", "VA-9.6.10-M1", "VA-9.6.11-M1"),
}

// viCQFirst ties VIs to CQs that are not there.
func viCQFirst(t *conformance.T, h *viHost) {
	gone := h.cq(1)
	require.NoError(t, gone.DestroyCQ())
	a := h.attributes(vipl.ServiceUnreliable)
	for name, q := range map[string]*vipl.CQ{"destroyed": gone, "never created": {}} {
		for _, c := range [][2]*vipl.CQ{{q, nil}, {nil, q}} {
			viCode(t, vipl.ErrInvalidParameter, second(h.nic.CreateVi(&a, c[0], c[1])), name)
		}
	}
	require.Zero(t, h.usage().Vis)
}

// entries takes all entries off a CQ.
func entries(t *conformance.T, q *vipl.CQ) (n int) {
	for {
		_, _, err := q.CQDone()
		if err != nil {
			viCode(t, vipl.ErrNotDone, err, "CQDone")
			return n
		}
		n++
	}
}

// completeMany has n Descriptors of a VI complete, which is not connected, and dequeues
// them.
func completeMany(h *viHost, v *vipl.Vi, n int) {
	for range n {
		h.sends(v)
		require.NoError(h.t, second(v.SendDone()))
	}
}

// viCQ1024 fills CQs.
func viCQ1024(t *conformance.T) {
	for _, n := range []int{1, 2, 1024} {
		h := newVIHost(t, vipl.Config{})
		q := h.cq(n)
		v := h.tied(vipl.ServiceUnreliable, q, nil)
		completeMany(h, v, n)
		require.Zero(t, h.usage().Lost)
		require.Equal(t, n, entries(t, q), "entries on a CQ of %d", n)
		completeMany(h, v, n+1)
		require.Equal(t, uint64(1), h.usage().Lost, "of one too many")
		require.Equal(t, n, entries(t, q))
	}
}

// viCQRefused asks for CQs that cannot be.
func viCQRefused(t *conformance.T, h *viHost) {
	a := must(h.nic.QueryNic())(t)
	for n, want := range map[int]vipl.Return{0: vipl.ErrInvalidParameter, -1: vipl.ErrInvalidParameter, int(a.MaxCQEntries) + 1: vipl.ErrResource} {
		q, err := h.nic.CreateCQ(n)
		viCode(t, want, err, "CreateCQ")
		assert.Nil(t, q)
		require.Zero(t, h.usage().CQs)
	}
	for range a.MaxCQ {
		h.cq(1)
	}
	viCode(t, vipl.ErrResource, second(h.nic.CreateCQ(1)), "one CQ too many")
	require.Equal(t, int(a.MaxCQ), h.usage().CQs)
}

// viCQInUse destroys a CQ while VIs are tied to it.
func viCQInUse(t *conformance.T, h *viHost) {
	q := h.cq(1)
	both := h.tied(vipl.ServiceUnreliable, q, q)
	one := h.tied(vipl.ServiceUnreliable, nil, q)
	viCode(t, vipl.ErrResource, q.DestroyCQ(), "two VIs")
	require.NoError(t, both.DestroyVi())
	viCode(t, vipl.ErrResource, q.DestroyCQ(), "one VI")
	_, _, err := q.CQDone()
	viCode(t, vipl.ErrNotDone, err, "it is still there")
	succeed(t, one.DestroyVi, q.DestroyCQ)
	viCode(t, vipl.ErrInvalidParameter, q.DestroyCQ(), "again")
}

// viCQResized makes a CQ larger and smaller.
func viCQResized(t *conformance.T, h *viHost) {
	q := h.cq(2)
	v := h.tied(vipl.ServiceUnreliable, q, nil)
	completeMany(h, v, 2)
	require.NoError(t, q.ResizeCQ(5))
	completeMany(h, v, 3)
	require.Zero(t, h.usage().Lost)
	viCode(t, vipl.ErrResource, q.ResizeCQ(4), "more is on it")
	viCode(t, vipl.ErrInvalidParameter, q.ResizeCQ(0), "no entries")
	require.Equal(t, 5, entries(t, q))
	require.NoError(t, q.ResizeCQ(1))
	completeMany(h, v, 2)
	require.Equal(t, 1, entries(t, q), "on a CQ of one")
	require.Equal(t, uint64(1), h.usage().Lost)
}

// viCQResizedWithin resizes a CQ whose oldest entry is anywhere in its ring, with as many behind it as there may be or
// fewer.
func viCQResizedWithin(t *conformance.T, h *viHost) {
	const size = 4
	for taken := range counted(t, "%d taken off", size) {
		for more := range counted(t, "%d behind them", taken+1) {
			q := h.cq(size)
			var vis []*vipl.Vi
			completes := func(n int) {
				for range n {
					v := h.tied(vipl.ServiceUnreliable, q, nil)
					h.sends(v)
					vis = append(vis, v)
				}
			}
			told := func(n int, what string) {
				for range n {
					v, isRecv, err := q.CQDone()
					require.NoError(t, err, what)
					require.Same(t, vis[0], v, what)
					require.False(t, isRecv, what)
					require.NoError(t, second(v.SendDone()), what)
					vis = vis[1:]
				}
			}
			completes(size)
			told(taken, "before the resize")
			completes(more)
			require.NoError(t, q.ResizeCQ(size+3))
			completes(2)
			told(len(vis), "behind the resize")
			require.Zero(t, entries(t, q), "told twice")
		}
	}
	require.Zero(t, h.usage().Lost)
}

// viCQResizedAtWork resizes a CQ to and fro while messages come in, and takes its entries
// off afterwards.
func viCQResizedAtWork(t *conformance.T, h *viHost) {
	const n = 200
	q := h.cq(n)
	v := h.tied(vipl.ServiceUnreliable, nil, q)
	p, ce := dialVI(t, h), viPeerCE(vipl.ServiceUnreliable, "server")
	var last *vipl.Descriptor
	for range n {
		last = h.recv(v, h.data(0, 1))
	}
	done := serveVI(h, v, "server")
	p.connects(ce, done)
	var wg sync.WaitGroup
	var stop atomic.Bool
	wg.Go(func() {
		for size := n; !stop.Load(); size = 5*n - size {
			assert.NoError(t, q.ResizeCQ(size))
		}
	})
	for range n {
		p.send("x")
	}
	require.Eventually(t, last.Done, patience(t), time.Millisecond, "the last receive")
	stop.Store(true)
	wg.Wait()
	for range n {
		vi, isRecv, err := q.CQWait(t.Context())
		require.NoError(t, err)
		require.Same(t, v, vi)
		require.True(t, isRecv)
		d, err := v.RecvDone()
		require.NoError(t, err)
		require.Equal(t, vipl.Status(viDone|viOpReceive), d.Control.Status)
	}
	require.Zero(t, entries(t, q), "told twice")
	require.Zero(t, h.usage().Lost)
}

// viCQOnlyTells lets Descriptors complete on tied queues of two VIs.
func viCQOnlyTells(t *conformance.T, h *viHost) {
	q := h.cq(8)
	one, two := h.tied(vipl.ServiceUnreliable, q, q), h.tied(vipl.ServiceUnreliable, q, nil)
	first, second := h.sends(one), h.sends(one)
	third := h.recv(one)
	fourth := h.sends(two)
	require.NoError(t, one.Disconnect())
	for i, want := range []struct {
		v    *vipl.Vi
		recv bool
		d    *vipl.Descriptor
	}{{one, false, first}, {one, false, second}, {two, false, fourth}, {one, true, third}} {
		v, recv, err := q.CQWait(t.Context())
		require.NoError(t, err)
		require.Same(t, want.v, v, "entry %d", i)
		require.Equal(t, want.recv, recv, "entry %d", i)
		viCode(t, vipl.ErrResource, v.DestroyVi(), "the Descriptor is on its queue still")
		done := v.SendDone
		if recv {
			done = v.RecvDone
		}
		d, err := done()
		require.NoError(t, err)
		require.Same(t, want.d, d)
	}
	require.Zero(t, entries(t, q))
	require.NoError(t, one.DestroyVi())
}

// viDequeuedMeanwhile dequeues without asking the CQ.
func viDequeuedMeanwhile(t *conformance.T, h *viHost) {
	q := h.cq(8)
	v := h.tied(vipl.ServiceUnreliable, q, nil)
	completeMany(h, v, 2)
	tell := func(vi *vipl.Vi, recv bool, err error) {
		require.NoError(t, err)
		require.Same(t, v, vi)
		require.False(t, recv)
		h.notDone(v.SendDone)
	}
	tell(q.CQDone())
	tell(q.CQWait(t.Context()))
	require.Zero(t, entries(t, q))
}

// lateDone is a context that has its holder wait where it asks when the context ends: a wait does so between the last
// look at what it waits for and its sleep.
type lateDone struct {
	context.Context
	asks chan<- struct{} // has room
	goOn <-chan struct{}
}

func (c lateDone) Done() <-chan struct{} {
	over := c.Context.Done()
	select {
	case c.asks <- struct{}{}:
	default: // it waits once more
	}
	select {
	case <-c.goOn:
	case <-over:
	}
	return over
}

// viCQBurst has programs go to sleep at a CQ, and as many Descriptors complete while none of them sleeps yet, which one
// token tells: who takes an entry tells the next of the others, and nobody sleeps on beside one.
func viCQBurst(t *conformance.T, h *viHost) {
	const n = 3
	q := h.cq(n)
	v := h.tied(vipl.ServiceReliableDelivery, nil, q)
	for range counted(t, "burst %d", 4) {
		asks, goOn, woken := make(chan struct{}, n), make(chan struct{}), make(chan error, n)
		for range n {
			go func() {
				_, _, err := q.CQWait(lateDone{t.Context(), asks, goOn})
				woken <- err
			}()
		}
		for range n {
			receive(t, asks, "a program does not come to wait")
		}
		for range n {
			h.recv(v)
		}
		require.NoError(t, v.Disconnect(), "what completes them all")
		close(goOn)
		for i := range n {
			require.NoError(t, receive(t, woken, "%d of %d are told, and the next sleeps on", i, n))
			require.NoError(t, second(v.RecvDone()))
		}
	}
}

// viNotifyOnce has more complete than handlers wait for.
func viNotifyOnce(t *conformance.T, h *viHost) {
	v := h.vi(vipl.ServiceUnreliable)
	dequeued := make(chan *vipl.Descriptor, 8)
	told := func() *vipl.Descriptor { return receive(t, dequeued, "nothing came") }
	handler := func(_ *vipl.Nic, vi *vipl.Vi, d *vipl.Descriptor) {
		assert.Same(t, v, vi)
		dequeued <- d
	}
	for _, queue := range []struct {
		notify func(vipl.QueueHandler) error
		post   func() *vipl.Descriptor
		done   func() (*vipl.Descriptor, error)
	}{
		{v.SendNotify, func() *vipl.Descriptor { return h.sends(v) }, v.SendDone},
		{v.RecvNotify, func() *vipl.Descriptor { d := h.recv(v); require.NoError(t, v.Disconnect()); return d }, v.RecvDone},
	} {
		require.NoError(t, queue.notify(handler))
		first := queue.post()
		require.Same(t, first, told())
		second, third := queue.post(), queue.post()
		require.NoError(t, queue.notify(handler))
		require.Same(t, second, told(), "nothing was told in between")
		require.Same(t, third, must(queue.done())(t), "what no handler was told of")
	}
	q := h.cq(8)
	v = h.tied(vipl.ServiceUnreliable, q, nil)
	calls := make(chan bool, 8)
	entry := func(_ *vipl.Nic, vi *vipl.Vi, recv bool) {
		assert.Same(t, v, vi)
		calls <- recv
	}
	require.NoError(t, q.CQNotify(entry))
	completeMany(h, v, 3)
	require.False(t, receive(t, calls, "nothing came"))
	require.Equal(t, 2, entries(t, q), "those that no handler was told of")
	require.Empty(t, calls)
}

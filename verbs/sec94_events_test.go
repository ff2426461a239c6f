package verbs_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// TestHandlerRefusals: the results of Set Completion Event Handler (9.4.1).
func TestHandlerRefusals(t *testing.T) {
	h := func(*verbs.CQ) {}
	set := func(id verbs.HandlerID, h func(*verbs.CQ)) func(*world) error {
		return func(w *world) error { return second(setHandler(w.nic, id, h)) }
	}
	refuse(t, verbs.Config{}, []refusal{
		{"replace: unknown", verbs.ErrInvalidEventHandler, nil, set(1<<30, h)},
		{"clear: unknown", verbs.ErrInvalidEventHandler, nil, set(1<<30, nil)},
		{"clear: zero", verbs.ErrInvalidEventHandler, nil, set(0, nil)},
		{
			"clear: again", verbs.ErrInvalidEventHandler,
			func(w *world) { require.NoError(w.t, set(w.handler, nil)(w)) },
			func(w *world) error { return set(w.handler, nil)(w) },
		},
		{
			"register: all in use", verbs.ErrInsufficientResources,
			func(w *world) { require.NoError(w.t, set(0, h)(w)) }, set(0, h),
		},
	})
	w := newWorld(t, verbs.Config{})
	require.NoError(t, set(w.handler, nil)(w))
	for range small.EventHandlers {
		require.NoError(t, set(0, h)(w), "a cleared one can be had again")
	}
}

// complete makes one completion in a CQ of n: a receive that is flushed.
func complete(t testing.TB, n *node, cq *verbs.CQ) {
	qp, err := n.nic.CreateQP(verbs.QPConfig{PD: n.pd, SendCQ: cq, RecvCQ: cq})
	require.NoError(t, err)
	require.NoError(t, second(qp.PostRecv(verbs.Recv{})))
	require.NoError(t, qp.Modify(verbs.ModifyQP{Next: verbs.StateError}))
	require.NoError(t, qp.Destroy())
}

// TestCompletionHandlers: each queue tells its own handler, once for each
// notification that was armed (RV-8.2.5-M1, RV-8.2.5-M2), with its handle
// (RV-8.2.5-M10), and not for what was there before.
func TestCompletionHandlers(t *testing.T) {
	n := newNode(t, verbs.QPConfig{})
	type call struct {
		handler int
		cq      *verbs.CQ
	}
	calls := make(chan call, 100)
	var queues []*verbs.CQ
	var ids []verbs.HandlerID
	for i := range 2 {
		id, err := n.nic.AddCompletionHandler(func(q *verbs.CQ) { calls <- call{i, q} })
		require.NoError(t, err)
		assert.NotZero(t, id)
		q, err := n.nic.CreateCQ(verbs.CQConfig{Handler: id})
		require.NoError(t, err)
		queues, ids = append(queues, q), append(ids, id)
	}
	assert.NotEqual(t, ids[0], ids[1])
	for i, q := range queues {
		complete(t, n, q)
		require.NoError(t, q.Notify(verbs.NotifyNext))
		require.NoError(t, q.Notify(verbs.NotifySolicited), "the first counts (RV-8.2.5-M7)")
		complete(t, n, q)
		complete(t, n, q)
		assert.Equal(t, call{i, q}, <-calls)
		require.NoError(t, q.Notify(verbs.NotifySolicited))
		complete(t, n, q) // in error: as if solicited (RV-8.2.5-M5)
		assert.Equal(t, call{i, q}, <-calls)
	}
	// Replaced, cleared, and a queue without one.
	id, err := setHandler(n.nic, ids[0], func(q *verbs.CQ) { calls <- call{7, q} })
	require.NoError(t, err)
	assert.Equal(t, ids[0], id)
	require.NoError(t, n.nic.RemoveCompletionHandler(ids[1]))
	bare, err := n.nic.CreateCQ(verbs.CQConfig{})
	require.NoError(t, err)
	for _, q := range []*verbs.CQ{queues[1], bare, queues[0]} {
		require.NoError(t, q.Notify(verbs.NotifyNext))
		complete(t, n, q)
	}
	assert.Equal(t, call{7, queues[0]}, <-calls)
	a, err := queues[1].Query()
	require.NoError(t, err)
	assert.Equal(t, ids[1], a.Handler)
	require.NoError(t, n.nic.Close())
	assert.Empty(t, calls, "nobody else was called")
}

// TestCompletionHandlerDrivesItself: a handler may call verbs; polling, arming and
// polling again it misses nothing (RV-8.2.5-M9).
func TestCompletionHandlerDrivesItself(t *testing.T) {
	const messages = 500
	a, b := newNode(t, verbs.QPConfig{SendDepth: 32}), newNode(t, verbs.QPConfig{})
	var got atomic.Int64
	all := make(chan struct{})
	reap := func(q *verbs.CQ) {
		var done [4]verbs.Completion
		for n := q.Poll(done[:]); n > 0; n = q.Poll(done[:]) {
			if got.Add(int64(n)) == messages {
				close(all)
			}
		}
	}
	id, err := a.nic.AddCompletionHandler(func(q *verbs.CQ) {
		reap(q)
		if got.Load() == messages { // the RNIC may be closed by now
			return
		}
		assert.NoError(t, q.Notify(verbs.NotifyNext))
		reap(q)
	})
	require.NoError(t, err)
	cq, err := a.nic.CreateCQ(verbs.CQConfig{Handler: id})
	require.NoError(t, err)
	qp, err := a.nic.CreateQP(verbs.QPConfig{PD: a.pd, SendCQ: cq, RecvCQ: cq, SendDepth: 64})
	require.NoError(t, err)
	require.NoError(t, cq.Notify(verbs.NotifyNext))
	join(t, qp, b.qp, false)
	for range messages {
		for {
			_, err := qp.PostSend(verbs.Request{Op: verbs.OpRead, Local: a.mr.SGE(0, 8), Remote: b.mr.Remote(0)})
			if err == nil {
				break
			}
			require.ErrorIs(t, err, verbs.ErrQueueFull)
		}
	}
	<-all
}

// TestHandlerAtTheEnd: Close waits for a handler that runs, and what is queued
// for a queue that has been destroyed is dropped.
func TestHandlerAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, verbs.QPConfig{})
		leave := make(chan struct{})
		var calls atomic.Int32
		id, err := n.nic.AddCompletionHandler(func(*verbs.CQ) {
			calls.Add(1)
			<-leave
		})
		require.NoError(t, err)
		var queues [3]*verbs.CQ
		for i := range queues {
			queues[i], err = n.nic.CreateCQ(verbs.CQConfig{Handler: id})
			require.NoError(t, err)
			require.NoError(t, queues[i].Notify(verbs.NotifyNext))
			complete(t, n, queues[i])
			synctest.Wait() // the first is in the handler, the others wait behind it
		}
		require.NoError(t, queues[1].Destroy())
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			assert.NoError(t, n.nic.Close())
		}()
		synctest.Wait()
		select {
		case <-closed:
			assert.Fail(t, "Close did not wait")
		default:
		}
		close(leave)
		<-closed
		assert.EqualValues(t, 2, calls.Load())
	})
}

// setHandler is Set Completion Event Handler (9.4.1): it registers with an identifier
// of 0, and clears without a handler.
func setHandler(nic *verbs.RNIC, id verbs.HandlerID, h func(*verbs.CQ)) (verbs.HandlerID, error) {
	switch {
	case id == 0:
		return nic.AddCompletionHandler(h)
	case h == nil:
		return id, nic.RemoveCompletionHandler(id)
	}
	return id, nic.ReplaceCompletionHandler(id, h)
}

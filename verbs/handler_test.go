package verbs_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

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

// complete makes one completion in a CQ of n: a receive that is flushed.
func complete(t testing.TB, n *node, cq *verbs.CQ) {
	qp, err := n.nic.CreateQP(verbs.QPConfig{PD: n.pd, SendCQ: cq, RecvCQ: cq})
	require.NoError(t, err)
	require.NoError(t, second(qp.PostRecv(verbs.Recv{})))
	require.NoError(t, qp.Modify(verbs.ModifyQP{Next: verbs.StateError}))
	require.NoError(t, qp.Destroy())
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

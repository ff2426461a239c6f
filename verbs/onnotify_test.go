package verbs_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/verbsinternal"
	"github.com/softrnic/softrnic/verbs"
)

// TestOnNotify: it is called for each notification that was armed, before the verb that makes
// the completion returns, and the queue's handler is told too.
func TestOnNotify(t *testing.T) {
	w := newWorld(t, verbs.Config{Limits: verbs.Limits{CQs: 8}})
	for _, withHandler := range []bool{false, true} {
		var c verbs.CQConfig
		told := make(chan *verbs.CQ, 8)
		if withHandler {
			id, err := w.nic.AddCompletionHandler(func(q *verbs.CQ) { told <- q })
			require.NoError(t, err)
			c.Handler = id
		}
		calls := 0
		q, err := w.nic.CreateCQ(c)
		require.NoError(t, err)
		verbsinternal.OnNotify(q, func() { calls++ })
		qp, err := w.nic.CreateQP(verbs.QPConfig{PD: w.pd, SendCQ: q, RecvCQ: q})
		require.NoError(t, err)
		flush := func() {
			require.NoError(t, second(qp.PostRecv(verbs.Recv{}, verbs.Recv{})))
			require.NoError(t, qp.Modify(verbs.ModifyQP{Next: verbs.StateError}))
			require.NoError(t, qp.Modify(verbs.ModifyQP{Next: verbs.StateIdle}))
		}
		flush()
		assert.Zero(t, calls, "nothing is armed")
		require.NoError(t, q.Notify(verbs.NotifyNext))
		flush()
		assert.Equal(t, 1, calls)
		flush()
		assert.Equal(t, 1, calls, "one shot")
		require.NoError(t, q.Notify(verbs.NotifySolicited))
		flush()
		assert.Equal(t, 2, calls, "a completion in error is as good as solicited")
		if withHandler {
			assert.Same(t, q, <-told)
			assert.Same(t, q, <-told)
		}
		require.NoError(t, qp.Destroy())
		require.NoError(t, q.Destroy())
	}
}

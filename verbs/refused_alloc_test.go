//go:build !race

package verbs_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// TestFullQueueAllocatesNothing: a program that fills a queue is told so without an allocation, and so is one
// that finds the CQ empty.
func TestFullQueueAllocatesNothing(t *testing.T) {
	w := newWorld(t, verbs.Config{})
	send := []verbs.Request{{}}
	recv := []verbs.Recv{{}}
	for name, call := range map[string]struct {
		post func() error
		want error
	}{
		"Send Queue":           {func() error { return second(w.qp.PostSend(send...)) }, verbs.ErrQueueFull},
		"Receive Queue":        {func() error { return second(w.qp.PostRecv(recv...)) }, verbs.ErrQueueFull},
		"Shared Receive Queue": {func() error { return second(w.srq.PostRecv(recv...)) }, verbs.ErrQueueFull},
		"Completion Queue":     {func() error { return second(w.cq.PollOne()) }, verbs.ErrCQEmpty},
	} {
		require.Zero(t, testing.AllocsPerRun(10, func() { assert.NoError(t, w.cq.Notify(verbs.NotifyNext)) }))
		t.Run(name, func(t *testing.T) {
			err := call.post()
			for err == nil {
				err = call.post()
			}
			require.ErrorIs(t, err, call.want)
			assert.Zero(t, testing.AllocsPerRun(100, func() { err = call.post() }))
			require.ErrorIs(t, err, call.want)
		})
	}
}

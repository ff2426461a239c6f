package cq_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cq"
	"github.com/softrnic/softrnic/wr"
)

func TestCloseEndsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := cq.New(1, 4)
		got := make(chan error, 2)
		for range 2 {
			go func() {
				_, err := q.Wait(context.Background(), make([]wr.Completion, 1))
				got <- err
			}()
		}
		synctest.Wait() // both sleep
		q.Close()
		q.Close()
		require.ErrorIs(t, <-got, wr.ErrInvalidCQ)
		require.ErrorIs(t, <-got, wr.ErrInvalidCQ)
		require.ErrorIs(t, q.Request(cq.NotifyNext), wr.ErrInvalidCQ)
	})
}

func TestCloseLeavesWhatIsQueued(t *testing.T) {
	q := cq.New(1, 4)
	require.True(t, q.Push(cq.Entry{Completion: wr.Completion{ID: 7}}))
	q.Close()
	var c [2]wr.Completion
	n, err := q.Wait(context.Background(), c[:])
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.EqualValues(t, 7, c[0].ID)
}

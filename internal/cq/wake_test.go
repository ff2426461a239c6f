package cq

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wr"
)

// untold is a context that ends without telling anybody.
type untold struct{ over atomic.Bool }

func (u *untold) Deadline() (time.Time, bool) { return time.Time{}, false }
func (u *untold) Done() <-chan struct{}       { return nil }
func (u *untold) Value(any) any               { return nil }
func (u *untold) Err() error {
	if u.over.Load() {
		return context.Canceled
	}
	return nil
}

// TestWakeLooksAtTheContext: who sleeps in Wait and is woken goes on sleeping, unless its context has ended.
func TestWakeLooksAtTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Config{ID: 1, Entries: 4})
		var ctx untold
		got := make(chan error, 1)
		go func() {
			_, err := q.Wait(&ctx, make([]wr.Completion, 1))
			got <- err
		}()
		synctest.Wait()
		q.Wake()
		synctest.Wait()
		require.Empty(t, got)
		ctx.over.Store(true)
		q.Wake()
		require.ErrorIs(t, <-got, context.Canceled)
	})
}

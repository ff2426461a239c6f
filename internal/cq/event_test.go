package cq

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wr"
)

// eventOn starts a WaitEvent, and returns what it will.
func eventOn(ctx context.Context, q *Queue) <-chan error {
	got := make(chan error, 1)
	go func() { got <- q.WaitEvent(ctx) }()
	synctest.Wait()
	return got
}

// TestWaitEvent sleeps where Wait does, if it can, until there is the token: a completion of
// another kind ends no wait.
func TestWaitEvent(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(q *Queue, s *fakeSleeper)
		claims  int32
		yields  bool
	}{
		"on the stream":  {func(*Queue, *fakeSleeper) {}, 1, false},
		"claim refused":  {func(_ *Queue, s *fakeSleeper) { s.refuses = true }, 1, true},
		"sleep fails":    {func(_ *Queue, s *fakeSleeper) { s.fails = true }, 1, true},
		"another driver": {func(q *Queue, _ *fakeSleeper) { q.Attach(newFakeSleeper()) }, 0, true},
		"no driver":      {func(q *Queue, s *fakeSleeper) { q.Detach(s) }, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q, s := New(Config{Entries: 4}), newFakeSleeper()
				q.Attach(s)
				c.prepare(q, s)
				armed, err := q.Arm(wr.NotifySolicited)
				require.NoError(t, err)
				require.True(t, armed)
				require.Zero(t, s.yielded.Load(), "who asks goes on to wait")
				got := eventOn(t.Context(), q)
				require.Equal(t, c.claims, s.claims.Load())
				require.Equal(t, c.yields, s.yielded.Load() > 0, "if others have to serve they are told")
				require.True(t, q.Push(entry(1)))
				synctest.Wait()
				require.Empty(t, got)
				solicited := entry(2)
				solicited.Solicited = true
				require.True(t, q.Push(solicited))
				require.NoError(t, <-got)
				require.Equal(t, 2, q.Len(), "what completes is for Poll")
				require.Empty(t, q.Events(), "the token is taken")
			})
		})
	}
}

// TestWaitEventEnds with the context, with the queue, and by Wake; a token that is there
// comes before those.
func TestWaitEventEnds(t *testing.T) {
	for _, sleeper := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			q := New(Config{Entries: 4})
			if sleeper {
				q.Attach(newFakeSleeper())
			}
			ctx, cancel := context.WithCancel(t.Context())
			got := eventOn(ctx, q)
			q.Wake()
			require.NoError(t, <-got)
			got = eventOn(ctx, q)
			cancel()
			require.ErrorIs(t, <-got, context.Canceled)
			q.Wake()
			require.NoError(t, q.WaitEvent(ctx))
			got = eventOn(t.Context(), q)
			q.Close()
			require.ErrorIs(t, <-got, wr.ErrInvalidCQ)
			require.ErrorIs(t, q.WaitEvent(t.Context()), wr.ErrInvalidCQ)
		})
	}
}

// TestWaitEventBetween: who begins to wait while a completion that notifies is on its way, past
// the queue's lock, finds the token: it was not there to be roused.
func TestWaitEventBetween(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q *Queue
		var got <-chan error
		s := newFakeSleeper()
		q = New(Config{Entries: 1, Event: func(wr.Event) { got = eventOn(t.Context(), q) }}) // overflow: told behind the lock
		q.Attach(s)
		require.NoError(t, q.Request(wr.NotifyNext))
		require.Equal(t, 1, q.PushAll([]Entry{entry(1), entry(2)}))
		require.NoError(t, <-got)
	})
}

// TestArm does nothing if there are completions.
func TestArm(t *testing.T) {
	q := New(Config{Entries: 4})
	require.True(t, q.Push(entry(1)))
	armed, err := q.Arm(wr.NotifyNext)
	require.NoError(t, err)
	require.False(t, armed)
	require.True(t, q.Push(entry(2)))
	require.Empty(t, q.Events())

	_, err = q.Arm(0)
	require.ErrorIs(t, err, wr.ErrInvalidNotifyType)
	q.Close()
	_, err = q.Arm(wr.NotifyNext)
	require.ErrorIs(t, err, wr.ErrInvalidCQ)
}

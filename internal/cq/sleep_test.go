package cq

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wr"
)

// fakeSleeper is a stream to sleep on.
type fakeSleeper struct {
	fakeDriver
	refuses        bool // Claim
	fails          bool // Sleep
	claims, sleeps atomic.Int32
	roused         chan struct{}
	left           atomic.Int32
}

func newFakeSleeper() *fakeSleeper { return &fakeSleeper{roused: make(chan struct{}, 1)} }

func (s *fakeSleeper) Claim() bool { s.claims.Add(1); return !s.refuses }

func (s *fakeSleeper) Sleep() bool {
	s.sleeps.Add(1)
	if s.fails {
		return false
	}
	<-s.roused
	return true
}

func (s *fakeSleeper) Rouse() { signal(s.roused) }

func (s *fakeSleeper) Leave() { s.left.Add(1) }

// waitOn starts a Wait, and returns what it will.
func waitOn(ctx context.Context, q *Queue) <-chan uint64 {
	got := make(chan uint64, 1)
	go func() {
		var buf [1]wr.Completion
		_, _ = q.Wait(ctx, buf[:])
		got <- buf[0].ID
	}()
	synctest.Wait()
	return got
}

// TestWhereToSleep: on the stream of the only Driver, if nobody else sleeps; else on
// the channel, where every completion is noticed too.
func TestWhereToSleep(t *testing.T) {
	for name, c := range map[string]struct {
		prepare        func(q *Queue, s *fakeSleeper)
		claims, sleeps int32
	}{
		"the only one":   {func(*Queue, *fakeSleeper) {}, 1, 1},
		"claim refused":  {func(_ *Queue, s *fakeSleeper) { s.refuses = true }, 1, 0},
		"sleep fails":    {func(_ *Queue, s *fakeSleeper) { s.fails = true }, 1, 1},
		"another driver": {func(q *Queue, _ *fakeSleeper) { q.Attach(newFakeSleeper()) }, 0, 0},
		"no sleeper":     {func(q *Queue, s *fakeSleeper) { q.Detach(s); q.Attach(&fakeDriver{}) }, 0, 0},
		"no driver":      {func(q *Queue, s *fakeSleeper) { q.Detach(s) }, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q, s := New(Config{Entries: 4}), newFakeSleeper()
				q.Attach(s)
				c.prepare(q, s)
				got := waitOn(t.Context(), q)
				assert.Equal(t, c.claims, s.claims.Load())
				assert.Equal(t, c.sleeps, s.sleeps.Load())
				require.True(t, q.Push(entry(5)))
				require.Equal(t, uint64(5), <-got)
				if s.claims.Load() > 0 && !s.refuses {
					assert.Equal(t, int32(1), s.left.Load(), "what was claimed is given up")
				}
			})
		})
	}
}

// TestSecondSleeper: who comes while somebody sleeps on the stream sleeps on the
// channel. Each completion goes to one of them, and none is left behind.
func TestSecondSleeper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, s := New(Config{Entries: 4}), newFakeSleeper()
		q.Attach(s)
		first := waitOn(t.Context(), q)
		second := waitOn(t.Context(), q)
		require.Equal(t, int32(1), s.claims.Load())
		require.True(t, q.Waiting())
		require.Equal(t, 2, q.PushAll([]Entry{entry(1), entry(2)}))
		require.ElementsMatch(t, []uint64{1, 2}, []uint64{<-first, <-second})

		third := waitOn(t.Context(), q)
		require.Equal(t, int32(2), s.claims.Load(), "the stream is free again")
		require.True(t, q.Push(entry(3)))
		require.Equal(t, uint64(3), <-third)
	})
}

// TestSleeperWakesTheNext: who slept on the stream and leaves completions behind wakes
// one who sleeps on the channel.
func TestSleeperWakesTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, s := New(Config{Entries: 4}), newFakeSleeper()
		q.Attach(s)
		first := waitOn(t.Context(), q)
		second := waitOn(t.Context(), q)
		q.mu.Lock()
		q.ring[0], q.ring[1], q.count = entry(1), entry(2), 2 // a PushAll without its signals
		q.mu.Unlock()
		s.Rouse()
		require.Equal(t, uint64(1), <-first)
		require.Equal(t, uint64(2), <-second)
	})
}

// TestSleeperHearsItsContext: the end of its context ends a sleep on the stream.
func TestSleeperHearsItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, s := New(Config{Entries: 4}), newFakeSleeper()
		q.Attach(s)
		for range 2 {
			ctx, cancel := context.WithCancel(t.Context())
			got := waitOn(ctx, q)
			cancel()
			require.Zero(t, <-got)
		}
		require.Equal(t, int32(2), s.left.Load())
	})
}

// watchedContext counts who waits for its end.
type watchedContext struct {
	context.Context
	watchers atomic.Int32
}

// AfterFunc is what context.AfterFunc asks a foreign context for.
func (c *watchedContext) AfterFunc(f func()) func() bool {
	c.watchers.Add(1)
	stop := context.AfterFunc(c.Context, f)
	return func() bool {
		c.watchers.Add(-1)
		return stop()
	}
}

// foreign hides that a context is one of package context.
type foreign struct{ context.Context }

func (foreign) Value(any) any { return nil }

// TestSleeperWatchesOneContext: the same context is told once, another one in its
// place, and none is held after Close.
func TestSleeperWatchesOneContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, s := New(Config{Entries: 4}), newFakeSleeper()
		q.Attach(s)
		newContext := func() (*watchedContext, context.CancelFunc) {
			ctx, cancel := context.WithCancel(context.Background())
			return &watchedContext{Context: foreign{ctx}}, cancel
		}
		one, cancelOne := newContext()
		defer cancelOne()
		two, cancelTwo := newContext()
		defer cancelTwo()
		wait := func(ctx context.Context) {
			got := waitOn(ctx, q)
			require.True(t, q.Push(entry(7)))
			require.Equal(t, uint64(7), <-got)
		}
		wait(one)
		wait(one)
		require.Equal(t, int32(1), one.watchers.Load())
		wait(two)
		require.Zero(t, one.watchers.Load())
		require.Equal(t, int32(1), two.watchers.Load())
		wait(context.Background())
		require.Zero(t, two.watchers.Load())
		wait(one)
		got := waitOn(one, q)
		q.Close()
		require.Zero(t, <-got)
		require.Zero(t, one.watchers.Load())
	})
}

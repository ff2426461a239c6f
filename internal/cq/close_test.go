package cq

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wr"
)

func TestCloseEndsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Config{ID: 1, Entries: 4})
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
		_, err := q.Wait(context.Background(), make([]wr.Completion, 1))
		require.ErrorIs(t, err, wr.ErrInvalidCQ)
		require.ErrorIs(t, q.Request(wr.NotifyNext), wr.ErrInvalidCQ)
	})
}

// TestCloseDropsWhatIsQueued is draft 5.3.4: no completion comes out of a queue
// that is gone, by any method, and the slots of those that were queued are free.
func TestCloseDropsWhatIsQueued(t *testing.T) {
	var events []wr.Event
	q := New(Config{ID: 1, Entries: 3, Event: func(e wr.Event) { events = append(events, e) }})
	var s slots
	require.NoError(t, q.Request(wr.NotifyNext))
	for i := range uint64(4) { // the ring wraps
		e := entry(i)
		e.Owner, e.Pos = s.slot(i), i
		if i == 2 {
			e.Owner = nil // nothing to give back
		}
		require.True(t, q.Push(e))
		if i == 0 {
			_, err := q.PollOne()
			require.NoError(t, err)
		}
	}
	q.Close()
	require.Equal(t, []uint64{0, 1, 3}, s.released)
	q.Close()
	require.Equal(t, []uint64{0, 1, 3}, s.released, "once")

	var c [2]wr.Completion
	require.Zero(t, q.Poll(c[:]))
	_, err := q.PollOne()
	require.ErrorIs(t, err, wr.ErrInvalidCQ)
	n, err := q.Wait(t.Context(), c[:])
	require.Zero(t, n)
	require.ErrorIs(t, err, wr.ErrInvalidCQ)
	require.Zero(t, q.Len())
	require.Zero(t, q.Cap())
	require.Nil(t, q.ring, "its memory is given back")

	require.ErrorIs(t, q.Resize(8), wr.ErrInvalidCQ)
	require.False(t, q.Push(entry(9)))
	q.Fail()
	require.Empty(t, events, "nothing is raised for a queue that is gone")
}

// TestCloseInTraffic: a completion is either polled or dropped by Close, or its
// Push is refused; its slots come free once.
func TestCloseInTraffic(t *testing.T) {
	for range 100 {
		q := New(Config{Entries: 4})
		var s slots
		pushed := make(chan int)
		started := make(chan struct{})
		go func() {
			n := 0
			for i := range uint64(100) {
				e := entry(i)
				e.Owner, e.Pos = s.slot(i), i
				if q.Push(e) {
					n++
				}
				if i == 0 {
					close(started)
				}
			}
			pushed <- n
		}()
		polled := make(chan int)
		go func() {
			n := 0
			for {
				_, err := q.PollOne()
				switch {
				case err == nil:
					n++
				case errors.Is(err, wr.ErrInvalidCQ):
					polled <- n
					return
				}
			}
		}()
		<-started
		q.Close()
		total, reaped := <-pushed, <-polled
		require.LessOrEqual(t, reaped, total)
		s.mu.Lock()
		require.Len(t, s.released, total)
		for i := 1; i < total; i++ {
			require.Less(t, s.released[i-1], s.released[i])
		}
		s.mu.Unlock()
	}
}

// TestCloseReleasesInOrder: what a fault plan keeps back is behind what is queued, and its slots are given back behind them.
func TestCloseReleasesInOrder(t *testing.T) {
	q := New(Config{ID: 1, Entries: 4, Faults: &Faults{
		Watches: func() bool { return true },
		Of: func(c wr.Completion) (time.Duration, bool) {
			if c.ID == 2 {
				return time.Hour, false
			}
			return 0, false
		},
	}})
	var last position
	for id := range uint64(4) {
		require.True(t, q.Push(Entry{Completion: wr.Completion{ID: id}, Owner: &last, Pos: id}))
	}
	require.Equal(t, 2, q.count)
	q.Close()
	require.Equal(t, position(3), last)
}

// TestLateCountsOnce: while what was kept back is told of, it has one place, and there is another.
func TestLateCountsOnce(t *testing.T) {
	telling, told := make(chan struct{}), make(chan struct{})
	q := New(Config{
		ID: 1, Entries: 2,
		Faults: &Faults{
			Watches: func() bool { return true },
			Of:      func(c wr.Completion) (time.Duration, bool) { return time.Duration(c.ID), false },
		},
		Notify: func() {
			close(telling)
			<-told
		},
	})
	defer q.Close()
	require.NoError(t, q.Request(wr.NotifyNext))
	require.True(t, q.Push(Entry{Completion: wr.Completion{ID: 1}}))
	<-telling
	require.True(t, q.Push(Entry{}))
	close(told)
	var got [2]wr.Completion
	require.Equal(t, 2, q.Poll(got[:]))
	require.EqualValues(t, 1, got[0].ID, "in order")
}

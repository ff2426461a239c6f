package cq

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wr"
)

// TestResize is draft 5.3.3, from every place in a ring of 4 to every size.
func TestResize(t *testing.T) {
	const size = 4
	for head := range size {
		for count := range size + 1 {
			for entries := -1; entries <= size+3; entries++ {
				q := New(Config{Entries: size})
				var s slots
				push := func(id uint64) bool {
					e := entry(id)
					e.Owner, e.Pos = s.slot(id), id
					return q.Push(e)
				}
				for range head {
					require.True(t, q.Push(entry(0)))
					_, err := q.PollOne()
					require.NoError(t, err)
				}
				var want []uint64
				for id := range uint64(count) {
					require.True(t, push(id))
					want = append(want, id)
				}
				now := entries
				switch err := q.Resize(entries); {
				case entries < 1:
					require.ErrorIs(t, err, wr.ErrInvalidModifier)
					now = size
				case entries < count:
					require.ErrorIs(t, err, wr.ErrShrinkFailed)
					now = size
				default:
					require.NoError(t, err)
				}
				require.Equal(t, now, q.Cap())
				require.Equal(t, count, q.Len())
				require.Empty(t, s.released)
				for id := uint64(count); id < uint64(now); id++ {
					require.True(t, push(id))
					want = append(want, id)
				}
				require.False(t, push(99))
				var buf [2 * size]wr.Completion
				require.Equal(t, want, ids(buf[:q.Poll(buf[:])]))
				require.Equal(t, want, s.released)
			}
		}
	}
}

// TestResizeKeepsRequest: a resize neither fires a notification nor forgets it.
func TestResizeKeepsRequest(t *testing.T) {
	q := New(Config{Entries: 2})
	require.True(t, q.Push(entry(1)))
	require.NoError(t, q.Request(wr.NotifyNext))
	require.NoError(t, q.Resize(5))
	require.False(t, notified(q))
	require.True(t, q.Push(entry(2)))
	require.True(t, notified(q))
}

// TestResizeInTraffic: several push, one polls and one sleeps in Wait, and the
// queue is resized all the while. Nothing is lost, and each pusher's order stays.
func TestResizeInTraffic(t *testing.T) {
	const pushers, each = 2, 5000
	q := New(Config{Entries: 8})
	slot := make(chan struct{}, 6) // a token for each that is outstanding: the smallest ring has room
	var work, resizer sync.WaitGroup
	for p := range uint64(pushers) {
		work.Go(func() {
			for i := range uint64(each) {
				slot <- struct{}{}
				assert.True(t, q.Push(Entry{
					Completion: wr.Completion{ID: i, QP: wr.QPID(p)}, Owner: &ticket{slot},
				}))
			}
		})
	}
	stop := make(chan struct{})
	resizer.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			assert.NoError(t, q.Resize(cap(slot)+i%9))
		}
	})
	var next [pushers]uint64
	buf := make([]wr.Completion, 3)
	for got := 0; got < pushers*each; {
		n, err := q.Wait(t.Context(), buf[:1+got%3])
		require.NoError(t, err)
		got += n
		for _, c := range buf[:n] {
			require.Equal(t, next[c.QP], c.ID)
			next[c.QP]++
		}
	}
	work.Wait()
	close(stop)
	resizer.Wait()
	require.Zero(t, q.Len())
}

// ticket gives back the token of one completion.
type ticket struct{ slot chan struct{} }

func (t *ticket) Release(uint64) { <-t.slot }

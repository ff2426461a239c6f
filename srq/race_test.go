package srq

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wr"
)

// TestConcurrent: programs post, queue pairs take and starve, completions are
// reaped elsewhere, and the queue is resized all the while. Every receive is taken
// once.
func TestConcurrent(t *testing.T) {
	const posters, takers, each, depth = 2, 3, 3000, 16
	q := New(Config{ID: 1, Depth: depth, SGE: 2, Limit: depth / 2, Events: func(wr.Event) {}})
	var taken [posters * each]atomic.Int32
	reaped := make(chan *Element, posters*each)
	room := make(chan struct{}, 1) // a token: a completion was reaped

	var posting, taking, rest sync.WaitGroup
	for p := range posters {
		posting.Go(func() {
			for i := range each {
				id := uint64(p*each + i)
				r := wr.Recv{ID: id, SGL: sgl(id, 1+i%2)}
				for n, err := q.Post(r); n == 0; n, err = q.Post(r) {
					assert.ErrorIs(t, err, wr.ErrQueueFull)
					<-room
				}
				signal(room) // the other poster may find room as well
			}
		})
	}
	for range takers {
		taking.Go(func() {
			c := make(waiterChan, 1)
			for {
				e, failed := q.Take()
				switch {
				case failed:
					q.Forget(c)
					return
				case e == nil:
					q.Await(c)
					<-c
				default:
					assert.Equal(t, sgl(e.ID, 1+int(e.ID%each)%2), e.SGL)
					taken[e.ID].Add(1)
					reaped <- e
				}
			}
		})
	}
	rest.Go(func() {
		for e := range reaped {
			e.Release(0)
			signal(room)
		}
	})
	stop := make(chan struct{})
	rest.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			_ = q.Modify(Modify{Depth: ptr(depth + i%7), Rearm: true})
			signal(room)
			q.Query()
		}
	})
	posting.Wait()
	close(stop)
	for q.left() > 0 { // taken by those who were woken
		c := make(waiterChan, 1)
		q.Await(c)
		if e, _ := q.Take(); e != nil {
			taken[e.ID].Add(1)
			reaped <- e
		}
	}
	q.Fail()
	taking.Wait()
	close(reaped)
	rest.Wait()
	for id := range taken {
		require.EqualValues(t, 1, taken[id].Load(), "%d", id)
	}
	require.Zero(t, q.used)
}

// left is how many receives nobody has taken.
func (q *Queue) left() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.posted.n
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// TestNoLostWakeUp: a queue pair that awaits and then finds nothing is woken by
// whatever was posted since. A lost wake-up hangs the test.
func TestNoLostWakeUp(t *testing.T) {
	const n = 5000
	q := New(Config{Depth: n, SGE: 1})
	var wg sync.WaitGroup
	wg.Go(func() {
		for id := range uint64(n) {
			_, err := q.Post(wr.Recv{ID: id})
			assert.NoError(t, err)
		}
	})
	c := make(waiterChan, 1)
	for id := uint64(0); id < n; {
		q.Await(c)
		e, _ := q.Take()
		if e == nil {
			<-c
			continue
		}
		require.Equal(t, id, e.ID)
		id++
	}
	wg.Wait()
}

// TestCloseInTraffic: Close in the middle of everything leaves nothing posted.
func TestCloseInTraffic(t *testing.T) {
	for range 50 {
		q := New(Config{Depth: 8, SGE: 1, Limit: 4, Events: func(wr.Event) {}})
		var wg sync.WaitGroup
		started := make(chan struct{}, 4)
		for range 2 {
			wg.Go(func() {
				for err := error(nil); !errors.Is(err, wr.ErrInvalidSRQ); {
					_, err = q.Post(wr.Recv{ID: 1, SGL: sgl(1, 1)})
					signal(started)
				}
			})
			wg.Go(func() {
				c := make(waiterChan, 1)
				for {
					e, failed := q.Take()
					if failed {
						return
					}
					if e == nil {
						q.Await(c)
						<-c
						continue
					}
					e.Release(0)
				}
			})
		}
		<-started
		q.Close()
		wg.Wait()
		require.Zero(t, q.left())
		require.Nil(t, q.free)
		require.Nil(t, q.starved.first)
	}
}

// TestNoAllocation: a queue that was filled once allocates no more.
func TestNoAllocation(t *testing.T) {
	q, recv := New(Config{Depth: 4, SGE: 2}), []wr.Recv{{ID: 1, SGL: sgl(1, 2)}}
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		_, _ = q.Post(recv...)
		e, _ := q.Take()
		e.Release(0)
	}))
	c := make(waiterChan, 1)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		q.Await(c)
		_, _ = q.Post(recv...)
		<-c
		e, _ := q.Take()
		e.Release(0)
	}))
}

func BenchmarkPostTakeRelease(b *testing.B) {
	q, recv := New(Config{Depth: 16, SGE: 1}), []wr.Recv{{ID: 1, SGL: sgl(1, 1)}}
	b.ReportAllocs()
	for b.Loop() {
		_, _ = q.Post(recv...)
		e, _ := q.Take()
		e.Release(0)
	}
}

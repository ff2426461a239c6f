package srq

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wr"
)

// starve makes n queue pairs wait, in order.
func (r *rig) starve(n int) []waiterChan {
	all := make([]waiterChan, n)
	for i := range all {
		all[i] = make(waiterChan, 1)
		r.Await(all[i])
	}
	return all
}

// woken are the indices of those that have a token, which it takes.
func woken(all []waiterChan) (list []int) {
	for i, c := range all {
		if token(c) {
			list = append(list, i)
		}
	}
	return list
}

// TestWakesAsManyAsReceives: of thousands that wait, in turn.
func TestWakesAsManyAsReceives(t *testing.T) {
	r := newRig(t, Config{Depth: 16, SGE: 1})
	all := r.starve(3000)
	r.post(1)
	require.Equal(t, []int{0}, woken(all))
	r.post(2)
	r.post(3)
	require.Equal(t, []int{1, 2}, woken(all))

	// 1 takes all three, and waits again: it is the last now. 2 and 0 find none, and wait
	// in their turns.
	for range 3 {
		e, _ := r.TakeFor(all[1], false)
		e.Release(0)
	}
	for _, i := range []int{1, 2, 0} {
		e, _ := r.TakeFor(all[i], false)
		require.Nil(t, e)
		r.Await(all[i])
	}
	require.Empty(t, woken(all))
	n, err := r.Post(make([]wr.Recv, 4)...)
	require.NoError(t, err)
	require.Equal(t, 4, n)
	require.Equal(t, []int{0, 2, 3, 4}, woken(all))
	require.Equal(t, all[1], r.starved.last.c)
}

// TestWokenEnds: a queue pair that ends when it was woken leaves its receive to the
// next; one that has taken a receive, or was not woken, wakes nobody.
func TestWokenEnds(t *testing.T) {
	r := newRig(t, Config{Depth: 16, SGE: 1})
	all := r.starve(4)
	r.post(1)
	require.Equal(t, []int{0}, woken(all))
	r.Forget(all[3])
	require.Empty(t, woken(all))
	r.Forget(all[0])
	require.Equal(t, []int{1}, woken(all))
	r.post(2)
	require.Equal(t, []int{2}, woken(all))
	e, _ := r.TakeFor(all[1], false)
	require.NotNil(t, e)
	r.Await(all[0]) // behind, and there is a receive
	require.Equal(t, []int{0}, woken(all))
	r.starve(1)
	r.Forget(all[1])
	require.Empty(t, woken(all))
}

// TestNobodyLeftAsleep: queue pairs wait, take, are overtaken, and end when they were
// woken, each in a goroutine. A receive that nobody takes, while they sleep, hangs the
// test.
func TestNobodyLeftAsleep(t *testing.T) {
	const waiters, ends, receives = 16, 200, 4000
	q := New(Config{Depth: receives, SGE: 1})
	var wg sync.WaitGroup
	got := make(chan struct{}, receives)
	stay := func(c waiterChan, ends bool) {
		for {
			e, failed := q.TakeFor(c, false)
			switch {
			case failed:
				return
			case e != nil:
				got <- struct{}{}
				continue
			}
			q.Await(c)
			if <-c; ends {
				q.Forget(c)
				return
			}
		}
	}
	for i := range waiters + ends {
		wg.Go(func() { stay(make(waiterChan, 1), i >= waiters) })
	}
	for id := range uint64(receives) {
		n, err := q.Post(wr.Recv{ID: id})
		assert.Equal(t, []any{1, nil}, []any{n, err})
		if id%3 == 0 {
			<-got
		}
	}
	for range receives - (receives+2)/3 {
		<-got
	}
	q.Fail()
	wg.Wait()
	require.Zero(t, q.left())
}

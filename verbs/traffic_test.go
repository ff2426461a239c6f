package verbs_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// TestPostAfterReap: once a completion is reaped its slot is free (verbs draft
// 8.2.1), even for a program that polls so closely that the queue pair is still
// about to take note of it.
func TestPostAfterReap(t *testing.T) {
	a, b := newNode(t, verbs.QPConfig{SendDepth: 1}), newNode(t, verbs.QPConfig{})
	join(t, a.qp, b.qp, false)
	reaped := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() {
		var c [1]verbs.Completion
		for ctx.Err() == nil {
			if a.cq.Poll(c[:]) == 0 {
				runtime.Gosched()
				continue
			}
			select {
			case reaped <- struct{}{}:
			case <-ctx.Done():
			}
		}
	})
	for range 3000 {
		_, err := a.qp.PostSend(verbs.Request{Op: verbs.OpRead})
		require.NoError(t, err)
		<-reaped
	}
	cancel()
	wg.Wait()
}

// TestManyPostersAndPollers posts from eight goroutines while four poll: nothing
// is lost, doubled or refused but for a full queue.
func TestManyPostersAndPollers(t *testing.T) {
	const posters, each, pollers = 8, 300, 4
	a, b := newNode(t, verbs.QPConfig{SendDepth: 32}), newNode(t, verbs.QPConfig{})
	join(t, a.qp, b.qp, true)
	var mu sync.Mutex
	seen := map[uint64]int{}
	var done atomic.Int64
	progress := make(chan struct{}, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var polling, posting sync.WaitGroup
	for range pollers {
		polling.Go(func() {
			var buf [5]verbs.Completion
			for ctx.Err() == nil {
				n := a.cq.Poll(buf[:])
				if n == 0 {
					runtime.Gosched()
					continue
				}
				mu.Lock()
				for _, c := range buf[:n] {
					assert.Equal(t, verbs.StatusSuccess, c.Status)
					seen[c.ID]++
				}
				mu.Unlock()
				if done.Add(int64(n)) == posters*each {
					close(progress)
				}
			}
		})
	}
	for p := range posters {
		posting.Go(func() {
			for i := range each {
				w := verbs.Request{ID: uint64(p*each + i), Op: verbs.OpWrite, SGL: a.mr.SGL(p*64, 64), Remote: b.mr.Remote(p * 64)}
				if i%7 == 0 {
					w = verbs.Request{ID: w.ID, Op: verbs.OpRead, Local: a.mr.SGE(1024+p*64, 64), Remote: b.mr.Remote(1 << 19)}
				}
				for {
					_, err := a.qp.PostSend(w)
					if err == nil {
						break
					}
					if !assert.ErrorIs(t, err, verbs.ErrQueueFull) {
						return
					}
					runtime.Gosched()
				}
			}
		})
	}
	posting.Wait()
	<-progress
	cancel()
	polling.Wait()
	require.Len(t, seen, posters*each)
	for id, n := range seen {
		require.Equal(t, 1, n, "%d", id)
	}
}

// TestRegistrationChurn registers and deregisters while data moves through other
// regions of the same memory.
func TestRegistrationChurn(t *testing.T) {
	a, b := newNode(t, verbs.QPConfig{}), newNode(t, verbs.QPConfig{})
	join(t, a.qp, b.qp, false)
	stop := make(chan struct{})
	var churn sync.WaitGroup
	for _, n := range []*node{a, b} {
		for range 2 {
			churn.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					mr, err := n.pd.Register(n.mr.Bytes(), allRights)
					if !assert.NoError(t, err) {
						return
					}
					assert.NoError(t, mr.Deregister())
				}
			})
		}
	}
	for i := range a.mr.Bytes()[:1<<19] {
		a.mr.Bytes()[i] = byte(i * 13)
	}
	for round := range 50 {
		fresh, err := b.pd.Register(b.mr.Bytes(), allRights)
		require.NoError(t, err)
		off := round * 1000
		_, err = a.qp.PostSend(
			verbs.Request{Op: verbs.OpWrite, SGL: a.mr.SGL(off, 300_000), Remote: fresh.Remote(off)},
			verbs.Request{Op: verbs.OpRead, Local: a.mr.SGE(1<<19, 300_000), Remote: fresh.Remote(off)})
		require.NoError(t, err)
		a.wait(t, 2)
		require.NoError(t, fresh.Deregister())
		require.Equal(t, a.mr.Bytes()[off:off+300_000], a.mr.Bytes()[1<<19:1<<19+300_000])
	}
	close(stop)
	churn.Wait()
}

// TestDeregisterUnderWay: a region that goes away in the middle of a transfer
// ends the connection with a protection error, and nothing is placed after.
func TestDeregisterUnderWay(t *testing.T) {
	a, b := newNode(t, verbs.QPConfig{}), newNode(t, verbs.QPConfig{})
	join(t, a.qp, b.qp, false)
	sink, err := b.pd.Register(b.mr.Bytes(), allRights)
	require.NoError(t, err)
	done := b.qp.Done()
	for range 20 {
		_, err := a.qp.PostSend(verbs.Request{Op: verbs.OpWrite, SGL: a.mr.SGL(0, 1<<20), Remote: sink.Remote(0)})
		if err != nil {
			require.True(t, errors.Is(err, verbs.ErrInvalidState), "%v", err)
		}
	}
	_, err = a.qp.PostSend(verbs.Request{Op: verbs.OpRead, Local: a.mr.SGE(0, 1<<20), Remote: sink.Remote(0)})
	require.NoError(t, err)
	require.NoError(t, sink.Deregister())
	clear(b.mr.Bytes()) // the program's again: the race detector watches
	<-done
	require.Equal(t, verbs.StateError, b.qp.State())
	for _, v := range b.mr.Bytes() {
		require.Zero(t, v)
	}
}

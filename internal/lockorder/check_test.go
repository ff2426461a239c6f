//go:build lockcheck

package lockorder

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// refused is what the checker says when it refuses f, "" if it does not.
func refused(f func()) (said string) {
	defer func() {
		if p := recover(); p != nil {
			said = p.(string)
		}
	}()
	f()
	return ""
}

// free reports whether nothing is held any more, and forgets what is.
func free(t *testing.T) {
	t.Helper()
	mu.Lock()
	defer mu.Unlock()
	assert.Empty(t, held)
	clear(held)
}

// TestGoroutine: the number is the one that a trace has, at any depth, on any goroutine.
func TestGoroutine(t *testing.T) {
	var deep func(n int) uint64
	deep = func(n int) uint64 {
		if n == 0 {
			return goroutine()
		}
		return deep(n - 1)
	}
	seen := make(map[uint64]bool)
	for range 100 {
		on(func() {
			n := told()
			assert.Equal(t, n, goroutine())
			assert.Equal(t, n, deep(1000), "its stack has moved")
			assert.False(t, seen[n])
			seen[n] = true
		})
	}
}

type locks struct {
	done Mutex[Done]
	cq   Mutex[CQ]
	srq  Mutex[SRQ]
	post [2]Mutex[Post]
	nic  Mutex[NIC]
	desc RWMutex[DescRegion]
	all  RWMutex[DescRegions]
}

func takeOuter(l *locks) { l.done.Lock() }

func takeInner(l *locks) { l.cq.Lock() }

// TestWrongOrder: both locks are named, and both places.
func TestWrongOrder(t *testing.T) {
	var l locks
	takeInner(&l)
	said := refused(func() { takeOuter(&l) })
	l.cq.Unlock()
	assert.Regexp(t, `waits for Done while it holds CQ`, said)
	assert.Regexp(t, `CQ was taken at\n\t\S+lockorder\.takeInner\n\t\t\S+check_test\.go:\d+\n`, said)
	assert.Regexp(t, `Done is waited for at\n\t\S+lockorder\.takeOuter\n\t\t\S+check_test\.go:\d+\n`, said)
	free(t)
}

// TestRightOrder: what comes before may be held, over any distance; and after Unlock nothing is.
func TestRightOrder(t *testing.T) {
	var l locks
	require.Empty(t, refused(func() {
		l.done.Lock()
		l.cq.Lock()
		l.srq.Lock()
		l.cq.Unlock() // not the last one
		l.srq.Unlock()
		l.cq.Lock()
		l.cq.Unlock()
		l.done.Unlock()
		l.post[0].Lock()
		l.post[1].Lock() // an exception
		l.done.Lock()
		l.done.Unlock()
		l.post[0].Unlock()
		l.post[1].Unlock()
		l.cq.Lock()
		l.cq.Unlock()
		l.done.Lock()
		l.done.Unlock()
	}))
	free(t)
}

// TestNotRelated: two that no line puts in an order do not go together, either way round.
func TestNotRelated(t *testing.T) {
	var l locks
	l.nic.Lock()
	assert.NotEmpty(t, refused(l.cq.Lock))
	l.nic.Unlock()
	l.cq.Lock()
	assert.NotEmpty(t, refused(l.nic.Lock))
	l.cq.Unlock()
	free(t)
}

// TestTwice: one class comes not before itself, so a lock that its holder takes again is told of.
func TestTwice(t *testing.T) {
	var l locks
	l.cq.Lock()
	assert.NotEmpty(t, refused(l.cq.Lock))
	l.cq.Unlock()
	l.desc.RLock()
	assert.NotEmpty(t, refused(l.desc.RLock), "one that wants to write may be in between")
	l.desc.RUnlock()
	free(t)
}

// TestTryLock: it does not wait, whatever is held. What it has got counts for those that are waited for.
func TestTryLock(t *testing.T) {
	var l locks
	l.srq.Lock()
	require.True(t, l.cq.TryLock())
	require.False(t, l.cq.TryLock(), "it is not free")
	l.srq.Unlock()
	assert.NotEmpty(t, refused(l.done.Lock), "behind the one that was tried")
	assert.Empty(t, refused(func() { l.srq.Lock(); l.srq.Unlock() }))
	l.cq.Unlock()
	assert.Empty(t, refused(func() { l.done.Lock(); l.done.Unlock() }), "it was given back, and the failed try is no lock")
	free(t)
}

// TestReaders: reading counts as waiting, since one that writes may have it.
func TestReaders(t *testing.T) {
	var l locks
	l.all.RLock()
	assert.Empty(t, refused(func() { l.desc.RLock(); l.desc.RUnlock() }))
	assert.Empty(t, refused(func() { l.desc.Lock(); l.desc.Unlock() }))
	l.all.RUnlock()
	l.desc.RLock()
	assert.NotEmpty(t, refused(l.all.RLock))
	assert.NotEmpty(t, refused(l.all.Lock))
	l.desc.RUnlock()
	l.desc.Lock()
	assert.NotEmpty(t, refused(l.all.RLock))
	l.desc.Unlock()
	free(t)
}

// on runs f on another goroutine, and returns when it has ended.
func on(f func()) {
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	<-done
}

// TestHandOver: a lock counts for the goroutine that has taken it, whichever gives it back.
func TestHandOver(t *testing.T) {
	var l locks
	l.cq.Lock()
	on(func() { assert.Empty(t, refused(func() { l.done.Lock(); l.done.Unlock() }), "another holds the other") })
	assert.NotEmpty(t, refused(l.done.Lock))
	on(l.cq.Unlock)
	assert.Empty(t, refused(func() { l.done.Lock(); l.done.Unlock() }))

	on(l.cq.Lock)
	assert.Empty(t, refused(func() { l.done.Lock(); l.done.Unlock() }), "another has taken it")
	l.cq.Unlock()

	l.desc.RLock()
	on(l.desc.RUnlock)
	assert.Empty(t, refused(func() { l.all.Lock(); l.all.Unlock() }))
	free(t)
}

// TestCond: a goroutine in Wait has given the lock back, and waits for it again behind.
func TestCond(t *testing.T) {
	var l locks
	c := sync.NewCond(&l.cq)
	waits, said := false, make(chan string)
	go func() {
		said <- refused(func() {
			l.cq.Lock()
			waits = true
			c.Wait()
			l.cq.Unlock()
			l.done.Lock()
			l.done.Unlock()
		})
	}()
	for ready := false; !ready; {
		l.cq.Lock()
		if ready = waits; ready {
			mu.Lock()
			assert.Len(t, held, 1, "this goroutine's")
			mu.Unlock()
			c.Signal()
		}
		l.cq.Unlock()
	}
	assert.Empty(t, <-said)

	l.srq.Lock()
	require.True(t, l.cq.TryLock())
	signalled := make(chan struct{})
	go func() {
		defer close(signalled)
		l.cq.Lock() // free in Wait
		l.cq.Unlock()
		c.Signal()
	}()
	assert.NotEmpty(t, refused(c.Wait), "the end of Wait takes it again, behind the other")
	<-signalled
	l.srq.Unlock()
	free(t)
}

// TestAllocatesNothing: the tests of the engine count allocations in this build too.
func TestAllocatesNothing(t *testing.T) {
	var l locks
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		l.done.Lock()
		l.cq.Lock()
		l.cq.Unlock()
		l.done.Unlock()
		l.desc.RLock()
		l.desc.RUnlock()
	}))
	free(t)
}

package stag

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// The hold word, step by step: what late holds and several releases do to it.
// A late hold is acted out by count, which has no look before.

func newEntry() *entry {
	d := new(drain)
	d.init()
	return &entry{drain: d}
}

const g = nextGen // one generation, in place

func TestWordLife(t *testing.T) {
	e := newEntry()
	for gen := uint64(0); gen < 3*g; gen += g {
		require.Equal(t, gen, e.word.Load())
		require.True(t, e.hold(gen))
		require.False(t, e.hold(gen+g))
		require.False(t, e.hold(gen|revokedBit))
		require.Equal(t, gen+1, e.word.Load())
		e.release()
		e.revoke()
		require.Equal(t, gen|revokedBit|drainedBit, e.word.Load(), "at once")
		e.revoke()
		require.False(t, e.hold(gen))
		require.False(t, e.isDraining())
		e.arm()
	}
	e.word.Store(genMask | revokedBit | drainedBit | 5)
	e.arm()
	require.Equal(t, uint64(5), e.word.Load(), "after the last generation comes the first")
}

func TestLateHoldFails(t *testing.T) {
	e := newEntry()
	require.True(t, e.count(0))
	e.revoke()
	require.False(t, e.count(0))
	require.Equal(t, uint64(revokedBit|1), e.word.Load(), "the other one is still counted")
	e.release()
	require.False(t, e.count(0))
	require.Equal(t, uint64(revokedBit|drainedBit), e.word.Load())
	e.arm()
	require.False(t, e.count(0))
	require.False(t, e.count(2*g))
	require.True(t, e.count(g))
	require.Equal(t, uint64(g+1), e.word.Load())
}

// A late hold keeps D off until it is gone, without touching anything.
func TestLateHoldWhileDraining(t *testing.T) {
	e := newEntry()
	require.True(t, e.hold(0))
	e.revoke()
	e.word.Add(1) // late
	e.release()   // the real one
	require.True(t, e.isDraining())
	e.release() // the late one
	require.Equal(t, uint64(revokedBit|drainedBit), e.word.Load())

	e.word.Add(1) // one more, after D
	require.False(t, e.isDraining())
	e.release()
	require.Equal(t, uint64(revokedBit|drainedBit), e.word.Load())
}

// A late hold that is counted when the next generation begins stays counted, and
// does not end or hinder that one.
func TestLateHoldOverArm(t *testing.T) {
	e := newEntry()
	e.revoke()
	e.word.Add(1) // late
	e.arm()
	require.Equal(t, uint64(g+1), e.word.Load(), "its count is kept")
	require.True(t, e.hold(g))
	e.release() // the late one, in a generation not its own
	require.Equal(t, uint64(g+1), e.word.Load())
	e.revoke()
	require.True(t, e.isDraining(), "the real one is still there")
	e.release()
	require.Equal(t, uint64(g|revokedBit|drainedBit), e.word.Load())
}

// A late hold can be the one that the revocation of the next generation waits
// for.
func TestLateHoldIsDrained(t *testing.T) {
	e := newEntry()
	e.revoke()
	e.word.Add(1)
	e.arm()
	e.revoke()
	require.True(t, e.isDraining())
	e.release()
	require.False(t, e.isDraining())
}

// churning has a goroutine revoke and arm e until enough has been seen, or a
// million times: a single core provokes little.
func churning(e *entry, fill func(gen uint64), look func() (enough bool)) {
	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := uint64(1); !stop.Load(); i++ {
			e.revoke()
			e.drain.wait(e, (i-1)*g)
			fill(i)
			e.arm()
			if i%1024 == 0 {
				runtime.Gosched()
			}
		}
	})
	for i := 0; i < 1<<20 && !look(); i++ {
		if i%1024 == 0 {
			runtime.Gosched()
		}
	}
	stop.Store(true)
	wg.Wait()
}

// look tells of a grant that changes under it; what it returns is of one
// generation.
func TestLookIsOfOneGeneration(t *testing.T) {
	e := newEntry()
	e.grant.store(grant{pd: 1})
	good, changed := 0, 0
	churning(e, func(i uint64) {
		e.grant.store(grant{key: uint8(i), pd: 1, base: i, length: i, at: i})
	}, func() bool {
		var gr grant
		before := e.word.Load() &^ holdMask
		gen, ok := e.look(&gr)
		switch i := gen / g; {
		case !ok && before&revokedBit == 0:
			changed++
		case ok && (gr.base != i || gr.length != i || gr.at != i || uint64(gr.key) != i%256):
			t.Errorf("torn: %+v in generation %d", gr, i)
			return true
		case ok:
			good++
		}
		return good > 1000 && changed > 300
	})
	require.NotZero(t, good)
}

// hold never succeeds in an entry that is drained, or in another generation.
func TestHoldIsOfItsGeneration(t *testing.T) {
	e := newEntry()
	owned := 0 // by whoever has a hold, or else by fill: for the race detector
	good, late := 0, 0
	churning(e, func(uint64) { owned++ }, func() bool {
		gen := e.word.Load() &^ holdMask
		if gen&revokedBit != 0 {
			return false
		}
		if !e.hold(gen) {
			late++
			return false
		}
		defer e.release()
		good++
		owned++
		if w := e.word.Load(); w&genMask != gen || w&drainedBit != 0 {
			t.Errorf("a hold of %#x, but the word is %#x", gen, w)
			return true
		}
		return good > 1000 && late > 300
	})
	require.NotZero(t, good)
}

// The one whose entry is drained is woken, whoever else waits longer.
func TestTwoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := newEntry(), newEntry()
		second.drain = first.drain
		woken := make(chan *entry)
		for _, e := range []*entry{first, second} {
			require.True(t, e.hold(0))
			e.revoke()
			go func() { e.drain.wait(e, 0); woken <- e }()
			synctest.Wait()
		}
		for _, e := range []*entry{second, first} {
			e.release()
			require.Same(t, e, <-woken)
		}
	})
}

// Whoever waits for one generation is not kept by the next.
func TestWaitIsForOneGeneration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEntry()
		require.True(t, e.hold(0))
		e.revoke()
		done := make(chan struct{})
		go func() { e.drain.wait(e, 0); close(done) }()
		synctest.Wait()
		e.drain.wake() // for somebody else
		synctest.Wait()
		select {
		case <-done:
			t.Fatal("woken under a hold")
		default:
		}
		e.release()
		e.arm()
		require.True(t, e.hold(g))
		e.revoke()
		<-done
		e.drain.wait(e, 0) // nor later
		e.release()
		e.drain.wait(e, g)
	})
}

// Grants go through the atomics whole.
func TestGrantWords(t *testing.T) {
	for _, want := range []grant{
		{},
		{key: 255},
		{pd: 1<<32 - 1},
		{qp: 1<<32 - 1},
		{access: 255},
		{addressing: 1},
		{base: 1<<64 - 1},
		{length: 1<<64 - 1},
		{at: 1<<64 - 1},
		{vanish: true},
		{1, 2, 3, 4, 1, 6, 7, 8, true},
	} {
		var p published
		p.store(grant{key: 9, pd: 9, qp: 9, access: 9, addressing: 1, base: 9, length: 9, at: 9})
		p.store(want)
		require.Equal(t, want, p.load())
	}
}

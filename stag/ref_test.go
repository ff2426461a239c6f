package stag

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wr"
)

func TestCopy(t *testing.T) {
	tb := NewTable(Config{})
	mem := []byte("0123456789")
	r := register(t, tb, RegionConfig{RemoteInvalidate: true, Memory: mem, VA: 1000})
	ref := resolve(t, tb, r.STag, 1002, 5) // 23456

	require.True(t, ref.CopyIn(1, []byte("abc")))
	require.Equal(t, "012abc6789", string(mem))
	got := make([]byte, 4)
	require.True(t, ref.CopyOut(got, 1))
	require.Equal(t, "abc6", string(got))
	require.True(t, ref.CopyIn(5, nil), "nothing, at the end")

	for _, c := range []struct {
		off uint64
		n   int
	}{{0, 6}, {1, 5}, {5, 1}, {6, 0}, {^uint64(0), 1}, {^uint64(0), 2}} {
		before := string(mem)
		require.False(t, ref.CopyIn(c.off, make([]byte, c.n)), "%+v", c)
		require.Equal(t, before, string(mem))
		out := []byte("zzzzzz")[:c.n]
		require.False(t, ref.CopyOut(out, c.off), "%+v", c)
		require.Equal(t, "zzzzzz"[:c.n], string(out))
	}
}

func TestAppend(t *testing.T) {
	tb := NewTable(Config{})
	mem := []byte("0123456789")
	r := register(t, tb, RegionConfig{RemoteInvalidate: true, Memory: mem, Addressing: wr.ZeroBased})
	ref := resolve(t, tb, r.STag, 2, 5)
	require.True(t, ref.Hold())
	iov := ref.Append(nil, 0, 5)
	iov = ref.Append(iov, 4, 1)
	require.Equal(t, [][]byte{[]byte("23456"), []byte("6")}, iov)
	require.Equal(t, 5, cap(iov[0]), "no append beyond the piece")
	require.Same(t, &mem[2], &iov[0][0], "not a copy")

	require.Len(t, ref.Append(iov, 0, 6), 2)
	require.Len(t, ref.Append(iov, 6, 0), 2)
	require.Len(t, ref.Append(iov, 5, 0), 2)
	require.Len(t, ref.Append(iov, 1, ^uint64(0)), 2)
	require.Len(t, ref.Append(iov, ^uint64(0), 2), 2)
	ref.Release()

	require.NoError(t, tb.Deallocate(r.STag))
	require.Empty(t, ref.Append(nil, 0, 5), "memory is let go of")
}

func TestZeroRef(t *testing.T) {
	var r Ref
	assert.False(t, r.Hold())
	r.Release()
	assert.False(t, r.CopyIn(0, nil))
	assert.False(t, r.CopyOut(nil, 0))
	assert.Empty(t, r.Append(nil, 0, 1))
	assert.False(t, r.SameHold(r))
}

func TestSameHold(t *testing.T) {
	tb := NewTable(Config{})
	mem := make([]byte, 64)
	a := register(t, tb, RegionConfig{RemoteInvalidate: true, Memory: mem, Addressing: wr.ZeroBased}).STag
	b := register(t, tb, RegionConfig{RemoteInvalidate: true, Memory: mem, Addressing: wr.ZeroBased}).STag
	assert.True(t, resolve(t, tb, a, 0, 1).SameHold(resolve(t, tb, a, 9, 9)))
	assert.False(t, resolve(t, tb, a, 0, 1).SameHold(resolve(t, tb, b, 0, 1)), "same memory, other region")
	assert.False(t, resolve(t, tb, a, 0, 1).SameHold(Ref{}))
}

// revocations are the ways to revoke. Each waits for holds and kills Refs.
var revocations = map[string]func(*Table, wr.STag){
	"Deallocate":       func(tb *Table, s wr.STag) { _ = tb.Deallocate(s) },
	"InvalidateLocal":  func(tb *Table, s wr.STag) { tb.InvalidateLocal(s, alice) },
	"InvalidateRemote": func(tb *Table, s wr.STag) { tb.InvalidateRemote(s, alice) },
	"Close":            func(tb *Table, _ wr.STag) { tb.Close() },
}

func TestRevocationWaitsForHolds(t *testing.T) {
	for first := range revocations {
		for second := range revocations {
			t.Run(first+" then "+second, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { testRevocationWaits(t, first, second) })
			})
		}
	}
}

func testRevocationWaits(t *testing.T, first, second string) {
	tb := NewTable(Config{})
	r := register(t, tb, RegionConfig{RemoteInvalidate: true, Addressing: wr.ZeroBased})
	ref := resolve(t, tb, r.STag, 0, 64)
	start := func(how string) (running func() bool) {
		done := make(chan struct{})
		go func() { defer close(done); revocations[how](tb, r.STag) }()
		return func() bool {
			synctest.Wait()
			select {
			case <-done:
				return false
			default:
				return true
			}
		}
	}

	require.True(t, ref.Hold())
	require.True(t, ref.Hold(), "holds nest")
	firstRuns := start(first)
	require.True(t, firstRuns())

	// From here on the region is gone for all, but not its memory.
	require.False(t, ref.Hold())
	require.False(t, ref.CopyIn(0, []byte{1}))
	require.False(t, ref.CopyOut(make([]byte, 1), 0))
	_, f := tb.Resolve(r.STag, 0, 1, alice, wr.LocalRead)
	require.Equal(t, FaultSTag, f)
	require.Len(t, ref.Append(nil, 0, 64), 1, "the holder goes on")

	// A second one finds the mutex free. It waits too if the STag is still
	// there; Close waits in any case.
	waits := tb.Len() == 1 || second == "Close"
	secondRuns := start(second)
	require.Equal(t, waits, secondRuns())

	ref.Release()
	require.True(t, firstRuns(), "one hold is left")
	require.Equal(t, waits, secondRuns())
	ref.Release()
	require.False(t, firstRuns())
	require.False(t, secondRuns())
	require.False(t, ref.Hold())
}

// Close ends Refs into the memory of the STag of zero as well.
func TestCloseRevokesPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tb := NewTable(Config{})
		p := pages(t, tb, 1, page)
		ref, f := tb.Resolve(0, p.Address(0), 8, root, localRights)
		require.Equal(t, OK, f)
		require.True(t, ref.Hold())
		done := make(chan struct{})
		go func() { defer close(done); tb.Close() }()
		synctest.Wait()
		select {
		case <-done:
			t.Fatal("Close returned under a hold")
		default:
		}
		require.False(t, ref.CopyIn(0, []byte{1}))
		ref.Release()
		<-done
		require.False(t, ref.CopyIn(0, []byte{1}))
		require.Zero(t, p.Bytes()[0])
	})
}

// A late hold passes its first look, then the revocation happens. It must fail,
// and must not end the wait for the real one.
func TestLateHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tb := NewTable(Config{})
		r := register(t, tb, RegionConfig{RemoteInvalidate: true, Addressing: wr.ZeroBased})
		e := tb.index.get(r.STag.Index())
		require.True(t, e.hold(0))
		e.word.Add(1) // the late one counts itself
		done := make(chan struct{})
		go func() { defer close(done); _ = tb.Deallocate(r.STag) }()
		synctest.Wait()
		e.release() // the late one gives up
		synctest.Wait()
		select {
		case <-done:
			t.Fatal("Deallocate returned under a hold")
		default:
		}
		e.release()
		<-done
		// One more comes and goes after the end; nothing is closed twice.
		e.word.Add(1)
		e.release()
		require.Zero(t, e.mem)
	})
}

// The last release may come between any two steps of a revocation. Which of
// the two ends it differs from round to round; it must always end.
func TestReleaseDuringRevocation(t *testing.T) {
	const rounds = 20000
	var entries [rounds]entry
	var d drain
	d.init()
	for i := range entries {
		entries[i].drain = &d
		require.True(t, entries[i].hold(0))
	}
	var at atomic.Int64
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range entries {
			for at.Load() < int64(i) {
				runtime.Gosched()
			}
			for range i % 16 { // a little later each round
				_ = at.Load()
			}
			entries[i].release()
		}
	})
	for i := range entries {
		at.Store(int64(i))
		entries[i].revoke()
		d.wait(&entries[i], 0)
		require.Equal(t, uint64(revokedBit|drainedBit), entries[i].word.Load())
	}
	wg.Wait()
}

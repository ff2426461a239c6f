package cq

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/leakcheck"
	"github.com/softrnic/softrnic/wr"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

// slots remembers what was released of owners of one slot each.
type slots struct {
	mu       sync.Mutex
	released []uint64
}

type slot struct {
	of  *slots
	pos uint64
}

func (s *slots) slot(pos uint64) Releaser { return slot{s, pos} }

func (s slot) Release(pos uint64) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if pos == s.pos {
		s.of.released = append(s.of.released, pos)
	}
}

// TestReleaseOfSeveral: of completions of one owner that are reaped together, the
// last one may stand for all.
func TestReleaseOfSeveral(t *testing.T) {
	for first := range uint64(5) { // where in the ring
		q := New(Config{Entries: 5})
		var a, b position
		push := func(own *position, pos uint64) {
			require.True(t, q.Push(Entry{Owner: own, Pos: pos}))
		}
		var buf [8]wr.Completion
		for range first {
			push(&a, 0)
			require.Equal(t, 1, q.Poll(buf[:]))
		}
		push(&a, 1)
		push(&a, 2)
		push(&b, 3)
		push(&a, 4)
		push(&a, 5)
		for n, want := range [][2]position{{1, 0}, {2, 0}, {2, 3}, {4, 3}, {5, 3}} {
			require.Equal(t, 1, q.Poll(buf[:1]), n)
			require.Equal(t, want, [2]position{a, b}, "one by one")
		}
		push(&a, 6)
		push(&a, 7)
		push(&a, 8)
		push(&b, 9)
		require.Equal(t, 2, q.Poll(buf[:2]))
		require.Equal(t, [2]position{7, 3}, [2]position{a, b}, "what is left is not released")
		require.Equal(t, 2, q.Poll(buf[:]))
		require.Equal(t, [2]position{8, 9}, [2]position{a, b})
		push(&a, 10)
		push(&a, 11)
		q.Close()
		require.Equal(t, position(11), a)
	}
}

// TestPushAll: as many are added as there is room for, and one of them may be what
// was asked for.
func TestPushAll(t *testing.T) {
	var events []wr.Event
	q := New(Config{Entries: 3, Event: func(e wr.Event) { events = append(events, e) }})
	require.NoError(t, q.Request(wr.NotifySolicited))
	solicited := entry(2)
	solicited.Solicited = true
	require.Equal(t, 3, q.PushAll([]Entry{entry(1), solicited, entry(3), entry(4)}))
	require.True(t, notified(q))
	require.False(t, notified(q), "one shot")
	require.Len(t, events, 1)
	require.Zero(t, q.PushAll([]Entry{entry(5)}))
	require.Len(t, events, 1)
	var buf [4]wr.Completion
	require.Equal(t, []uint64{1, 2, 3}, ids(buf[:q.Poll(buf[:])]))
	require.Zero(t, q.PushAll(nil))
	require.Len(t, events, 1)
	q.Fail()
	require.Zero(t, q.PushAll([]Entry{entry(6), entry(7)}))
	require.Zero(t, q.Len())
}

func entry(id uint64) Entry { return Entry{Completion: wr.Completion{ID: id}} }

func ids(cs []wr.Completion) []uint64 {
	var out []uint64
	for _, c := range cs {
		out = append(out, c.ID)
	}
	return out
}

func TestPollOrderAndRelease(t *testing.T) {
	q := New(Config{ID: 7, Entries: 3})
	assert.Equal(t, wr.CQID(7), q.ID())
	assert.Equal(t, 3, q.Cap())
	var s slots
	var buf [8]wr.Completion
	next := uint64(0)
	for range 5 { // over the end of the ring and on
		for range 2 {
			next++
			e := entry(next)
			e.Owner, e.Pos = s.slot(next+100), next+100
			require.True(t, q.Push(e))
		}
		require.Empty(t, q.wake, "nobody sleeps")
		require.Equal(t, 2, q.Len())
		require.Zero(t, q.Poll(nil))
		require.Equal(t, 1, q.Poll(buf[:1]))
		require.Equal(t, next-1, buf[0].ID)
		require.Equal(t, 1, q.Poll(buf[:]))
		require.Equal(t, next, buf[0].ID)
		require.Zero(t, q.Poll(buf[:]))
	}
	for i := range q.ring {
		require.Nil(t, q.ring[i].Owner, "a ring keeps nobody alive")
	}
	require.Len(t, s.released, 10)
	for i, pos := range s.released {
		assert.Equal(t, uint64(i)+101, pos)
	}
}

// TestNotify is verbs draft 8.2.5.
func TestNotify(t *testing.T) {
	plain, solicited := entry(1), entry(2)
	solicited.Solicited = true
	failed := entry(3)
	failed.Status = wr.StatusFlushed
	for _, c := range []struct {
		name     string
		requests []wr.NotifyType
		push     []Entry
		want     bool
	}{
		{"not requested", nil, []Entry{solicited}, false},
		{"next", []wr.NotifyType{wr.NotifyNext}, []Entry{plain}, true},
		{"next, error", []wr.NotifyType{wr.NotifyNext}, []Entry{failed}, true},
		{"solicited, plain comes", []wr.NotifyType{wr.NotifySolicited}, []Entry{plain, plain}, false},
		{"solicited", []wr.NotifyType{wr.NotifySolicited}, []Entry{plain, solicited}, true},
		{"solicited, error", []wr.NotifyType{wr.NotifySolicited}, []Entry{failed}, true},
		{"next overrides solicited", []wr.NotifyType{wr.NotifySolicited, wr.NotifyNext}, []Entry{plain}, true},
		{"solicited does not override next", []wr.NotifyType{wr.NotifyNext, wr.NotifySolicited}, []Entry{plain}, true},
		{"nothing comes", []wr.NotifyType{wr.NotifyNext}, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			calls := 0
			var q *Queue
			q = New(Config{ID: 1, Entries: 8, Notify: func() {
				calls++
				require.Positive(t, q.Len(), "called without the lock, after the completion")
			}})
			for _, r := range c.requests {
				require.NoError(t, q.Request(r))
			}
			for _, e := range c.push {
				require.True(t, q.Push(e))
			}
			require.Equal(t, c.want, notified(q))
			require.Equal(t, c.want, calls == 1)
			require.True(t, q.Push(solicited))
			armed := len(c.requests) > 0 && !c.want
			require.Equal(t, armed, notified(q), "one shot")
			require.Equal(t, c.want || armed, calls == 1)
		})
	}
}

func notified(q *Queue) bool {
	select {
	case <-q.Events():
		return true
	default:
		return false
	}
}

func TestNotifyRefusals(t *testing.T) {
	q := New(Config{ID: 1, Entries: 1})
	for _, n := range []wr.NotifyType{0, wr.NotifySolicited + 1, 255} {
		require.ErrorIs(t, q.Request(n), wr.ErrInvalidNotifyType)
	}
	require.True(t, q.Push(entry(1)))
	require.False(t, notified(q))
}

// TestNotifyExisting: what is queued already does not fire, the next one does
// (8.2.5).
func TestNotifyExisting(t *testing.T) {
	calls := 0
	q := New(Config{Entries: 4, Notify: func() { calls++ }})
	require.True(t, q.Push(entry(1)))
	require.NoError(t, q.Request(wr.NotifyNext))
	require.NoError(t, q.Request(wr.NotifyNext))
	require.Zero(t, calls)
	require.False(t, notified(q))
	require.True(t, q.Push(entry(2)))
	require.True(t, q.Push(entry(3)))
	require.Equal(t, 1, calls, "two requests, one notification: RV-8.2.5-M8")
	require.NoError(t, q.Request(wr.NotifyNext))
	require.True(t, q.Push(entry(4)))
	require.Equal(t, 2, calls, "the token that nobody fetched does not hold the handler back")
	require.True(t, notified(q))
	require.False(t, notified(q))
}

// TestNotifyHushed: what flushes and is nobody's business fires nothing, and leaves armed what was; all else fires.
func TestNotifyHushed(t *testing.T) {
	asked := 0
	q := New(Config{Entries: 8, Hushes: func(context any, op wr.Op) bool { asked++; return context == "hushed" && op == wr.OpRecv }})
	flushed := func(context any, op wr.Op) Entry {
		return Entry{Completion: wr.Completion{Op: op, Status: wr.StatusFlushed, Context: context}}
	}
	require.NoError(t, q.Request(wr.NotifyNext))
	require.True(t, q.Push(flushed("hushed", wr.OpRecv)))
	require.False(t, notified(q))
	require.True(t, q.Push(flushed("", wr.OpRecv)))
	require.True(t, notified(q))
	require.Equal(t, 2, asked)
	for _, other := range []Entry{flushed("hushed", wr.OpSend), {Completion: wr.Completion{Op: wr.OpRecv, Context: "hushed"}}} {
		require.NoError(t, q.Request(wr.NotifyNext))
		require.True(t, q.Push(other))
		require.True(t, notified(q))
	}
	require.Equal(t, 3, asked)
}

// TestFire gives what is armed, of either type, and once.
func TestFire(t *testing.T) {
	calls := 0
	q := New(Config{Entries: 4, Notify: func() { calls++ }})
	q.Fire()
	require.False(t, notified(q))
	for i, n := range []wr.NotifyType{wr.NotifyNext, wr.NotifySolicited} {
		require.NoError(t, q.Request(n))
		q.Fire()
		q.Fire()
		require.True(t, notified(q))
		require.Equal(t, i+1, calls)
	}
	require.EqualValues(t, 2, q.Stats().Notifications)
	require.NoError(t, q.Request(wr.NotifyNext))
	q.Close()
	q.Fire()
	require.Equal(t, 2, calls)
}

// TestNotifyOverflow: a completion that is dropped notifies nobody.
func TestNotifyOverflow(t *testing.T) {
	q := New(Config{ID: 1, Entries: 1})
	require.True(t, q.Push(entry(1)))
	require.NoError(t, q.Request(wr.NotifyNext))
	require.False(t, q.Push(entry(2)))
	require.False(t, notified(q))
}

// TestNoMissedNotification runs the sequence that the draft asks of a consumer:
// request, poll, sleep. No completion may be left when it sleeps for ever.
func TestNoMissedNotification(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 2000
		q := New(Config{ID: 1, Entries: n})
		go func() {
			for i := range uint64(n) {
				q.Push(entry(i))
				runtime.Gosched()
			}
		}()
		var buf [3]wr.Completion
		for got := 0; got < n; {
			require.NoError(t, q.Request(wr.NotifyNext))
			for k := q.Poll(buf[:]); k > 0; k = q.Poll(buf[:]) {
				got += k
			}
			if got < n {
				<-q.Events() // a missed one is a deadlock, which synctest reports
			}
		}
	})
}

func TestWait(t *testing.T) {
	q := New(Config{ID: 1, Entries: 4})
	var buf [2]wr.Completion
	n, err := q.Wait(t.Context(), nil)
	require.ErrorIs(t, err, wr.ErrInvalidModifier, "no room")
	require.Zero(t, n)
	require.True(t, q.Push(entry(1)))
	over, cancel := context.WithCancel(t.Context())
	cancel()
	n, err = q.Wait(over, buf[:])
	require.NoError(t, err, "there is a completion")
	require.Equal(t, 1, n)
	_, err = q.Wait(over, buf[:])
	require.ErrorIs(t, err, context.Canceled)
	require.False(t, q.Waiting())
}

func TestWaitLeavesRequestAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Config{ID: 1, Entries: 4})
		require.NoError(t, q.Request(wr.NotifySolicited))
		done := make(chan uint64)
		go func() {
			var buf [1]wr.Completion
			_, err := q.Wait(t.Context(), buf[:])
			assert.NoError(t, err)
			done <- buf[0].ID
		}()
		synctest.Wait()
		require.True(t, q.Waiting())
		require.True(t, q.Push(entry(5)))
		require.Equal(t, uint64(5), <-done)
		require.False(t, notified(q))
		e := entry(6)
		e.Solicited = true
		require.True(t, q.Push(e))
		require.True(t, notified(q))
	})
}

// TestWaiters: of many sleepers none stays asleep while there is work, though
// the token that wakes them is one.
func TestWaiters(t *testing.T) {
	for _, size := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			const sleepers, n = 5, 500
			q := New(Config{ID: 1, Entries: n})
			ctx, cancel := context.WithCancel(t.Context())
			var got atomic.Int64
			var wg sync.WaitGroup
			for range sleepers {
				wg.Go(func() {
					buf := make([]wr.Completion, size)
					for {
						k, err := q.Wait(ctx, buf)
						if err != nil {
							return
						}
						got.Add(int64(k))
					}
				})
			}
			synctest.Wait()
			for i := range uint64(n) {
				require.True(t, q.Push(entry(i)))
			}
			synctest.Wait()
			require.EqualValues(t, n, got.Load())
			cancel()
			wg.Wait()
		})
	}
}

// TestWaiterGivesUpItsToken: a sleeper that is cancelled when it has just been
// woken does not take the wake-up with it.
func TestWaiterGivesUpItsToken(t *testing.T) {
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			q := New(Config{ID: 1, Entries: 4})
			quit, cancel := context.WithCancel(t.Context())
			go func() {
				var buf [1]wr.Completion
				_, _ = q.Wait(quit, buf[:])
			}()
			stays := make(chan int, 1)
			go func() {
				var buf [2]wr.Completion
				n, _ := q.Wait(t.Context(), buf[:])
				stays <- n
			}()
			synctest.Wait()
			go cancel()
			q.Push(entry(1))
			q.Push(entry(2))
			require.Positive(t, <-stays)
		})
	}
}

// TestCancelledWaiterLooksOnce: a sleeper that is cancelled returns the completion
// whose token another took.
func TestCancelledWaiterLooksOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Config{Entries: 2})
		ctx, cancel := context.WithCancel(t.Context())
		got := make(chan uint64)
		go func() {
			var buf [1]wr.Completion
			_, err := q.Wait(ctx, buf[:])
			assert.NoError(t, err)
			got <- buf[0].ID
		}()
		synctest.Wait()
		q.mu.Lock()
		q.ring[0], q.count = entry(5), 1 // a Push, without the token
		q.mu.Unlock()
		cancel()
		require.Equal(t, uint64(5), <-got)
	})
}

// TestOneTokenForTwo: two completions came before anybody had fetched the token of
// the first, so there is one token. Each sleeper gets its completion, and a token
// stays for nobody.
func TestOneTokenForTwo(t *testing.T) {
	for sleepers := 1; sleepers <= 2; sleepers++ {
		synctest.Test(t, func(t *testing.T) {
			q := New(Config{Entries: 2})
			var wg sync.WaitGroup
			for range sleepers {
				wg.Go(func() {
					var buf [1]wr.Completion
					n, err := q.Wait(t.Context(), buf[:])
					assert.NoError(t, err)
					assert.Equal(t, 1, n)
				})
			}
			synctest.Wait()
			q.mu.Lock()
			q.ring[0], q.ring[1], q.count = entry(1), entry(2), 2
			q.mu.Unlock()
			signal(q.wake)
			wg.Wait() // one left asleep is a deadlock, which synctest reports
			require.Equal(t, 2-sleepers, q.Len())
			require.Empty(t, q.wake)
		})
	}
}

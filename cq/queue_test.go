package cq

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/leak"
	"github.com/softrnic/softrnic/wr"
)

func TestMain(m *testing.M) { leak.Main(m) }

// slots is a Releaser that remembers.
type slots struct {
	mu       sync.Mutex
	released []uint64
}

func (s *slots) Release(pos uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.released = append(s.released, pos)
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
	q := New(7, 3)
	assert.Equal(t, wr.CQID(7), q.ID())
	assert.Equal(t, 3, q.Cap())
	var s slots
	var buf [8]wr.Completion
	next := uint64(0)
	for range 5 { // over the end of the ring and on
		for range 2 {
			next++
			e := entry(next)
			e.Owner, e.Pos = &s, next+100
			require.True(t, q.Push(e))
		}
		require.Equal(t, 2, q.Len())
		require.Zero(t, q.Poll(nil))
		require.Equal(t, 1, q.Poll(buf[:1]))
		require.Equal(t, next-1, buf[0].ID)
		require.Equal(t, 1, q.Poll(buf[:]))
		require.Equal(t, next, buf[0].ID)
		require.Zero(t, q.Poll(buf[:]))
	}
	require.Len(t, s.released, 10)
	for i, pos := range s.released {
		assert.Equal(t, uint64(i)+101, pos)
	}
}

// TestOverflow: what is in the queue stays, what does not fit is dropped.
func TestOverflow(t *testing.T) {
	q := New(1, 2)
	require.True(t, q.Push(entry(1)))
	require.True(t, q.Push(entry(2)))
	require.False(t, q.Push(entry(3)))
	var buf [4]wr.Completion
	require.Equal(t, []uint64{1, 2}, ids(buf[:q.Poll(buf[:])]))
	require.True(t, q.Push(entry(4)))
	require.Equal(t, []uint64{4}, ids(buf[:q.Poll(buf[:])]))
}

// TestNotify is verbs draft 8.2.5.
func TestNotify(t *testing.T) {
	plain, solicited := entry(1), entry(2)
	solicited.Solicited = true
	failed := entry(3)
	failed.Status = wr.StatusFlushed
	for _, c := range []struct {
		name     string
		requests []NotifyType
		push     []Entry
		want     bool
	}{
		{"not requested", nil, []Entry{solicited}, false},
		{"next", []NotifyType{NotifyNext}, []Entry{plain}, true},
		{"next, error", []NotifyType{NotifyNext}, []Entry{failed}, true},
		{"solicited, plain comes", []NotifyType{NotifySolicited}, []Entry{plain, plain}, false},
		{"solicited", []NotifyType{NotifySolicited}, []Entry{plain, solicited}, true},
		{"solicited, error", []NotifyType{NotifySolicited}, []Entry{failed}, true},
		{"next overrides solicited", []NotifyType{NotifySolicited, NotifyNext}, []Entry{plain}, true},
		{"solicited does not override next", []NotifyType{NotifyNext, NotifySolicited}, []Entry{plain}, true},
		{"nothing comes", []NotifyType{NotifyNext}, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := New(1, 8)
			for _, r := range c.requests {
				require.NoError(t, q.Request(r))
			}
			for _, e := range c.push {
				require.True(t, q.Push(e))
			}
			require.Equal(t, c.want, notified(q))
			require.True(t, q.Push(solicited))
			armed := len(c.requests) > 0 && !c.want
			require.Equal(t, armed, notified(q), "one shot")
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
	q := New(1, 1)
	for _, n := range []NotifyType{0, NotifySolicited + 1, 255} {
		require.ErrorIs(t, q.Request(n), wr.ErrInvalidNotifyType)
	}
	require.True(t, q.Push(entry(1)))
	require.False(t, notified(q))
}

// TestNotifyOverflow: a completion that is dropped notifies nobody.
func TestNotifyOverflow(t *testing.T) {
	q := New(1, 1)
	require.True(t, q.Push(entry(1)))
	require.NoError(t, q.Request(NotifyNext))
	require.False(t, q.Push(entry(2)))
	require.False(t, notified(q))
}

// TestNoMissedNotification runs the sequence that the draft asks of a consumer:
// request, poll, sleep. No completion may be left when it sleeps for ever.
func TestNoMissedNotification(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 2000
		q := New(1, n)
		go func() {
			for i := range uint64(n) {
				q.Push(entry(i))
				runtime.Gosched()
			}
		}()
		var buf [3]wr.Completion
		for got := 0; got < n; {
			require.NoError(t, q.Request(NotifyNext))
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
	q := New(1, 4)
	var buf [2]wr.Completion
	n, err := q.Wait(t.Context(), nil)
	require.NoError(t, err)
	require.Zero(t, n, "no room asks for nothing")
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
		q := New(1, 4)
		require.NoError(t, q.Request(NotifySolicited))
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
			q := New(1, n)
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
			q := New(1, 4)
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

// TestQueueAgainstModel compares a queue with a slice.
func TestQueueAgainstModel(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		size := 1 + rng.IntN(9)
		q := New(1, size)
		var model []uint64
		var armed NotifyType
		var token bool
		for id := range uint64(200) {
			switch rng.IntN(4) {
			case 0, 1:
				e := entry(id)
				e.Solicited = rng.IntN(3) == 0
				if rng.IntN(5) == 0 {
					e.Status = wr.StatusFlushed
				}
				fits := len(model) < size
				require.Equal(t, fits, q.Push(e))
				if !fits {
					break
				}
				model = append(model, id)
				if armed == NotifyNext || armed == NotifySolicited && (e.Solicited || e.Status != 0) {
					armed, token = 0, true
				}
			case 2:
				buf := make([]wr.Completion, rng.IntN(4))
				n := q.Poll(buf)
				require.Equal(t, min(len(buf), len(model)), n)
				for i := range n {
					require.Equal(t, model[i], buf[i].ID)
				}
				model = model[n:]
			default:
				n := NotifyType(1 + rng.IntN(2))
				require.NoError(t, q.Request(n))
				if armed != NotifyNext {
					armed = n
				}
				require.Equal(t, token, notified(q))
				token = false
			}
			require.Equal(t, len(model), q.Len())
		}
	}
}

func BenchmarkPushPoll(b *testing.B) {
	q := New(1, 16)
	var s position
	var buf [1]wr.Completion
	e := Entry{Owner: &s}
	b.ReportAllocs()
	for b.Loop() {
		q.Push(e)
		q.Poll(buf[:])
	}
}

type position uint64

func (p *position) Release(pos uint64) { *p = position(pos) }

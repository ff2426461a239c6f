package srq

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wr"
)

// stream is a Stream that counts how often the watchdog looks.
type stream struct {
	at    atomic.Uint64
	looks atomic.Int64
	ended atomic.Int64
	stop  atomic.Int64 // how long the next look takes
}

func (s *stream) PartialReceive() uint64 {
	s.looks.Add(1)
	if d := s.stop.Swap(0); d > 0 {
		time.Sleep(time.Duration(d))
	}
	return s.at.Load()
}

func (s *stream) Stalled() { s.ended.Add(1) }

// fill is what a stream does when it has placed something.
func (s *stream) fill(q *Queue, at uint64) {
	s.at.Store(at)
	if at != 0 {
		q.Fills()
	}
}

// watched is a queue, and streams that take from it.
func watched(t *testing.T, timeout time.Duration, n int, run func(q *Queue, s []*stream)) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Config{Depth: 1, SGE: 1, StallTimeout: timeout})
		streams := make([]*stream, n)
		for i := range streams {
			streams[i] = new(stream)
			q.Join(streams[i])
		}
		run(q, streams)
	})
}

// pass lets time pass, and what is due at its end happen.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestStalled(t *testing.T) {
	for given, limit := range map[time.Duration]time.Duration{0: 10 * time.Second, time.Minute: time.Minute} {
		watched(t, given, 3, func(q *Queue, s []*stream) {
			pass(time.Hour)
			s[1].fill(q, 7)
			pass(limit)
			assert.Zero(t, s[1].ended.Load(), "not before %v are over", limit)
			pass(limit / 4)
			assert.EqualValues(t, 1, s[1].ended.Load())
			assert.Zero(t, s[0].ended.Load()+s[2].ended.Load())
			pass(time.Hour)
			assert.EqualValues(t, 1, s[1].ended.Load(), "told once")
		})
	}
}

func TestProgress(t *testing.T) {
	watched(t, 0, 2, func(q *Queue, s []*stream) {
		for i := range uint64(100) { // an octet each time
			s[0].fill(q, 1+i)
			s[1].fill(q, 1<<32*i+5) // as far as before, of another message
			pass(9 * time.Second)
		}
		s[1].fill(q, 0)
		assert.Zero(t, s[0].ended.Load()+s[1].ended.Load())
		pass(13 * time.Second)
		assert.EqualValues(t, 1, s[0].ended.Load())
		assert.Zero(t, s[1].ended.Load())
	})
}

// TestWatchdogRests: nothing runs while no receive is filled in part, or one stream has
// the queue for itself.
func TestWatchdogRests(t *testing.T) {
	looks := func(s *stream, d time.Duration) int64 {
		before := s.looks.Load()
		pass(d)
		return s.looks.Load() - before
	}
	watched(t, 0, 1, func(q *Queue, s []*stream) {
		s[0].fill(q, 1)
		assert.Zero(t, looks(s[0], time.Hour), "one stream")
		other := new(stream)
		q.Join(other)
		pass(13 * time.Second)
		assert.EqualValues(t, 1, s[0].ended.Load(), "another has come")
		s[0].fill(q, 0)
		pass(time.Minute)
		assert.Zero(t, looks(s[0], time.Hour), "nothing is filled in part")
		other.fill(q, 1)
		assert.Positive(t, looks(s[0], time.Minute))
		q.Leave(other)
		pass(time.Minute)
		assert.Zero(t, looks(s[0], time.Hour), "one stream again")
		assert.Zero(t, looks(other, time.Hour), "it has left")
	})
	watched(t, -1, 2, func(q *Queue, s []*stream) {
		s[0].fill(q, 1)
		assert.Zero(t, looks(s[0], 100*time.Hour), "never")
		assert.Zero(t, s[0].ended.Load())
		q.Leave(s[0])
	})
}

// TestStoppedProcess: a process that was stopped for long has not looked meanwhile.
func TestStoppedProcess(t *testing.T) {
	watched(t, 0, 2, func(q *Queue, s []*stream) {
		s[0].fill(q, 1)
		pass(3 * time.Second)
		s[0].stop.Store(int64(time.Hour)) // within the next look
		pass(time.Hour + 8*time.Second)
		s[0].fill(q, 2) // what has come meanwhile is received at last
		pass(10 * time.Second)
		assert.Zero(t, s[0].ended.Load())
	})
}

// waiting is a stream that takes receives, and counts how often it is woken.
type waiting struct {
	stream
	woken atomic.Int64
}

func (w *waiting) Wake()  { w.woken.Add(1) }
func (w *waiting) Holds() { w.at.Store(1) }

// TestHeldByOthers: a stream may wait while another stream holds a receive, and a StallTimeout
// longer; then who waits is woken.
func TestHeldByOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Config{Depth: 1, SGE: 1})
		var hoarder, honest waiting
		q.Join(&hoarder)
		q.Join(&honest)
		assert.False(t, q.HeldByOthers(&honest), "nobody holds one")
		honest.at.Store(7)
		assert.False(t, q.HeldByOthers(&honest), "what it held itself is no reason to wait")
		honest.at.Store(0)

		_, err := q.Post(wr.Recv{})
		require.NoError(t, err)
		e, _ := q.TakeFor(&hoarder, true)
		require.NotNil(t, e)
		q.Await(&honest)
		require.True(t, q.HeldByOthers(&honest))
		for i := range uint64(100) { // it goes on
			hoarder.fill(q, 1+leastProgress*(1+i))
			pass(9 * time.Second)
		}
		assert.Zero(t, hoarder.ended.Load())
		assert.Zero(t, honest.woken.Load())
		hoarder.fill(q, 0) // its message is complete
		pass(10 * time.Second)
		assert.Zero(t, honest.woken.Load())
		assert.True(t, q.HeldByOthers(&honest))
		pass(5 * time.Second)
		assert.EqualValues(t, 1, honest.woken.Load())
		assert.False(t, q.HeldByOthers(&honest))
		pass(time.Hour)
		assert.EqualValues(t, 1, honest.woken.Load())

		hoarder.at.Store(1)
		q.Leave(&hoarder) // in the middle of a message, and nobody is there but one that waits
		q.Await(&honest)
		assert.True(t, q.HeldByOthers(&honest))
		pass(10 * time.Second)
		assert.EqualValues(t, 1, honest.woken.Load())
		pass(3 * time.Second)
		assert.EqualValues(t, 2, honest.woken.Load())
		assert.False(t, q.HeldByOthers(&honest))
	})
}

// TestHolds: a stream has its receive, for all to see, before the queue can be found empty
// for it.
func TestHolds(t *testing.T) {
	q := New(Config{Depth: 2, SGE: 1})
	var a waiting
	e, _ := q.TakeFor(&a, true)
	require.Nil(t, e)
	assert.Zero(t, a.at.Load(), "it has got none")
	_, err := q.Post(wr.Recv{}, wr.Recv{})
	require.NoError(t, err)
	e, _ = q.TakeFor(&a, false)
	require.NotNil(t, e)
	assert.Zero(t, a.at.Load(), "all of the message is here")
	e, _ = q.TakeFor(&a, true)
	require.NotNil(t, e)
	assert.EqualValues(t, 1, a.at.Load())
}

// TestProgressWhileOthersWait: an octet now and then is none.
func TestProgressWhileOthersWait(t *testing.T) {
	watched(t, 0, 3, func(q *Queue, s []*stream) {
		q.Await(make(waiterChan, 1))
		for i := range uint64(30) {
			s[0].fill(q, 1+i)
			s[1].fill(q, 1+i*leastProgress/4)
			s[2].fill(q, i<<32+1) // a message a time
			pass(time.Second)
		}
		assert.EqualValues(t, []int64{1, 0, 0}, []int64{s[0].ended.Load(), s[1].ended.Load(), s[2].ended.Load()})
	})
}

// TestNoLookBehindClose: a stream has left within a message, and the queue is closed: nothing of it goes on.
func TestNoLookBehindClose(t *testing.T) {
	watched(t, time.Hour, 2, func(q *Queue, s []*stream) {
		s[0].fill(q, 1)
		q.Leave(s[0])
		q.Leave(s[1])
		require.True(t, q.watch.running)
		q.Close()
		require.False(t, q.watch.running)
		begun := time.Now()
		q.Join(s[0])
		q.Join(s[1])
		s[1].fill(q, 1)
		pass(time.Hour)
		require.Equal(t, time.Hour, time.Since(begun))
		require.False(t, q.watch.running)
	})
}

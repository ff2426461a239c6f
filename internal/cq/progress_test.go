package cq

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/netpoll"
	"github.com/softrnic/softrnic/wr"
)

// fakeDriver counts what the queue asks of it.
type fakeDriver struct {
	drive   func() bool
	drives  atomic.Int64
	yielded atomic.Int64
	served  atomic.Int64 // queues
}

func (d *fakeDriver) Drive() bool {
	d.drives.Add(1)
	return d.drive != nil && d.drive()
}

func (d *fakeDriver) Yield() { d.yielded.Add(1) }

func (d *fakeDriver) Serve(netpoll.Queue) { d.served.Add(1) }

func (d *fakeDriver) Forget(netpoll.Queue) { d.served.Add(-1) }

func (d *fakeDriver) Watch(fds []int) ([]int, bool) { return fds, d.Drive() }

// Nobody sleeps in a fakeDriver: that is for a fakeSleeper.

func (d *fakeDriver) Claim() bool { return false }
func (d *fakeDriver) Sleep() bool { return false }
func (d *fakeDriver) Rouse()      {}
func (d *fakeDriver) Leave()      {}

func TestPollDrives(t *testing.T) {
	q := New(Config{ID: 1, Entries: 4})
	d := &fakeDriver{}
	d.drive = func() bool { return d.drives.Load() == 2 && q.Push(entry(9)) }
	q.Attach(d)
	q.Attach(d) // for another queue pair
	require.EqualValues(t, 1, d.served.Load())
	var buf [1]wr.Completion
	require.Zero(t, q.Poll(buf[:]))
	require.EqualValues(t, 1, d.drives.Load())
	require.Equal(t, 1, q.Poll(buf[:]), "what the driver brought")
	require.Equal(t, uint64(9), buf[0].ID)
	require.EqualValues(t, 2, d.drives.Load())
	require.True(t, q.Push(entry(1)))
	require.Equal(t, 1, q.Poll(buf[:]))
	require.EqualValues(t, 2, d.drives.Load(), "not while there is something")
	q.Detach(d)
	require.Zero(t, q.Poll(buf[:]))
	require.EqualValues(t, 3, d.drives.Load(), "still attached")
	q.Detach(d)
	require.Zero(t, d.served.Load())
	q.Detach(d)
	for _, left := range q.drivers[:cap(q.drivers)] {
		require.Nil(t, left.Driver, "nobody is kept alive")
	}
	require.Zero(t, q.Poll(buf[:]))
	require.EqualValues(t, 3, d.drives.Load())
}

// TestYield: whoever goes to sleep hands progress back.
func TestYield(t *testing.T) {
	q := New(Config{ID: 1, Entries: 4})
	d := &fakeDriver{}
	q.Attach(d)
	require.NoError(t, q.Request(wr.NotifyNext))
	require.EqualValues(t, 1, d.yielded.Load())
	var buf [1]wr.Completion
	require.True(t, q.Push(entry(1)))
	_, err := q.Wait(t.Context(), buf[:])
	require.NoError(t, err)
	require.EqualValues(t, 1, d.yielded.Load(), "who finds something does not sleep")
	over, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = q.Wait(over, buf[:])
	require.ErrorIs(t, err, context.Canceled)
	require.EqualValues(t, 2, d.yielded.Load())
}

// TestManyDrivers: one poll visits some of them, and the next one others.
func TestManyDrivers(t *testing.T) {
	q := New(Config{ID: 1, Entries: 4})
	drivers := make([]fakeDriver, maxVisits+1)
	for i := range drivers {
		q.Attach(&drivers[i])
	}
	for range len(drivers) {
		require.Zero(t, q.Poll(make([]wr.Completion, 1)))
	}
	for i := range drivers {
		require.EqualValues(t, maxVisits, drivers[i].drives.Load(), "%d", i)
	}
}

// TestDetachWaits: after Detach the driver does not run, and of several pollers
// one drives at a time.
func TestDetachWaits(t *testing.T) {
	q := New(Config{ID: 1, Entries: 4})
	var running atomic.Int32
	var gone atomic.Bool
	inside := make(chan struct{})
	var once sync.Once
	d := &fakeDriver{}
	d.drive = func() bool {
		assert.EqualValues(t, 1, running.Add(1))
		assert.False(t, gone.Load())
		once.Do(func() { close(inside) })
		running.Add(-1)
		return false
	}
	q.Attach(d)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			var buf [1]wr.Completion
			for {
				select {
				case <-stop:
					return
				default:
					q.Poll(buf[:])
				}
			}
		})
	}
	<-inside
	q.Detach(d)
	gone.Store(true)
	for range 1000 {
		q.Poll(make([]wr.Completion, 1))
	}
	close(stop)
	wg.Wait()
}

// TestWatchBehindAPoller: a thread that is about to sleep waits for a poller, and looks itself: that one may not look again.
func TestWatchBehindAPoller(t *testing.T) {
	q := New(Config{Entries: 4})
	in, let, got := make(chan struct{}), make(chan struct{}), make(chan bool)
	d := &fakeDriver{}
	d.drive = func() bool {
		if d.drives.Load() == 1 {
			close(in)
			<-let
		}
		return d.drives.Load() == 2
	}
	q.Attach(d)
	go q.Drive()
	<-in
	go func() {
		_, ok := q.Watch(nil)
		got <- ok
	}()
	for range 1000 {
		runtime.Gosched()
	}
	close(let)
	require.True(t, <-got)
}

// TestPollersMakeWay: a poller that finds another one at the drivers lets that one run, which
// may have lost its processor in the middle.
func TestPollersMakeWay(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	q := New(Config{Entries: 4})
	in, let := make(chan struct{}), make(chan struct{})
	q.Attach(&fakeDriver{drive: func() bool {
		close(in)
		<-let
		for range 4 {
			runtime.Gosched() // as if its time was up
		}
		return false
	}})
	var over atomic.Bool
	go func() {
		var buf [1]wr.Completion
		q.Poll(buf[:])
		over.Store(true)
	}()
	<-in
	close(let)
	var buf [1]wr.Completion
	for polls := 0; !over.Load() && polls < 1000; polls++ {
		q.Poll(buf[:])
	}
	require.True(t, over.Load(), "a thousand polls did not let the other one go on")
}

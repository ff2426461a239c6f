package cq

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wr"
)

// fakeDriver counts what the queue asks of it.
type fakeDriver struct {
	drive   func() bool
	drives  atomic.Int64
	yielded atomic.Int64
}

func (d *fakeDriver) Drive() bool {
	d.drives.Add(1)
	return d.drive != nil && d.drive()
}

func (d *fakeDriver) Yield() { d.yielded.Add(1) }

func TestPollDrives(t *testing.T) {
	q := New(Config{ID: 1, Entries: 4})
	d := &fakeDriver{}
	d.drive = func() bool { return d.drives.Load() == 2 && q.Push(entry(9)) }
	q.Attach(d)
	q.Attach(d) // once
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
	q.Detach(d)
	for _, left := range q.drivers[:cap(q.drivers)] {
		require.Nil(t, left.Driver, "nobody is kept alive")
	}
	require.Zero(t, q.Poll(buf[:]))
	require.EqualValues(t, 2, d.drives.Load())
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

// TestIdleStartsAnew: what a driver brings, and its own coming back, count as new.
func TestIdleStartsAnew(t *testing.T) {
	for name, busy := range map[string]func(*Queue, *fakeDriver){
		"attach": func(q *Queue, d *fakeDriver) { q.Attach(d) },
		"progress": func(q *Queue, d *fakeDriver) {
			d.drive = func() bool { return true }
			q.Poll(make([]wr.Completion, 1))
			d.drive = nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			q := New(Config{ID: 1, Entries: 4})
			var buf [1]wr.Completion
			d := &fakeDriver{}
			q.Attach(d)
			q.Attach(&fakeDriver{drive: func() bool { return true }})
			for range 2 {
				for range idleVisits - 1 {
					q.Poll(buf[:])
				}
				require.Zero(t, d.yielded.Load())
				busy(q, d)
			}
			for range idleVisits {
				q.Poll(buf[:])
			}
			require.EqualValues(t, 1, d.yielded.Load())
		})
	}
}

// TestIdleDriverLeaves: a queue pair that never has anything is not visited for
// ever, and is told.
func TestIdleDriverLeaves(t *testing.T) {
	q := New(Config{ID: 1, Entries: 4})
	var buf [1]wr.Completion
	idle, busy := &fakeDriver{}, &fakeDriver{drive: func() bool { return true }}
	q.Attach(idle)
	q.Attach(busy)
	for range idleVisits + 10 {
		require.Zero(t, q.Poll(buf[:]))
	}
	require.EqualValues(t, idleVisits, idle.drives.Load())
	require.EqualValues(t, 1, idle.yielded.Load())
	require.EqualValues(t, idleVisits+10, busy.drives.Load())
	require.Zero(t, busy.yielded.Load())
	q.Attach(idle)
	require.Zero(t, q.Poll(buf[:]))
	require.EqualValues(t, idleVisits+1, idle.drives.Load(), "back")
}

// TestIdleDriverAlone: who is alone stays, however idle: a poller has nothing else
// to visit.
func TestIdleDriverAlone(t *testing.T) {
	q := New(Config{ID: 1, Entries: 4})
	var buf [1]wr.Completion
	d := &fakeDriver{}
	q.Attach(d)
	for range idleVisits + 10 {
		require.Zero(t, q.Poll(buf[:]))
	}
	require.EqualValues(t, idleVisits+10, d.drives.Load())
	require.Zero(t, d.yielded.Load())
}

// TestTooManyDrivers: the one longest without anything to do makes room.
func TestTooManyDrivers(t *testing.T) {
	q := New(Config{ID: 1, Entries: 4})
	var buf [1]wr.Completion
	drivers := make([]*fakeDriver, maxDrivers+1)
	for i := range drivers {
		drivers[i] = &fakeDriver{drive: func() bool { return i != 3 }}
		if i < maxDrivers {
			q.Attach(drivers[i])
		}
	}
	require.Zero(t, q.Poll(buf[:]))
	q.Attach(drivers[maxDrivers])
	for i, d := range drivers {
		require.Equal(t, i == 3, d.yielded.Load() == 1, "%d", i)
	}
	require.Zero(t, q.Poll(buf[:]))
	require.EqualValues(t, 1, drivers[3].drives.Load())
	require.EqualValues(t, 1, drivers[maxDrivers].drives.Load())
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

package perf

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
)

// manyStall is how long no connection may have completed a round trip, and how long the
// last of them may take.
const manyStall = 10 * time.Second

// measureMany measures n connections, with a server process of their own.
func measureMany(ctx context.Context, n int, way manyWay, d time.Duration) (result manyResult, err error) {
	runtime.GC() // after the measurement before
	err = withScaleClient(ctx, n, way.shape(), way.server(n), func(c *scaleClient) error {
		w := manyWindow{processor: c.processor, duration: d, trips: make([]tripCounter, n)}
		traffic := c.exchange
		if way.Plain {
			traffic = c.exchangePlain
		}
		err := traffic(ctx, &w)
		result = w.result
		return err
	})
	result.QPs, result.manyWay = n, way
	return result, err
}

// server are the arguments of the server process for n connections.
func (w manyWay) server(n int) []string {
	return []string{
		"perf", "many", "--serve", fmt.Sprintf("--qps=%d", n),
		fmt.Sprintf("--poll=%t", w.Poll), "--crc=" + cli.OnOff(&w.CRC).String(),
	}
}

// processor is the processor time of both processes.
func (c *scaleClient) processor() (here, there *time.Duration, err error) {
	a, err := c.request(doProcessor, 0)
	return processorTime(), a.Processor, err
}

// tripCounter counts round trips of a connection. It has a line of the processor's cache
// to itself.
type tripCounter struct {
	atomic.Int64
	_ [56]byte
}

// manyWindow is the time in which round trips count.
type manyWindow struct {
	processor func() (here, there *time.Duration, err error)
	duration  time.Duration
	trips     []tripCounter // of each connection
	closing   atomic.Bool   // what has come back is not sent again
	result    manyResult
}

// watch measures while run makes round trips, counts them in trips, and goes on until
// closing is set and no message is on its way any more, or its context ends.
func (w *manyWindow) watch(ctx context.Context, run func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan struct{})
	var runErr error
	go func() {
		defer close(done)
		runErr = run(ctx)
	}()
	err := w.measure(func(d time.Duration) error {
		select {
		case <-time.After(d):
			return nil
		case <-done:
			return runErr
		}
	})
	w.closing.Store(true)
	if err != nil {
		cancel(err)
		<-done
		return err
	}
	timer := time.AfterFunc(manyStall, func() { cancel(fmt.Errorf("some messages have not come back for %v", manyStall)) })
	defer timer.Stop()
	<-done
	return runErr
}

// manySample is the state of everything at one time.
type manySample struct {
	trips       []int64
	here, there *time.Duration
	at          time.Time
}

// measure fills in the result. One round trip counts at least.
func (w *manyWindow) measure(pause func(time.Duration) error) error {
	if err := pause(w.duration / 4); err != nil {
		return err
	}
	before, err := w.sample()
	if err != nil {
		return err
	}
	for {
		if err := pause(w.duration); err != nil {
			return err
		}
		after, err := w.sample()
		if err != nil {
			return err
		}
		elapsed := after.at.Sub(before.at)
		if w.result = newManyResult(before, after); w.result.Rate > 0 {
			return nil
		}
		if elapsed > max(manyStall, 2*w.duration) {
			return fmt.Errorf("no message has come back for %v", elapsed)
		}
	}
}

func (w *manyWindow) sample() (s manySample, err error) {
	if s.here, s.there, err = w.processor(); err != nil {
		return s, err
	}
	s.trips = make([]int64, len(w.trips))
	for i := range w.trips {
		s.trips[i] = w.trips[i].Load()
	}
	s.at = time.Now()
	return s, nil
}

// newManyResult is what happened between two samples.
func newManyResult(before, after manySample) (r manyResult) {
	var total int64
	each := make([]int64, len(after.trips))
	for i := range each {
		each[i] = after.trips[i] - before.trips[i]
		total += each[i]
	}
	r.Rate = float64(total) / after.at.Sub(before.at).Seconds() / 1e3
	if total > 0 && before.here != nil && before.there != nil && after.here != nil && after.there != nil {
		used := *after.here - *before.here + *after.there - *before.there
		us := float64(used) / float64(time.Microsecond) / float64(total)
		r.CPU = &us
	}
	slices.Sort(each)
	if middle := each[len(each)/2]; middle > 0 {
		r.Slowest = float64(each[0]) / float64(middle)
	}
	return r
}

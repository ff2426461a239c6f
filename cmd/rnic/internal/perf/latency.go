package perf

import (
	"context"
	"fmt"
	"time"

	"github.com/softrnic/softrnic/cmd/rnic/internal/histogram"
	"github.com/softrnic/softrnic/cmd/rnic/internal/pattern"
	"github.com/softrnic/softrnic/verbs"
)

// warmUp is how many round trips go before the first that counts.
const warmUp = 200

// pingPong measures round trips for d, after so many that do not count. One counts at least.
func pingPong(d time.Duration, uncounted int, roundTrip func() error) (*histogram.Histogram, time.Duration, error) {
	var times histogram.Histogram
	begin := time.Now()
	now := begin
	for i := 0; i <= uncounted || now.Sub(begin) < d; i++ {
		if err := roundTrip(); err != nil {
			return nil, 0, err
		}
		end := time.Now()
		if i >= uncounted {
			times.Record(end.Sub(now))
		}
		now = end
	}
	return &times, time.Since(begin), nil
}

// latency measures round trips, one at a time, until the time is over. The
// server returns each message; the first and the last message, which do not
// count, are compared with what was sent.
func (c *perfClient) latency(ctx context.Context) (perfResult, error) {
	t := roundTrip{perfClient: c}
	t.prepare(c.sourceFirst())
	for i := range warmUp {
		if err := t.do(ctx); err != nil {
			return perfResult{}, err
		}
		if i == 0 {
			if err := t.verify("first", firstPattern); err != nil {
				return perfResult{}, err
			}
		}
	}

	times, elapsed, err := pingPong(c.Duration, 0, func() error { return t.do(ctx) })
	if err != nil {
		return perfResult{}, err
	}

	t.prepare(c.sourceLast())
	if err := t.do(ctx); err != nil {
		return perfResult{}, err
	}
	if err := t.verify("last", lastPattern); err != nil {
		return perfResult{}, err
	}
	return newLatencyResult(c.perfRun, times, elapsed), nil
}

// roundTrip sends a message and waits until it has come back.
type roundTrip struct {
	*perfClient
	data  [1]verbs.Request
	empty [1]verbs.Request // for Write: the Send after it
	recv  [1]verbs.Recv
	count int
}

// prepare makes the requests for a message from off.
func (t *roundTrip) prepare(off int) {
	t.recv[0].SGL = t.mr.SGL(t.sinkRest(), t.Size)
	t.data[0] = t.request(off, t.sinkRest())
}

// verify checks the message that has come back; an Atomic brings none.
func (t *roundTrip) verify(what string, p pattern.Pattern) error {
	if t.op().IsAtomic() {
		return nil
	}
	return t.perfMemory.verify(what, t.sinkRest(), p)
}

func (t *roundTrip) do(ctx context.Context) error {
	t.count++
	if t.op().Reads() {
		if err := t.PostSend(t.data[:]...); err != nil {
			return err
		}
		wc, err := t.Next(ctx)
		if err == nil && t.op().IsAtomic() && wc.Value != uint64(t.count-1) {
			err = fmt.Errorf("the FetchAdd with number %d found %d, want one less than its number", t.count, wc.Value)
		}
		return err
	}
	if err := t.postMessage(&t.data, &t.empty, t.count); err != nil {
		return err
	}
	if err := t.awaitRecv(ctx); err != nil {
		return err
	}
	return t.PostRecv(t.recv[:]...)
}

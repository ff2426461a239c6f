package perf

import (
	"context"
	"fmt"
	"time"

	"github.com/softrnic/softrnic/cmd/rnic/internal/endpoint"
	"github.com/softrnic/softrnic/cmd/rnic/internal/histogram"
	"github.com/softrnic/softrnic/verbs"
)

// warmUp is how many round trips go before the first that counts.
const warmUp = 200

// latency measures round trips, one at a time, until the time is over. The
// server returns what it gets; the first and the last message, which do not
// count, are compared with what was sent.
func (c *perfClient) latency(ctx context.Context) (perfResult, error) {
	t := roundTrip{perfClient: c}
	t.prepare(c.sourceFirst())
	for i := range warmUp {
		if err := t.do(ctx); err != nil {
			return perfResult{}, err
		}
		if i == 0 && !c.op().IsAtomic() {
			if err := c.verify("first", c.sinkRest(), firstPattern); err != nil {
				return perfResult{}, err
			}
		}
	}

	var times histogram.Histogram
	begin := time.Now()
	for now := begin; now.Sub(begin) < c.Duration; {
		if err := t.do(ctx); err != nil {
			return perfResult{}, err
		}
		end := time.Now()
		times.Record(end.Sub(now))
		now = end
	}
	elapsed := time.Since(begin)

	t.prepare(c.sourceLast())
	if err := t.do(ctx); err != nil {
		return perfResult{}, err
	}
	if !c.op().IsAtomic() {
		if err := c.verify("last", c.sinkRest(), lastPattern); err != nil {
			return perfResult{}, err
		}
	}
	return newLatencyResult(c.perfRun, &times, elapsed), nil
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
	t.data[0] = verbs.Request{Op: t.op()}
	switch t.op() {
	case verbs.OpRead:
		t.data[0].Local = t.mr.SGE(t.sinkRest(), t.Size)
		t.data[0].Remote = t.remote.At(off)
	case verbs.OpFetchAdd:
		t.data[0].Remote, t.data[0].Atomic = t.remote.At(t.counter()), verbs.FetchAdd(1)
	case verbs.OpWrite, verbs.OpWriteImmediate:
		t.data[0].Flags = verbs.Unsignaled
		t.data[0].SGL = t.mr.SGL(off, t.Size)
		t.data[0].Remote = t.remote.At(t.sinkRest())
	default:
		t.data[0].SGL = t.mr.SGL(off, t.Size)
	}
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
	if err := postMessage(t.Endpoint, &t.data, &t.empty, t.count); err != nil {
		return err
	}
	if err := awaitRecv(ctx, &t.Reaper); err != nil {
		return err
	}
	return t.PostRecv(t.recv[:]...)
}

// postMessage posts a message of a latency run: a Send, a Write with Immediate, or a Write
// and the empty Send that tells the other side of it. Every 64th Send is signaled.
func postMessage(e *endpoint.Endpoint, data, empty *[1]verbs.Request, count int) error {
	signal := data
	if data[0].Op == verbs.OpWrite {
		signal = empty
	}
	signal[0].Flags = verbs.Unsignaled
	if count%signalEvery == 0 {
		signal[0].Flags = 0
	}
	if err := e.PostSend(data[:]...); err != nil {
		return err
	}
	if data[0].Op != verbs.OpWrite {
		return nil
	}
	return e.PostSend(empty[:]...)
}

// awaitRecv waits for a completed Receive, past completions of Sends.
func awaitRecv(ctx context.Context, r *endpoint.Reaper) error {
	for {
		wc, err := r.Next(ctx)
		if err != nil {
			return err
		}
		switch wc.Op {
		case verbs.OpRecv:
			return nil
		case verbs.OpSend, verbs.OpWriteImmediate:
		default:
			return fmt.Errorf("unexpected completion of %v", wc.Op)
		}
	}
}

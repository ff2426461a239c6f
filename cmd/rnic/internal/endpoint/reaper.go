package endpoint

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/softrnic/softrnic/verbs"
)

// Waiting is how a reaper waits for completions.
type Waiting uint8

const (
	// WaitSleep sleeps until there is a completion: what most programs want.
	WaitSleep Waiting = iota
	// WaitSpin polls for about a millisecond before it sleeps: the lowest
	// latency, at the price of a core.
	WaitSpin
	// WaitPoll polls all the time: for a server whose client polls, and which may
	// have nothing to do itself meanwhile.
	WaitPoll
)

// Reaper takes completions from a CQ, many at a time, and hands them out one by
// one. It allocates nothing.
type Reaper struct {
	CQ      *verbs.CQ
	flushed func() error // the meaning of a flushed request
	Mode    Waiting
	head    int // next of wc to hand out
	tail    int // end of those reaped
	wc      [64]verbs.Completion

	taken atomic.Uint64 // successful polls
}

// NewReaper takes the completions of cq. Of a flushed request the error is that of flushed.
func NewReaper(cq *verbs.CQ, mode Waiting, flushed func() error) Reaper {
	return Reaper{CQ: cq, flushed: flushed, Mode: mode.With(runtime.GOMAXPROCS(0))}
}

// With is how to wait with so many processors. On the only one, a poller that never sleeps
// keeps the peer from running.
func (w Waiting) With(processors int) Waiting {
	if w == WaitPoll && processors == 1 {
		return WaitSpin
	}
	return w
}

// Next returns the next completion, which stays valid until the next call.
// It fails if the completion's status is not Success, or when ctx ends while
// the CQ is empty.
func (r *Reaper) Next(ctx context.Context) (*verbs.Completion, error) {
	for r.head == r.tail {
		if err := r.fill(ctx); err != nil {
			return nil, err
		}
	}
	wc := &r.wc[r.head]
	r.head++
	switch wc.Status {
	case verbs.StatusSuccess:
		return wc, nil
	case verbs.StatusFlushed:
		// Requests are flushed when the connection has ended, in
		// whatever way (verbs draft 6.2.4, 6.2.5).
		return nil, r.flushed()
	default:
		return nil, fmt.Errorf("%v: %w", wc.Op, wc.Err())
	}
}

// NextRecv is Next of a Receive: it passes over completions of others.
func (r *Reaper) NextRecv(ctx context.Context) (*verbs.Completion, error) {
	for {
		wc, err := r.Next(ctx)
		if err != nil || wc.Op == verbs.OpRecv {
			return wc, err
		}
	}
}

// UntilDisconnected takes completions until the peer has ended the connection. An error is that of another end.
func (r *Reaper) UntilDisconnected(ctx context.Context) error {
	for {
		if _, err := r.Next(ctx); errors.Is(err, ErrDisconnected) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// fill reaps at least one completion.
func (r *Reaper) fill(ctx context.Context) error {
	n, err := r.poll(ctx)
	if n == 0 && err != nil {
		// The connection may have ended just after the last
		// completion: that one counts.
		if n = r.CQ.Poll(r.wc[:]); n == 0 {
			return err
		}
	}
	r.head, r.tail = 0, n
	r.taken.Add(1)
	return nil
}

// spinPolls is how many empty polls in a row, about a millisecond of them, make
// WaitSpin give up: other goroutines and processes may need this core to complete
// a request.
const spinPolls = 4096

func (r *Reaper) poll(ctx context.Context) (int, error) {
	for spin := r.Mode != WaitSleep; spin; spin = r.Mode == WaitPoll {
		for range spinPolls {
			if n := r.CQ.Poll(r.wc[:]); n > 0 {
				return n, nil
			}
		}
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
	}
	n, err := r.CQ.Wait(ctx, r.wc[:])
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return n, err
}

// WhileActive returns a context that also ends, because of late, when no completion was taken from the reaper for
// idle, twice that at the latest.
func (r *Reaper) WhileActive(
	ctx context.Context, idle time.Duration, late error,
) (context.Context, context.CancelFunc) {
	return WhileActive(ctx, idle, late, &r.taken)
}

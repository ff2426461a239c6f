package conformance

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Options say how to run.
type Options struct {
	// Select decides which cases run; the zero value takes all that are not
	// Strict.
	Select Selection
	// Timeout bounds a case; 0 stands for DefaultTimeout.
	Timeout time.Duration
	// Parallel is how many cases run at a time; 0 stands for 1.
	Parallel int
	// Seed is that of T.Rand; the same seed gives the same run.
	Seed uint64
	// Barred, if set, is why no stream to the target begins (see Probe): a case that asks for
	// one fails with it at once.
	Barred string
	// Traces keeps the traces of cases that passed too, some 50 MB of a whole run.
	Traces bool
	// Progress, if set, is told of each result as it comes. It is not called
	// twice at a time.
	Progress func(done, all int, r Result)
}

// DefaultTimeout ends a case that hangs. None takes a second by itself: a machine that is
// busy with other things, or slow, may take a hundred times as long.
const DefaultTimeout = 2 * time.Minute

// graceAfter is how long a case may take to notice that its time is up.
const graceAfter = 5 * time.Second

// Run runs the selected cases of all against target. The results are in the order
// of all, whatever Parallel is. It fails only if ctx ends, with what there is so
// far.
func Run(ctx context.Context, all []Case, target Target, o Options) ([]Result, error) {
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	chosen := o.Select.Cases(all)
	results := make([]Result, len(chosen))
	var (
		g    errgroup.Group
		mu   sync.Mutex
		done int
	)
	g.SetLimit(max(o.Parallel, 1))
	for i := range chosen {
		if ctx.Err() != nil {
			break
		}
		g.Go(func() error {
			r := runCase(ctx, &chosen[i], target, o)
			mu.Lock()
			defer mu.Unlock()
			results[i] = r
			done++
			if o.Progress != nil {
				o.Progress(done, len(chosen), r)
			}
			return nil
		})
	}
	_ = g.Wait()
	if err := ctx.Err(); err != nil {
		results = slices.DeleteFunc(results, func(r Result) bool { return r.Case == "" }) // not begun
		return results, fmt.Errorf("conformance: stopped after %d of %d cases: %w", done, len(chosen), err)
	}
	return results, nil
}

// runCase runs one case and waits for its end, but not for ever: a case that does
// not notice that its time is up is left behind.
func runCase(ctx context.Context, c *Case, target Target, o Options) Result {
	r := Result{Case: c.Name, Keys: c.Keys}
	if lack := target.Lacks(c.Need); lack != "" {
		r.Verdict, r.Detail = Skip, lack
		return r
	}
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	var bar *barredTarget
	if o.Barred != "" {
		bar = &barredTarget{Target: target, why: o.Barred}
		target = bar
	}
	t := &T{ctx: ctx, target: target, rand: source(o.Seed, c.Name), trace: newTrace()}
	ended := make(chan struct{})
	start := time.Now()
	go func() {
		defer close(ended)
		defer t.cleanup()
		defer func() {
			if p := recover(); p != nil {
				t.Errorf("panic: %v\n%s", p, debug.Stack())
			}
		}()
		c.Run(t)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		select {
		case <-ended:
		case <-time.After(graceAfter):
		}
		t.Errorf("not done within %v", o.Timeout)
	}
	r.Seconds = time.Since(start).Seconds()
	r.Verdict, r.Detail = t.verdict()
	if r.Verdict == Fail && bar != nil && bar.asked.Load() {
		r.Barred, r.Detail = true, noStream+o.Barred
	}
	r.Traffic = t.trace.Traffic()
	if r.Verdict != Pass || o.Traces {
		r.Trace = t.trace.Marks()
	}
	return r
}

// source is a case's own random source.
func source(seed uint64, name string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

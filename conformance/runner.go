package conformance

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/softrnic/softrnic/internal/inventory"
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

// mostPatience is how long what has been told to end may take for that.
const mostPatience = 10 * time.Second

// ErrLeftBehind is matched by Run's error when something is left that no case accounts for.
var ErrLeftBehind = errors.New("something is left behind")

// Run runs the selected cases of all against target. The results are in the order
// of all, whatever Parallel is. A case fails that has left something behind of a target in this process. Run itself
// fails if ctx ends, with what there is so far, and with ErrLeftBehind if cases that ran side by side have left what
// none of them accounts for.
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
	leaks := spread(target)
	defer leaks.lift()
	abandoned := false
	for i := range chosen {
		if ctx.Err() != nil {
			break
		}
		g.Go(func() error {
			r, ended := runCase(ctx, &chosen[i], target, o)
			mu.Lock()
			defer mu.Unlock()
			results[i] = r
			abandoned = abandoned || !ended
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
	if abandoned { // what that case still has, and opens yet, has its own line
		return results, nil
	}
	return results, leaks.check(o)
}

// leakNet is what catches leaks of a target in this process; nil for another.
type leakNet struct {
	before inventory.Census
	lift   func()
	others int64 // runs that had begun, this one among them
	alone  bool  // no other was under way
}

var runs struct{ open, begun atomic.Int64 }

func spread(target Target) *leakNet {
	if _, here := target.(InProcess); !here {
		return &leakNet{lift: func() {}}
	}
	stop := inventory.Keep()
	n := &leakNet{before: inventory.Take(), alone: runs.open.Add(1) == 1, others: runs.begun.Add(1)}
	n.lift = func() { stop(); runs.open.Add(-1) }
	return n
}

// check tells what cases that ran side by side have left: alone, each has told of its own. In a process that has other
// runs meanwhile that is for its end to tell.
func (n *leakNet) check(o Options) error {
	if o.Parallel <= 1 || !n.alone || runs.begun.Load() != n.others {
		return nil
	}
	left := n.before.Wait(o.patience())
	if len(left) == 0 {
		return nil
	}
	return fmt.Errorf("conformance: %w:\n%s", ErrLeftBehind, strings.Join(left, "\n"))
}

// patience is how long to wait for what has been told to end.
func (o *Options) patience() time.Duration { return min(mostPatience, o.Timeout/2) }

// runCase runs one case and waits for its end, but not for ever: a case that does not notice that its time is up, or
// whose clean-up hangs, is abandoned. What it does from then on is no other case's affair.
func runCase(ctx context.Context, c *Case, target Target, o Options) (r Result, over bool) {
	r = Result{Case: c.Name, Keys: c.Keys}
	if lack := target.Lacks(c.Need); lack != "" {
		r.Verdict, r.Detail = Skip, lack
		return r, true
	}
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	var bar *barredTarget
	if o.Barred != "" {
		bar = &barredTarget{Target: target, why: o.Barred}
		target = bar
	}
	t := &T{ctx: ctx, target: target, rand: source(o.Seed, c.Name), trace: newTrace()}
	start := time.Now()
	ended := t.begin(c)
	if over = t.await(ended, o.Timeout); over {
		over = t.settle(o.patience())
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
	return r, over
}

// source is a case's own random source.
func source(seed uint64, name string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

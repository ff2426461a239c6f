package nd2

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/softrnic/softrnic/internal/inventory"
	"github.com/softrnic/softrnic/verbs"
)

// CompletionQueue takes the results of the requests of queue pairs
// (IND2CompletionQueue).
//
// A program either polls (GetResults), or asks to be told (Notify) and then polls.
// Both Notify and Wait, which is beside NetworkDirect, sleep where the data arrives.
type CompletionQueue struct {
	a *Adapter
	v *verbs.CQ
	// gone is closed by Close.
	gone chan struct{}
	// vacant has a token when somebody may have to listen, see bell.
	vacant  chan struct{}
	counted *inventory.Object

	// mu makes completions into results one at a time. Within it the mu of a
	// window, of a shared receive queue and of the adapter may be taken.
	mu      sync.Mutex
	depth   int // as asked for; guarded by mu, as all below
	extra   int // entries of v beyond depth, see grow
	closed  bool
	last    bool // the adapter is closed: nothing comes any more
	buf     [32]verbs.Completion
	asleep  int           // goroutines in Wait that may hold completions
	retired []*retirement // closed queues whose results may still be in v

	backlog []seen // what Notify has seen and GetResults has not retrieved
	taken   int    // of backlog
	fresh   int    // results in backlog that no notification was given for
	errors  int    // those of them that are no success
	bell    *bell  // of those that wait in Notify; nil: none does
	spare   *bell  // nobody's
	results uint64 // all there were; failed: no successes
	failed  uint64
	// armedAt and armedFailed are results and failed when the bell was made.
	armedAt, armedFailed uint64
	listening            bool   // one of them waits for an event of verbs
	late                 bool   // there was one, of what somebody in Wait may have
	failure              Status // of the queue itself; Success: none
}

// GetResults moves up to len(results) results to results, oldest first, and
// reports how many; fewer than asked for means that there are no more. It never
// blocks or allocates.
func (c *CompletionQueue) GetResults(results []Result) int {
	c.mu.Lock()
	n := c.fromBacklog(results)
	for n < len(results) {
		want := min(len(results)-n, len(c.buf))
		got := c.v.Poll(c.buf[:want])
		for i := range got {
			if p, ok := c.result(&c.buf[i], &results[n]); ok {
				p.release()
				n++
			}
		}
		if got < want {
			c.sweep()
			break
		}
	}
	c.mu.Unlock()
	return n
}

// Wait is GetResults that sleeps until there is at least one result. Errors:
// ErrCanceled if ctx ends or the queue is closed, ErrDeviceRemoved.
func (c *CompletionQueue) Wait(ctx context.Context, results []Result) (int, error) {
	for {
		if n := c.GetResults(results); n > 0 || len(results) == 0 {
			return n, nil
		}
		n, err := c.sleep(ctx, results)
		if n > 0 {
			return n, nil
		}
		switch {
		case err == nil:
		case errors.Is(err, verbs.ErrInvalidRNIC):
			return 0, explain(err)
		default:
			return 0, fmt.Errorf("nd2: %w: %w", ErrCanceled, err)
		}
	}
}

// sleep waits for a completion. None of the queue pairs that are closed meanwhile is
// forgotten before what it took has been translated.
func (c *CompletionQueue) sleep(ctx context.Context, results []Result) (n int, err error) {
	var buf [8]verbs.Completion
	c.mu.Lock()
	if c.taken < len(c.backlog) {
		c.mu.Unlock()
		return 0, nil // collect was here since
	}
	c.asleep++
	c.mu.Unlock()
	got, err := c.v.Wait(ctx, buf[:min(len(buf), len(results))])
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asleep--
	defer func() {
		if c.last {
			c.sweep()
		}
		if c.late && n > 0 {
			c.ring()
		}
	}()
	for i := range got {
		if p, ok := c.result(&buf[i], &results[n]); ok {
			p.release()
			n++
		}
	}
	return n, err
}

// collect looks for completions of silent requests, on behalf of a queue pair that has
// no place left. Who is asleep in Wait gets them anyhow.
func (c *CompletionQueue) collect() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.look()
}

// result translates a completion, with mu held, and reports whether there is a
// result.
func (c *CompletionQueue) result(done *verbs.Completion, out *Result) (p place, ok bool) {
	o := c.a.owners.Get(uint32(done.ID >> ownerShift))
	switch {
	case o == nil:
		return p, false
	case o.ring != nil:
		p, ok = o.ring.result(done, out)
	default:
		p, ok = o.srq.result(done, out)
	}
	if ok {
		c.results++
		if out.Status != Success {
			c.failed++
		}
	}
	return p, ok
}

// sweep forgets closed queues, with mu held. v was empty.
func (c *CompletionQueue) sweep() {
	if len(c.retired) == 0 || c.asleep > 0 {
		return
	}
	for _, r := range c.retired {
		r.over()
	}
	c.retired = nil
}

// settle is the last sweep, when v has ended with the adapter. Who is asleep in Wait makes it else.
func (c *CompletionQueue) settle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = true
	c.sweep()
	c.counted.Close()
}

// count is an inventory.CounterFunc.
func (c *CompletionQueue) count(tell inventory.Tell) {
	c.mu.Lock()
	defer c.mu.Unlock()
	tell(c.extra, "place for parts of requests")
	tell(len(c.retired), "closed queue")
	tell(c.asleep, "sleeper")
	if c.bell != nil {
		tell(c.bell.ears, "waiter")
	}
}

// retire forgets r's queue once v has been empty. No further completion of it
// comes.
func (c *CompletionQueue) retire(r *retirement) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		r.over()
		return
	}
	if len(c.retired) == cap(c.retired) { // before it grows
		c.retired = slices.DeleteFunc(c.retired, func(r *retirement) bool { return r.gone.Load() })
	}
	c.retired = append(c.retired, r)
}

// Resize changes how many results the queue holds, whatever is under way. Errors:
// ErrInvalidParameter, ErrBufferOverflow (more are in it; it stays as it was),
// ErrDeviceRemoved.
func (c *CompletionQueue) Resize(queueDepth int) error {
	if queueDepth < 1 || queueDepth > maxCQDepth {
		return refuse(ErrInvalidParameter, "a completion queue of %d entries, at least 1 and at most %d", queueDepth, maxCQDepth)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if queueDepth < len(c.backlog)-c.taken {
		return refuse(ErrBufferOverflow, "%d results are in the queue", len(c.backlog)-c.taken)
	}
	if err := c.v.Resize(min(queueDepth+c.extra, maxEntries)); err != nil {
		return explain(err)
	}
	c.depth = queueDepth
	return nil
}

// grow makes room for n completions that are no results: when a queue pair is
// flushed, every part of a request completes. A negative n gives room back, which
// the next queue pair gets.
func (c *CompletionQueue) grow(n int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	have, need := entries(c.v), min(c.depth+c.extra+n, maxEntries)
	if need > have { // twice as many, so that queue pairs in a row cost little
		if err := c.v.Resize(min(max(need, 2*have), maxEntries)); err != nil {
			return explain(err)
		}
	}
	c.extra += n
	return nil
}

// Close destroys the queue; results that were not retrieved are lost. Who waits
// gets ErrCanceled. Errors: ErrDeviceBusy (a queue pair uses it), ErrInvalidHandle
// (it is closed), ErrDeviceRemoved.
func (c *CompletionQueue) Close() error {
	if err := c.v.Destroy(); err != nil {
		return explain(err)
	}
	c.a.forgetCQ(c)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed, c.backlog, c.taken = true, nil, 0
	for _, r := range c.retired {
		r.over()
	}
	c.retired = nil
	close(c.gone)
	c.counted.Close()
	return nil
}

// entries is how many completions a CQ holds; 0 once it is destroyed.
func entries(c *verbs.CQ) int {
	a, err := c.Query()
	if err != nil {
		return 0
	}
	return a.Entries
}

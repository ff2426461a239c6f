package verbs

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/softrnic/softrnic/cq"
	"github.com/softrnic/softrnic/wr"
)

// CQConfig configures a Completion Queue.
type CQConfig struct {
	// Entries is how many completions it holds, at least 1; 0 stands for 256.
	// It has to have room for all signaled work requests that can be
	// outstanding on its queues at a time: an overflow ends the queue pair
	// that hits it.
	Entries int
}

// CQ is a Completion Queue (verbs draft 5.3).
type CQ struct {
	rnic *RNIC
	q    *cq.Queue
	refs atomic.Int32 // work queues tied to it; grows with rnic.mu held
}

// CreateCQ creates a Completion Queue. Errors: ErrInvalidRNIC, ErrTooManyCQE,
// ErrInsufficientResources, ErrInvalidModifier.
func (r *RNIC) CreateCQ(c CQConfig) (*CQ, error) {
	if c.Entries == 0 {
		c.Entries = 256
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch err := r.open(); {
	case err != nil:
		return nil, fmt.Errorf("create CQ: %w", err)
	case c.Entries < 0:
		return nil, fmt.Errorf("create CQ: %w: %d entries", wr.ErrInvalidModifier, c.Entries)
	case c.Entries > r.limits.CQE:
		return nil, fmt.Errorf("create CQ: %w: %d, at most %d", wr.ErrTooManyCQE, c.Entries, r.limits.CQE)
	case len(r.cqs) >= r.limits.CQs:
		return nil, fmt.Errorf("create CQ: %w: all %d are in use", wr.ErrInsufficientResources, r.limits.CQs)
	}
	q := &CQ{rnic: r, q: cq.New(CQID(r.nextID()), c.Entries)}
	r.cqs[q] = struct{}{}
	return q, nil
}

// ID is the queue's identifier.
func (c *CQ) ID() CQID { return c.q.ID() }

// Entries is how many completions the queue holds at most.
func (c *CQ) Entries() int { return c.q.Cap() }

// Poll moves up to len(dst) completions to dst, oldest first, and reports how
// many; 0 means that there are none (verbs draft 9.3.2.1). It never blocks. A
// program that polls in a loop drives its connections itself, without waiting
// for a goroutine to be scheduled.
func (c *CQ) Poll(dst []Completion) int { return c.q.Poll(dst) }

// Wait polls, and sleeps until there is at least one completion or ctx is done.
// Without a completion it returns ctx's error, or ErrInvalidCQ once the queue is
// destroyed or the RNIC closed.
func (c *CQ) Wait(ctx context.Context, dst []Completion) (int, error) { return c.q.Wait(ctx, dst) }

// Notify requests a one-shot notification (verbs draft 9.3.2.2): the next
// completion that is added, or only the next solicited one or error, puts a
// token into Events. Poll once more after it, for what came before. Errors:
// ErrInvalidNotifyType.
func (c *CQ) Notify(t NotifyType) error { return c.q.Request(t) }

// Events delivers a token for each notification that Notify asked for.
func (c *CQ) Events() <-chan struct{} { return c.q.Events() }

// Destroy destroys the queue. Errors: ErrInvalidCQ (it was already), ErrCQInUse
// (a queue pair is still tied to it).
func (c *CQ) Destroy() error {
	c.rnic.mu.Lock()
	defer c.rnic.mu.Unlock()
	if _, ok := c.rnic.cqs[c]; !ok {
		return fmt.Errorf("destroy CQ %d: %w", c.ID(), wr.ErrInvalidCQ)
	}
	if n := c.refs.Load(); n > 0 {
		return fmt.Errorf("destroy CQ %d: %w: %d work queues are tied to it", c.ID(), wr.ErrCQInUse, n)
	}
	delete(c.rnic.cqs, c)
	c.q.Close()
	return nil
}

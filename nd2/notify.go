package nd2

import (
	"context"
	"errors"

	"github.com/softrnic/softrnic/verbs"
)

// bell tells all who wait in Notify at a time. One of them listens: it waits for the event
// of verbs, where the data arrives, and rings for the others. All is guarded by the queue's
// mu.
type bell struct {
	event  verbs.NotifyType // what is waited for
	rung   bool
	errors bool          // one of the results was no success
	heard  chan struct{} // closed when it rings; nil if nobody needs it
	// ears is how many wait. What comes while none does is told to the next Notify.
	ears int
}

// Notify waits until there is a result of type t, beyond those that GetResults has
// returned or that an earlier Notify returned for. Retrieve all there are with
// GetResults then. All that wait are told of the next result together; while one
// of them waits for CQNotifyAny, results of any type count for those who wait for
// CQNotifySolicited. A result that came before Notify counts for these too, since
// nobody can tell whether it was solicited. An error satisfies every type
// (ND-Send-F3).
//
// Errors: ErrCanceled if ctx ends or the queue is closed; ErrBufferOverflow if
// results were lost because the queue was full, and ErrInternalError if it failed:
// it is unusable then; ErrInvalidParameter1; ErrDeviceRemoved.
func (c *CompletionQueue) Notify(ctx context.Context, t NotifyType) error {
	if t > CQNotifySolicited {
		return refuse(ErrInvalidParameter1, "there is no notification type %d", t)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		b, err := c.arm(t)
		if b == nil || err != nil {
			return err
		}
		err = c.hear(ctx, b)
		rung, failed := b.rung, b.errors
		c.leave(b)
		switch {
		case rung && c.failure == Success && (t != CQNotifyErrors || failed):
			return nil
		case rung: // why is found out by arming again
		case err != nil:
			return err
		}
	}
}

// arm is the beginning of a wait; without a bell there is a result already. With mu held, as
// all below.
func (c *CompletionQueue) arm(t NotifyType) (*bell, error) {
	if c.closed {
		return nil, refuse(ErrCanceled, "the completion queue was closed")
	}
	if c.failure != Success {
		return nil, refuse(c.failure, "the completion queue is unusable")
	}
	event := verbs.NotifySolicited // errors count as solicited
	if t == CQNotifyAny {
		event = verbs.NotifyNext // overrides the other
	}
	if err := c.request(event); err != nil {
		return nil, explain(err)
	}
	if c.errors > 0 || c.fresh > 0 && t != CQNotifyErrors {
		c.ring()
		return nil, nil
	}
	if c.bell == nil {
		c.bell, c.spare = c.spare, nil
		if c.bell == nil {
			c.bell = new(bell)
		}
		c.bell.event = event
		c.armedAt, c.armedFailed = c.results, c.failed
	}
	if event == verbs.NotifyNext {
		c.bell.event = event
	}
	c.bell.ears++
	return c.bell, nil
}

// hear returns when b has rung, or with an error. It gives mu up meanwhile.
func (c *CompletionQueue) hear(ctx context.Context, b *bell) (err error) {
	for err == nil && !b.rung {
		if !c.listening {
			err = c.listen(ctx, b)
			continue
		}
		if b.heard == nil {
			b.heard = make(chan struct{})
		}
		heard := b.heard
		c.mu.Unlock()
		select {
		case <-heard:
		case <-c.vacant:
		case <-ctx.Done():
			err = canceled(ctx)
		case <-c.gone:
			err = refuse(ErrCanceled, "the completion queue was closed")
		}
		c.mu.Lock()
	}
	return err
}

// listen waits for one event. It is told if there was a result since, even if another caller
// has retrieved it; else it was of an earlier request, or the result is in the hands of
// somebody in Wait.
func (c *CompletionQueue) listen(ctx context.Context, b *bell) error {
	c.listening = true
	c.mu.Unlock()
	err := c.v.WaitEvent(ctx)
	c.mu.Lock()
	c.listening = false
	switch {
	case b.rung:
		return nil
	case errors.Is(err, verbs.ErrInvalidCQ):
		return refuse(ErrCanceled, "the completion queue was closed")
	case errors.Is(err, verbs.ErrInvalidRNIC):
		return explain(err)
	case err != nil:
		return canceled(ctx)
	}
	if c.look(); c.results > c.armedAt {
		c.ring()
		return nil
	}
	c.late = c.asleep > 0
	if err := c.request(b.event); err != nil {
		return explain(err)
	}
	if c.results > c.armedAt {
		c.ring()
	}
	return nil
}

// request asks verbs for an event. What came before would not be one, and is looked at
// first.
func (c *CompletionQueue) request(event verbs.NotifyType) error {
	for {
		armed, err := c.v.Arm(event)
		if armed || err != nil {
			return err
		}
		if c.asleep > 0 { // they have it soon
			return c.v.Notify(event)
		}
		c.pull()
	}
}

// leave ends a wait for b. Who listened leaves that to another.
func (c *CompletionQueue) leave(b *bell) {
	if b.ears--; b.ears == 0 {
		if c.bell == b {
			c.bell = nil
		}
		*b = bell{}
		c.spare = b
	}
	if c.bell != nil && !c.listening {
		select {
		case c.vacant <- struct{}{}:
		default:
		}
	}
}

// look is pull, unless somebody is asleep in Wait, who gets what there is.
func (c *CompletionQueue) look() {
	if c.asleep == 0 {
		c.pull()
	}
}

// seen is a result that waits for GetResults; its request counts until then.
type seen struct {
	result Result
	place  place
}

// pull translates what v has into the backlog, with mu held.
func (c *CompletionQueue) pull() {
	for {
		got := c.v.Poll(c.buf[:])
		for i := range got {
			var r Result
			p, ok := c.result(&c.buf[i], &r)
			if !ok {
				continue
			}
			c.backlog = append(c.backlog, seen{r, p})
			c.fresh++
			if r.Status != Success {
				c.errors++
			}
		}
		if got < len(c.buf) {
			return
		}
	}
}

// fromBacklog is GetResults of what Notify has seen, with mu held.
func (c *CompletionQueue) fromBacklog(results []Result) int {
	if c.taken == len(c.backlog) {
		return 0
	}
	n := min(len(results), len(c.backlog)-c.taken)
	for i := range n {
		s := &c.backlog[c.taken+i]
		results[i] = s.result
		s.place.release()
	}
	clear(c.backlog[c.taken : c.taken+n])
	c.taken += n
	c.fresh = min(c.fresh, len(c.backlog)-c.taken)
	c.errors = min(c.errors, c.fresh)
	if c.taken == len(c.backlog) {
		c.backlog, c.taken = c.backlog[:0], 0
	}
	return n
}

// fail makes the queue unusable.
func (c *CompletionQueue) fail(s Status) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failure = s
	c.ring()
}

// ring wakes the waiters.
func (c *CompletionQueue) ring() {
	c.fresh, c.errors, c.late = 0, 0, false
	b := c.bell
	if b == nil {
		return
	}
	c.bell = nil
	b.rung, b.errors = true, c.failed > c.armedFailed
	if b.heard != nil {
		close(b.heard)
	}
	if c.listening {
		c.v.Wake()
	}
}

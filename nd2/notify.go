package nd2

import (
	"context"

	"github.com/softrnic/softrnic/verbs"
)

// bell tells all who wait in Notify at a time.
type bell struct {
	rung   chan struct{}
	errors bool // one of the results was no success; written before rung is closed
	// ears is how many wait; guarded by the queue's mu. What nobody hears is told
	// to who asks next.
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
	for {
		b, err := c.arm(t)
		if b == nil || err != nil {
			return err
		}
		select {
		case <-b.rung:
		case <-ctx.Done():
			if c.leave(b) {
				return canceled(ctx)
			}
		case <-c.gone:
			return refuse(ErrCanceled, "the completion queue was closed")
		}
		// Why it rang is found out by arming again, but for who has just been told.
		if c.status() == Success && (t != CQNotifyErrors || b.errors) {
			return nil
		}
	}
}

// arm asks verbs for a notification; without a bell there is a result already.
func (c *CompletionQueue) arm(t NotifyType) (*bell, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, refuse(ErrCanceled, "the completion queue was closed")
	}
	if c.failure != Success {
		return nil, refuse(c.failure, "the completion queue is unusable")
	}
	want := verbs.NotifySolicited // errors count as solicited
	if t == CQNotifyAny {
		want = verbs.NotifyNext // overrides the other
	}
	if err := c.v.Notify(want); err != nil {
		return nil, explain(err)
	}
	c.look() // what came before the request does not notify
	if c.errors > 0 || c.fresh > 0 && t != CQNotifyErrors {
		c.ring()
		return nil, nil
	}
	if c.bell == nil {
		c.bell = &bell{rung: make(chan struct{})}
		c.armedAt, c.armedFailed = c.results, c.failed
	}
	c.bell.ears++
	return c.bell, nil
}

// leave ends the wait for b, and reports false if that has rung. A bell without
// anybody to hear it is taken away.
func (c *CompletionQueue) leave(b *bell) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-b.rung:
		return false
	default:
	}
	if b.ears--; b.ears == 0 && c.bell == b {
		c.bell = nil
	}
	return true
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

// notified is called for each notification of verbs. Who asked is told if there was a
// result since, whoever has retrieved it; else it is for an earlier request, or the
// result is in the hands of somebody in Wait.
func (c *CompletionQueue) notified() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bell == nil { // who asked has gone
		return
	}
	c.look()
	if c.results > c.armedAt {
		c.ring()
		return
	}
	c.late = c.asleep > 0
}

// fail makes the queue unusable.
func (c *CompletionQueue) fail(s Status) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failure = s
	c.ring()
}

// ring tells who waits, with mu held.
func (c *CompletionQueue) ring() {
	c.fresh, c.errors, c.late = 0, 0, false
	if c.bell != nil {
		c.bell.errors = c.failed > c.armedFailed
		close(c.bell.rung)
		c.bell = nil
	}
}

func (c *CompletionQueue) status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failure
}

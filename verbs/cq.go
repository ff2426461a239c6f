package verbs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/softrnic/softrnic/internal/cq"
	"github.com/softrnic/softrnic/wr"
)

// CQConfig configures a Completion Queue.
type CQConfig struct {
	// Entries is how many completions it holds, at least 1; 0 stands for 256,
	// or what the RNIC has if less. It has to have room for all signaled work
	// requests that can be outstanding on its queues at a time: an overflow ends
	// the queue pair that hits it.
	Entries int
	// Handler, if not 0, is told of notifications (see RNIC.AddCompletionHandler).
	Handler HandlerID
	// Slack is how long a program that waits or polls here may stay away before the RNIC receives by itself: less than 2 ms stands
	// for that. What arrives meanwhile stays in TCP, the peer's end of the stream too; what could not be sent is sent. It is for many
	// connections each with a queue of its own and a goroutine that comes back soon, which need not have another goroutine watch over
	// each. With an S-RQ it is to be less than a quarter of SRQConfig.StallTimeout: a stream that nobody reads makes no progress.
	Slack time.Duration
}

// CQ is a Completion Queue (verbs draft 5.3).
type CQ struct {
	rnic     *RNIC
	q        *cq.Queue
	handler  HandlerID
	onNotify func() // may be nil; set before the first Notify, as hushes
	hushes   func(context any, op wr.Op) bool
	refs     int              // work queues tied to it; guarded by rnic.mu
	ends     bool             // with the last of them; guarded by rnic.mu
	tied     map[*QP]struct{} // theirs; guarded by rnic.mu
}

// CreateCQ creates a Completion Queue (verbs draft 9.2.3.1). Errors:
// ErrInvalidRNIC, ErrTooManyCQE, ErrInvalidEventHandler,
// ErrInsufficientResources, ErrInvalidModifier (fewer than 1 entry).
func (r *RNIC) CreateCQ(c CQConfig) (_ *CQ, err error) {
	defer asRefused(&err, "Create CQ", "verbs draft 9.2.3.1", Reason{})
	c.Entries = cmp.Or(c.Entries, min(256, r.limits.CQE))
	if err := r.lock(); err != nil {
		return nil, err
	}
	defer r.mu.Unlock()
	handler := r.handlers[c.Handler]
	if err := atMost(wr.ErrTooManyCQE, c.Entries, r.limits.CQE); err != nil {
		return nil, err
	}
	switch {
	case c.Entries < 0:
		return nil, &wr.Reason{Err: wr.ErrInvalidModifier, What: fmt.Sprintf("%d entries", c.Entries), Remedy: "ask for one at least, or leave Entries zero"}
	case c.Handler != 0 && handler == nil:
		return nil, errNoHandler(c.Handler)
	case len(r.cqs) >= r.limits.CQs:
		return nil, &wr.Reason{Err: wr.ErrInsufficientResources, What: fmt.Sprintf("all %d CQs are in use", r.limits.CQs)}
	}
	q := &CQ{rnic: r, handler: c.Handler}
	qc := cq.Config{ID: CQID(r.nextID()), Entries: c.Entries, Slack: c.Slack, Event: r.raise, Faults: r.faultyCompletions(), Trace: r.trace, Labels: r.labels, Inventory: r.counted}
	qc.Notify = func() {
		if q.onNotify != nil {
			q.onNotify()
		}
		if handler != nil {
			handler.post(q)
		}
	}
	qc.Hushes = func(context any, op wr.Op) bool { return q.hushes != nil && q.hushes(context, op) }
	q.q = cq.New(qc)
	r.cqs[q.ID()] = q
	r.traceVerb("Create CQ", 0, q.ID(), 0, 0, nil)
	return q, nil
}

// ID is the queue's identifier.
func (c *CQ) ID() CQID { return c.q.ID() }

// CQAttributes are what Query CQ returns (verbs draft 9.2.3.2).
type CQAttributes struct {
	Entries int // as allocated
	Handler HandlerID
}

// Query returns the queue's attributes. Errors: ErrInvalidRNIC, ErrInvalidCQ.
func (c *CQ) Query() (_ CQAttributes, err error) {
	defer asRefused(&err, "Query CQ", "verbs draft 9.2.3.2", Reason{})
	if c == nil {
		return CQAttributes{}, errNilCQ
	}
	if err := c.rnic.closedError(); err != nil {
		return CQAttributes{}, err
	}
	if c.rnic.CQ(c.ID()) != c {
		return CQAttributes{}, c.destroyed()
	}
	return CQAttributes{Entries: c.q.Cap(), Handler: c.handler}, nil
}

// Resize changes how many completions the queue holds, at least 1, whatever is
// under way (Modify CQ, verbs draft 9.2.3.3). Errors: ErrInvalidRNIC,
// ErrInvalidCQ, ErrTooManyCQE, ErrShrinkFailed (more are queued),
// ErrInvalidModifier.
func (c *CQ) Resize(entries int) (err error) {
	defer asRefused(&err, "Modify CQ", "verbs draft 9.2.3.3", Reason{})
	if c == nil {
		return errNilCQ
	}
	if err := c.rnic.refusal(); err != nil {
		return err
	}
	if err := atMost(wr.ErrTooManyCQE, entries, c.rnic.limits.CQE); err != nil {
		return err
	}
	return c.rnic.explain(c.q.Resize(entries))
}

// Poll moves up to len(dst) completions to dst, oldest first, and reports how
// many; 0 means that there are none. It never blocks. A program that polls in a
// loop drives its connections itself, without waiting for a goroutine to be
// scheduled.
func (c *CQ) Poll(dst []Completion) int { return c.q.Poll(dst) }

// PollOne is Poll with the results of Poll for Completion (verbs draft 9.3.2.1):
// the oldest completion, or ErrCQEmpty, ErrInvalidCQ or ErrInvalidRNIC.
func (c *CQ) PollOne() (Completion, error) {
	if c == nil {
		return Completion{}, refused(errNilCQ, "Poll for Completion", "verbs draft 9.3.2.1", Reason{})
	}
	done, err := c.q.PollOne()
	if err = c.rnic.explain(err); err != nil && !errors.Is(err, wr.ErrCQEmpty) { // which is no refusal, and costs nothing
		err = refused(err, "Poll for Completion", "verbs draft 9.3.2.1", Reason{})
	}
	return done, err
}

// Wait polls, and sleeps until there is at least one completion or ctx is done.
// Without a completion it returns ctx's error, which a *Reason wraps if the program of one
// side has to speak first and has not; or ErrInvalidCQ once the queue is
// destroyed, or ErrInvalidRNIC once the RNIC is closed; ErrInvalidModifier at once
// if dst has no room.
func (c *CQ) Wait(ctx context.Context, dst []Completion) (int, error) {
	if c == nil {
		return 0, waitRefused(errNilCQ)
	}
	n, err := c.q.Wait(ctx, dst)
	switch {
	case errors.Is(err, wr.ErrInvalidCQ):
		err = c.rnic.explain(err)
	case err != nil && ctx.Err() != nil:
		err = c.silent(err)
	}
	return n, waitRefused(err)
}

func waitRefused(err error) error {
	return refused(err, "Wait for Completion", "verbs draft 9.3.2.1", Reason{})
}

// WaitOne is Wait for one completion. Its error is that of Wait, or the
// completion's own, a *CompletionError, if the request failed: the completion is
// there then too.
func (c *CQ) WaitOne(ctx context.Context) (Completion, error) {
	var done [1]Completion
	if _, err := c.Wait(ctx, done[:]); err != nil {
		return Completion{}, err
	}
	return done[0], done[0].Err()
}

// Notify requests a one-shot notification (verbs draft 9.3.2.2): the next
// completion that is added, or only the next solicited one or error, puts a
// token into Events and calls the queue's handler. Poll once more after it, for
// what came before. Errors: ErrInvalidRNIC, ErrInvalidCQ, ErrInvalidNotifyType.
func (c *CQ) Notify(t NotifyType) error {
	err := c.notifies()
	if err == nil {
		err = c.rnic.explain(c.q.Request(t))
	}
	return notifyRefused(err)
}

// notifies begins a verb about notifications.
func (c *CQ) notifies() error {
	if c == nil {
		return errNilCQ
	}
	return c.rnic.refusal()
}

func notifyRefused(err error) error {
	return refused(err, "Request Completion Notification", "verbs draft 9.3.2.2", Reason{})
}

// notifyWatched is verbsinternal.NotifyWatched.
func (c *CQ) notifyWatched(t NotifyType) error {
	err := c.notifies()
	if err == nil {
		err = c.rnic.explain(c.q.RequestWatched(t))
	}
	return notifyRefused(err)
}

// Events delivers a token for each notification that Notify asked for. A goroutine of the
// RNIC wakes for it, and then the program's: WaitEvent and Wait save one of the two.
func (c *CQ) Events() <-chan struct{} { return c.q.Events() }

// Arm is Notify for a program that goes on to WaitEvent: until then what arrives may have to
// wait. If there are completions in the queue it requests nothing, so that no Poll needs to come between.
// It reports whether it has requested. Errors: those of Notify.
func (c *CQ) Arm(t NotifyType) (bool, error) {
	if err := c.notifies(); err != nil {
		return false, notifyRefused(err)
	}
	armed, err := c.q.Arm(t)
	return armed, notifyRefused(c.rnic.explain(err))
}

// WaitEvent receives a token from Events, and sleeps until there is one or ctx is done. It
// sleeps where Wait does, and so is the quicker way; what completes is for Poll. Its error
// is ctx's, or ErrInvalidCQ once the queue is destroyed, or ErrInvalidRNIC once the RNIC is closed
// or, at once, if it has failed.
func (c *CQ) WaitEvent(ctx context.Context) error {
	err := c.notifies()
	if err == nil {
		err = c.q.WaitEvent(ctx)
	}
	switch {
	case err == nil || c == nil:
	case errors.Is(err, wr.ErrInvalidCQ):
		err = c.rnic.explain(err)
	case ctx.Err() != nil:
		err = c.silent(err)
	}
	return waitRefused(err)
}

// Wake puts a token into Events as if there had been a notification: a WaitEvent returns, and a Wait looks whether its
// context has ended.
func (c *CQ) Wake() { c.q.Wake() }

// Destroy destroys the queue (verbs draft 9.2.3.4); what was not polled is lost.
// Errors: ErrInvalidRNIC, ErrInvalidCQ (it was already), ErrCQInUse (a queue pair
// is still tied to it).
func (c *CQ) Destroy() (err error) {
	defer asRefused(&err, "Destroy CQ", "verbs draft 9.2.3.4", Reason{})
	if c == nil {
		return errNilCQ
	}
	if err := c.rnic.lock(); err != nil {
		return err
	}
	defer c.rnic.mu.Unlock()
	switch {
	case c.rnic.cqs[c.ID()] != c:
		return c.destroyed()
	case c.refs > 0:
		return &wr.Reason{Err: wr.ErrCQInUse, What: fmt.Sprintf("%d work queues are tied to CQ %d", c.refs, c.ID()), Rule: "RV-5.3.4-M2"}
	}
	c.end()
	return nil
}

// destroyed refuses a verb on a queue that is not there any more.
func (c *CQ) destroyed() error {
	return &wr.Reason{Err: wr.ErrInvalidCQ, What: fmt.Sprintf("CQ %d was destroyed", c.ID())}
}

// release counts a work queue of q out, with rnic.mu held.
func (c *CQ) release(q *QP) {
	c.refs--
	delete(c.tied, q)
	if c.refs == 0 && c.ends {
		c.end()
	}
}

// end ends the queue, with rnic.mu held.
func (c *CQ) end() {
	delete(c.rnic.cqs, c.ID())
	c.rnic.ended.addCQ(c.Stats())
	c.q.Close()
}

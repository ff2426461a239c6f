package cq

import (
	"context"

	"github.com/softrnic/softrnic/wr"
)

// Request arms a one-shot notification: the next completion of that type puts a
// token into Events and calls Config.Notify. Completions already queued do not
// count: poll again after Request (verbs draft 8.2.5). A request for the next
// completion overrides one for solicited ones, not the reverse. It fails with
// wr.ErrInvalidNotifyType, or wr.ErrInvalidCQ after Close.
func (q *Queue) Request(t wr.NotifyType) error {
	if _, err := q.arm(t, true); err != nil {
		return err
	}
	q.Yield()
	return nil
}

// RequestWatched is Request for a thread that goes on to Watch: what arrives before that may have to wait until the
// background poller notices that there are no polls.
func (q *Queue) RequestWatched(t wr.NotifyType) error {
	_, err := q.arm(t, true)
	return err
}

// Arm is Request for a goroutine that goes on to WaitEvent: what arrives before that may have to wait for
// it. If there are completions it does nothing. It reports whether it has armed.
func (q *Queue) Arm(t wr.NotifyType) (bool, error) { return q.arm(t, false) }

func (q *Queue) arm(t wr.NotifyType, anyhow bool) (bool, error) {
	if t != wr.NotifyNext && t != wr.NotifySolicited {
		return false, errNotifyType
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false, errClosed
	}
	if q.count > 0 && !anyhow {
		return false, nil
	}
	if q.armed != wr.NotifyNext { // RV-8.2.5-M7
		q.armed = t
	}
	return true, nil
}

// WaitEvent receives from Events, for a waiter that sleeps where Wait does. Its error is ctx's, or
// wr.ErrInvalidCQ once the queue is closed.
func (q *Queue) WaitEvent(ctx context.Context) error {
	if _, ok := q.take(nil); ok {
		return nil
	}
	if s := q.sole(); s != nil {
		if _, err, ok := q.sleepOn(ctx, s, nil); ok {
			return err
		}
	}
	q.Yield()
	select {
	case <-q.events:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-q.gone:
		return errClosed
	}
}

// Wake puts a token into Events, as a notification does, and has the sleeper in Wait look at its context.
func (q *Queue) Wake() {
	signal(q.events)
	signal(q.wake)
	q.rouse()
}

// Fire gives the notification that is armed, as an error does (RV-8.2.5-M5), for completions that another adds behind those of the queue.
func (q *Queue) Fire() {
	q.mu.Lock()
	fires := q.armed != 0 && !q.closed
	if fires {
		q.spend()
	}
	q.mu.Unlock()
	if fires && q.notify != nil {
		q.notify()
	}
	q.rouse()
}

// Events delivers a token for each notification that Request armed.
func (q *Queue) Events() <-chan struct{} { return q.events }

// Waiting reports whether a goroutine sleeps in Wait, though not in a Group, or is
// about to run because of a completion or a notification.
func (q *Queue) Waiting() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiters > 0 || q.notified
}

// Awaited reports whether a completion is waited for otherwise than by sleeping in a Group.
func (q *Queue) Awaited() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiters > 0 || q.armed != 0
}

var (
	errNoRoom = &wr.Reason{
		Err: wr.ErrInvalidModifier, What: "a wait needs room for one completion at least", Remedy: "give it a longer slice",
	}
	errClosed     = &wr.Reason{Err: wr.ErrInvalidCQ, What: "the CQ was destroyed"}
	errNotifyType = &wr.Reason{Err: wr.ErrInvalidNotifyType, What: "there is no such type"}
)

// Wait polls, and sleeps until there is a completion or ctx is done. It returns
// at least 1 completion, or ctx's error, or wr.ErrInvalidCQ once the queue is
// closed, or wr.ErrInvalidModifier at once if dst has no room. It does not touch
// what Request armed.
func (q *Queue) Wait(ctx context.Context, dst []wr.Completion) (int, error) {
	if len(dst) == 0 {
		return 0, errNoRoom
	}
	if n, _ := q.pop(dst); n > 0 {
		return n, nil
	}
	if s := q.sole(); s != nil {
		if n, err, ok := q.sleepOn(ctx, s, dst); ok {
			return n, err
		}
	}
	return q.sleep(ctx, dst)
}

// sleep waits on the channel.
func (q *Queue) sleep(ctx context.Context, dst []wr.Completion) (int, error) {
	if n := q.Poll(dst); n > 0 {
		return n, nil
	}
	q.mu.Lock()
	q.waiters++
	q.mu.Unlock()
	defer q.leave()
	q.Yield()
	for {
		// pop, not Poll: the queue pairs progress by themselves now.
		if n, _ := q.pop(dst); n > 0 {
			return n, nil
		}
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		select {
		case <-q.wake:
		case <-ctx.Done():
			if n, _ := q.pop(dst); n > 0 {
				return n, nil
			}
			return 0, ctx.Err()
		case <-q.gone:
			return 0, errClosed
		}
	}
}

// leave is a sleeper's end. It took the one token there is, and may have left
// completions that are another sleeper's work.
func (q *Queue) leave() {
	q.mu.Lock()
	q.waiters--
	left := q.waiters > 0 && q.count > 0
	q.mu.Unlock()
	if left {
		signal(q.wake)
	}
}

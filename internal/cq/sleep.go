package cq

import (
	"context"

	"github.com/softrnic/softrnic/wr"
)

// A program that waits sleeps in one of two places. If one Group serves all queue pairs
// of the queue, the waiter sleeps there, and drives their streams
// itself when it wakes: what has arrived need not wake one goroutine, and that
// another. Else it sleeps on a channel, and the background pollers drive.

// sole is the one Driver there is. If there are other waiters all sleep on the channel.
func (q *Queue) sole() Driver {
	q.mu.Lock()
	busy := q.waiters > 0 || q.sleeper != nil
	q.mu.Unlock()
	if busy || !q.driveMu.TryLock() {
		return nil
	}
	defer q.driveMu.Unlock()
	if len(q.drivers) != 1 {
		return nil
	}
	return q.drivers[0].Driver
}

// sleepOn waits in s: for completions or, without dst, for a token in
// Events. ok is false if that cannot be, or cannot be any more.
func (q *Queue) sleepOn(ctx context.Context, s Driver, dst []wr.Completion) (n int, err error, ok bool) {
	if !s.Claim() {
		return 0, nil, false
	}
	defer s.Leave()
	if !q.setSleeper(ctx, s) {
		return 0, nil, false
	}
	defer q.endSleep()
	for {
		// Each completion that is added from here on rouses this goroutine.
		if n, ok = q.take(dst); ok {
			return n, nil, true
		}
		if err = q.ended(ctx); err != nil {
			if n, ok = q.take(dst); ok {
				return n, nil, true
			}
			return 0, err, true
		}
		if !s.Sleep() {
			return 0, nil, false
		}
	}
}

// take takes what a sleeper waits for, and reports whether that was there.
func (q *Queue) take(dst []wr.Completion) (n int, ok bool) {
	if dst != nil {
		n, _ = q.pop(dst)
		return n, n > 0
	}
	select {
	case <-q.events:
		return 0, true
	default:
		return 0, false
	}
}

// ended is why a wait is over without a completion.
func (q *Queue) ended(ctx context.Context) error {
	select {
	case <-q.gone:
		return errClosed
	default:
		return ctx.Err()
	}
}

// setSleeper makes s the one to rouse. It reports false if there is one.
func (q *Queue) setSleeper(ctx context.Context, s Driver) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.sleeper != nil {
		return false
	}
	q.sleeper = s
	q.watch(ctx)
	return true
}

// endSleep is leave for a waiter that slept in a Group.
func (q *Queue) endSleep() {
	q.mu.Lock()
	q.sleeper = nil
	left := q.waiters > 0 && q.count > 0
	q.mu.Unlock()
	if left {
		signal(q.wake)
	}
}

// watch makes the end of ctx rouse the sleeper. Waits in a row usually have the same
// context: it is told once. mu is held.
func (q *Queue) watch(ctx context.Context) {
	done := ctx.Done()
	if done == q.watched {
		return
	}
	q.unwatch()
	if done != nil && !q.closed {
		q.watched, q.stopWatch = done, context.AfterFunc(ctx, q.rouse)
	}
}

// unwatch ends watch. mu is held.
func (q *Queue) unwatch() {
	if q.stopWatch != nil {
		q.stopWatch()
	}
	q.watched, q.stopWatch = nil, nil
}

// rouse ends the sleep of the sleeper.
func (q *Queue) rouse() {
	q.mu.Lock()
	s := q.sleeper
	q.mu.Unlock()
	if s != nil {
		s.Rouse()
	}
}

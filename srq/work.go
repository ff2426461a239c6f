package srq

import (
	"fmt"

	"github.com/softrnic/softrnic/internal/sglcheck"
	"github.com/softrnic/softrnic/wr"
)

// Post posts a list of receives, in order, and reports how many were posted. The
// first that is refused stops the list; those before it stay posted (verbs draft
// 8.2.1). It keeps nothing of reqs. Errors: wr.ErrInvalidSRQ (failed or closed),
// wr.ErrInvalidSGLLength, wr.ErrInvalidSGLFormat, wr.ErrQueueFull.
func (q *Queue) Post(reqs ...wr.Recv) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.failed || q.closed {
		return 0, errGone
	}
	for i := range reqs {
		if err := q.post(&reqs[i]); err != nil {
			return i, err
		}
	}
	return len(reqs), nil
}

// refuseFull is why a queue that is full takes no more, with mu held. That is no news to a program that fills it.
func (q *Queue) refuseFull() error {
	if q.full == nil {
		q.full = &wr.Reason{
			Err: wr.ErrQueueFull, Operation: wr.OpRecv.Words(), Rule: "RV-6.3.5-M5", Remedy: "poll the CQs, which makes room",
			What: fmt.Sprintf("%d are outstanding on S-RQ %d; one counts until its completion is polled", q.used, q.id),
		}
	}
	return q.full
}

var errGone = &wr.Reason{Err: wr.ErrInvalidSRQ, What: "the S-RQ has failed or was destroyed"}

// post posts one receive, and wakes the first that waits for it. mu is held.
func (q *Queue) post(r *wr.Recv) error {
	if err := sglcheck.CheckList(r.SGL, q.sge); err != nil {
		return err
	}
	e := q.get()
	if e == nil {
		return q.refuseFull()
	}
	e.ID, e.Length, e.SGL = r.ID, 0, append(e.SGL[:0], r.SGL...)
	for i := range e.SGL {
		e.Length += uint64(e.SGL[i].Length)
	}
	q.posted.push(e)
	q.stats.Posted++
	q.stats.Queue.Most = max(q.stats.Queue.Most, uint64(q.used))
	q.starved.wake()
	return nil
}

// Take dequeues the oldest receive: the arrival order model of verbs draft 6.3.5.
// Without one it returns nil; failed then says that the queue is broken (Fail), or
// closed. A Take that leaves fewer receives than the S-RQ Limit, if it is armed,
// raises wr.EventSRQLimit and disarms it; so does one that finds none.
func (q *Queue) Take() (e *Element, failed bool) { return q.TakeFor(nil, false) }

// TakeFor is Take by the queue pair that waits, or has waited, with c: what it takes
// ends its wait. part says that its message is not all here: c holds the receive then before
// anybody else can find that it is gone.
func (q *Queue) TakeFor(c Waiter, part bool) (e *Element, failed bool) {
	q.mu.Lock()
	if q.failed || q.closed {
		q.mu.Unlock()
		return nil, true
	}
	if e = q.posted.pop(); e != nil {
		e.taken = true
		q.stats.Taken++
		q.starved.took(c)
		if part {
			c.Holds()
		}
	}
	low := q.armed && q.posted.n < q.limit // RV-6.3.8-M5
	if low {
		q.armed = false
	}
	q.mu.Unlock()
	if low {
		q.raise(wr.EventSRQLimit)
	}
	return e, false
}

// Waiter is a queue pair that takes receives, and waits for one. It may not block, or call
// into the Queue. It has to be comparable.
type Waiter interface {
	// Wake says that it is to look again.
	Wake()
	// Holds says that it has a receive that is filled in part: see Stream.
	Holds()
}

// Await wakes c when a receive is posted and c is the first that waits, at Fail and at Close, once: for a queue pair that
// pauses its stream when TakeFor finds nothing (verbs draft 13.2). It is woken too when HeldByOthers has become false.
// If a receive is posted already, or the queue has failed or is closed, the first that waits is woken at once. A queue
// pair that is woken takes again, and awaits again, without losing its place, if another was faster. Awaiting twice is
// awaiting once.
func (q *Queue) Await(c Waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.starved.sleep(c)
	switch {
	case q.failed || q.closed:
		q.starved.wakeAll()
	case q.posted.n > 0:
		q.starved.wake()
	}
}

// Forget undoes Await: when it returns, c is not woken any more. If it was, and has taken
// nothing, the next one is woken for it.
func (q *Queue) Forget(c Waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.starved.forget(c) && q.posted.n > 0 {
		q.starved.wake()
	}
}

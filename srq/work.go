package srq

import "github.com/softrnic/softrnic/wr"

// Post posts a list of receives, in order, and reports how many were posted. The
// first that is refused stops the list; those before it stay posted (verbs draft
// 8.2.1). It keeps nothing of reqs. Errors: wr.ErrInvalidSRQ (failed or closed),
// wr.ErrInvalidSGLLength, wr.ErrInvalidSGLFormat, wr.ErrQueueFull.
func (q *Queue) Post(reqs ...wr.Recv) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.failed || q.closed {
		return 0, wr.ErrInvalidSRQ
	}
	for i := range reqs {
		if err := q.post(&reqs[i]); err != nil {
			return i, err
		}
	}
	return len(reqs), nil
}

// post posts one receive, and wakes who waits for it. mu is held.
func (q *Queue) post(r *wr.Recv) error {
	switch {
	case len(r.SGL) > q.sge:
		return wr.ErrInvalidSGLLength
	case wr.Misfits(r.SGL):
		return wr.ErrMisfit
	}
	e := q.get()
	if e == nil {
		return wr.ErrQueueFull // RV-6.3.5-M5
	}
	e.ID, e.Length, e.SGL = r.ID, 0, append(e.SGL[:0], r.SGL...)
	for i := range e.SGL {
		e.Length += uint64(e.SGL[i].Length)
	}
	q.posted.push(e)
	q.wake()
	return nil
}

// Take dequeues the oldest receive: the arrival order model of verbs draft 6.3.5.
// Without one it returns nil; failed then says that the queue is broken (Fail), or
// closed. A Take that leaves fewer receives than the S-RQ Limit, if it is armed,
// raises wr.EventSRQLimit and disarms it; so does one that finds none.
func (q *Queue) Take() (e *Element, failed bool) {
	q.mu.Lock()
	if q.failed || q.closed {
		q.mu.Unlock()
		return nil, true
	}
	if e = q.posted.pop(); e != nil {
		e.taken = true
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

// Await leaves a token in c, whose capacity is 1, at the next Post, Fail or Close,
// once: for a queue pair that pauses its stream when Take finds nothing (verbs
// draft 13.2). If a receive is posted already, or the queue has failed or is
// closed, the token is left at once. Whoever is woken takes again, and awaits again
// if another was faster. Awaiting twice is awaiting once.
func (q *Queue) Await(c chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.starved[c] = struct{}{}
	if q.posted.n > 0 || q.failed || q.closed {
		q.wake()
	}
}

// Forget undoes Await: when it returns, no token comes into c any more. One that
// came before stays there.
func (q *Queue) Forget(c chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.starved, c)
}

// wake leaves a token with everybody who waits. mu is held: who has called Forget
// must not be woken.
func (q *Queue) wake() {
	if len(q.starved) == 0 {
		return
	}
	for c := range q.starved {
		select {
		case c <- struct{}{}:
		default: // it holds one
		}
	}
	clear(q.starved)
}

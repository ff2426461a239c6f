package cq

import (
	"fmt"
	"time"

	"github.com/softrnic/softrnic/internal/statuscount"
	"github.com/softrnic/softrnic/wr"
)

// Push adds a completion. It reports false, and drops the completion, if the
// queue is full, has failed or is closed: the caller turns that into an error of its
// own queue pair (verbs draft 8.3.3), and frees the slots. A full queue is an
// overflow: what did fit stays intact, so no other queue pair loses anything, and
// wr.EventCQOverflow is raised, once until there was room again.
func (q *Queue) Push(e Entry) bool { return q.PushAll([]Entry{e}) == 1 }

// PushAll is Push for several in a row. It reports how many were added: the others
// were dropped.
func (q *Queue) PushAll(list []Entry) (n int) {
	if q.faults != nil && q.faults.Watches() {
		return q.pushFaulty(list)
	}
	return q.push(list, false)
}

// push is PushAll. full says that there is no room whatever there is.
func (q *Queue) push(list []Entry, full bool) int {
	q.mu.Lock()
	p := q.put(list, full)
	q.mu.Unlock()
	q.tell(p)
	return p.n
}

// put is what put has done, for tell.
type put struct {
	n                        int
	overflows, fires, awaits bool
	sleeper                  Driver
}

// put adds to the ring what has room; mu is held.
func (q *Queue) put(list []Entry, full bool) put {
	n, fires := 0, false
	for ; n < len(list) && q.count < len(q.ring) && !q.failed && !full; n++ {
		i := q.head + q.count
		if i >= len(q.ring) {
			i -= len(q.ring)
		}
		q.ring[i] = list[n]
		q.count++
		q.stats.statuses.Add(list[n].Status)
		if q.trace != nil {
			q.traceCompleted(&list[n])
		}
		fires = q.fires(&list[n]) || fires
	}
	q.stats.pushed(q.count, len(list)-n)
	if fires {
		q.spend() // before anybody becomes a sleeper that is not roused
	}
	p := put{n, n < len(list) && !q.overflowed && !q.failed && !q.closed, fires, q.waiters > 0 && n > 0, q.sleeper}
	q.overflowed = q.overflowed || p.overflows
	return p
}

// tell tells of what put has added, without mu.
func (q *Queue) tell(p put) {
	if p.overflows {
		q.raise(wr.EventCQOverflow)
	}
	if p.fires && q.notify != nil {
		q.notify()
	}
	if p.awaits {
		signal(q.wake)
	}
	if p.sleeper != nil {
		p.sleeper.Rouse()
	}
}

// fires reports whether e is what the armed notification waits for; mu is held.
func (q *Queue) fires(e *Entry) bool {
	switch {
	case e.Status == wr.StatusFlushed && q.hushes != nil && q.hushes(e.Context, e.Op):
		return false
	case q.armed == wr.NotifyNext:
	case q.armed == wr.NotifySolicited && (e.Solicited || e.Status != wr.StatusSuccess):
		// RV-8.2.5-M5: an error completes like a solicited event.
	default:
		return false
	}
	return true
}

// spend gives the notification that is armed: one shot (RV-8.2.5-M1). mu is held, behind which the caller has q.notify tell.
func (q *Queue) spend() {
	q.armed, q.notified = 0, true
	q.stats.notified++
	if q.trace != nil {
		q.trace(wr.Record{Time: time.Now().UnixNano(), Kind: wr.RecordNotified, CQ: q.id})
	}
	signal(q.events)
}

// traceCompleted records a completion.
func (q *Queue) traceCompleted(e *Entry) {
	q.trace(wr.Record{
		Time: time.Now().UnixNano(), Kind: wr.RecordCompleted, QP: e.QP, CQ: q.id,
		Name: e.Op.String(), ID: e.ID, Octets: uint64(e.Bytes), Note: e.Status.String(),
	})
}

// Poll moves up to len(dst) completions to dst, oldest first, and reports how
// many; 0 means that the queue is empty, or closed. It never blocks. If the queue is
// empty, and not armed, it first lets the queue pairs that use it receive.
func (q *Queue) Poll(dst []wr.Completion) int {
	n, armed := q.pop(dst)
	if n > 0 || armed || len(dst) == 0 || !q.drive() {
		return n
	}
	n, _ = q.pop(dst)
	return n
}

// PollQueued is Poll of what is in the queue already: no stream is driven.
func (q *Queue) PollQueued(dst []wr.Completion) int {
	n, _ := q.pop(dst)
	return n
}

// PollOne is Poll for one completion, with the results of the verb (9.3.2.1):
// wr.ErrCQEmpty, and wr.ErrInvalidCQ after Close.
func (q *Queue) PollOne() (wr.Completion, error) {
	var c [1]wr.Completion
	if q.Poll(c[:]) == 1 {
		return c[0], nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return wr.Completion{}, errClosed
	}
	return wr.Completion{}, wr.ErrCQEmpty
}

// pop is Poll without the queue pairs. It also reports whether a notification is
// armed.
func (q *Queue) pop(dst []wr.Completion) (n int, armed bool) {
	q.mu.Lock()
	q.notified = false
	n, armed = min(len(dst), q.count), q.armed != 0
	for i := range n {
		dst[i] = q.ring[q.head].Completion
		q.reap(i < n-1)
	}
	if q.count == 0 {
		q.head = 0 // the entries that were used last are in the processor's caches
	}
	q.mu.Unlock()
	return n, armed
}

// reap removes the oldest completion and gives its slots back, unless the next one
// is to be reaped too, and will do. There is one, and mu is held.
func (q *Queue) reap(more bool) {
	e := &q.ring[q.head]
	if q.head++; q.head == len(q.ring) {
		q.head = 0
	}
	if e.Owner != nil && !(more && q.ring[q.head].Owner == e.Owner) {
		e.Owner.Release(e.Pos)
	}
	e.Owner, e.Context = nil, nil
	q.count--
	q.overflowed = false
}

// Resize changes how many completions the queue can hold, while others push and
// poll: none is lost and their order stays (verbs draft 5.3.3). On an error nothing
// changes: wr.ErrInvalidModifier (entries below 1), wr.ErrInvalidCQ (closed),
// wr.ErrShrinkFailed (more completions are queued).
func (q *Queue) Resize(entries int) error {
	if entries < 1 {
		return &wr.Reason{Err: wr.ErrInvalidModifier, What: fmt.Sprintf("%d entries", entries), Remedy: "ask for one at least"}
	}
	ring := make([]Entry, entries) // before the lock: it may take its time
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return errClosed
	case entries < q.count:
		return &wr.Reason{Err: wr.ErrShrinkFailed, What: fmt.Sprintf("%d completions are queued, %d asked for", q.count, entries), Rule: "RV-5.3.3-M4"}
	}
	n := copy(ring, q.ring[q.head:min(q.head+q.count, len(q.ring))])
	copy(ring[n:], q.ring[:q.count-n])
	q.ring, q.head = ring, 0
	if q.count < entries {
		q.overflowed = false
	}
	return nil
}

// stats are counted with mu held.
type stats struct {
	statuses statuscount.Statuses
	most     int
	dropped  uint64
	notified uint64
}

// pushed counts what PushAll has done: there are count completions now, and so many were
// dropped.
func (s *stats) pushed(count, dropped int) {
	s.most = max(s.most, count)
	s.dropped += uint64(dropped)
}

// Stats are the counters at this moment.
func (q *Queue) Stats() wr.CQStats {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := wr.CQStats{
		Queue:     wr.Depth{Now: uint64(q.count), Most: uint64(q.stats.most)},
		Overflows: q.stats.dropped, Notifications: q.stats.notified,
	}
	q.stats.statuses.To(&s.Completions)
	return s
}

// Package cq is the Completion Queue: a bounded ring of Work Completions that
// work queues push to and a program polls (verbs draft 5.3, 8.2.3 to 8.2.5).
//
//	work queue --Push--> [ ring of Entries ] --Poll--> program
//	                            |                 |
//	                    armed? notify      Release: the slots are free again
//
// A queue pair may lend its receive side to whoever polls an empty queue: it
// attaches itself as a Driver, and Poll calls Drive before it reports "empty".
// So a program that polls needs no goroutine to be scheduled between a segment's
// arrival and its completion.
package cq

import (
	"context"
	"sync"

	"github.com/softrnic/softrnic/wr"
)

// Releaser takes back work queue slots. Release is called once a completion has
// been reaped, with the position that came with it (verbs draft 8.2.1). It must
// not block and must not call into the Queue.
type Releaser interface{ Release(pos uint64) }

// Driver makes progress on behalf of a poller that found the queue empty.
type Driver interface {
	// Drive receives what has arrived, without blocking. It reports whether
	// there was anything.
	Drive() bool
	// Yield says that nobody polls from here on: progress must go on by
	// itself.
	Yield()
}

// Entry is a completion queue element: the completion and what to give back
// when it is reaped.
type Entry struct {
	wr.Completion
	// Owner and Pos name the slots that become free; Owner may be nil.
	Owner Releaser
	Pos   uint64
	// Solicited marks a completion that wakes a consumer who asked for
	// solicited ones only (verbs draft 8.2.5).
	Solicited bool
}

// NotifyType says which completion a one-shot notification waits for.
type NotifyType uint8

// The notification types of Request Completion Notification (9.3.2.2).
const (
	NotifyNext NotifyType = iota + 1
	NotifySolicited
)

// maxDrivers bounds how many recently active queue pairs one Poll visits.
const maxDrivers = 8

// idleVisits is how many fruitless visits make a Driver leave the list, if it is
// not alone there. It comes back by Attach when it receives by itself.
const idleVisits = 1 << 14

type driver struct {
	Driver
	idle int
}

// Queue is a Completion Queue. All methods may be called from any goroutine.
type Queue struct {
	id     wr.CQID
	events chan struct{} // one token: the notification that was armed
	wake   chan struct{} // one token: a sleeper in Wait should look
	gone   chan struct{} // closed by Close

	mu      sync.Mutex
	ring    []Entry // guarded by mu, as all below
	head    int
	count   int
	armed   NotifyType // 0: not armed
	waiters int        // goroutines asleep in Wait
	closed  bool

	driveMu sync.Mutex // guards drivers; taken before any Driver is called
	drivers []driver
}

// New makes a queue that holds entries completions; entries is at least 1.
func New(id wr.CQID, entries int) *Queue {
	return &Queue{
		id:     id,
		ring:   make([]Entry, entries),
		events: make(chan struct{}, 1),
		wake:   make(chan struct{}, 1),
		gone:   make(chan struct{}),
	}
}

// ID is the queue's identifier.
func (q *Queue) ID() wr.CQID { return q.id }

// Cap is how many completions the queue can hold.
func (q *Queue) Cap() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.ring)
}

// Len is how many completions wait to be polled.
func (q *Queue) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.count
}

// Push adds a completion. It reports false, and drops the completion, if the
// queue is full: a CQ overflow, which the caller turns into an error of its own
// queue pair (verbs draft 8.3.3).
func (q *Queue) Push(e Entry) bool {
	q.mu.Lock()
	if q.count == len(q.ring) {
		q.mu.Unlock()
		return false
	}
	i := q.head + q.count
	if i >= len(q.ring) {
		i -= len(q.ring)
	}
	q.ring[i] = e
	q.count++
	// RV-8.2.5: an error completes like a solicited event.
	notify := q.armed == NotifyNext ||
		q.armed == NotifySolicited && (e.Solicited || e.Status != wr.StatusSuccess)
	if notify {
		q.armed = 0 // one shot
	}
	waiting := q.waiters > 0
	q.mu.Unlock()
	if notify {
		signal(q.events)
	}
	if waiting {
		signal(q.wake)
	}
	return true
}

// Poll moves up to len(dst) completions to dst, oldest first, and reports how
// many; 0 means that the queue is empty. It never blocks. If the queue is empty
// it first lets the queue pairs that use it receive.
func (q *Queue) Poll(dst []wr.Completion) int {
	if n := q.pop(dst); n > 0 || len(dst) == 0 {
		return n
	}
	if !q.drive() {
		return 0
	}
	return q.pop(dst)
}

func (q *Queue) pop(dst []wr.Completion) int {
	q.mu.Lock()
	n := min(len(dst), q.count)
	for i := range n {
		e := &q.ring[q.head]
		dst[i] = e.Completion
		if e.Owner != nil {
			e.Owner.Release(e.Pos)
			e.Owner = nil
		}
		if q.head++; q.head == len(q.ring) {
			q.head = 0
		}
	}
	q.count -= n
	more := n > 0 && q.count > 0 && q.waiters > 0
	q.mu.Unlock()
	if more {
		signal(q.wake) // another sleeper has work too
	}
	return n
}

// Waiting reports whether a goroutine sleeps in Wait, or is about to run because
// of a completion.
func (q *Queue) Waiting() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiters > 0
}

// Request arms a one-shot notification: the next completion of that type puts a
// token into Events. Completions already queued do not count: poll again after
// Request (verbs draft 8.2.5). A request for the next completion overrides one
// for solicited ones, not the reverse. It fails with wr.ErrInvalidNotifyType, or
// wr.ErrInvalidCQ after Close.
func (q *Queue) Request(t NotifyType) error {
	if t != NotifyNext && t != NotifySolicited {
		return wr.ErrInvalidNotifyType
	}
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return wr.ErrInvalidCQ
	}
	if q.armed != NotifyNext {
		q.armed = t
	}
	q.mu.Unlock()
	q.yield()
	return nil
}

// Events delivers a token for each notification that Request armed.
func (q *Queue) Events() <-chan struct{} { return q.events }

// Wait polls, and sleeps until there is a completion or ctx is done. It returns
// at least 1 completion, or ctx's error, or wr.ErrInvalidCQ if the queue is
// empty and closed. It does not touch what Request armed.
func (q *Queue) Wait(ctx context.Context, dst []wr.Completion) (int, error) {
	if n := q.Poll(dst); n > 0 || len(dst) == 0 {
		return n, nil
	}
	q.mu.Lock()
	q.waiters++
	q.mu.Unlock()
	defer func() {
		q.mu.Lock()
		q.waiters--
		left := q.waiters > 0 && q.count > 0
		q.mu.Unlock()
		if left {
			signal(q.wake)
		}
	}()
	q.yield()
	for {
		// pop, not Poll: the queue pairs progress by themselves now.
		if n := q.pop(dst); n > 0 {
			return n, nil
		}
		select {
		case <-q.wake:
		case <-ctx.Done():
			if n := q.pop(dst); n > 0 {
				return n, nil
			}
			return 0, ctx.Err()
		case <-q.gone:
			if n := q.pop(dst); n > 0 {
				return n, nil
			}
			return 0, wr.ErrInvalidCQ
		}
	}
}

// Close ends every Wait, and refuses later ones and Request. Completions that
// are queued can still be polled. Closing twice is closing once.
func (q *Queue) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.closed = true
		close(q.gone)
	}
}

// Attach makes Poll visit d when the queue is empty. Attaching twice is
// attaching once. When the list is full the Driver longest without anything to
// do leaves it.
func (q *Queue) Attach(d Driver) {
	q.driveMu.Lock()
	defer q.driveMu.Unlock()
	worst := 0
	for i := range q.drivers {
		if q.drivers[i].Driver == d {
			q.drivers[i].idle = 0
			return
		}
		if q.drivers[i].idle > q.drivers[worst].idle {
			worst = i
		}
	}
	if len(q.drivers) < maxDrivers {
		q.drivers = append(q.drivers, driver{Driver: d})
		return
	}
	q.drivers[worst].Yield()
	q.drivers[worst] = driver{Driver: d}
}

// Detach makes Poll forget d; when it returns, no Drive of d that this queue
// called is running.
func (q *Queue) Detach(d Driver) {
	q.driveMu.Lock()
	defer q.driveMu.Unlock()
	for i := range q.drivers {
		if q.drivers[i].Driver == d {
			q.remove(i)
			return
		}
	}
}

func (q *Queue) remove(i int) {
	last := len(q.drivers) - 1
	q.drivers[i] = q.drivers[last]
	q.drivers[last] = driver{}
	q.drivers = q.drivers[:last]
}

// drive visits the attached Drivers once. Of several pollers one drives, the
// others report an empty queue meanwhile.
func (q *Queue) drive() bool {
	if !q.driveMu.TryLock() {
		return false
	}
	defer q.driveMu.Unlock()
	progress := false
	for i := 0; i < len(q.drivers); {
		d := &q.drivers[i]
		if d.Drive() {
			progress = true
			d.idle = 0
		} else if d.idle++; d.idle >= idleVisits && len(q.drivers) > 1 {
			d.Yield()
			q.remove(i)
			continue
		}
		i++
	}
	return progress
}

func (q *Queue) yield() {
	q.driveMu.Lock()
	defer q.driveMu.Unlock()
	for i := range q.drivers {
		q.drivers[i].Yield()
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

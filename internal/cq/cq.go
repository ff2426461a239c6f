// Package cq is the
// Completion Queue: a bounded ring of Work Completions that
// work queues push to and a program polls (verbs draft 5.3, 8.2.3 to 8.2.5).
//
//	work queue --Push--> [ ring of Entries ] --Poll--> program
//	                            |                 |
//	                    armed? notify      Release: the slots are free again
//
// The streams that complete here are served by an netpoll.Group, which a queue pair
// attaches as a Driver: Poll calls Drive before it reports "empty".
// So a program that polls needs no goroutine to be scheduled between a segment's
// arrival and its completion.
//
//	cq.go      the queue, and how it ends     ring.go    Push, Poll, Resize, counters
//	notify.go  notification, Wait, WaitEvent  progress.go    what a poller drives
//	sleep.go   Wait and WaitEvent in a Group  faultdelay.go  what a fault plan keeps back
package cq

import (
	"strconv"
	"time"

	"github.com/softrnic/softrnic/internal/inventory"
	"github.com/softrnic/softrnic/internal/lockorder"
	"github.com/softrnic/softrnic/internal/netpoll"
	"github.com/softrnic/softrnic/internal/proflabel"
	"github.com/softrnic/softrnic/wr"
)

// Releaser takes back work queue slots. Release is called once a completion has
// been reaped, with the position that came with it (verbs draft 8.2.1), or with that
// of the last of several: all before it were reaped too. It must not block and must
// not call into the Queue.
type Releaser interface{ Release(pos uint64) }

// Entry is a completion queue element: the completion and what to give back
// when it is reaped.
type Entry struct {
	wr.Completion
	// Owner and Pos name the slots that become free; Owner may be nil.
	Owner Releaser
	Pos   uint64
	// Solicited marks a completion that wakes a consumer that asked for
	// solicited ones only (verbs draft 8.2.5).
	Solicited bool
}

// Queue is a Completion Queue. All methods may be called from any goroutine.
type Queue struct {
	id     wr.CQID
	notify func()                           // may be nil
	hushes func(context any, op wr.Op) bool // may be nil
	event  func(wr.Event)                   // may be nil
	faults *Faults                          // may be nil
	trace  func(wr.Record)                  // may be nil
	events chan struct{}                    // one token: the notification that was armed
	wake   chan struct{}                    // one token: a sleeper in Wait should look
	gone   chan struct{}                    // closed by Close

	mu         lockorder.Mutex[lockorder.CQ]
	ring       []Entry // guarded by mu, as all below; nil once closed
	head       int
	count      int
	armed      wr.NotifyType // 0: not armed
	waiters    int           // goroutines asleep in Wait, on wake
	sleeper    Driver        // where one more is asleep; nil: nowhere
	notified   bool          // a notification was given, and there was no poll since
	overflowed bool          // the event was raised, and there was no room since
	failed     bool          // by Fail
	closed     bool          // by Close
	late       late          // by fault
	stats      stats

	// watched is the Done of the context whose end rouses the sleeper.
	watched   <-chan struct{}
	stopWatch func() bool

	driveMu lockorder.Mutex[lockorder.Drive] // guards drivers, and is held while one drives or yields
	drivers []driver
	visit   int // the one that was visited last

	group   netpoll.Group
	counted *inventory.Object
}

// Config configures a queue.
type Config struct {
	ID wr.CQID
	// Entries is how many completions it holds, at least 1.
	Entries int
	// Slack is netpoll.Group's.
	Slack time.Duration
	// Notify, if set, is called for each notification that was armed, beside
	// the token in Events, by the goroutine that pushed the completion. It must not block or
	// call into the Queue.
	Notify func()
	// Hushes, if set, reports by the Context and the operation of what flushes whether it is nobody's business, so that it fires no notification
	// and leaves what is armed as it is. It must not block or call into the Queue, which is held.
	Hushes func(context any, op wr.Op) bool
	// Event, if set, takes asynchronous events of the queue. It must not block
	// or call into the Queue.
	Event func(wr.Event)
	// Faults, if set, are those of a fault plan.
	Faults *Faults
	// Trace, if set, is told of completions and notifications. It must not block or call into the Queue.
	Trace func(wr.Record)
	// Labels are those of the RNIC's goroutines.
	Labels proflabel.Set
	// Inventory is the RNIC's object; nil for none.
	Inventory *inventory.Object
}

// New makes a queue.
func New(c Config) *Queue {
	q := &Queue{
		id:     c.ID,
		notify: c.Notify,
		hushes: c.Hushes,
		event:  c.Event,
		faults: c.Faults,
		trace:  c.Trace,
		ring:   make([]Entry, c.Entries),
		events: make(chan struct{}, 1),
		wake:   make(chan struct{}, 1),
		gone:   make(chan struct{}),
	}
	q.group.Slack = c.Slack
	q.group.Labels = c.Labels.With(proflabel.CQ, strconv.Itoa(int(c.ID)))
	q.counted = inventory.Open(c.Inventory, "cq CQ", uint32(c.ID), q)
	q.group.Inventory = q.counted
	return q
}

// ID is the queue's identifier.
func (q *Queue) ID() wr.CQID { return q.id }

// Cap is how many completions the queue can hold; 0 after Close.
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

// Fail makes the queue fail as if the RNIC could not add to it any more ("CQ
// Operation Error", figure 25). Software has no natural cause for it; programs
// want to see how they handle it. The first call raises wr.EventCQOperation. From
// then on Push refuses, so that each queue pair ends at its next completion (figure
// 24), and its own only. What is queued can still be polled; Resize, Request and
// Close go on working.
func (q *Queue) Fail() {
	q.mu.Lock()
	first := !q.failed && !q.closed
	q.failed = true
	q.mu.Unlock()
	if first {
		q.raise(wr.EventCQOperation)
	}
}

// Close destroys the queue, which no work queue may use any more (RV-5.3.4-M2 is the
// caller's to check). Completions that are queued are dropped, and their slots come
// free: once Close has returned no method gives a completion (RV-5.3.4-M5). It ends
// every Wait. Closing twice is closing once.
func (q *Queue) Close() {
	defer q.group.Close()
	q.mu.Lock()
	defer q.rouse()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	q.closed = true
	q.unwatch()
	for q.count > 0 {
		q.reap(q.count > 1)
	}
	// Slots are given back in order: what is kept back is behind what is queued.
	q.late.drop()
	q.ring, q.head = nil, 0 // RV-5.3.4-M4
	close(q.gone)
	q.counted.Close()
}

// Count implements inventory.Counter.
func (q *Queue) Count(tell inventory.Tell) {
	q.driveMu.Lock()
	tell(len(q.drivers), "group")
	q.driveMu.Unlock()
	q.mu.Lock()
	defer q.mu.Unlock()
	tell(q.count, "completion")
	tell(len(q.late.list), "late completion")
	tell(q.waiters, "waiter")
	if q.sleeper != nil {
		tell(1, "sleeper")
	}
	if q.stopWatch != nil {
		tell(1, "watch of a context")
	}
}

// raise reports an event of this queue. The caller does not hold mu.
func (q *Queue) raise(id wr.EventID) {
	if q.event != nil {
		q.event(wr.Event{ID: id, CQ: q.id})
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Package srq (engine of softrnic, not covered by the compatibility promise) is the
// Shared Receive Queue: receives that several queue pairs
// take from as messages arrive (verbs draft 6.3).
//
//	program --Post--> [ posted, oldest first ] --Take--> receive side of a QP
//	                                                          |
//	   [ free elements ] <--Release-- CQ <--completion--------+
//
// A slot is in use from Post until the completion of its receive is reaped
// (RV-6.3.7-M2). Receives that are in progress end in any order, so slots are
// elements that go back to a free list, not positions in a ring.
//
//	srq.go      the queue, its attributes and its end
//	element.go  elements and where they come from
//	work.go     Post, Take, and waiting for a Post
//	starved.go  streams that wait
//	modify.go   Modify S-RQ and the S-RQ Limit
//	watch.go    streams that keep a receive and do not fill it
package srq

import (
	"time"

	"github.com/softrnic/softrnic/internal/inventory"
	"github.com/softrnic/softrnic/internal/lockorder"
	"github.com/softrnic/softrnic/wr"
)

// Config are the attributes that Create S-RQ fixes (verbs draft 9.2.4.1). The
// RNIC has checked them.
type Config struct {
	ID wr.SRQID
	PD wr.PDID
	// Depth is how many receives may be outstanding, at least 1; SGE the
	// elements of one list, 1 to 255.
	Depth, SGE int
	// Limit is the S-RQ Limit, 0 to Depth; above 0 it is armed.
	Limit int
	// StallTimeout is how long a message that fills a receive in part may make no
	// progress while several streams take from the queue; up to a quarter more passes
	// until that is noticed. Meanwhile other streams have reason to wait: see Hoarded.
	// 0 stands for DefaultStallTimeout, below 0 for ever.
	StallTimeout time.Duration
	// Events takes asynchronous events. It must not block.
	Events func(wr.Event)
	// Inventory is the RNIC's object; nil for none.
	Inventory *inventory.Object
}

// Queue is a Shared Receive Queue. Make one with New. All methods may be called
// from any goroutine.
type Queue struct {
	id     wr.SRQID
	pd     wr.PDID
	sge    int
	events func(wr.Event)
	watch  watch

	mu     lockorder.Mutex[lockorder.SRQ]
	depth  int // guarded by mu, as all below
	limit  int
	armed  bool // the next drop below limit raises the event
	failed bool // by Fail
	closed bool // by Close

	posted fifo        // what Take takes from
	used   int         // elements posted, or taken and not released; at most depth
	stats  wr.SRQStats // but for Queue.Now
	full   *wr.Reason  // of refuseFull, or nil
	free   *Element    // a stack of elements not in use
	spare  int         // how many free holds; used+spare is at most depth

	starved starved
	counted *inventory.Object
}

// New makes an empty queue.
func New(c Config) *Queue {
	q := &Queue{
		id: c.ID, pd: c.PD, sge: c.SGE, events: c.Events,
		depth: c.Depth, limit: c.Limit,
		armed: c.Limit > 0, // RV-6.3.8-M7

		starved: starved{known: make(map[Waiter]*waiter)},
	}
	q.watch.init(c.StallTimeout, q.look)
	q.counted = inventory.Open(c.Inventory, "srq S-RQ", uint32(c.ID), q)
	return q
}

// ID is the queue's identifier.
func (q *Queue) ID() wr.SRQID { return q.id }

// PD is the queue's Protection Domain. The buffers of its receives are checked
// against it and not against that of the queue pair (RV-6.3.5-M11).
func (q *Queue) PD() wr.PDID { return q.pd }

// Attributes are what Query S-RQ returns (verbs draft 9.2.4.2).
type Attributes struct {
	// Depth, SGE and Limit are as in Config; Depth as allocated, which is
	// exactly what was asked for.
	Depth, SGE, Limit int
	PD                wr.PDID
	// Armed is the S-RQ Limit Armed Indicator.
	Armed bool
}

// Query returns the attributes.
func (q *Queue) Query() Attributes {
	q.mu.Lock()
	defer q.mu.Unlock()
	return Attributes{Depth: q.depth, SGE: q.sge, Limit: q.limit, PD: q.pd, Armed: q.armed}
}

// Stats are the counters at this moment.
func (q *Queue) Stats() wr.SRQStats {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.stats
	s.Queue.Now = uint64(q.used)
	return s
}

// Fail makes the queue fail as if the RNIC could not use it any more ("Shared
// Receive Queue Catastrophic Failure", figure 25). Software has no natural cause
// for it; programs want to see how they handle it. The first call raises
// wr.EventSRQCatastrophic. From then on Post refuses and Take reports failed, so
// that each queue pair ends when it needs a receive and not before (6.3.6).
// Receives already taken complete as ever. Query, Modify and Close go on working.
func (q *Queue) Fail() {
	q.mu.Lock()
	first := !q.failed && !q.closed
	if first {
		q.failed = true
		q.starved.wakeAll()
	}
	q.mu.Unlock()
	if first {
		q.raise(wr.EventSRQCatastrophic)
	}
}

// Close destroys the queue (verbs draft 9.2.4.4), which no queue pair may use any
// more: RV-6.3.3-M1 is the caller's to check. Receives that nobody took are
// dropped without a completion. An element that a queue pair has taken stays as it
// is until its completion is reaped, which may be later. Closing twice is closing
// once.
func (q *Queue) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.used -= q.posted.n
	q.posted, q.free, q.spare = fifo{}, nil, 0 // RV-6.3.3-M3
	q.starved.wakeAll()
	q.watch.end()
	q.counted.Close()
}

// Count implements inventory.Counter. When the queue is closed, receives are those whose completions wait to be reaped.
func (q *Queue) Count(tell inventory.Tell) {
	q.mu.Lock()
	tell(q.used, "receive")
	tell(len(q.starved.known), "waiting stream")
	q.mu.Unlock()
	q.watch.mu.Lock()
	defer q.watch.mu.Unlock()
	tell(len(q.watch.streams), "stream")
}

// raise reports an event of this queue. The caller does not hold mu.
func (q *Queue) raise(id wr.EventID) {
	if q.events != nil {
		q.events(wr.Event{ID: id, SRQ: q.id})
	}
}

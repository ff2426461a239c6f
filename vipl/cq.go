package vipl

import (
	"context"

	"github.com/softrnic/softrnic/internal/inventory"
	"github.com/softrnic/softrnic/internal/lockorder"
)

// CQ is a Completion Queue (VI Architecture 2.4): it tells, for many work queues, which
// of them has a completed Descriptor. Make one with Nic.CreateCQ.
//
// An entry is put on it for each Descriptor that completes. Descriptors complete in the
// order in which they are dequeued, so each entry stands for one SendDone or RecvDone
// that succeeds, unless somebody has dequeued without asking the CQ. If there is no room
// the entry is lost (6.4.1).
type CQ struct {
	nic   *Nic
	gone  chan struct{} // closed by DestroyCQ
	group group         // of the VIs whose receives complete here

	users int // work queues tied to it; guarded by nic.mu

	mu       lockorder.Mutex[lockorder.VICQ] // innermost but for the dispatcher's
	ring     []entry                         // guarded by mu, as all below; nil once destroyed
	head     int
	count    int
	waitq    waitQueue
	handlers []CQHandler
	lost     uint64 // entries for which there was no room

	counted *inventory.Object
}

// entry is a Completion Queue Entry: the queue that has a completed Descriptor.
type entry struct {
	vi   *Vi
	recv bool
}

// CQHandler is what CQNotify calls.
type CQHandler func(nic *Nic, vi *Vi, recvQueue bool)

// CreateCQ is VipCreateCQ (VI Architecture 9.7.1): a CQ for entries entries, from 1 to
// NicAttributes.MaxCQEntries. Errors: ErrInvalidParameter (the Nic is closed, or no
// entries), ErrResource (too many of either kind).
func (n *Nic) CreateCQ(entries int) (*CQ, error) {
	if err := n.checkEntries(entries); err != nil {
		return nil, err
	}
	q := newCQ(n, entries)
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.closed:
		return nil, errNicClosed
	case len(n.cqs) >= int(n.attributes.MaxCQ):
		return nil, resource("%d completion queues are in use", len(n.cqs))
	}
	n.cqs[q] = struct{}{}
	q.counted = inventory.Open(n.counted, "vipl CQ", nil, inventory.CounterFunc(q.inventory))
	q.group.Inventory = q.counted
	return q, nil
}

// inventory is an inventory.CounterFunc.
func (q *CQ) inventory(tell inventory.Tell) {
	q.nic.mu.Lock()
	tell(q.users, "work queue")
	q.nic.mu.Unlock()
	q.mu.Lock()
	defer q.mu.Unlock()
	tell(q.count, "entry")
	tell(len(q.handlers), "handler")
	tell(len(*q.waitq.groups.Load()), "group")
	tell(int(q.group.awaits.Load())-q.waitq.awaits, "waiter of the group")
	q.waitq.count(tell)
}

func newCQ(n *Nic, entries int) *CQ {
	q := &CQ{nic: n, ring: make([]entry, entries), gone: make(chan struct{})}
	q.waitq.init(&q.mu, func() bool { return q.count > 0 || q.ring == nil }, q.gone)
	q.group.Serve(&q.group)
	return q
}

func (n *Nic) checkEntries(entries int) error {
	switch {
	case entries <= 0:
		return invalid("a completion queue of %d entries", entries)
	case entries > int(n.attributes.MaxCQEntries): // VA-3.4-M4
		return resource("a completion queue has %d entries at most", n.attributes.MaxCQEntries)
	}
	return nil
}

// DestroyCQ is VipDestroyCQ (VI Architecture 9.7.2). Pending CQNotify handlers are
// cancelled. Errors: ErrInvalidParameter (destroyed already), ErrResource (work queues
// are tied to it, VA-3.4-M5).
func (q *CQ) DestroyCQ() error {
	q.nic.mu.Lock()
	defer q.nic.mu.Unlock()
	if q.users > 0 {
		return inUse("%d work queues are tied to the completion queue: destroy their VIs first", q.users)
	}
	if _, ok := q.nic.cqs[q]; !ok {
		return errCQGone
	}
	delete(q.nic.cqs, q)
	q.destroy()
	return nil
}

// destroy ends the queue once it is off the Nic's list.
func (q *CQ) destroy() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waitq.await(-len(q.handlers))
	q.ring, q.count, q.handlers = nil, 0, nil
	close(q.gone)
	q.waitq.notify()
	q.waitq.unwatch()
	q.counted.Close()
}

// ResizeCQ is VipResizeCQ (VI Architecture 9.7.3). Completions meanwhile are not lost.
// Errors: ErrInvalidParameter (no entries, or the CQ is destroyed), ErrResource (more
// than MaxCQEntries, or less than are on it).
func (q *CQ) ResizeCQ(entries int) error {
	if err := q.nic.checkEntries(entries); err != nil {
		return err
	}
	ring := make([]entry, entries)
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.ring == nil:
		return errCQGone
	case q.count > entries:
		return resource("there are %d entries on the completion queue", q.count)
	}
	for i := range q.count {
		ring[i] = *q.at(i)
	}
	q.ring, q.head = ring, 0
	return nil
}

// at is the entry i behind the head. The caller has mu.
func (q *CQ) at(i int) *entry {
	if i += q.head; i >= len(q.ring) {
		i -= len(q.ring)
	}
	return &q.ring[i]
}

// CQDone is VipCQDone (VI Architecture 9.6.7): it takes an entry off. If there is none it
// first lets the connections of the VIs that are tied to the CQ progress. The Descriptor
// is then dequeued by RecvDone of vi if recvQueue, else by SendDone; where others
// dequeue too, that may fail (VA-9.6.7-M1). Errors: ErrNotDone (no entry),
// ErrInvalidParameter (the CQ is destroyed).
func (q *CQ) CQDone() (vi *Vi, recvQueue bool, err error) {
	vi, recvQueue, err = q.take()
	if err == ErrNotDone && q.waitq.drive() { //nolint:errorlint // take does not wrap it
		return q.take()
	}
	return vi, recvQueue, err
}

func (q *CQ) take() (vi *Vi, recvQueue bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.ring == nil:
		return nil, false, errCQGone
	case q.count == 0:
		return nil, false, ErrNotDone
	}
	e := q.pop()
	return e.vi, e.recv, nil
}

// pop takes the first entry. The caller has mu.
func (q *CQ) pop() entry {
	e := *q.at(0)
	*q.at(0) = entry{} // keep nothing alive
	q.count--
	if q.head++; q.head == len(q.ring) {
		q.head = 0
	}
	q.waitq.pass() // the next is for another sleeper
	return e
}

// CQWait is VipCQWait (VI Architecture 9.6.8): CQDone, or if there is no entry a wait for
// one until ctx ends. Errors: ErrTimeout, ErrInvalidParameter (the CQ is, or is being,
// destroyed); a cancelled context's.
func (q *CQ) CQWait(ctx context.Context) (vi *Vi, recvQueue bool, err error) {
	for {
		vi, recvQueue, err = q.take()
		if err != ErrNotDone { //nolint:errorlint // take does not wrap it
			return vi, recvQueue, err
		}
		if err = q.waitq.wait(ctx); err != nil {
			return nil, false, err
		}
	}
}

// CQNotify is VipCQNotify (VI Architecture 9.6.11): handler is called once, with the
// first entry, as soon as there is one. Each call is for one entry (VA-9.6.11-M1).
// Errors: ErrInvalidParameter (the CQ is destroyed, or handler is nil).
func (q *CQ) CQNotify(handler CQHandler) error {
	if handler == nil {
		return invalid("no handler")
	}
	defer q.waitq.yield() // without mu
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ring == nil {
		return errCQGone
	}
	q.handlers = append(q.handlers, handler)
	q.waitq.await(1)
	q.notify()
	return nil
}

// notify hands entries to the handlers that wait for them. The caller has mu.
func (q *CQ) notify() {
	for len(q.handlers) > 0 && q.count > 0 {
		h, e := q.handlers[0], q.pop()
		q.handlers = q.handlers[1:]
		q.waitq.await(-1)
		q.nic.dispatch.do(func() { h(q.nic, e.vi, e.recv) })
	}
}

// push puts an entry on. The VI's lock is held.
func (q *CQ) push(e entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.count >= len(q.ring) { // or destroyed: then nobody is tied to it
		if q.lost++; q.lost&(q.lost-1) == 0 { // 6.4.1 asks for no report, and none is made for each
			q.nic.report(ErrorDescriptor{
				ViHandle: e.vi, CQHandle: q, OpCode: e.vi.operation(e.recv), ResourceCode: ResourceCQ, ErrorCode: ErrorCQOverrun,
			})
		}
		return
	}
	q.count++
	*q.at(q.count - 1) = e
	if len(q.handlers) > 0 {
		q.notify()
		return
	}
	q.waitq.notify()
}

// tie says that the group serves one VI more, or less, that completes here.
func (q *CQ) tie(g *group, by int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waitq.attach(g, by)
}

// forget takes all entries of a VI off, which is being destroyed: a CQ tells no handle
// that is gone.
func (q *CQ) forget(vi *Vi) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for range q.count {
		if e := q.pop(); e.vi != vi {
			q.count++
			*q.at(q.count - 1) = e
		}
	}
}

var errCQGone = invalid("the completion queue is destroyed")

package vipl

import "context"

// QueueHandler is what SendNotify and RecvNotify call, with the Descriptor that they
// took off the queue.
type QueueHandler func(nic *Nic, vi *Vi, d *Descriptor)

// slot is a Descriptor on a work queue that the endpoint does not have.
type slot struct {
	d      *Descriptor
	region *descRegion // where d is
	fault  Status      // what is wrong with its form
}

// workQueue is the Send Queue or the Receive Queue of a VI: Descriptors in the order in
// which they were posted, complete and are dequeued (VI Architecture 6.3.1.1; the endpoint
// gives the results of RDMA Reads in order too). One that is posted is in the queue of the
// endpoint while there is a connection, and nowhere else; one that waits for a connection,
// or to be dequeued, is in the ring. Guarded by Vi.mu, but for what is constant.
//
//	head            done                tail
//	 | completed     | waits for a       |
//	 | not dequeued  | connection        | free
type workQueue struct {
	vi   *Vi  // constant
	recv bool // constant
	cq   *CQ  // constant, nil if it is tied to none

	ring             []slot // a power of two, grows to the limit
	head, done, tail uint64 // done is tail while there is a link
	carried          int    // Descriptors that the endpoint has

	waitq    waitQueue
	handlers []QueueHandler
}

func (q *workQueue) init(vi *Vi, recv bool, cq *CQ) {
	q.vi, q.recv, q.cq = vi, recv, cq
	q.waitq.init(&vi.mu, func() bool { return q.head != q.done || vi.destroyed }, vi.gone)
	q.waitq.attach(vi.group, 1)
}

// at is the slot at a position.
func (q *workQueue) at(pos uint64) *slot { return &q.ring[pos&uint64(len(q.ring)-1)] }

// count is how many Descriptors have not been dequeued.
func (q *workQueue) count() int { return q.carried + int(q.tail-q.head) }

// empty reports whether all Descriptors have been dequeued.
func (q *workQueue) empty() bool { return q.count() == 0 }

// push puts a Descriptor on the ring.
func (q *workQueue) push(s slot) {
	if q.tail-q.head == uint64(len(q.ring)) {
		q.grow()
	}
	*q.at(q.tail) = s
	q.tail++
}

func (q *workQueue) grow() {
	ring := make([]slot, max(16, 2*len(q.ring)))
	for pos := q.head; pos != q.tail; pos++ {
		ring[pos&uint64(len(ring)-1)] = *q.at(pos)
	}
	q.ring = ring
}

// outcome is what becomes of a Descriptor.
type outcome struct {
	status    Status // without Done
	length    uint32
	immediate uint32 // valid with StatusImmediate
}

// complete completes the first Descriptor of the ring that is not (VI Architecture 6.4.1), and
// reports whether it could: not if its memory was deregistered meanwhile. It can be
// dequeued in any case.
func (q *workQueue) complete(o outcome) bool {
	s := q.at(q.done)
	q.done++
	written := s.region.access(func() { s.write(o, q.recv) })
	q.completed()
	return written
}

// write writes the result into the Descriptor, Status last (VA-6.4.1-M1, VA-6.4.1-M2).
func (s *slot) write(o outcome, recv bool) {
	c := &s.d.Control
	c.Length = o.length
	if recv {
		c.Control &^= ControlImmediate // 10.2, bit 2
		if o.status&StatusImmediate != 0 {
			c.Control |= ControlImmediate
			c.ImmediateData = o.immediate
		}
	}
	s.d.setStatus(o.status | StatusDone)
}

// completed wakes the waiters, and calls the handlers, that one more completion is for (VA-6.1-M4).
func (q *workQueue) completed() {
	switch {
	case q.cq != nil:
		q.cq.push(entry{q.vi, q.recv})
	case len(q.handlers) > 0:
		q.notify()
	default:
		q.waitq.notify()
	}
}

// pop dequeues the first Descriptor if it has completed.
func (q *workQueue) pop() (*Descriptor, error) {
	if q.head == q.done {
		return nil, ErrNotDone
	}
	s := q.at(q.head)
	d := s.d
	*s = slot{} // keep nothing alive
	q.head++
	q.waitq.pass() // the next is for another sleeper
	return d, nil
}

// notify hands completed Descriptors to the handlers that wait for them.
func (q *workQueue) notify() {
	for len(q.handlers) > 0 && q.head != q.done {
		h := q.handlers[0]
		q.handlers = q.handlers[1:]
		q.waitq.await(-1)
		vi := q.vi
		d, _ := q.pop() // there is one
		vi.nic.dispatch.do(func() { h(vi.nic, vi, d) })
	}
}

// end is for when the VI is destroyed.
func (q *workQueue) end() {
	q.waitq.await(-len(q.handlers))
	q.handlers = nil
	q.waitq.notify()
	q.waitq.unwatch()
}

// take is SendDone and RecvDone. If nothing has completed it first lets the connection
// progress.
func (q *workQueue) take() (*Descriptor, error) {
	d, err := q.dequeue()
	if err == ErrNotDone && q.waitq.drive() { //nolint:errorlint // dequeue does not wrap it
		return q.dequeue()
	}
	return d, err
}

func (q *workQueue) dequeue() (*Descriptor, error) {
	q.vi.mu.Lock()
	defer q.vi.mu.Unlock()
	if q.vi.destroyed {
		return nil, errViGone
	}
	return q.pop()
}

// wait is SendWait and RecvWait.
func (q *workQueue) wait(ctx context.Context) (*Descriptor, error) {
	if q.cq != nil { // VA-9.3.1-M1, VA-9.6.3-M1, VA-9.6.6-M1
		return nil, errTied
	}
	for {
		d, err := q.dequeue()
		if err != ErrNotDone { //nolint:errorlint // dequeue does not wrap it
			return d, err
		}
		if err := q.waitq.wait(ctx); err != nil {
			return nil, err
		}
	}
}

// register is SendNotify and RecvNotify.
func (q *workQueue) register(h QueueHandler) error {
	switch {
	case h == nil:
		return invalid("no handler")
	case q.cq != nil: // VA-9.6.9-M2, VA-9.6.10-M2
		return errTied
	}
	defer q.waitq.yield() // without mu
	q.vi.mu.Lock()
	defer q.vi.mu.Unlock()
	if q.vi.destroyed {
		return errViGone
	}
	q.handlers = append(q.handlers, h)
	q.waitq.await(1)
	q.notify()
	return nil
}

var (
	errViGone = invalid("the VI is destroyed")
	errTied   = resource("the work queue is tied to a completion queue: wait there")
)

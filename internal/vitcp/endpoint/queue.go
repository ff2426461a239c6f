package endpoint

import (
	"github.com/softrnic/softrnic/internal/vitcp/segment"
	"github.com/softrnic/softrnic/wr"
)

// fifo is a queue that grows as it needs to and then allocates no more. What is at a
// place stays there after pop, for the next push to reuse.
type fifo[T any] struct {
	buf        []T    // a power of two, or none
	head, tail uint64 // counted from the first push on
}

func (f *fifo[T]) len() int { return int(f.tail - f.head) }

// at is element i, which is in the queue.
func (f *fifo[T]) at(i uint64) *T { return &f.buf[i&uint64(len(f.buf)-1)] }

func (f *fifo[T]) front() *T { return f.at(f.head) }

// push adds a place at the end and returns it, with whatever was left there.
func (f *fifo[T]) push() *T {
	if f.len() == len(f.buf) {
		grown := make([]T, max(4, 2*len(f.buf)))
		for i := f.head; i != f.tail; i++ {
			grown[i&uint64(len(grown)-1)] = *f.at(i)
		}
		f.buf = grown
	}
	f.tail++
	return f.at(f.tail - 1)
}

func (f *fifo[T]) pop() { f.head++ }

// slot is push for a queue of pointers, whose targets are reused.
func slot[T any](f *fifo[*T]) *T {
	p := f.push()
	if *p == nil {
		*p = new(T)
	}
	return *p
}

// request is a posted Request on its way. Guarded by Endpoint.mu, but for what the
// comments say.
type request struct {
	Request       // Spans is not used
	mem     spans // source: the writer's from start to the last segment; sink: the reader's
	total   uint32
	number  uint32 // message number, from start on
	sent    uint32 // octets framed
	got     uint32 // octets of the answer to an RDMA Read
	started bool   // has a number
	begun   bool   // some of it was given to the connection,
	sentAll bool   // all of it
	done    bool
	flaws   Flaws
	cause   Cause // of the flaws
}

// consumes reports whether the message uses up a receive of the peer.
func (r *request) consumes() bool { return r.Op == OpSend || r.Op == OpWrite && r.HasImmediate }

// postedRecv is a posted Receive on its way. Guarded by Endpoint.mu; while a message
// fills it mem is the reader's.
type postedRecv struct {
	Receive // Spans is not used
	mem     spans
	inUse   bool // a message fills it
	flaws   Flaws
	op      Op
	// Immediate data of a message that failed.
	hasImmediate bool
	immediate    uint32
}

// inboundRead is an RDMA Read of the peer that is being answered. Pushed by the
// reader; mem is the writer's.
type inboundRead struct {
	mem     spans
	number  uint32
	length  uint32
	sent    uint32 // octets framed
	refused bool   // the answer says so and has no data
}

// PostSend queues a Send, RDMA Write or RDMA Read, and sends it if it is its turn. Errors:
// ErrQueueFull, ErrEnded. What is wrong with the request itself is told by its result:
// FlawFormat, FlawLength, FlawProtection; and at the reliable levels this ends the
// connection (VI Architecture 2.5.2).
func (e *Endpoint) PostSend(r *Request) error {
	err := e.QueueSend(r)
	e.TryTransmit()
	return err
}

// QueueSend is PostSend, but that TryTransmit has to follow. Nothing calls the Handler for it until
// then.
func (e *Endpoint) QueueSend(r *Request) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.room(e.sendOut, e.c.SendDepth); err != nil {
		return err
	}
	e.sendOut++
	q := slot(&e.sq)
	mem := q.mem
	*q = request{Request: *r, mem: mem}
	q.Spans = nil
	total := q.mem.set(r.Spans)
	q.total = uint32(min(total, 1<<32-1))
	if q.Flaws == 0 {
		q.Flaws = e.flawsOf(q, total)
	}
	e.wake()
	return nil
}

// flawsOf are the flaws that a request has by itself.
func (e *Endpoint) flawsOf(q *request, total uint64) Flaws {
	switch q.Op {
	case OpSend, OpWrite:
	case OpRead:
		if e.c.Level == segment.Unreliable || e.c.OutboundReads == 0 { // VI Architecture 2.5.1
			return FlawFormat
		}
	default:
		return FlawFormat
	}
	if total > uint64(e.c.MTU) { // VA-10.4-M2
		return FlawLength
	}
	return 0
}

// PostReceive queues a receive, at any time from New on. Errors:
// ErrQueueFull, ErrEnded.
func (e *Endpoint) PostReceive(r *Receive) error {
	err := e.QueueReceive(r)
	e.TryTransmit()
	return err
}

// QueueReceive is PostReceive, but that TryTransmit has to follow: the peer may have to be told.
func (e *Endpoint) QueueReceive(r *Receive) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.room(e.recvOut, e.c.ReceiveDepth); err != nil {
		return err
	}
	e.recvOut++
	q := slot(&e.rq)
	mem := q.mem
	*q = postedRecv{Receive: *r, mem: mem, op: OpReceive}
	q.Spans = nil
	q.mem.set(r.Spans)
	e.posted++
	if e.nopDue() {
		e.wake()
	}
	return nil
}

func (e *Endpoint) room(out, depth int) error {
	switch {
	case e.closed:
		return ErrEnded
	case out == depth:
		return ErrQueueFull
	}
	return nil
}

// startable reports whether request r, the next one, may begin now. It gives it its
// memory. The caller has mu.
func (e *Endpoint) startable(r *request) bool {
	if r.Fence && e.sq.head != e.next { // VA-6.3.1.2-M1
		return false
	}
	switch {
	case r.Flaws != 0:
		return e.failNext(r, r.Flaws)
	case r.Op == OpRead && e.reads.len() >= int(e.c.OutboundReads): // VT-2.2.2.2.6-M2
		return false
	case r.Op != OpRead && e.c.Level == segment.ReliableReception && e.reads.len() > 0:
		// Sends and Writes may pass Reads, but have no effect before them then (VI
		// Architecture 6.3.1.1). Stricter order is allowed, and so the peer never
		// has to stop reading, which both at a time could do for ever.
		return false
	case r.consumes() && e.c.FlowControl && e.peerPosted == e.spent: // VT-3.2-M10
		return false
	}
	need := wr.LocalRead
	if r.Op == OpRead {
		need = wr.LocalWrite
	}
	if !r.mem.resolve(e.c.STags, e.c.User, need) {
		return e.failNext(r, FlawProtection)
	}
	return true
}

// failNext fails request r, the next one, before anything of it is sent. At the reliable
// levels that is the end, so those before it complete first. The caller has mu.
func (e *Endpoint) failNext(r *request, f Flaws) bool {
	if e.reliable() && e.sq.head != e.next {
		return false
	}
	r.flaws, r.cause, r.done = f, CauseRequest, true
	e.next++
	e.advance()
	return false
}

// advance gives the results of requests that are done, from the oldest on. One with a
// flaw ends a reliable connection, and its result comes with the end. The caller has
// mu.
func (e *Endpoint) advance() {
	for e.sq.len() > 0 {
		r := *e.sq.front()
		if !r.done {
			break
		}
		if r.flaws != 0 && e.reliable() { // VI Architecture 2.5.2, 2.5.3
			e.end(r.cause, nil)
			return
		}
		e.sendResult(r, r.flaws)
	}
	e.wake() // a fence, a window, a stumbling request
}

// sendResult queues the result of the oldest request and removes it. The caller has mu.
func (e *Endpoint) sendResult(r *request, f Flaws) {
	it := e.items.push()
	*it = item{kind: itemSend, result: Result{Context: r.Context, Index: r.Index, Op: r.Op, Flaws: f}}
	if f == 0 {
		it.result.Length = r.total
	}
	r.Context = nil
	e.sq.pop()
}

// receiveResult queues the result of the oldest receive and removes it. The caller has
// mu.
func (e *Endpoint) receiveResult(r *postedRecv, res Result) *item {
	it := e.items.push()
	res.Context, res.Index = r.Context, r.Index
	*it = item{kind: itemReceive, result: res}
	r.Context = nil
	e.rq.pop()
	return it
}

package qp

import (
	"fmt"
	"math/bits"
	"sync/atomic"

	"github.com/softrnic/softrnic/internal/cq"
	"github.com/softrnic/softrnic/internal/lockorder"
	"github.com/softrnic/softrnic/internal/sglcheck"
	"github.com/softrnic/softrnic/internal/statuscount"
	"github.com/softrnic/softrnic/wr"
)

// workQueue is what the Send and the Receive Queue have in common: which slots are
// free. Positions count from 0 and never wrap; see slots for where an element is.
//
//	freed <= done <= tail <= freed+slots.depth()
//	  |        |        +-- posted: next to fill
//	  |        +-- completed: next to complete
//	  +-- reusable: next slot to give back
//
// tail is moved by posters under postMu, over a list at once: nobody sends, or takes, the
// first of it while the rest is still to come. done is moved by the side that completes,
// reaped by the poller of the CQ.
type workQueue[E any] struct {
	slots   slots[slot[E]]
	sges    int // room for the list of each element
	keep    func(*E, []wr.SGE)
	cq      *cq.Queue
	qp      wr.QPID
	context any // for completions

	tail   atomic.Uint64
	done   atomic.Uint64
	reaped atomic.Uint64 // behind the last completion polled

	postMu lockorder.Mutex[lockorder.Post]
	freed  uint64     // guarded by postMu, as all below
	most   uint64     // posted and not completed there have been
	full   *wr.Reason // of refuseFull, or nil
	filled uint64     // behind the last element filled: tail follows at publish. Here it costs least
}

// slot has an element, and whether a completion of it waits to be reaped, which is
// said before done passes.
type slot[E any] struct {
	element E
	queued  bool
}

// init makes room for depth elements at least, each with a list of up to sges; keep
// gives one the storage for a list of one. A longer list gets its storage when an element
// has its first such list, and the element keeps it: most lists have one.
func (q *workQueue[E]) init(depth, sges int, keep func(*E, []wr.SGE)) {
	q.sges, q.keep = sges, keep
	q.slots.init(depth)
}

// take is the slot to fill, with postMu held.
func (q *workQueue[E]) take() *slot[E] {
	s := q.slots.at(q.filled)
	if s == nil {
		q.slots.fill(q.elements)
		s = q.slots.at(q.filled)
	}
	s.queued = false
	return s
}

func (q *workQueue[E]) elements(n int) []slot[E] {
	list := make([]slot[E], n)
	each := min(q.sges, 1)
	sges := make([]wr.SGE, n*each)
	for i := range list {
		q.keep(&list[i].element, sges[:0:each])
		sges = sges[each:]
	}
	return list
}

func (q *workQueue[E]) at(pos uint64) *E { return &q.slots.at(pos).element }

// Release implements cq.Releaser: the slots behind an element whose completion is
// reaped are free up to it, those of unsignaled ones too (verbs draft 8.2.1).
func (q *workQueue[E]) Release(pos uint64) { q.reaped.Store(pos + 1) }

// reclaim takes back the slots that are free, and reports how many are in use, with
// postMu held. The slot of an element without a completion, for it was unsignaled or the
// CQ was full, is free when it is done.
func (q *workQueue[E]) reclaim() uint64 {
	// A completion may be reaped before done has moved over it.
	done, reaped := q.done.Load(), q.reaped.Load()
	for q.freed < reaped || q.freed < done && !q.slots.at(q.freed).queued {
		q.freed++
	}
	return q.tail.Load() - q.freed
}

// inUse is how many slots are in use. Of a queue pair that was destroyed, over, they are those whose completions wait
// to be polled: what was posted in Idle has gone with it (verbs draft 6.1.4).
func (q *workQueue[E]) inUse(over bool) int {
	q.postMu.Lock()
	defer q.postMu.Unlock()
	n := q.reclaim()
	if over {
		n -= q.tail.Load() - q.done.Load()
	}
	return int(n)
}

// room reports whether a slot is free at filled, with postMu held.
func (q *workQueue[E]) room() bool {
	depth := uint64(q.slots.depth())
	if q.filled-q.freed < depth {
		return true
	}
	q.reclaim()
	return q.filled-q.freed < depth
}

// refuseFull is why op does not go on a queue that is full, with postMu held. That is no news to a program that fills
// it, so there is one for all of an operation.
func (q *workQueue[E]) refuseFull(op wr.Op) error {
	if w := q.full; w == nil || w.Operation != op.Words() {
		q.full = &wr.Reason{
			Err: wr.ErrQueueFull, Operation: op.Words(), QP: q.qp, Rule: "verbs draft 8.2.1", Remedy: "poll the CQ, which makes room",
			What: fmt.Sprintf("%d are outstanding, and the queue takes no more; one counts until its completion is polled", q.slots.depth()),
		}
	}
	return q.full
}

// publish posts what is filled, and notes how full that makes the queue, with postMu held.
func (q *workQueue[E]) publish() {
	q.most = max(q.most, q.filled-q.done.Load()) // first: from then on they complete
	q.tail.Store(q.filled)
}

// resize makes the queue one of depth elements at least, with postMu held. reclaim must
// have reported depth or less (RV-6.1.3-M10).
func (q *workQueue[E]) resize(depth int) {
	q.slots.resize(depth, q.freed)
	q.full = nil
}

// slots is the ring of a work queue's elements: position p lives in slot
// p&mask. Modify QP replaces the ring, never an element that is in use, so that
// the other sides of the queue go on without a lock. Elements are made when the first is
// needed: many a queue is never posted to.
//
// Posters read it, and one fills or replaces it, under the queue's postMu. The others ask
// for positions below a tail that they have loaded before: a ring that is
// published, or an element that is made, before tail moves is there for all of these.
type slots[E any] struct {
	ring atomic.Pointer[[]*E] // its length is a power of two
}

// init makes a ring for n elements at least.
func (s *slots[E]) init(n int) {
	ring := make([]*E, ringSize(n))
	s.ring.Store(&ring)
}

// fill makes the elements that are missing; create makes n of them.
func (s *slots[E]) fill(create func(n int) []E) {
	ring := *s.ring.Load()
	missing := 0
	for _, e := range ring {
		if e == nil {
			missing++
		}
	}
	fresh := create(missing)
	for i, e := range ring {
		if e == nil {
			ring[i], fresh = &fresh[0], fresh[1:]
		}
	}
}

// at is the element of position pos, nil if it is not in use and not made.
func (s *slots[E]) at(pos uint64) *E {
	ring := *s.ring.Load()
	return ring[pos&uint64(len(ring)-1)]
}

// depth is how many elements the ring has room for.
func (s *slots[E]) depth() int { return len(*s.ring.Load()) }

// resize makes the ring one for n elements at least. Positions from from on are in use, n at
// most, and keep their elements. The caller has postMu.
func (s *slots[E]) resize(n int, from uint64) {
	old, size := *s.ring.Load(), uint64(ringSize(n))
	if size == uint64(len(old)) {
		return
	}
	ring := make([]*E, size)
	for pos := from; pos < from+min(size, uint64(len(old))); pos++ {
		ring[pos&(size-1)] = s.at(pos)
	}
	s.ring.Store(&ring)
}

// ringSize rounds a depth up to a power of two, so that a position becomes a
// slot with a mask. The queue is then deeper than asked for, which Create QP
// may be (verbs draft 6.1.1).
func ringSize(depth int) int {
	return 1 << bits.Len(uint(max(depth, 1)-1))
}

// sqe is an element of the Send Queue.
type sqe struct {
	id         uint64
	length     uint64 // of the message, in octets
	end        uint64 // stream position behind its last octet, once framed
	remote     wr.Remote
	invalidate wr.STag
	op         wr.Op
	flags      wr.Flags
	immediate  uint64
	readDone   bool   // an RDMA Read whose data is placed, an Atomic that is answered; guarded by doneMu
	placing    bool   // it waits to be placed before it completes; does not change while it is posted
	msn        uint32 // of its message on queue 0, if it has one, once framed
	plain      bool   // a Send, RDMA Write or Immediate Data from one piece of memory at most, without ReadFence
	// sgl is the data source of a Send or RDMA Write, and the sinks of a Read, of which there is one at least; else empty. Its array
	// is the element's own, for as many as the queue allows.
	sgl []wr.SGE
	// atomic are the modifiers of an Atomic, made as memory; original is its answer.
	atomic   *wr.AtomicRequest
	original uint64
	// memory are the modifiers of a Bind or Fast-Register. Made when the first
	// one comes to this element, so that a queue without them is small.
	memory *memoryArgs
}

// sendQueue is the posted elements. Between done and tail are those that are framed:
//
//	done <= framed <= tail
//	          +-- on the wire, in a batch, or executed: next to take up
//
// framed is moved by the transmit side, done by either side under doneMu.
type sendQueue struct {
	workQueue[sqe]
	// sendSGE, writeSGE and readSGE bound the list of a Send, an RDMA Write and a Read, which has none if that is 0.
	sendSGE, writeSGE, readSGE int
	extensions                 bool // RFC 7306 is spoken; guarded by postMu
	sendImmediate              bool // Sends may bring Immediate Data with their payload
	placeSends                 bool // guarded by postMu; see PlaceSends
	framed                     atomic.Uint64
	octets                     uint64 // of all messages posted, and asked for by Reads; guarded by postMu
	doneMu                     lockorder.Mutex[lockorder.Done]
	writeAcks                  bool                 // Writes before placed complete, others wait; both guarded by doneMu
	placed                     uint64               // a position
	passed                     uint32               // MSN on queue 0 of the last element done; guarded by doneMu
	statuses                   statuscount.Statuses // guarded by doneMu
	spans                      *spans               // the queue pair's
}

func (s *sendQueue) init(c *Config) {
	s.sendSGE, s.writeSGE, s.readSGE, s.cq, s.qp = c.SendSGE, c.WriteSGE, c.ReadSGE, c.SendCQ, c.ID
	s.context, s.extensions, s.sendImmediate = c.Context, c.Extensions, c.SendImmediate
	s.workQueue.init(c.SendDepth, max(c.SendSGE, c.WriteSGE), func(e *sqe, list []wr.SGE) { e.sgl = list })
}

// empty reports whether every posted element has completed.
func (s *sendQueue) empty() bool { return s.done.Load() == s.tail.Load() }

// push fills a slot for one checked request, with postMu held; publish posts it.
func (s *sendQueue) push(r *wr.Request) error {
	if !s.room() {
		return s.refuseFull(r.Op)
	}
	e := &s.take().element
	e.id, e.op, e.flags = r.ID, r.Op, r.Flags
	e.invalidate, e.remote, e.immediate = r.Invalidate, r.Remote, r.Immediate
	e.readDone, e.plain, e.sgl, e.length = false, false, e.sgl[:0], 0
	switch {
	case r.Op.IsRead():
		s.addSinks(e, r)
	case r.Op == wr.OpInvalidate:
	case r.Op.IsMemory():
		if e.memory == nil {
			e.memory = new(memoryArgs)
		}
		e.memory.keep(r)
	case r.Op.IsAtomic():
		if e.atomic == nil {
			e.atomic = new(wr.AtomicRequest)
		}
		*e.atomic, e.length = *r.Atomic, atomicSize
	default:
		if r.Op.IsSend() || r.Op.IsWrite() {
			e.sgl = append(e.sgl, r.SGL...)
		}
		e.length += total(e.sgl)
		e.plain = len(e.sgl) <= 1 && r.Flags&wr.ReadFence == 0 && !e.intoZero()
	}
	s.place(e)
	if s.spans != nil {
		s.spans.begin(s.filled, e.op)
	}
	s.filled++
	s.octets += e.length
	return nil
}

// addSinks makes the list of a Read: what takes no octet is left out.
func (s *sendQueue) addSinks(e *sqe, r *wr.Request) {
	if !s.listed(r) {
		e.sgl, e.length = append(e.sgl, r.Local), uint64(r.Local.Length)
		return
	}
	for _, g := range r.SGL {
		if g.Length > 0 {
			e.sgl = append(e.sgl, g)
			e.length += uint64(g.Length)
		}
	}
	if len(e.sgl) == 0 { // nothing is asked for, and no STag looked at (RFC 5040 5.2.1)
		e.sgl = append(e.sgl, wr.SGE{})
	}
}

// listed reports whether the sinks of a Read are in its list.
func (s *sendQueue) listed(r *wr.Request) bool {
	return s.readSGE > 0 && r.Op == wr.OpRead && len(r.SGL) > 0
}

// intoZero reports whether an element names the STag of zero as memory of the peer's: it
// means physical memory to its owner, and to no peer. Where no octet goes it is not
// looked at (draft 8.1.3.2.1).
func (e *sqe) intoZero() bool {
	return e.remote.STag == 0 && e.length > 0 && (e.op.Reads() || e.op.IsWrite())
}

// complete moves done over what is finished: Sends and Writes whose last octet
// the LLP has taken (written is the stream position it has), or which the peer is known to
// have placed, where that is asked for; Reads that are placed, memory operations behind what was framed before them. It reports false
// if the CQ had no room.
//
// Completions come in the order of posting (verbs draft 8.2.2 rule 2).
func (s *sendQueue) complete(written uint64) bool {
	s.doneMu.Lock()
	defer s.doneMu.Unlock()
	ok := true
	pos, framed := s.done.Load(), s.framed.Load()
	for ; pos < framed; pos++ {
		e := s.at(pos)
		if !s.finished(pos, e, written) {
			break
		}
		if e.takesReceive() {
			s.passed = e.msn
		}
		if s.spans != nil {
			s.spans.end(pos)
		}
		if e.flags&wr.Unsignaled == 0 {
			ok = s.queue(s.entry(pos, wr.StatusSuccess)) && ok
		}
	}
	s.done.Store(pos)
	return ok
}

// finished reports whether e, at pos, is; doneMu is held.
func (s *sendQueue) finished(pos uint64, e *sqe, written uint64) bool {
	switch {
	case e.op.Reads():
		return e.readDone
	case s.writeAcks && e.placing: // a peer may say so of what is framed and not written, whose memory is still read
		return pos < s.placed && e.end <= written
	default:
		return e.end <= written
	}
}

// finishRead marks the Read at pos as placed, or the Atomic as answered with what there was.
// The caller completes.
func (s *sendQueue) finishRead(pos, original uint64) {
	s.doneMu.Lock()
	e := s.at(pos)
	e.readDone, e.original = true, original
	s.doneMu.Unlock()
}

// finishPlaced marks all Writes before pos as placed. The caller completes.
func (s *sendQueue) finishPlaced(pos uint64) {
	s.doneMu.Lock()
	s.placed = pos
	s.doneMu.Unlock()
}

// noElement is the position of none.
const noElement = ^uint64(0)

// queue puts a completion on the CQ, and reports whether there was room. A
// completion that is dropped will not be reaped, so its slot must not wait for
// that. Once it is queued it may be reaped, and the slot be another request's.
func (s *sendQueue) queue(e cq.Entry) bool {
	slot := s.slots.at(e.Pos)
	slot.queued = true
	s.statuses.Add(e.Status)
	ok := s.cq.Push(e)
	if !ok {
		slot.queued = false
	}
	return ok
}

func (s *sendQueue) entry(pos uint64, st wr.Status) cq.Entry {
	e := s.at(pos)
	c := wr.Completion{ID: e.id, QP: s.qp, Op: e.op, Status: st, Context: s.context}
	if st == wr.StatusSuccess {
		switch {
		case e.op.IsAtomic():
			c.Value = e.original
		case e.op.IsRead():
			c.Bytes = uint32(e.length)
		}
	}
	return cq.Entry{Completion: c, Owner: s, Pos: pos}
}

// rqe is an element of the Receive Queue.
type rqe struct {
	id     uint64
	length uint64   // octets of all its buffers together
	sgl    []wr.SGE // its storage belongs to the element
}

// recvQueue is the posted receives. done is moved by the receive side, which has next
// between it and tail. With an S-RQ nothing is ever posted here; the CQ is used all the
// same.
type recvQueue struct {
	workQueue[rqe]
	next uint64 // the element that the next, or current, Send fills; receive side
	// statuses are of the receives of an S-RQ too. The receive side's; without a session,
	// guarded by the queue pair's mu.
	statuses statuscount.Statuses
}

func (r *recvQueue) init(c *Config, depth, maxSGE int) {
	r.cq, r.qp, r.context = c.RecvCQ, c.ID, c.Context
	r.workQueue.init(depth, maxSGE, func(e *rqe, list []wr.SGE) { e.sgl = list })
}

// push fills a slot for one receive, with postMu held; publish posts it.
func (r *recvQueue) push(w *wr.Recv) error {
	if err := sglcheck.CheckList(w.SGL, r.sges); err != nil {
		return err
	}
	if !r.room() {
		return r.refuseFull(wr.OpRecv)
	}
	e := &r.take().element
	e.id, e.length = w.ID, total(w.SGL)
	e.sgl = append(e.sgl[:0], w.SGL...)
	r.filled++
	return nil
}

// posted is how many receives are not taken. Receive side.
func (r *recvQueue) posted() int { return int(r.tail.Load() - r.next) }

// current is the element for the next Send, nil if none is posted. Receive side.
func (r *recvQueue) current() *rqe {
	if r.next == r.tail.Load() {
		return nil
	}
	return r.at(r.next)
}

// complete finishes the current element. The receive side hands its completion to
// the CQ, and then says so (handed).
func (r *recvQueue) complete(c wr.Completion, solicited bool) cq.Entry {
	slot := r.slots.at(r.next)
	slot.queued = true
	r.statuses.Add(c.Status)
	c.ID, c.QP, c.Op = slot.element.id, r.qp, wr.OpRecv
	c.Context = r.context
	r.next++
	return cq.Entry{Completion: c, Owner: r, Pos: r.next - 1, Solicited: solicited}
}

// refused says that the CQ had no room for the completion of pos.
func (r *recvQueue) refused(pos uint64) { r.slots.at(pos).queued = false }

// handed says that the CQ has got, or refused, all completions.
func (r *recvQueue) handed() { r.done.Store(r.next) }

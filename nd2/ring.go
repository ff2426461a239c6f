package nd2

import (
	"math/bits"
	"sync/atomic"

	"github.com/softrnic/softrnic/verbs"
)

// slot keeps of a request what its result needs. The poster writes it before the
// request is posted; from then on, until busy is false, it is the completion
// queue's, which alone translates the completions (with its mu held).
type slot struct {
	context any
	typ     RequestType
	silent  bool
	status  Status // of the parts that have completed
	busy    atomic.Bool
}

// ring is the requests of one queue, Initiator or Receive, in the order of
// posting. Positions count from 0 and never wrap.
//
//	freed <= tail <= freed+depth
//
// verbs has its own ring of elements below it, of which one request may take
// several. A slot is free once its result was retrieved; that of a silent request
// once a later one of the queue has succeeded, so that it did too. Of many silent
// requests in a row some complete in verbs all the same, see QueuePair.post: else
// nobody would know. So depth counts requests as the document does (ND-Send-R4), and
// verbs always has room.
type ring struct {
	qp    *QueuePair
	id    uint64 // of the owner, in place for a work request's ID
	slots []slot
	mask  uint64
	depth uint64

	tail, freed uint64        // the poster's
	done        atomic.Uint64 // behind the last success; written with the CQ's mu held
}

// An ID of a work request is the owner of its slot, the slot, and whether it is
// the last one of its request.
const (
	ownerShift = 44
	lastPart   = 1 << 43
	posMask    = lastPart - 1
)

func newRing(qp *QueuePair, depth int) *ring {
	size := 1 << bits.Len(uint(max(depth, 1)-1))
	return &ring{qp: qp, slots: make([]slot, size), mask: uint64(size - 1), depth: uint64(depth)}
}

// unknown reports whether a silent request, which may be over, is in the way.
func (r *ring) unknown() bool { return r.freed < r.tail && r.slots[r.freed&r.mask].silent }

// reserve is the slot for the next request; nil if there is none.
func (r *ring) reserve() *slot {
	if r.tail-r.freed >= r.depth {
		r.reclaim()
		if r.tail-r.freed >= r.depth {
			return nil
		}
	}
	return &r.slots[r.tail&r.mask]
}

func (r *ring) reclaim() {
	done := r.done.Load()
	for ; r.freed < r.tail; r.freed++ {
		s := &r.slots[r.freed&r.mask]
		if s.busy.Load() && (!s.silent || r.freed >= done) {
			return
		}
	}
}

// fill makes s a request's.
func (s *slot) fill(typ RequestType, context any, silent bool) {
	s.context, s.typ, s.silent, s.status = context, typ, silent, Success
	s.busy.Store(true)
}

// drop gives s back before it was posted.
func (s *slot) drop() {
	s.context = nil
	s.busy.Store(false)
}

// partID is the ID of a part of the request at tail.
func (r *ring) partID(last bool) uint64 {
	id := r.id | r.tail&posMask
	if last {
		id |= lastPart
	}
	return id
}

// place is what a request holds until its result is retrieved: a slot, or one of a
// shared receive queue's.
type place struct {
	slot *slot
	srq  *SharedReceiveQueue
	at   uint32
}

func (p place) release() {
	switch {
	case p.slot != nil:
		p.slot.busy.Store(false)
	case p.srq != nil:
		p.srq.release(p.at)
	}
}

// result translates a completion, and reports whether it makes a result: that of the
// last part of a request does. Parts before it complete only if the request fails;
// the part at fault says why, the others that they were flushed. The caller releases
// the place.
func (r *ring) result(c *verbs.Completion, out *Result) (p place, ok bool) {
	r.qp.remains.translated()
	pos := c.ID & posMask
	s := &r.slots[pos&r.mask]
	if c.Status != verbs.StatusSuccess && s.status == Success {
		s.status = completionStatus(c.Status)
	}
	if c.ID&lastPart == 0 {
		return p, false
	}
	*out = Result{Status: s.status, QueuePairContext: r.qp.context, RequestContext: s.context, RequestType: s.typ}
	if s.typ == RequestTypeReceive {
		out.Status, out.BytesTransferred = receiveStatus(c.Status), c.Bytes
	}
	s.context = nil
	if out.Status == Success && pos >= r.done.Load() { // not if two take completions at a time
		r.done.Store(pos + 1)
	}
	if s.silent && out.Status == Success { // ND-Send-F1
		s.busy.Store(false)
		return p, false
	}
	return place{slot: s}, true
}

package qp

import (
	"sync"
	"sync/atomic"

	"github.com/softrnic/softrnic/cq"
	"github.com/softrnic/softrnic/wr"
)

// sqe is an element of the Send Queue.
type sqe struct {
	id         uint64
	length     uint64 // of the message, in octets
	end        uint64 // stream position behind its last octet, once framed
	remote     wr.Remote
	local      wr.SGE
	invalidate wr.STag
	nsge       uint8
	op         wr.Op
	flags      wr.Flags
	readDone   bool // an RDMA Read whose data is placed; guarded by doneMu
	queued     bool // a completion was queued for it; guarded by doneMu until done
}

// sendQueue is a ring of posted elements. Positions count from 0 and never
// wrap; position p lives in slot p&mask.
//
//	freed <= done <= framed <= tail <= freed+len(slots)
//	  |        |        |        +-- posted: next to fill
//	  |        |        +-- on the wire or in a batch: next to frame
//	  |        +-- completed: next to complete
//	  +-- reusable: next slot to give back
//
// tail is moved by posters under postMu, framed by the transmit side, done by
// either side under doneMu, reaped by who polls the CQ.
type sendQueue struct {
	slots  []sqe
	sges   []wr.SGE // maxSGE for each slot
	mask   uint64
	maxSGE int
	cq     *cq.Queue
	qp     wr.QPID

	tail   atomic.Uint64
	framed atomic.Uint64
	done   atomic.Uint64
	reaped atomic.Uint64 // behind the last completion polled

	postMu sync.Mutex
	freed  uint64 // guarded by postMu

	doneMu sync.Mutex
}

func (s *sendQueue) init(id wr.QPID, depth, maxSGE int, q *cq.Queue) {
	n := ringSize(depth)
	s.slots = make([]sqe, n)
	s.sges = make([]wr.SGE, n*maxSGE)
	s.mask, s.maxSGE, s.cq, s.qp = uint64(n-1), maxSGE, q, id
}

// ringSize rounds a depth up to a power of two, so that a position becomes a
// slot with a mask. The queue is then deeper than asked for, which Create QP
// may be (verbs draft 6.1.1).
func ringSize(depth int) int {
	n := 1
	for n < depth {
		n <<= 1
	}
	return n
}

func (s *sendQueue) at(pos uint64) *sqe { return &s.slots[pos&s.mask] }

// list is the scatter/gather list of the element at pos.
func (s *sendQueue) list(pos uint64) []wr.SGE {
	i := int(pos&s.mask) * s.maxSGE
	return s.sges[i : i+int(s.at(pos).nsge)]
}

// empty reports whether every posted element has completed.
func (s *sendQueue) empty() bool { return s.done.Load() == s.tail.Load() }

// Release implements cq.Releaser.
func (s *sendQueue) Release(pos uint64) { s.reaped.Store(pos + 1) }

// room reports whether a slot is free, with postMu held. A signaled element's
// slot becomes free when its completion is reaped, an unsignaled one's when it
// has completed or a later completion is reaped (verbs draft 8.2.1).
func (s *sendQueue) room(tail uint64) bool {
	if tail-s.freed <= s.mask {
		return true
	}
	// A completion may be reaped before complete has moved done over it.
	done, reaped := s.done.Load(), s.reaped.Load()
	for s.freed < reaped || s.freed < done && !s.at(s.freed).queued {
		s.freed++
	}
	return tail-s.freed <= s.mask
}

// push posts one checked request, with postMu held.
func (s *sendQueue) push(r *wr.Send) error {
	tail := s.tail.Load()
	if !s.room(tail) {
		return wr.ErrQueueFull
	}
	e := s.at(tail)
	e.id, e.op, e.flags = r.ID, r.Op, r.Flags
	e.invalidate, e.local, e.remote = r.Invalidate, r.Local, r.Remote
	e.readDone, e.queued, e.nsge, e.length = false, false, 0, 0
	if r.Op.IsRead() {
		e.length = uint64(r.Local.Length)
	} else {
		e.nsge = uint8(len(r.SGL))
		copy(s.sges[int(tail&s.mask)*s.maxSGE:], r.SGL)
		for i := range r.SGL {
			e.length += uint64(r.SGL[i].Length)
		}
	}
	s.tail.Store(tail + 1)
	return nil
}

// check finds the Immediate Errors of a request (verbs draft 9.3.1.1).
func (s *sendQueue) check(r *wr.Send) error {
	switch r.Op {
	case wr.OpSend, wr.OpSendSE, wr.OpSendInvalidate, wr.OpSendSEInvalidate, wr.OpWrite, wr.OpRead:
	default:
		return wr.ErrInvalidOp
	}
	if !r.Op.IsRead() && len(r.SGL) > s.maxSGE {
		return wr.ErrInvalidSGLLength
	}
	return nil
}

// complete moves done over what is finished: Sends and Writes whose last octet
// the LLP has taken (written is the stream position it has), Reads that are
// placed. It reports false if the CQ had no room.
//
// Completions come in the order of posting (verbs draft 8.2.2 rule 2).
func (s *sendQueue) complete(written uint64) bool {
	s.doneMu.Lock()
	defer s.doneMu.Unlock()
	ok := true
	pos, framed := s.done.Load(), s.framed.Load()
	for ; pos < framed; pos++ {
		e := s.at(pos)
		if e.op.IsRead() {
			if !e.readDone {
				break
			}
		} else if e.end > written {
			break
		}
		if e.flags&wr.Unsignaled == 0 {
			ok = s.queue(pos, wr.StatusSuccess) && ok
		}
		s.done.Store(pos + 1)
	}
	return ok
}

// finishRead marks the Read at pos as placed. The caller completes.
func (s *sendQueue) finishRead(pos uint64) {
	s.doneMu.Lock()
	s.at(pos).readDone = true
	s.doneMu.Unlock()
}

// flush completes everything left: the element at fault, if any, with status,
// the others as Flushed (verbs draft 6.2.4). No new element can come in, and
// neither side runs.
func (s *sendQueue) flush(faulty uint64, status wr.Status) {
	s.doneMu.Lock()
	defer s.doneMu.Unlock()
	tail := s.tail.Load()
	for pos := s.done.Load(); pos < tail; pos++ {
		st := wr.StatusFlushed
		if pos == faulty {
			st = status
		}
		s.queue(pos, st) // no room: the loss is the consumer's, 8.1.3.1
		s.done.Store(pos + 1)
	}
	s.framed.Store(tail)
}

// queue puts a completion on the CQ, and reports whether there was room. A
// completion that is dropped will not be reaped, so its slot must not wait for
// that. Once it is queued it may be reaped, and the slot be somebody else's.
func (s *sendQueue) queue(pos uint64, st wr.Status) bool {
	e := s.at(pos)
	e.queued = true
	ok := s.cq.Push(s.entry(pos, st))
	if !ok {
		e.queued = false
	}
	return ok
}

func (s *sendQueue) entry(pos uint64, st wr.Status) cq.Entry {
	e := s.at(pos)
	return cq.Entry{
		Completion: wr.Completion{ID: e.id, QP: s.qp, Op: e.op, Status: st},
		Owner:      s, Pos: pos,
	}
}

package qp

import (
	"sync"
	"sync/atomic"

	"github.com/softrnic/softrnic/cq"
	"github.com/softrnic/softrnic/internal/misfit"
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
	op         wr.Op
	flags      wr.Flags
	readDone   bool // an RDMA Read whose data is placed; guarded by doneMu
	queued     bool // a completion was queued for it; guarded by doneMu until done
	plain      bool // a Send or RDMA Write from one piece of memory, with no fence
	// sgl is the data source of a Send or RDMA Write, else empty. Its array is
	// the element's own, for as many as the queue allows.
	sgl []wr.SGE
	// memory are the modifiers of a Bind or Fast-Register. Made when the first
	// one comes to this element, so that a queue without them is small.
	memory *memoryArgs
}

// sendQueue is a ring of posted elements. Positions count from 0 and never
// wrap; see slots for where an element is.
//
//	freed <= done <= framed <= tail <= freed+slots.depth()
//	  |        |        |        +-- posted: next to fill
//	  |        |        +-- on the wire, in a batch, or executed: next to take up
//	  |        +-- completed: next to complete
//	  +-- reusable: next slot to give back
//
// tail is moved by posters under postMu, framed by the transmit side, done by
// either side under doneMu, reaped by who polls the CQ.
type sendQueue struct {
	slots slots[sqe]
	// sendSGE and writeSGE bound the list of a Send and of an RDMA Write.
	sendSGE, writeSGE int
	cq                *cq.Queue
	qp                wr.QPID
	context           any // for completions

	tail   atomic.Uint64
	framed atomic.Uint64
	done   atomic.Uint64
	reaped atomic.Uint64 // behind the last completion polled

	postMu sync.Mutex
	freed  uint64 // guarded by postMu
	octets uint64 // of all messages posted, and asked for by Reads; guarded by postMu

	doneMu sync.Mutex
}

func (s *sendQueue) init(c *Config) {
	s.sendSGE, s.writeSGE, s.cq, s.qp = c.SendSGE, c.WriteSGE, c.SendCQ, c.ID
	s.context = c.Context
	s.slots.init(c.SendDepth, s.elements)
}

// elements makes n elements with room for their lists.
func (s *sendQueue) elements(n int) []*sqe {
	room := max(s.sendSGE, s.writeSGE)
	elems, sges := make([]sqe, n), make([]wr.SGE, n*room)
	list := make([]*sqe, n)
	for i := range list {
		list[i] = &elems[i]
		list[i].sgl, sges = sges[:0:room], sges[room:]
	}
	return list
}

func (s *sendQueue) at(pos uint64) *sqe { return s.slots.at(pos) }

// empty reports whether every posted element has completed.
func (s *sendQueue) empty() bool { return s.done.Load() == s.tail.Load() }

// Release implements cq.Releaser.
func (s *sendQueue) Release(pos uint64) { s.reaped.Store(pos + 1) }

// reclaim takes back the slots that are free, and reports how many are in use,
// with postMu held. A signaled element's slot becomes free when its completion is
// reaped, an unsignaled one's when it has completed or a later completion is
// reaped (verbs draft 8.2.1).
func (s *sendQueue) reclaim() uint64 {
	// A completion may be reaped before complete has moved done over it.
	done, reaped := s.done.Load(), s.reaped.Load()
	for s.freed < reaped || s.freed < done && !s.at(s.freed).queued {
		s.freed++
	}
	return s.tail.Load() - s.freed
}

// room reports whether a slot is free, with postMu held.
func (s *sendQueue) room(tail uint64) bool {
	depth := uint64(s.slots.depth())
	return tail-s.freed < depth || s.reclaim() < depth
}

// resize makes the queue one of depth requests at least, with postMu held.
// reclaim must have reported depth or less (RV-6.1.3-M10).
func (s *sendQueue) resize(depth int) {
	s.slots.resize(depth, s.freed, s.tail.Load(), s.elements)
}

// push posts one checked request, with postMu held.
func (s *sendQueue) push(r *wr.Request) error {
	tail := s.tail.Load()
	if !s.room(tail) {
		return wr.ErrQueueFull
	}
	e := s.at(tail)
	e.id, e.op, e.flags = r.ID, r.Op, r.Flags
	e.invalidate, e.local, e.remote = r.Invalidate, r.Local, r.Remote
	e.readDone, e.queued, e.plain, e.sgl, e.length = false, false, false, e.sgl[:0], 0
	switch {
	case r.Op.IsRead():
		e.length = uint64(r.Local.Length)
	case r.Op.IsMemory():
		e.keep(r)
	default:
		e.sgl = append(e.sgl, r.SGL...)
		for i := range r.SGL {
			e.length += uint64(r.SGL[i].Length)
		}
		e.plain = len(r.SGL) <= 1 && r.Flags&wr.ReadFence == 0 && (r.Op != wr.OpWrite || r.Remote.STag != 0)
	}
	s.tail.Store(tail + 1)
	s.octets += e.length
	return nil
}

// allFlags are the flags there are.
const allFlags = wr.Unsignaled | wr.ReadFence | wr.LocalFence

// check finds the Immediate Errors of a request (verbs draft 9.3.1.1). Modifiers
// that do not go with its operation type are not looked at.
func (s *sendQueue) check(r *wr.Request) error {
	if r.Flags&^allFlags != 0 {
		return wr.ErrInvalidModifier
	}
	switch {
	case r.Op.IsSend():
		return checkList(r.SGL, s.sendSGE)
	case r.Op == wr.OpWrite:
		return checkList(r.SGL, s.writeSGE)
	case r.Op.IsRead():
		if misfit.Is(&r.Local) {
			return misfit.Err
		}
	case r.Op.IsMemory():
		return checkMemory(r)
	default:
		return wr.ErrInvalidOp
	}
	return nil
}

// checkList checks a list that has most elements at most.
func checkList(l []wr.SGE, most int) error {
	switch {
	case len(l) > most:
		return wr.ErrInvalidSGLLength
	case misfit.In(l):
		return misfit.Err
	}
	return nil
}

// complete moves done over what is finished: Sends and Writes whose last octet
// the LLP has taken (written is the stream position it has), Reads that are
// placed, memory operations behind what was framed before them. It reports false
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
	}
	s.done.Store(pos)
	return ok
}

// finishRead marks the Read at pos as placed. The caller completes.
func (s *sendQueue) finishRead(pos uint64) {
	s.doneMu.Lock()
	s.at(pos).readDone = true
	s.doneMu.Unlock()
}

// noElement is the position of none.
const noElement = ^uint64(0)

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
		Completion: wr.Completion{ID: e.id, QP: s.qp, Op: e.op, Status: st, Context: s.context},
		Owner:      s, Pos: pos,
	}
}

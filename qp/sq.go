package qp

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/softrnic/softrnic/cq"
	"github.com/softrnic/softrnic/internal/misfit"
	"github.com/softrnic/softrnic/internal/tally"
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
	immediate  uint64
	readDone   bool // an RDMA Read whose data is placed, an Atomic that is answered; guarded by doneMu
	plain      bool // a Send, RDMA Write or Immediate Data from one piece of memory at most, with no fence
	// sgl is the data source of a Send or RDMA Write, else empty. Its array is
	// the element's own, for as many as the queue allows.
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
	// sendSGE and writeSGE bound the list of a Send and of an RDMA Write.
	sendSGE, writeSGE int
	extensions        bool // RFC 7306 is spoken; guarded by postMu
	framed            atomic.Uint64
	octets            uint64 // of all messages posted, and asked for by Reads; guarded by postMu
	doneMu            sync.Mutex
	placing           bool           // Writes before placed complete, others wait; both guarded by doneMu
	placed            uint64         // a position
	statuses          tally.Statuses // guarded by doneMu
	spans             *spans         // the queue pair's
}

func (s *sendQueue) init(c *Config) {
	s.sendSGE, s.writeSGE, s.cq, s.qp = c.SendSGE, c.WriteSGE, c.SendCQ, c.ID
	s.context, s.extensions = c.Context, c.Extensions
	s.workQueue.init(c.SendDepth, max(c.SendSGE, c.WriteSGE), func(e *sqe, list []wr.SGE) { e.sgl = list })
}

// empty reports whether every posted element has completed.
func (s *sendQueue) empty() bool { return s.done.Load() == s.tail.Load() }

// push posts one checked request, with postMu held.
func (s *sendQueue) push(r *wr.Request) error {
	tail := s.tail.Load()
	if !s.room(tail) {
		return s.refuseFull(r.Op)
	}
	e := &s.take(tail).element
	e.id, e.op, e.flags = r.ID, r.Op, r.Flags
	e.invalidate, e.local, e.remote, e.immediate = r.Invalidate, r.Local, r.Remote, r.Immediate
	e.readDone, e.plain, e.sgl, e.length = false, false, e.sgl[:0], 0
	switch {
	case r.Op.IsRead():
		e.length = uint64(r.Local.Length)
	case r.Op.IsMemory():
		e.keep(r)
	case r.Op.IsAtomic():
		e.keepAtomic(r)
	default:
		if r.Op.IsSend() || r.Op.IsWrite() {
			e.sgl = append(e.sgl, r.SGL...)
		}
		for i := range e.sgl {
			e.length += uint64(e.sgl[i].Length)
		}
		e.plain = len(e.sgl) <= 1 && r.Flags&wr.ReadFence == 0 && !e.intoZero()
	}
	if s.spans != nil {
		s.spans.begin(tail, e.op)
	}
	s.tail.Store(tail + 1)
	s.octets += e.length
	return nil
}

// intoZero reports whether an element names the STag of zero as memory of the peer's: it
// means physical memory to who owns that, and nobody else. Where no octet goes it is not
// looked at (draft 8.1.3.2.1).
func (e *sqe) intoZero() bool {
	return e.remote.STag == 0 && e.length > 0 && (e.op.Reads() || e.op.IsWrite())
}

// allFlags are the flags there are.
const allFlags = wr.Unsignaled | wr.ReadFence | wr.LocalFence

// check finds the Immediate Errors of a request (verbs draft 9.3.1.1). Modifiers
// that do not go with its operation type are not looked at.
func (s *sendQueue) check(r *wr.Request) error {
	if r.Flags&^allFlags != 0 {
		return &wr.Reason{Err: wr.ErrInvalidModifier, What: fmt.Sprintf("flags %#x are none of %#x", uint8(r.Flags&^allFlags), uint8(allFlags)), Remedy: "leave those out"}
	}
	if r.Op.IsExtension() && !s.extensions {
		return &wr.Reason{
			Err: wr.ErrInvalidOp, What: fmt.Sprintf("%v is of RFC 7306, which this queue pair does not speak", r.Op),
			Remedy: "set QPConfig.Extensions, or cm.Config.Extensions at both ends",
		}
	}
	switch {
	case r.Op.IsSend():
		return misfit.CheckList(r.SGL, s.sendSGE)
	case r.Op.IsWrite():
		return misfit.CheckList(r.SGL, s.writeSGE)
	case r.Op.IsRead():
		if misfit.Is(&r.Local) {
			return misfit.Err
		}
	case r.Op.IsMemory():
		return checkMemory(r)
	case r.Op.IsAtomic():
		return checkAtomic(r)
	case r.Op.IsImmediate(): // eight octets, and no list
	default:
		return &wr.Reason{Err: wr.ErrInvalidOp, What: fmt.Sprintf("%v is not for the Send Queue", r.Op)}
	}
	return nil
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
		if e.op.Reads() {
			if !e.readDone {
				break
			}
		} else if e.end > written || s.placing && pos >= s.placed && e.awaits() {
			break
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

// finishRead marks the Read at pos as placed, or the Atomic as answered with what there was.
// The caller completes.
func (s *sendQueue) finishRead(pos, original uint64) {
	s.doneMu.Lock()
	e := s.at(pos)
	e.readDone, e.original = true, original
	s.doneMu.Unlock()
}

// noElement is the position of none.
const noElement = ^uint64(0)

// flush completes everything left: the element at fault, if any, with status
// and the number of its reason, the others as Flushed (verbs draft 6.2.4). No new element can come in, and
// neither side runs.
func (s *sendQueue) flush(faulty uint64, status wr.Status, number uint64) {
	s.doneMu.Lock()
	defer s.doneMu.Unlock()
	tail := s.tail.Load()
	for pos := s.done.Load(); pos < tail; pos++ {
		e := s.entry(pos, wr.StatusFlushed)
		if pos == faulty {
			e.Status, e.Value = status, number
		}
		if s.spans != nil {
			s.spans.end(pos)
		}
		s.queue(e) // no room: the loss is the consumer's, 8.1.3.1
		s.done.Store(pos + 1)
	}
	s.framed.Store(tail)
}

// queue puts a completion on the CQ, and reports whether there was room. A
// completion that is dropped will not be reaped, so its slot must not wait for
// that. Once it is queued it may be reaped, and the slot be somebody else's.
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
	if st == wr.StatusSuccess && e.op.IsAtomic() {
		c.Value = e.original
	}
	return cq.Entry{Completion: c, Owner: s, Pos: pos}
}

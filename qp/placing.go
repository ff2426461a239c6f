package qp

import (
	"sync/atomic"

	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/wr"
)

// iWARP acknowledges nothing: an RDMA Write completes when it is sent. With
// Config.PlacedWrites a signaled one completes when the peer has placed it, as on InfiniBand. An
// RDMA Read of no octets behind it tells: a peer answers a Read when what came before
// has been placed (RFC 5040 5.5), and looks at no STag if it asks for nothing (5.2.1).
//
// That Read has a place of its own beyond ORD, which both sides offer in the MPA startup.
// There is one, so Writes that are framed while its answer is awaited are asked for
// together with the next. Nothing but their completion waits for it.

// spareReads is what a queue pair offers beyond its own IRD and ORD.
func (c *Config) spareReads() int {
	if c.PlacedWrites {
		return 1
	}
	return 0
}

// placing is what the transmit side knows of Writes that wait to be placed. Positions are
// of the Send Queue.
type placing struct {
	slot   bool        // the peer granted the Read; does not change
	due    uint64      // behind the last Write framed that waits
	asked  uint64      // what the last empty Read was about: all before that
	asking atomic.Bool // its answer is awaited; cleared by the receive side
}

// placingRoom is how many more outbound Reads there is room for with a slot: one, and one whose
// answer has come, until the receive side drops it.
const placingRoom = 2

// agreed is what a stream has of RDMA Reads: room in the IRRQ, ORD, what that may be raised
// to, and whether there is a Read for Writes.
type agreedReads struct {
	irrq, ord, maxORD int
	slot              bool
}

// open gives the session what was agreed, before it starts.
func (s *session) open(a agreedReads) {
	s.maxORD = a.maxORD
	s.tx.placing.slot = a.slot
	if a.slot {
		s.reads.resize(s.reads.size() + placingRoom)
	}
	s.q.sq.doneMu.Lock()
	s.q.sq.placing = a.slot
	s.q.sq.doneMu.Unlock()
}

// awaits reports whether the element waits to be placed before it completes.
func (e *sqe) awaits() bool { return e.op.IsWrite() && e.flags&wr.Unsignaled == 0 }

// framedUpTo notes that the element before pos is framed.
func (p *placing) framedUpTo(pos uint64, e *sqe) {
	if p.slot && e.awaits() {
		p.due = pos
	}
}

// wants reports whether an empty Read is to be sent now.
func (p *placing) wants() bool { return p.due > p.asked && !p.asking.Load() }

// askPlaced starts the empty Read.
func (t *transmitter) askPlaced() {
	p := &t.placing
	p.asked = p.due
	p.asking.Store(true)
	t.msg = message{kind: fromRTR, op: rdmap.ReadRequest, msn: t.readMSN.Next(), stag: rtrSTag}
	t.reads.push(outboundRead{pos: p.asked, stag: rtrSTag, msn: t.msg.msn, rtr: true, placed: true})
}

// ownReads is how many Reads and Atomics of the program are outstanding, or more.
func (t *transmitter) ownReads() int {
	asking := t.placing.asking.Load() // first: it is cleared before the Read is dropped
	n := t.reads.len()
	if asking && n > 0 {
		n--
	}
	return n
}

// finishPlaced marks all Writes before pos as placed. The caller completes.
func (s *sendQueue) finishPlaced(pos uint64) {
	s.doneMu.Lock()
	s.placed = pos
	s.doneMu.Unlock()
}

// terminatedWrite finds the Write, not known to be placed, that a segment is of.
func (s *session) terminatedWrite(seg ddp.Segment) (pos uint64) {
	sq := &s.q.sq
	for pos := sq.done.Load(); s.tx.placing.slot && pos < sq.framed.Load(); pos++ {
		e := sq.at(pos)
		if e.awaits() && uint32(e.remote.STag) == seg.STag() && seg.TO()-e.remote.TO < e.length {
			return pos
		}
	}
	return noElement
}

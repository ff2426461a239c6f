package qp

import (
	"github.com/softrnic/softrnic/cq"
	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/srq"
	"github.com/softrnic/softrnic/stag"
	"github.com/softrnic/softrnic/wr"
)

// landing is the receive that the Send in progress fills, wherever it comes
// from: the head of the Receive Queue, or an element of the S-RQ, which is this
// queue pair's from the message's first segment to its completion (verbs draft
// 6.3.5). Owned by the receive side.
type landing struct {
	open    bool // a receive is taken, its message not complete
	op      rdmap.Opcode
	id      uint64
	length  uint64 // octets of all its buffers together
	sgl     []wr.SGE
	element *srq.Element // nil: it is the head of the Receive Queue

	// Where the next octet goes.
	sge int
	off uint64
}

// openLanding takes a receive for a message of kind op. Without a fault, and if
// it need not wait for one to be posted, it leaves the landing closed when there
// is none.
func (s *session) openLanding(op rdmap.Opcode) (f fault, wait bool) {
	for asked := false; ; asked = true {
		ok, failed := s.takeReceive(op)
		switch {
		case failed:
			return faultSRQ, false // RV-6.3.6-M6
		case ok || !s.q.cfg.GracefulReceive:
			return noFault, false
		case asked:
			return noFault, true
		}
		s.askForFeed() // then look again: one may have been posted just before
	}
}

func (s *session) takeReceive(op rdmap.Opcode) (ok, failed bool) {
	l, shared := &s.rx.landing, s.q.cfg.SRQ
	if shared == nil {
		e := s.q.rq.current()
		if e == nil {
			return false, false
		}
		l.take(op, e.id, e.length, e.sgl, nil)
		return true, false
	}
	e, failed := shared.TakeFor(s.rx.feed)
	if e == nil {
		return false, failed
	}
	l.take(op, e.ID, e.Length, e.SGL, e)
	s.checkRQLimit()
	return true, false
}

func (l *landing) take(op rdmap.Opcode, id, length uint64, sgl []wr.SGE, e *srq.Element) {
	l.open, l.op, l.id, l.length, l.sgl, l.element = true, op, id, length, sgl, e
	l.sge, l.off = 0, 0
}

// scatter puts the payload of a segment into the landing, behind what came before,
// if it is not there yet. Accept has seen to it that there is room.
func (s *session) scatter(seg ddp.Segment) fault {
	l, p := &s.rx.landing, seg.Payload()
	for left := uint64(seg.Size()); left > 0; {
		g := &l.sgl[l.sge]
		n := min(left, uint64(g.Length)-l.off)
		if n > 0 {
			to := g.TO + l.off
			if to < g.TO {
				return faultRQWrap
			}
			ref, f := s.rx.sinks.Resolve(g.STag, to, n)
			if f != stag.OK {
				return memoryFault(sideRQ, f)
			}
			if !seg.IsPlaced() {
				if !ref.CopyIn(0, p[:n]) {
					return memoryFault(sideRQ, ref.Lost())
				}
				p = p[n:]
			}
			left -= n
		}
		if l.off += n; l.off == uint64(g.Length) {
			l.sge++
			l.off = 0
		}
	}
	return noFault
}

// closeLanding completes the receive of the message in progress. The completion is
// for the CQ.
func (s *session) closeLanding(c wr.Completion, solicited bool) cq.Entry {
	l, rq := &s.rx.landing, &s.q.rq
	l.open = false
	if l.element == nil {
		return rq.complete(c, solicited)
	}
	c.ID, c.QP, c.Op = l.id, rq.qp, wr.OpRecv
	c.Context = rq.context
	return cq.Entry{Completion: c, Owner: l.element, Solicited: solicited}
}

// flushReceives completes the receives that this queue pair has: the one of the
// message in progress with status, the others as Flushed. Receives of an S-RQ
// that were not taken stay there (RV-6.3.6-M7). The caller owns the receive side,
// and posts are refused.
func (s *session) flushReceives(status wr.Status) {
	if s.q.cfg.SRQ == nil {
		s.rx.landing.open = false
		s.q.rq.flush(status)
		return
	}
	if s.rx.landing.open {
		s.hand([]cq.Entry{s.closeLanding(wr.Completion{Status: status}, false)})
	}
}

package qp

import (
	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/wr"
)

// What becomes of the work that a session leaves behind.

// blame finds the request that a failure of the queue pair hits while it is
// processed, if there is one: a completion tells then (9.5.2), else the event of
// figure 24. It is the oldest one that cannot complete any more: an outstanding
// Read, or what is sent only in part. Others are not begun, or go out ahead of the
// Terminate. The caller owns both sides.
func (s *session) blame(c *cause) {
	if c.fault != faultLocal || c.hasSQ {
		return
	}
	if s.tx.msg.kind == fromSQ {
		c.sq, c.hasSQ = s.tx.next, true
	}
	s.reads.each(func(o *outboundRead) bool {
		if !o.rtr {
			c.sq, c.hasSQ = o.pos, true
		}
		return o.rtr
	})
}

// flush completes what is on both queues: what c says is at fault with its
// status, the rest as Flushed.
func (s *session) flush(c cause) {
	status, pos := faults[c.fault].Status, uint64(noElement)
	if c.hasSQ {
		pos = c.sq
	} else if c.fault == faultTerminateReceived {
		pos = s.terminated(c.terminate)
	}
	s.blamed(&c, pos)
	s.q.sq.flush(pos, status)
	if !c.recv {
		status = wr.StatusFlushed
	}
	s.flushReceives(status)
}

// terminated finds the Send Queue element that the peer's Terminate Message
// complains about: only an RDMA Read can still be there (draft 9.5.2, Remote
// Termination Error).
func (s *session) terminated(received []byte) (pos uint64) {
	pos = noElement
	term, parsed := rdmap.ParseTerminate(received)
	if !parsed || len(term.DDPHeader) == 0 {
		return pos
	}
	seg, code := ddp.Parse(term.DDPHeader)
	if code != ddp.CodeOK || seg.Tagged() || seg.QN() != ddp.QNReadRequest {
		return pos
	}
	s.reads.each(func(o *outboundRead) bool {
		found := o.msn == seg.MSN() && !o.rtr
		if found {
			pos = o.pos
		}
		return !found
	})
	return pos
}

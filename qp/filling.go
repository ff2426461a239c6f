package qp

import "github.com/softrnic/softrnic/ddp"

// What the watchdog of an S-RQ sees of a session (srq/watch.go): how far the message is
// that fills a receive of it.

func (s *session) joinShared() {
	if shared := s.q.cfg.SRQ; shared != nil {
		shared.Join(s)
	}
}

func (s *session) leaveShared() {
	if shared := s.q.cfg.SRQ; shared != nil {
		shared.Leave(s)
	}
}

// Filling implements srq.Filler: the MSN of the message, and how many of its octets are
// placed.
func (s *session) Filling() uint64 { return s.rx.filling.Load() }

// Stalled implements srq.Filler.
func (s *session) Stalled() { s.fail(faultStalled) }

// noteFilling takes down how far the message in progress is, behind every read. The
// caller owns the receive side.
func (s *session) noteFilling() {
	r, shared := &s.rx, s.q.cfg.SRQ
	if shared == nil {
		return
	}
	before, now := r.filling.Load(), uint64(0)
	if r.landing.open {
		placed := uint64(r.send.MO())
		if t := &r.in.transit; r.in.Diverted() > 0 && t.hlen == ddp.UntaggedHeader { // not of a tagged one
			placed += t.at
		}
		now = uint64(r.send.MSN())<<32 + placed + 1
		if before>>32 == now>>32 {
			now = max(now, before) // all in transit have come, but not the end of their FPDU
		}
	}
	if now != before {
		r.filling.Store(now)
	}
	if now != 0 {
		shared.Fills() // behind the number: see watch.stalled
	}
}

package qp

import "github.com/softrnic/softrnic/cq"

// Receives that complete because of what one read has brought go to the CQ together,
// completedAtOnce at a time.
const completedAtOnce = 48

// completed takes the completion of a receive for the CQ. It is there when deliver
// returns. The caller owns the receive side; there is a buffer, because the end of
// each FPDU comes through it.
func (s *session) completed(e cq.Entry) {
	in := &s.rx.in
	in.buf.completed[in.completed] = e
	if in.completed++; in.completed == completedAtOnce {
		s.handCompleted()
	}
}

// handCompleted puts into the CQ what completed has kept back.
func (s *session) handCompleted() {
	in := &s.rx.in
	if in.completed == 0 {
		return
	}
	list := in.buf.completed[:in.completed]
	s.hand(list)
	clear(list)
	in.completed = 0
}

// hand puts completions of receives into the CQ. Where it has no room, the receives
// come free and the stream ends.
func (s *session) hand(list []cq.Entry) {
	rq := &s.q.rq
	n := rq.cq.PushAll(list)
	for _, e := range list[n:] { // nobody will reap it
		if e.Owner == rq {
			rq.refused(e.Pos)
		} else {
			e.Owner.Release(e.Pos)
		}
	}
	rq.handed()
	if n < len(list) {
		s.fail(faultRQCompletion)
	}
}

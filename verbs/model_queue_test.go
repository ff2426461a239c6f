package verbs_test

import (
	"slices"

	"github.com/softrnic/softrnic/verbs"
)

// The rules of queues: draft 5.3, 6.3, 8.2.

// push adds a completion. It reports false if there is no room: it is lost.
func (c *modelCQ) push(e modelEntry, solicited bool) bool {
	if c.failed {
		return false
	}
	if len(c.entries) == c.size {
		if !c.full {
			c.full = true
			c.node.raise(verbs.Event{ID: verbs.EventCQOverflow, CQ: c.real.ID()})
		}
		return false
	}
	c.entries = append(c.entries, e)
	if c.armed == verbs.NotifyNext ||
		c.armed == verbs.NotifySolicited && (solicited || e.want.Status != verbs.StatusSuccess) { // 8.2.5
		c.armed, c.token = 0, true
		c.node.called(c)
	}
	return true
}

func (c *modelCQ) room() int {
	if c.failed {
		return 0
	}
	return c.size - len(c.entries)
}

// reap takes the completion that was polled. It has to be the oldest one of its
// work queue: between queues there is no order (8.2.2 rule 3).
func (c *modelCQ) reap(got verbs.Completion) bool {
	same := func(e modelEntry) bool {
		return e.want.QP == got.QP && (e.want.Op == verbs.OpRecv) == (got.Op == verbs.OpRecv)
	}
	i := slices.IndexFunc(c.entries, same)
	if i < 0 {
		return false
	}
	e := c.entries[i]
	if e.want.Status != verbs.StatusSuccess { // 9.3.2.1: the rest is undefined
		got.Bytes, got.Value, got.Invalidated, got.HasInvalidated = 0, 0, 0, false
	}
	if got != e.want {
		return false
	}
	c.entries = slices.Delete(c.entries, i, i+1)
	c.full = false
	e.reaped()
	return true
}

// request is a Request Completion Notification: "next" is stronger (8.2.5).
func (c *modelCQ) request(t verbs.NotifyType) {
	if c.armed != verbs.NotifyNext {
		c.armed = t
	}
}

// completeSend completes a request of the Send Queue. It reports false if the
// completion is lost.
func (q *modelQP) completeSend(e *modelSend, s verbs.Status) bool {
	e.done = true
	if s == verbs.StatusSuccess && e.Flags&verbs.Unsignaled != 0 {
		return true
	}
	c := verbs.Completion{ID: e.ID, QP: q.real.ID(), Op: e.Op, Status: s}
	if s == verbs.StatusSuccess && e.Op.IsRead() {
		c.Bytes = e.Local.Length
	}
	e.queued = q.send.push(modelEntry{
		c,
		func() { e.queued = false },
	}, false)
	return e.queued
}

// sendsUsed counts the slots in use. They come free in the order of posting.
func (q *modelQP) sendsUsed() int {
	for len(q.sq) > 0 && q.sq[0].done && !q.sq[0].queued {
		q.sq = q.sq[1:]
	}
	return len(q.sq)
}

func (q *modelQP) recvsUsed() int {
	for len(q.rq) > 0 && q.rq[0].done && !q.rq[0].queued {
		q.rq = q.rq[1:]
	}
	return len(q.rq)
}

// waiting are the requests of the Send Queue that have not completed.
func (q *modelQP) waiting() []*modelSend {
	return living(q.sq, func(e *modelSend) bool { return e.done })
}

// coming are the receives that the next Sends of the peer will take.
func (q *modelQP) coming() (list []verbs.Recv) {
	if q.srq != nil {
		if q.srq.failed {
			return nil
		}
		return q.srq.posted
	}
	for _, e := range q.rq {
		if !e.done {
			list = append(list, e.Recv)
		}
	}
	return list
}

// modelLanding is a receive that a message has taken.
type modelLanding struct {
	verbs.Recv
	pd       *modelPD // of its buffers
	complete func(c verbs.Completion, solicited bool) bool
}

// take takes a receive. Without one there may be none, or a broken S-RQ.
func (q *modelQP) take() (l *modelLanding, broken bool) {
	if q.srq != nil {
		return q.takeShared()
	}
	for _, e := range q.rq {
		if !e.done {
			return &modelLanding{e.Recv, q.pd, func(c verbs.Completion, solicited bool) bool {
				return q.completeRecv(e, c, solicited)
			}}, false
		}
	}
	return nil, false
}

func (q *modelQP) completeRecv(e *modelRecv, c verbs.Completion, solicited bool) bool {
	c.ID, c.QP, c.Op = e.ID, q.real.ID(), verbs.OpRecv
	e.done = true
	e.queued = q.recv.push(modelEntry{c, func() { e.queued = false }}, solicited)
	return e.queued
}

func (q *modelQP) takeShared() (*modelLanding, bool) {
	s := q.srq
	if s.failed {
		return nil, true
	}
	var r *verbs.Recv
	if len(s.posted) > 0 {
		r = &s.posted[0]
		s.posted = s.posted[1:]
	}
	if s.armed && len(s.posted) < s.limit { // 6.3.8
		s.armed = false
		s.node.raise(verbs.Event{ID: verbs.EventSRQLimit, SRQ: s.real.ID()})
	}
	if r == nil {
		return nil, false
	}
	if q.rqArmed && q.rqLimit < 1 { // one message is in progress
		q.rqArmed = false
		q.raise(verbs.EventRQLimit)
	}
	return &modelLanding{*r, s.pd, func(c verbs.Completion, solicited bool) bool {
		c.ID, c.QP, c.Op = r.ID, q.real.ID(), verbs.OpRecv
		ok := q.recv.push(modelEntry{c, func() { s.used-- }}, solicited)
		if !ok {
			s.used--
		}
		return ok
	}}, false
}

// postSend is PostSQ (9.3.1.1): how many are posted, and why no more.
func (q *modelQP) postSend(list []verbs.Request) (int, error) {
	if err := q.mayPost(); err != nil {
		return 0, err
	}
	for i, r := range list {
		if err := q.checkSend(r); err != nil {
			return i, err
		}
		if q.sendsUsed() >= q.sendDepth {
			return i, verbs.ErrQueueFull
		}
		q.sq = append(q.sq, &modelSend{Request: copySend(r)})
	}
	return len(list), nil
}

func (q *modelQP) mayPost() error {
	switch {
	case q.node.failed:
		return verbs.ErrInvalidRNIC
	case q.gone:
		return verbs.ErrInvalidQP
	case q.state != verbs.StateIdle && q.state != verbs.StateRTS:
		return verbs.ErrInvalidState
	}
	return nil
}

func (q *modelQP) checkSend(r verbs.Request) error {
	most := q.sendSGE
	if r.Flags > verbs.Unsignaled|verbs.ReadFence|verbs.LocalFence {
		return verbs.ErrInvalidModifier
	}
	switch r.Op {
	case verbs.OpWrite:
		most = q.writeSGE
		fallthrough
	case verbs.OpSend, verbs.OpSendSE, verbs.OpSendInvalidate, verbs.OpSendSEInvalidate:
		if len(r.SGL) > most {
			return verbs.ErrInvalidSGLLength
		}
	case verbs.OpRead, verbs.OpReadInvalidate:
	case verbs.OpBind: // 7.2.1 rule 6
		if b := r.Bind; b == nil || b.Window>>8 == 0 || b.Region>>8 == 0 || b.Addressing > verbs.ZeroBased {
			return verbs.ErrInvalidModifier
		}
	case verbs.OpFastRegister:
		if f := r.FastRegister; f == nil || f.STag>>8 == 0 || f.Addressing > verbs.ZeroBased {
			return verbs.ErrInvalidModifier
		}
	case verbs.OpInvalidate:
		if r.Invalidate>>8 == 0 {
			return verbs.ErrInvalidModifier
		}
	default:
		return verbs.ErrInvalidOp
	}
	return nil
}

func copySend(r verbs.Request) verbs.Request {
	r.SGL = slices.Clone(r.SGL)
	if r.Bind != nil {
		b := *r.Bind
		r.Bind = &b
	}
	if r.FastRegister != nil {
		f := *r.FastRegister
		f.Buffers.Addresses = slices.Clone(f.Buffers.Addresses)
		r.FastRegister = &f
	}
	return r
}

// postRecv is PostRQ (9.3.1.2) to a queue pair.
func (q *modelQP) postRecv(list []verbs.Recv) (int, error) {
	switch {
	case q.node.failed:
		return 0, verbs.ErrInvalidRNIC
	case q.srq != nil && !q.gone:
		return 0, verbs.ErrRQUsesSRQ
	}
	if err := q.mayPost(); err != nil {
		return 0, err
	}
	for i, r := range list {
		switch {
		case len(r.SGL) > q.recvSGE:
			return i, verbs.ErrInvalidSGLLength
		case q.recvsUsed() >= q.recvDepth:
			return i, verbs.ErrQueueFull
		}
		q.rq = append(q.rq, &modelRecv{Recv: verbs.Recv{ID: r.ID, SGL: slices.Clone(r.SGL)}})
	}
	return len(list), nil
}

// postRecv is PostRQ to an S-RQ.
func (s *modelSRQ) postRecv(list []verbs.Recv) (int, error) {
	switch {
	case s.node.failed:
		return 0, verbs.ErrInvalidRNIC
	case s.failed || s.gone:
		return 0, verbs.ErrInvalidSRQ
	}
	for i, r := range list {
		switch {
		case len(r.SGL) > s.sge:
			return i, verbs.ErrInvalidSGLLength
		case s.used >= s.depth:
			return i, verbs.ErrQueueFull
		}
		s.posted = append(s.posted, verbs.Recv{ID: r.ID, SGL: slices.Clone(r.SGL)})
		s.used++
	}
	return len(list), nil
}

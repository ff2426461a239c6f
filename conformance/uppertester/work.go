package uppertester

import (
	"context"
	"errors"

	"github.com/softrnic/softrnic/verbs"
)

// PostSend posts to a Send Queue.
func (s *Service) PostSend(a PostSendArgs, r *Posted) error {
	e, err := s.end(a.QP)
	if err != nil {
		return err
	}
	r.N, err = e.qp.PostSend(a.Sends...)
	return err
}

// PostRecv posts to a Receive Queue or an S-RQ.
func (s *Service) PostRecv(a PostRecvArgs, r *Posted) error {
	if a.SRQ != 0 {
		q, err := find(s, s.srqs, a.SRQ, "S-RQ")
		if err == nil {
			r.N, err = q.PostRecv(a.Recvs...)
		}
		return err
	}
	e, err := s.end(a.QP)
	if err != nil {
		return err
	}
	r.N, err = e.qp.PostRecv(a.Recvs...)
	return err
}

// Poll takes completions.
func (s *Service) Poll(a PollArgs, r *Completions) error {
	c, err := find(s, s.cqs, a.CQ, "CQ")
	if err != nil {
		return err
	}
	got := make([]verbs.Completion, max(a.N, 0))
	have := c.Poll(got)
	ctx, cancel := s.bounded(a.Timeout)
	defer cancel()
	for have < len(got) && a.Timeout > 0 {
		n, err := c.Wait(ctx, got[have:])
		have += n
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		if err != nil {
			break
		}
	}
	r.Completions = got[:have]
	return nil
}

// Notify arms a CQ.
func (s *Service) Notify(a NotifyArgs, _ *None) error {
	c, err := find(s, s.cqs, a.CQ, "CQ")
	if err != nil {
		return err
	}
	return c.Notify(a.Type)
}

// Notified waits for a CQ's notification.
func (s *Service) Notified(w Wait, r *Answer) error {
	c, err := find(s, s.cqs, w.Of, "CQ")
	if err != nil {
		return err
	}
	select {
	case <-c.Events():
		r.Yes = true
		return nil
	default:
	}
	ctx, cancel := s.bounded(w.Timeout)
	defer cancel()
	select {
	case <-c.Events():
		r.Yes = true
	case <-ctx.Done():
	}
	return nil
}

// Query is Query QP.
func (s *Service) Query(qp int, r *QPState) error {
	e, err := s.end(qp)
	if err != nil {
		return err
	}
	a, err := e.qp.Query()
	if err != nil {
		return err
	}
	*r = QPState{
		State: a.State, IRD: a.IRD, ORD: a.ORD, SendDepth: a.SendDepth, RecvDepth: a.RecvDepth,
		RQLimit: a.RQLimit, RQLimitArmed: a.RQLimitArmed, Stream: a.Stream != nil, Terminate: a.Terminate,
	}
	return nil
}

// Modify is Modify QP.
func (s *Service) Modify(a ModifyArgs, _ *None) error {
	e, err := s.end(a.QP)
	if err != nil {
		return err
	}
	return e.qp.Modify(verbs.ModifyQP{
		Next: a.Next, IRD: a.IRD, ORD: a.ORD, SendDepth: a.SendDepth, RecvDepth: a.RecvDepth,
		RQLimit: a.RQLimit, ArmRQLimit: a.ArmRQLimit,
	})
}

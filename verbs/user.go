package verbs

import "github.com/softrnic/softrnic/wr"

// The handles below are for Non-Privileged Mode Consumers. They offer the four
// verbs that the draft lets such consumers reach by themselves, and nothing else
// (verbs draft 9.1, RV-9.1-M1); everything around them is done by the program
// that made the handle.

// UserQP is a queue pair for a Non-Privileged Consumer.
type UserQP struct{ qp *QP }

// User makes the handle of a Non-Privileged Consumer. Errors: ErrInvalidModifier
// (the queue pair is Privileged, RV-9.2.5.1-M3), ErrInvalidRNIC, ErrInvalidQP.
func (q *QP) User() (_ UserQP, err error) {
	defer asRefused(&err, "Handle for a Non-Privileged Consumer", "verbs draft 9.1", q.about())
	if q == nil {
		return UserQP{}, errNilQP
	}
	if err := q.check(); err != nil {
		return UserQP{}, err
	}
	if q.cfg.Privileged {
		return UserQP{}, &wr.Reason{Err: wr.ErrInvalidModifier, What: "the queue pair is Privileged", Rule: "RV-9.2.5.1-M3", Remedy: "create it without QPConfig.Privileged"}
	}
	return UserQP{q}, nil
}

// PostSend is QP.PostSend.
func (u UserQP) PostSend(reqs ...Request) (int, error) { return u.qp.PostSend(reqs...) }

// PostRecv is QP.PostRecv.
func (u UserQP) PostRecv(reqs ...Recv) (int, error) { return u.qp.PostRecv(reqs...) }

// UserSRQ is a shared receive queue for a Non-Privileged Consumer.
type UserSRQ struct{ srq *SRQ }

// User makes the handle of a Non-Privileged Consumer.
func (s *SRQ) User() UserSRQ { return UserSRQ{s} }

// PostRecv is SRQ.PostRecv.
func (u UserSRQ) PostRecv(reqs ...Recv) (int, error) { return u.srq.PostRecv(reqs...) }

// UserCQ is a completion queue for a Non-Privileged Consumer. Its notifications
// go to the program that made it, which passes them on (verbs draft 8.2.5).
type UserCQ struct{ cq *CQ }

// User makes the handle of a Non-Privileged Consumer.
func (c *CQ) User() UserCQ { return UserCQ{c} }

// Poll is CQ.Poll.
func (u UserCQ) Poll(dst []Completion) int { return u.cq.Poll(dst) }

// Notify is CQ.Notify.
func (u UserCQ) Notify(t NotifyType) error { return u.cq.Notify(t) }

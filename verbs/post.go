package verbs

import (
	"errors"

	"github.com/softrnic/softrnic/internal/sglcheck"
	"github.com/softrnic/softrnic/wr"
)

// PostSend posts work requests to the Send Queue, in order, and reports how many
// were posted: the first that is refused stops the list (verbs draft 9.3.1.1).
// It does not block, and keeps nothing of reqs; the memory named by their
// elements is in use until they complete. A request posted in Idle waits for
// RTS. Errors: ErrInvalidRNIC, ErrInvalidQP, ErrInvalidState, ErrInvalidOp,
// ErrInvalidModifier, ErrInvalidSGLLength, ErrInvalidSGLFormat (see
// TaggedBuffer.SGE), ErrQueueFull.
func (q *QP) PostSend(reqs ...Request) (int, error) {
	if q == nil {
		return 0, refusePostSend(errNilQP, Reason{}, reqs)
	}
	if q.rnic.watchesPosts() {
		n, err := q.postSendFaulty(reqs)
		if err != nil {
			err = q.tracePost(refusePostSend(q.rnic.explain(err), q.about(), reqs[n:]))
		}
		return n, err
	}
	n, err := q.q.PostSend(reqs...)
	if err != nil {
		err = q.tracePost(refusePostSend(q.rnic.explain(err), q.about(), reqs[n:]))
	}
	return n, err
}

// PostRecv posts receives to the Receive Queue, in order, and reports how many
// were posted (verbs draft 9.3.1.2). Errors: ErrInvalidRNIC, ErrInvalidQP,
// ErrInvalidState, ErrInvalidSGLLength, ErrInvalidSGLFormat (see
// TaggedBuffer.SGE), ErrQueueFull, ErrRQUsesSRQ.
func (q *QP) PostRecv(reqs ...Recv) (int, error) {
	if q == nil {
		return 0, refusePostRecv(errNilQP, Reason{}, reqs)
	}
	if q.rnic.watchesPosts() {
		n, err := q.postRecvFaulty(reqs)
		if err != nil {
			err = q.tracePost(refusePostRecv(q.rnic.explain(err), q.about(), reqs[n:]))
		}
		return n, err
	}
	n, err := q.q.PostRecv(reqs...)
	if err != nil {
		err = q.tracePost(refusePostRecv(q.rnic.explain(err), q.about(), reqs[n:]))
	}
	return n, err
}

// tracePost records a post that was refused.
func (q *QP) tracePost(err error) error {
	q.rnic.traceVerb("Post", q.ID(), 0, 0, 0, err)
	return err
}

// refusePostSend is err of a post that stopped at the first of reqs.
func refusePostSend(err error, about Reason, reqs []Request) error {
	if errors.Is(err, wr.ErrQueueFull) { // which tells all, and costs nothing: see qp
		return err
	}
	verb := "PostSQ"
	if len(reqs) > 0 {
		r := &reqs[0]
		verb = r.Op.Words()
		about.STag, about.HasSTag, about.Asked = asks(r)
	}
	return refused(err, verb, "verbs draft 9.3.1.1", about)
}

func refusePostRecv(err error, about Reason, reqs []Recv) error {
	if errors.Is(err, wr.ErrQueueFull) { // which tells all, and costs nothing: see qp
		return err
	}
	if len(reqs) > 0 {
		about.Asked = octets(reqs[0].SGL)
	}
	return refused(err, wr.OpRecv.Words(), "verbs draft 9.3.1.2", about)
}

// asks is what a request is for: of the peer's memory or of a region or window, if it names one, else of the message.
func asks(r *Request) (s STag, has bool, n Octets) {
	switch {
	case r.Op.IsRead():
		return r.Remote.STag, true, octetsAt(r.Remote.TO, []SGE{r.Local})
	case r.Op.IsWrite():
		return r.Remote.STag, true, octetsAt(r.Remote.TO, r.SGL)
	case r.Op.IsAtomic():
		return r.Remote.STag, true, wr.Tagged(r.Remote.TO, 8)
	case r.Op.IsSend():
		return 0, false, octets(r.SGL)
	case r.Op == OpBind && r.Bind != nil:
		return r.Bind.Window, true, wr.Tagged(r.Bind.VA, r.Bind.Length)
	case r.Op == OpFastRegister && r.FastRegister != nil:
		return r.FastRegister.STag, true, wr.Tagged(r.FastRegister.VA, r.FastRegister.Buffers.Length)
	case r.Op == OpInvalidate:
		return r.Invalidate, true, Octets{}
	}
	return 0, false, Octets{}
}

// octets are those of a list; how many is not known if an element stands for one that cannot be.
func octets(sgl []SGE) Octets {
	var n uint64
	for i := range sgl {
		if sglcheck.Is(&sgl[i]) {
			return Octets{}
		}
		n += uint64(sgl[i].Length)
	}
	return wr.Untagged(n)
}

// octetsAt are those of a list, from a tagged offset on.
func octetsAt(to uint64, sgl []SGE) Octets {
	n := octets(sgl)
	if n.Known {
		n.Tagged, n.TO = true, to
	}
	return n
}

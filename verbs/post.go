package verbs

import (
	"errors"
	"fmt"

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
		return 0, errNilQP
	}
	if q.rnic.faults != nil {
		n, err := q.postSendFaulty(reqs)
		if err != nil {
			err = q.explainPost(err)
		}
		return n, err
	}
	n, err := q.q.PostSend(reqs...)
	if err != nil {
		err = q.explainPost(err)
	}
	return n, err
}

// PostRecv posts receives to the Receive Queue, in order, and reports how many
// were posted (verbs draft 9.3.1.2). Errors: ErrInvalidRNIC, ErrInvalidQP,
// ErrInvalidState, ErrInvalidSGLLength, ErrInvalidSGLFormat (see
// TaggedBuffer.SGE), ErrQueueFull, ErrRQUsesSRQ.
func (q *QP) PostRecv(reqs ...Recv) (int, error) {
	if q == nil {
		return 0, errNilQP
	}
	if q.rnic.faults != nil {
		n, err := q.postRecvFaulty(reqs)
		if err != nil {
			err = q.explainPost(err)
		}
		return n, err
	}
	n, err := q.q.PostRecv(reqs...)
	if err != nil {
		err = q.explainPost(err)
	}
	return n, err
}

// Room reports how many requests the Send and the Receive Queue take now, unless others post meanwhile; 0 in
// a state in which they take none, and for the receives of a shared receive queue.
func (q *QP) Room() (send, recv int) {
	if q == nil {
		return 0, 0
	}
	return q.q.Room()
}

// explainPost is err of a post, with what a program can do about it. A full queue is
// no news to a program that fills it, and costs nothing.
func (q *QP) explainPost(err error) error {
	switch err = q.rnic.explain(err); {
	case errors.Is(err, wr.ErrInvalidState):
		err = fmt.Errorf("%w: QP %d is in %v: the connection has ended, LLPStream().Err says why", err, q.ID(), q.State())
	case errors.Is(err, wr.ErrQueueFull):
	default:
		err = fmt.Errorf("post to QP %d: %w", q.ID(), err)
	}
	q.rnic.tellVerb("Post", q.ID(), 0, 0, 0, err)
	return err
}

package verbs

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
	n, err := q.q.PostSend(reqs...)
	if err != nil {
		err = q.rnic.explain(err)
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
	n, err := q.q.PostRecv(reqs...)
	if err != nil {
		err = q.rnic.explain(err)
	}
	return n, err
}

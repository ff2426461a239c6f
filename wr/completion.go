package wr

import "fmt"

// Completion is a Work Completion (verbs draft 9.3.2.1).
type Completion struct {
	// ID is that of the work request; always valid.
	ID uint64
	// QP names the queue pair the request was posted to.
	QP QPID
	// Bytes is the length received, or read; valid for a successful OpRecv and RDMA Read.
	Bytes uint32
	// Value are the eight octets of Immediate Data that a successful OpRecv has
	// brought, the first of them the most significant, if HasImmediate: nothing is
	// placed in the buffers of that receive then, and Bytes is 0. (Of a Send WithImmediate it is the 32 bits, and Bytes
	// its payload.) For a successful Atomic
	// Operation it is what the memory held before (RFC 7306 5.2.2, 6.1). If the request
	// failed it means nothing to a program: Err finds the reason by it.
	Value uint64
	// Invalidated is the STag that an inbound Send with Invalidate
	// invalidated; valid if HasInvalidated.
	Invalidated    STag
	HasInvalidated bool
	HasImmediate   bool
	Op             Op
	Status         Status
	// Context is the queue pair's QPConfig.Context; always valid.
	Context any
}

// String is one line with operation, ID, queue pair and outcome.
func (c Completion) String() string {
	s := fmt.Sprintf("%v %d on QP %d: %v", c.Op, c.ID, c.QP, c.Status)
	if c.Status != StatusSuccess {
		return s
	}
	switch {
	case c.HasImmediate:
		s += fmt.Sprintf(", immediate %#016x", c.Value)
	case c.Op == OpRecv, c.Op.IsRead():
		s += fmt.Sprintf(", %d octets", c.Bytes)
	case c.Op.IsAtomic():
		s += fmt.Sprintf(", was %#x", c.Value)
	}
	if c.HasInvalidated {
		s += fmt.Sprintf(", %v invalidated", c.Invalidated)
	}
	return s
}

// Err is nil if the request succeeded, and a *CompletionError otherwise. Its Why is there for as
// long as the queue pair is, and has no other stream.
func (c Completion) Err() error {
	if c.Status == StatusSuccess {
		return nil
	}
	return &CompletionError{Op: c.Op, ID: c.ID, QP: c.QP, Status: c.Status, Why: reasonOf(c.Value)}
}

// CompletionError is a work request that completed with another status than
// StatusSuccess, as an error: errors.As finds it.
type CompletionError struct {
	Op     Op
	ID     uint64
	QP     QPID
	Status Status
	// Why is the reason, if the request is the one at fault; else it is nil. That of a
	// Flushed one is that the stream ended, which has a reason of its own.
	Why *Reason
}

func (e *CompletionError) Error() string {
	if e.Why == nil {
		return fmt.Sprintf("%v %d on QP %d failed: %s", e.Op, e.ID, e.QP, e.Status.reason())
	}
	why, about := e.Why.WithoutQP(), ""
	subject := why.subject()
	if why.Operation == e.Op.Words() { // else it is of what arrived
		subject, about = "", why.about()
	}
	status := e.Status.String() + ": "
	if why.ByPeer {
		status = "" // the same in other words
	}
	return why.Cite(fmt.Sprintf("%v %d%s on QP %d failed: %s%s", e.Op, e.ID, about, e.QP, status, why.sentence(subject)))
}

// Unwrap returns Why, if there is one.
func (e *CompletionError) Unwrap() error {
	if e.Why == nil {
		return nil
	}
	return e.Why
}

// Is matches another *CompletionError of the same status.
func (e *CompletionError) Is(target error) bool {
	t, ok := target.(*CompletionError)
	return ok && t.Status == e.Status
}

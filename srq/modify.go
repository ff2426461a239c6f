package srq

import (
	"fmt"

	"github.com/softrnic/softrnic/wr"
)

// Modify are the input modifiers of Modify S-RQ (verbs draft 9.2.4.3); nil leaves
// an attribute as it is.
type Modify struct {
	// Depth is how many receives may be outstanding, at least 1.
	Depth *int
	// Limit is the S-RQ Limit, 0 to the Depth that holds afterwards. Setting it
	// does not arm it; 0 disarms.
	Limit *int
	// Rearm arms the S-RQ Limit, armed or not; a Limit of 0 has nothing to arm.
	// If fewer receives than the Limit are posted, the next Take raises the
	// event.
	Rearm bool
}

// Modify changes the attributes, all or nothing, while receives are outstanding.
// Errors: wr.ErrInvalidSRQ (closed), wr.ErrInvalidModifier (Depth below 1, or the
// Limit would be armed and above the Depth), wr.ErrSRQLimitRange,
// wr.ErrShrinkFailed (more receives are outstanding than the new Depth, those
// included whose completion is not reaped).
func (q *Queue) Modify(m Modify) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return wr.ErrInvalidSRQ
	}
	depth, limit := q.depth, q.limit
	if m.Depth != nil {
		depth = *m.Depth
	}
	if m.Limit != nil {
		limit = *m.Limit
	}
	armed := (q.armed || m.Rearm) && limit > 0 // RV-6.3.8-M8
	switch {
	case depth < 1:
		return wr.ErrInvalidModifier
	case m.Limit != nil && (limit < 0 || limit > depth):
		return wr.ErrSRQLimitRange // RV-6.3.8-M17, named as in 9.2.4.3
	case armed && limit > depth:
		return wr.ErrInvalidModifier // RV-6.3.8-M9
	case depth < q.used:
		return wr.ErrShrinkFailed // RV-6.3.2-M3
	}
	q.depth, q.limit, q.armed = depth, limit, armed
	q.trim()
	return nil
}

// CheckRQLimit finds what is wrong with the QP RQ Limit of a queue pair that takes from
// this queue: it is 0 to the depth (verbs draft 6.3.8). Error: wr.ErrRQLimitRange.
func (q *Queue) CheckRQLimit(limit int) error {
	if most := q.Query().Depth; limit < 0 || limit > most {
		return fmt.Errorf("%w: %d, at most the %d receives of the S-RQ", wr.ErrRQLimitRange, limit, most)
	}
	return nil
}

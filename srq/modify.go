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
		return errGone
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
		return &wr.Reason{Err: wr.ErrInvalidModifier, What: fmt.Sprintf("a depth of %d", depth), Remedy: "ask for one at least"}
	case m.Limit != nil && (limit < 0 || limit > depth):
		// Named as in 9.2.4.3.
		return &wr.Reason{Err: wr.ErrSRQLimitRange, What: fmt.Sprintf("%d, at most %d", limit, depth), Rule: "RV-6.3.8-M17"}
	case armed && limit > depth:
		return &wr.Reason{
			Err: wr.ErrInvalidModifier, What: fmt.Sprintf("a depth of %d below the armed limit of %d", depth, limit), Rule: "RV-6.3.8-M9", Remedy: "lower the limit too",
		}
	case depth < q.used:
		return &wr.Reason{Err: wr.ErrShrinkFailed, What: fmt.Sprintf("%d receives are outstanding, %d asked for", q.used, depth), Rule: "RV-6.3.2-M3"}
	}
	q.depth, q.limit, q.armed, q.full = depth, limit, armed, nil
	q.trim()
	return nil
}

// CheckRQLimit finds what is wrong with the QP RQ Limit of a queue pair that takes from
// this queue: it is 0 to the depth (verbs draft 6.3.8). Error: wr.ErrRQLimitRange.
func (q *Queue) CheckRQLimit(limit int) error {
	if most := q.Query().Depth; limit < 0 || limit > most {
		return &wr.Reason{Err: wr.ErrRQLimitRange, What: fmt.Sprintf("%d, at most the %d receives of the S-RQ", limit, most)}
	}
	return nil
}

// Package tally counts completions by their status, and tells an RNIC what came of connecting.
package tally

import (
	"maps"

	"github.com/softrnic/softrnic/wr"
)

// Statuses are completions by status. Whoever guards a queue guards its Statuses.
type Statuses struct {
	success uint64
	others  map[wr.Status]uint64 // nil until something fails
}

// Add counts one.
func (s *Statuses) Add(st wr.Status) {
	if st == wr.StatusSuccess {
		s.success++
		return
	}
	if s.others == nil {
		s.others = map[wr.Status]uint64{}
	}
	s.others[st]++
}

// Clone is a copy, which nobody changes.
func (s *Statuses) Clone() Statuses { return Statuses{s.success, maps.Clone(s.others)} }

// To adds them to a map, which is made if there is none and there are some.
func (s *Statuses) To(m *map[wr.Status]uint64) {
	if *m == nil && (s.success > 0 || len(s.others) > 0) {
		*m = map[wr.Status]uint64{}
	}
	if s.success > 0 {
		(*m)[wr.StatusSuccess] += s.success
	}
	for st, n := range s.others {
		(*m)[st] += n
	}
}

// Attempt is what has come of an attempt to connect that did not.
type Attempt uint8

// The attempts.
const (
	Refused Attempt = iota // by the peer's program
	Failed                 // for anything else
)

// Connect counts an attempt by a queue pair, a *verbs.QP. Package verbs sets it.
var Connect func(qp any, a Attempt)

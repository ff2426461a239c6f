// Package statuscount counts completions by their status.
package statuscount

import (
	"maps"

	"github.com/softrnic/softrnic/wr"
)

// Statuses are completions by status. The lock of a queue guards its Statuses.
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

// Clone is a copy that does not change.
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

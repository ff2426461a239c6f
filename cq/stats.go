package cq

import (
	"github.com/softrnic/softrnic/internal/tally"
	"github.com/softrnic/softrnic/wr"
)

// stats are counted with mu held.
type stats struct {
	statuses tally.Statuses
	most     int
	dropped  uint64
	notified uint64
}

// pushed counts what PushAll has done: there are count completions now, and so many were
// dropped.
func (s *stats) pushed(count, dropped int, fires bool) {
	s.most = max(s.most, count)
	s.dropped += uint64(dropped)
	if fires {
		s.notified++
	}
}

// Stats are the counters at this moment.
func (q *Queue) Stats() wr.CQStats {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := wr.CQStats{
		Queue:     wr.Depth{Now: uint64(q.count), Most: uint64(q.stats.most)},
		Overflows: q.stats.dropped, Notifications: q.stats.notified,
	}
	q.stats.statuses.To(&s.Completions)
	return s
}

package nvmeof

import (
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"github.com/softrnic/softrnic/internal/inventory"
)

// taken counts what the RNIC has made for a queue, or a host's calls, and not been given back.
type taken struct{ n atomic.Int32 }

// took counts one more, unless that failed, and gave one less.
func (v *taken) took(err error) error {
	if err == nil {
		v.n.Add(1)
	}
	return err
}

func (v *taken) gave(err error) error {
	if err == nil {
		v.n.Add(-1)
	}
	return err
}

// count is an inventory.CounterFunc, as those below.
func (t *Target) count(tell inventory.Tell) {
	t.mu.Lock()
	defer t.mu.Unlock()
	tell(t.places.held(), "place")
	tell(len(t.places.hosts), "host")
	tell(len(t.controllers), "controller")
	for _, s := range t.subsystems {
		s.mu.Lock()
		tell(len(s.controllers), "controller of subsystem "+s.nqn)
		s.mu.Unlock()
	}
	if t.closed.Load() { // only then does it take nothing from anybody
		tell(used(t.memory, memoryOfAll), "share of the memory for data")
		tell(used(t.calls, callsOfAll), "share of the calls of disks")
		tell(used(t.clearing, 1), "share of clearing")
	}
}

// used is 1 if not all of s is there, else 0.
func used(s *semaphore.Weighted, all int64) int {
	if !s.TryAcquire(all) {
		return 1
	}
	s.Release(all)
	return 0
}

func (q *queue) count(tell inventory.Tell) {
	q.mu.Lock()
	defer q.mu.Unlock()
	tell(int(q.taken.n.Load()), "object of the RNIC")
	tell(len(q.cids), "command under way")
}

func (h *Host) count(tell inventory.Tell) { tell(int(h.regions.n.Load()), "region of a call") }

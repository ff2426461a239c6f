package nvmeof

import "golang.org/x/sync/semaphore"

// What one host may have at once, and all together. A controller beyond its own share waits for itself; when the share
// of all is used up each still has something that no other can take.
const (
	memoryOfHost = 16 << 20  // octets of data of one controller on their way
	memoryOfAll  = 256 << 20 // and of all, beside one transfer of each
	callsOfHost  = 32        // calls of disks by one controller: each may keep a thread of the system
	callsOfAll   = 256       // by all
)

// shares are a controller's.
type shares struct {
	memory   *semaphore.Weighted
	own      *semaphore.Weighted // of memory, when nothing is left of all's
	calls    *semaphore.Weighted
	clearing *semaphore.Weighted
}

func newShares() shares {
	return shares{
		memory: semaphore.NewWeighted(memoryOfHost), own: semaphore.NewWeighted(maxTransfer),
		calls: semaphore.NewWeighted(callsOfHost), clearing: semaphore.NewWeighted(1),
	}
}

// common are those of all controllers of a target.
type common struct {
	memory   *semaphore.Weighted
	calls    *semaphore.Weighted
	clearing *semaphore.Weighted
}

func newCommon() common {
	return common{
		memory: semaphore.NewWeighted(memoryOfAll), calls: semaphore.NewWeighted(callsOfAll),
		clearing: semaphore.NewWeighted(1),
	}
}

// acquire takes n octets of the controller's memory for the request; false if the queue ends first.
func (r *request) acquire(c *controller, n int64) bool {
	if c.memory.Acquire(r.q.gone, n) != nil {
		return false
	}
	r.from = c.target.memory
	if !r.from.TryAcquire(n) {
		r.from = c.own
		if r.from.Acquire(r.q.gone, n) != nil {
			c.memory.Release(n)
			return false
		}
	}
	r.owner = c
	return true
}

// giveBack gives them back, to whom they are of.
func (r *request) giveBack(n int64) {
	r.from.Release(n)
	r.owner.memory.Release(n)
}

// call runs a call of a disk when it is the controller's turn; Aborted if the queue ends first.
func (r *request) call(c *controller, f func()) Status {
	if c.calls.Acquire(r.q.gone, 1) != nil {
		return Aborted
	}
	defer c.calls.Release(1)
	if c.target.calls.Acquire(r.q.gone, 1) != nil {
		return Aborted
	}
	defer c.target.calls.Release(1)
	f()
	return Success
}

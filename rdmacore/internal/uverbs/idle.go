//go:build linux && (amd64 || arm64)

package uverbs

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/softrnic/softrnic/internal/verbsinternal"
)

// A thread that polls an empty queue has the processor, and nothing to do with it. perftest's passive side spins so on the queue
// of its handshake while the data arrives for another: the RNIC's own goroutine would have to share a processor with it. So now
// and then such a poll receives for the device's other queues.
type idlers struct {
	mu   sync.Mutex // of changes
	list atomic.Pointer[[]*cq]
	next atomic.Uint32
}

const (
	idleEvery = 8  // fruitless polls of a queue between two looks at another
	idleRow   = 16 // looks at one queue in a row, while they bring something
	idleShift = 10 // a queue where nothing comes is looked at up to 1<<idleShift times less often
)

// idling is how often a queue is looked at for others' sake: the next time when left is 0; each look in vain doubles the wait.
type idling struct{ left, shift atomic.Int32 }

func (i *idlers) add(c *cq) {
	i.change(func(list []*cq) []*cq { return append(list, c) })
}

func (i *idlers) remove(c *cq) {
	i.change(func(list []*cq) []*cq { return slices.DeleteFunc(list, func(o *cq) bool { return o == c }) })
}

func (i *idlers) change(f func([]*cq) []*cq) {
	i.mu.Lock()
	defer i.mu.Unlock()
	var list []*cq
	if old := i.list.Load(); old != nil {
		list = slices.Clone(*old)
	}
	list = f(list)
	i.list.Store(&list)
}

// aside is how many polls in vain may have had the RNIC's own goroutine step aside (netpoll's askAfter), with some to spare.
const aside = 48

// found is told of a poll of c that found a completion of a queue pair's. A program for which nothing else can complete goes on to look at its
// memory, as perftest's ib_write_lat does: what the peer writes there has to be received, by the RNIC's own goroutine again, which
// polls may have made step aside. Over iWARP a Write completes when it is sent, and such a program polls hardly in vain.
func (d *Device) found(c *cq, qpn uint32) {
	f := c.fruitless.Load()
	if !d.config.RoCE || f-c.yielded.Load() < aside || c.qps.Load() != 1 {
		return
	}
	if q := d.QP(qpn); q != nil && verbsinternal.Idle(q.qp) {
		c.yielded.Store(f)
		verbsinternal.Yield(c.cq)
	}
}

// fruitless is told of a poll of c that found nothing.
func (i *idlers) fruitless(c *cq) {
	if c.fruitless.Add(1)%idleEvery != 0 {
		return
	}
	list := *i.list.Load()
	if len(list) < 2 {
		return
	}
	other := list[i.next.Add(1)%uint32(len(list))]
	if other == c {
		return
	}
	if other.idling.left.Add(-1) > 0 {
		return
	}
	shift := min(other.idling.shift.Load()+1, idleShift)
	for range idleRow {
		if !verbsinternal.Drive(other.cq) {
			break
		}
		shift = 0
	}
	other.idling.shift.Store(shift)
	other.idling.left.Store(1 << shift)
}

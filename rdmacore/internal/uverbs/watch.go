//go:build linux && (amd64 || arm64)

package uverbs

import (
	"github.com/softrnic/softrnic/internal/verbsinternal"
)

// A thread of the program that reads a completion channel need not be woken by one of ours: it sleeps on the sockets
// itself, beside the channel, and receives for itself when it wakes.

// Watches reports whether a completion channel is one of the device's.
func (d *Device) Watches(fd int) bool {
	_, ok := d.chans.Load(fd)
	return ok
}

// Received is Watch's answer to a thread that has received.
const Received = -1

// Watch is for a thread that is about to sleep until something is in the completion channel fd, of which Config.Channel told: what
// has arrived is received, and Received is the answer. It may have put nothing in the channel, as an RDMA Write or half of a message
// does; then Watch is to be called again before the thread sleeps. If nothing had arrived, it puts descriptors in fds and reports
// how many: one of them can be read when there is something to receive, and then Watch is to be called again. They are good for
// nothing else, and may be another file's by then. The sleep must end as well with what comes in the channel: other threads receive, too.
func (d *Device) Watch(fd int, fds []int32) int {
	d.Settle()
	v, ok := d.chans.Load(fd)
	if !ok {
		return 0
	}
	c := v.(*channel)
	c.mu.Lock()
	queues := c.queues
	c.mu.Unlock()
	var room [16]int
	found, received := room[:0], false
	for _, q := range queues {
		if len(found) >= len(fds) {
			break
		}
		q.waits.Add(1)
		var got bool
		if found, got = verbsinternal.Watch(q.cq, found); got {
			a := calls.Get().(*call)
			q.ahead(a)
			calls.Put(a)
			received = true // the others have their turn nevertheless
		}
	}
	if received {
		return Received
	}
	n := min(len(found), len(fds))
	for i, f := range found[:n] {
		fds[i] = int32(f)
	}
	return n
}

// watched reports whether the program has waited for the queue in Watch since it armed it last: then it will again.
func (v *cq) watched() bool {
	n := v.waits.Load()
	return v.armed.Swap(n) != n
}

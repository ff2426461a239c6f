package cq

import (
	"runtime"

	"github.com/softrnic/softrnic/internal/netpoll"
)

// Driver is where the queue pairs receive: a netpoll.Group, but for tests, which see what the queue asks of it.
type Driver interface {
	// Drive receives what has arrived, without blocking. It reports whether
	// there was anything.
	Drive() bool
	// Yield says that the program does not poll from here on: progress must go on by
	// itself.
	Yield()
	// Serve and Forget say which queues it completes to.
	Serve(netpoll.Queue)
	Forget(netpoll.Queue)
	// Claim asks for the right to Sleep, which one goroutine has at a time. It
	// reports false if it is not to be had, or not worth while.
	Claim() bool
	// Sleep returns when something has been driven, after Rouse, and when the Group is
	// closed or serves nothing any more. It reports false if it cannot sleep. Rouse has
	// effect from Claim on.
	Sleep() bool
	// Rouse ends a Sleep. It does not block.
	Rouse()
	// Leave gives up the right.
	Leave()
	// Watch is Drive for a thread that sleeps by itself: see netpoll.Group.Watch.
	Watch(fds []int) (more []int, got bool)
}

// maxVisits bounds how many Drivers one Poll visits.
const maxVisits = 8

// driver is a Driver, and how many queue pairs have attached it.
type driver struct {
	Driver
	users int
}

// Group is where the queue pairs receive whose receives complete here.
func (q *Queue) Group() *netpoll.Group { return &q.group }

// Attach makes Poll visit d when the queue is empty, until it was detached as often as attached: once for each
// work queue that completes here and is driven by d.
func (q *Queue) Attach(d Driver) {
	q.driveMu.Lock()
	defer q.driveMu.Unlock()
	for i := range q.drivers {
		if q.drivers[i].Driver == d {
			q.drivers[i].users++
			return
		}
	}
	q.drivers = append(q.drivers, driver{d, 1})
	d.Serve(q)
}

// Detach undoes one Attach.
func (q *Queue) Detach(d Driver) {
	q.driveMu.Lock()
	defer q.driveMu.Unlock()
	for i := range q.drivers {
		if q.drivers[i].Driver != d {
			continue
		}
		if q.drivers[i].users--; q.drivers[i].users == 0 {
			last := len(q.drivers) - 1
			q.drivers[i] = q.drivers[last]
			q.drivers[last] = driver{}
			q.drivers = q.drivers[:last]
			d.Forget(q)
		}
		return
	}
}

// Drive receives what has arrived for the queue pairs that complete here, and reports whether there was anything. It
// is Poll without the completions, for a program that has time.
func (q *Queue) Drive() bool { return q.drive() }

// drive visits attached Drivers once, in turn if there are many. Of several pollers one drives, the others report an empty queue
// meanwhile, and make way for it: if it has lost its processor they would keep it from it.
func (q *Queue) drive() (progress bool) {
	if !q.driveMu.TryLock() {
		runtime.Gosched()
		return false
	}
	defer q.driveMu.Unlock()
	q.visitAll(func(d Driver) bool {
		progress = d.Drive() || progress
		return true
	})
	return progress
}

// visitAll calls visit with attached Drivers in turn, maxVisits at most, as long as it returns true. With driveMu held.
func (q *Queue) visitAll(visit func(Driver) bool) {
	for range min(len(q.drivers), maxVisits) {
		if q.visit++; q.visit >= len(q.drivers) {
			q.visit = 0
		}
		if !visit(q.drivers[q.visit].Driver) {
			return
		}
	}
}

// Watch lets the queue pairs receive, though a notification is armed. Where nothing came of it, it adds to
// fds the descriptors that are ready to be read when more does, of maxVisits drivers at most: the others progress by themselves,
// if a little later. It waits for a poller that drives: that one may not look again, and who asks is about to sleep.
func (q *Queue) Watch(fds []int) (more []int, got bool) {
	q.driveMu.Lock()
	defer q.driveMu.Unlock()
	q.visitAll(func(d Driver) bool {
		fds, got = d.Watch(fds)
		return !got
	})
	return fds, got
}

// Yield says that the program does not poll from here on.
func (q *Queue) Yield() {
	q.driveMu.Lock()
	defer q.driveMu.Unlock()
	for i := range q.drivers {
		q.drivers[i].Yield()
	}
}

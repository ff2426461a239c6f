package cq

import (
	"runtime"

	"github.com/softrnic/softrnic/internal/engine"
)

// Driver makes progress on behalf of a poller that found the queue empty. It is an
// engine.Group, but for tests.
type Driver interface {
	// Drive receives what has arrived, without blocking. It reports whether
	// there was anything.
	Drive() bool
	// Yield says that nobody polls from here on: progress must go on by
	// itself.
	Yield()
	// Serve and Forget say which queues it completes to.
	Serve(engine.Queue)
	Forget(engine.Queue)
}

// maxVisits bounds how many Drivers one Poll visits.
const maxVisits = 8

// driver is a Driver, and how many queue pairs have attached it.
type driver struct {
	Driver
	users int
}

// Group is where the queue pairs receive whose receives complete here.
func (q *Queue) Group() *engine.Group { return &q.group }

// Attach makes Poll visit d when the queue is empty: once more for each queue pair that
// completes here and is driven by d.
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

// drive visits attached Drivers once, in turn if there are many. Of several pollers
// one drives, the others report an empty queue meanwhile, and make way for it: if it has
// lost its processor they would keep it from it.
func (q *Queue) drive() bool {
	if !q.driveMu.TryLock() {
		runtime.Gosched()
		return false
	}
	defer q.driveMu.Unlock()
	progress := false
	for range min(len(q.drivers), maxVisits) {
		if q.visit++; q.visit >= len(q.drivers) {
			q.visit = 0
		}
		progress = q.drivers[q.visit].Drive() || progress
	}
	return progress
}

func (q *Queue) yield() {
	q.driveMu.Lock()
	defer q.driveMu.Unlock()
	for i := range q.drivers {
		q.drivers[i].Yield()
	}
}

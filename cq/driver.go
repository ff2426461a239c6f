package cq

// Driver makes progress on behalf of a poller that found the queue empty.
type Driver interface {
	// Drive receives what has arrived, without blocking. It reports whether
	// there was anything.
	Drive() bool
	// Yield says that nobody polls from here on: progress must go on by
	// itself.
	Yield()
}

// maxDrivers bounds how many recently active queue pairs one Poll visits.
const maxDrivers = 8

// idleVisits is how many fruitless visits make a Driver leave the list, if it is
// not alone there. It comes back by Attach when it receives by itself.
const idleVisits = 1 << 10

type driver struct {
	Driver
	idle int
}

// Attach makes Poll visit d when the queue is empty. Attaching twice is
// attaching once. When the list is full the Driver longest without anything to
// do leaves it.
func (q *Queue) Attach(d Driver) {
	q.driveMu.Lock()
	defer q.driveMu.Unlock()
	worst := 0
	for i := range q.drivers {
		if q.drivers[i].Driver == d {
			q.drivers[i].idle = 0
			return
		}
		if q.drivers[i].idle > q.drivers[worst].idle {
			worst = i
		}
	}
	if len(q.drivers) < maxDrivers {
		q.drivers = append(q.drivers, driver{Driver: d})
		return
	}
	q.drivers[worst].Yield()
	q.drivers[worst] = driver{Driver: d}
}

// Detach makes Poll forget d; when it returns, no Drive of d that this queue
// called is running.
func (q *Queue) Detach(d Driver) {
	q.driveMu.Lock()
	defer q.driveMu.Unlock()
	for i := range q.drivers {
		if q.drivers[i].Driver == d {
			q.remove(i)
			return
		}
	}
}

func (q *Queue) remove(i int) {
	last := len(q.drivers) - 1
	q.drivers[i] = q.drivers[last]
	q.drivers[last] = driver{}
	q.drivers = q.drivers[:last]
}

// drive visits the attached Drivers once. Of several pollers one drives, the
// others report an empty queue meanwhile.
func (q *Queue) drive() bool {
	if !q.driveMu.TryLock() {
		return false
	}
	defer q.driveMu.Unlock()
	progress := false
	for i := 0; i < len(q.drivers); {
		d := &q.drivers[i]
		if d.Drive() {
			progress = true
			d.idle = 0
		} else if d.idle++; d.idle >= idleVisits && len(q.drivers) > 1 {
			d.Yield()
			q.remove(i)
			continue
		}
		i++
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

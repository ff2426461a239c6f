package srq

// starved are the queue pairs that have found no receive, in the order in which they
// first asked. A peer decides how many: a Post wakes as many as it has receives.
//
// A receive is for the stream that comes first. One that is woken and finds none, because another was
// faster, sleeps again in its old place. For each receive that is there a stream has
// been woken that has neither taken one nor looked in vain since, or none sleeps: Post
// wakes one for each, Await one if there is a receive, and Forget one in the place of
// a queue pair that was woken and ends.
type starved struct {
	known map[Waiter]*waiter
	asked uint64  // how many first asks there were
	first *waiter // of those asleep
	last  *waiter
}

// waiter is a queue pair that has waited.
type waiter struct {
	c          Waiter
	ask        uint64 // the number of its first ask; 0: it has taken a receive since
	asleep     bool
	prev, next *waiter // among those asleep, which are in the order of their asks
}

// sleep makes the queue pair of c one that sleeps, in its place.
func (s *starved) sleep(c Waiter) {
	w := s.known[c]
	if w == nil {
		w = &waiter{c: c}
		s.known[c] = w
	}
	if w.asleep {
		return
	}
	after := s.last
	if w.ask == 0 {
		s.asked++
		w.ask = s.asked
	} else { // before it are only others that were woken
		after = nil
		for f := s.first; f != nil && f.ask < w.ask; f = f.next {
			after = f
		}
	}
	s.link(w, after)
}

func (s *starved) link(w, after *waiter) {
	w.asleep, w.prev = true, after
	if after == nil {
		w.next, s.first = s.first, w
	} else {
		w.next, after.next = after.next, w
	}
	if w.next == nil {
		s.last = w
	} else {
		w.next.prev = w
	}
}

func (s *starved) unlink(w *waiter) {
	if w.prev == nil {
		s.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		s.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.asleep, w.prev, w.next = false, nil, nil
}

// wake wakes the first of those who sleep, and reports whether there is
// one.
func (s *starved) wake() bool {
	w := s.first
	if w == nil {
		return false
	}
	s.unlink(w)
	w.c.Wake()
	return true
}

func (s *starved) wakeAll() {
	for s.wake() {
	}
}

// took says that the queue pair of c, if it has waited, has taken a receive.
func (s *starved) took(c Waiter) {
	if w := s.known[c]; w != nil {
		if w.asleep {
			s.unlink(w)
		}
		w.ask = 0
	}
}

// forget forgets the queue pair of c, and reports whether it was woken and has not
// taken a receive.
func (s *starved) forget(c Waiter) (woken bool) {
	w := s.known[c]
	if w == nil {
		return false
	}
	delete(s.known, c)
	if w.asleep {
		s.unlink(w)
		return false
	}
	return w.ask != 0
}

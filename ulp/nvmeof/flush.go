package nvmeof

import "sync"

// namespace is a disk whose Syncs are shared: of those that wait one answers all. However many Flushes hosts send, one
// thread of the system waits for the disk.
type namespace struct {
	Disk
	mu      sync.Mutex
	running bool
	next    *round // the Sync that begins when the present one has ended; nil: nobody waits for one
}

type round struct {
	done chan struct{}
	err  error // once done
}

// sync returns when a Sync has ended that began after the call.
func (s *namespace) sync() error {
	s.mu.Lock()
	if s.next == nil {
		s.next = &round{done: make(chan struct{})}
	}
	mine := s.next
	if !s.running {
		s.running = true
		go s.run()
	}
	s.mu.Unlock()
	<-mine.done
	return mine.err
}

func (s *namespace) run() {
	for {
		s.mu.Lock()
		r := s.next
		s.next, s.running = nil, r != nil
		s.mu.Unlock()
		if r == nil {
			return
		}
		r.err = s.Sync()
		close(r.done)
	}
}

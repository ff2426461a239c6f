package nd2

import "github.com/softrnic/softrnic/verbs"

// Armed reports whether somebody waits in Notify.
func (c *CompletionQueue) Armed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bell != nil
}

// Ears is how many wait in Notify, and whether one of them listens.
func (c *CompletionQueue) Ears() (n int, listening bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bell != nil {
		n = c.bell.ears
	}
	return n, c.listening
}

// Armed reports whether somebody waits in Notify.
func (s *SharedReceiveQueue) Armed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bell != nil
}

// Verbs are the objects below.
func (c *CompletionQueue) Verbs() *verbs.CQ     { return c.v }
func (s *SharedReceiveQueue) Verbs() *verbs.SRQ { return s.v }
func (q *QueuePair) Verbs() *verbs.QP           { return q.v }

// Owners is how many rings and shared receive queues have a number.
func (a *Adapter) Owners() int { return a.owners.Len() }

// NIC is the adapter's.
func (a *Adapter) NIC() *verbs.RNIC { return a.nic }

// OnEvent has f told of the events of the adapter's RNIC when the adapter has been.
func (a *Adapter) OnEvent(f func(verbs.Event)) error {
	return a.nic.SetEventHandler(func(e verbs.Event) {
		a.event(e)
		f(e)
	})
}

// QueuePairs is how many queue pairs the adapter knows.
func (a *Adapter) QueuePairs() int {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return len(a.qps)
}

package vitcp

import (
	"slices"

	"github.com/softrnic/softrnic/internal/vitcp/segment"
)

// Places is how many connections have a place at the Listener.
func (l *Listener) Places() int { return l.in.Held() }

// Waiters is how many Waits are under way for a discriminator.
func (l *Listener) Waiters(d segment.Discriminator) int {
	l.match.mu.Lock()
	defer l.match.mu.Unlock()
	return len(slices.DeleteFunc(slices.Clone(l.match.waiters), func(w *Waiter) bool { return w.filter.Called != d }))
}

// LastMoment is what a Wait returns that is left when it has been given r.
func LastMoment(r *Pending) *Pending {
	var m matcher
	w := m.wait(nil, Filter{Called: r.ce.Called})
	m.offer(r, nil, false)
	return m.leave(w)
}

// NewPending is a request in Matching.
func NewPending(called segment.Discriminator) *Pending {
	return &Pending{progress: progress{machine: passiveMachine, state: stateMatching}, ce: segment.CE{Called: called}}
}

// Stirred is closed when the peer has not waited for its answer.
func (r *Pending) Stirred() <-chan struct{} { return r.watch.done }

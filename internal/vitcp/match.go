package vitcp

import (
	"slices"
	"sync"
)

// matcher brings requests and those who wait for them together: the lookup of a
// discriminator in figure 4.3.
type matcher struct {
	mu      sync.Mutex
	waiters []*Waiter // in the order in which they came
	offers  []*offer  // that wait for a waiter, likewise
}

// Waiter is a Wait under way.
type Waiter struct {
	l      *Listener
	filter Filter
	found  chan *Pending // of one place
}

// offer is a request in Matching.
type offer struct {
	r       *Pending
	decided chan struct{} // closed when result is no longer searching, unless by withdraw
	// result belongs to the matcher's lock.
	result result
}

// result is how a search went.
type result uint8

const (
	// searching: nobody waits for it yet.
	searching result = iota
	// given: a waiter has the request.
	given
	// otherBit: somebody waits for it with another peer-to-peer bit.
	otherBit
	// nobody waits for it.
	nobody
)

// offer looks for the waiter of r: to, if it fits, or the one that has waited longest. If
// there is none it goes on searching, until decided or withdrawn, or with hold unset
// gives up.
func (m *matcher) offer(r *Pending, to *Waiter, hold bool) (*offer, result) {
	m.mu.Lock()
	defer m.mu.Unlock()
	o := &offer{r: r, decided: make(chan struct{}), result: nobody}
	found := -1
	for i, w := range m.waiters {
		switch {
		case !w.filter.matches(r):
		case w.filter.PeerToPeer != r.peerToPeer():
			o.result = otherBit
		case found < 0 || w == to:
			found = i
		}
	}
	if found >= 0 {
		w := m.waiters[found]
		m.waiters = slices.Delete(m.waiters, found, found+1)
		o.give()
		w.found <- r
		return o, given
	}
	if hold && o.result == nobody {
		o.result = searching
		m.offers = append(m.offers, o)
	}
	return o, o.result
}

// give moves the request to Pending Accept: a waiter has it.
func (o *offer) give() {
	o.r.on(trigFound)
	if o.r.leave != nil {
		o.r.leave()
	}
	o.decide(given)
}

// decide ends the search.
func (o *offer) decide(r result) {
	o.result = r
	close(o.decided)
}

// withdraw ends a search and returns how it went: the request may have been given
// away.
func (m *matcher) withdraw(o *offer) result {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i := slices.Index(m.offers, o); i >= 0 {
		m.offers = slices.Delete(m.offers, i, i+1)
		o.result = nobody
	}
	return o.result
}

// wait gives a new waiter the first request that f matches, or enters it for one. Then
// those that it would match but for the peer-to-peer bit need not search on: they
// are to be rejected, as they would be if they came now (VT-3.3-M2).
func (m *matcher) wait(l *Listener, f Filter) *Waiter {
	w := &Waiter{l: l, filter: f, found: make(chan *Pending, 1)}
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, o := range m.offers {
		if f.matches(o.r) && f.PeerToPeer == o.r.peerToPeer() {
			m.offers = slices.Delete(m.offers, i, i+1)
			o.give()
			w.found <- o.r
			return w
		}
	}
	m.offers = slices.DeleteFunc(m.offers, func(o *offer) bool {
		wrong := f.matches(o.r)
		if wrong {
			o.decide(otherBit)
		}
		return wrong
	})
	m.waiters = append(m.waiters, w)
	return w
}

// leave ends a wait. It returns the request that came at the last moment, if one
// did.
func (m *matcher) leave(w *Waiter) *Pending {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i := slices.Index(m.waiters, w); i >= 0 {
		m.waiters = slices.Delete(m.waiters, i, i+1)
		return nil
	}
	return <-w.found
}

// Held is how many requests wait in Matching.
func (l *Listener) Held() int {
	l.match.mu.Lock()
	defer l.match.mu.Unlock()
	return len(l.match.offers)
}

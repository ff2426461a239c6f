package vitcp

import (
	"slices"
	"sync"
)

// matcher brings requests and those who wait for them together: the lookup of a
// discriminator in figure 4.3.
type matcher struct {
	mu      sync.Mutex
	waiters []*waiter // in the order in which they came
	offers  []*offer  // that wait for a waiter, likewise
}

// waiter is a Wait under way.
type waiter struct {
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

// offer looks for the waiter of r. If there is none it goes on searching, until
// decided or withdrawn, or with hold unset gives up.
func (m *matcher) offer(r *Pending, hold bool) (*offer, result) {
	m.mu.Lock()
	defer m.mu.Unlock()
	o := &offer{r: r, decided: make(chan struct{}), result: nobody}
	for i, w := range m.waiters {
		if !w.filter.matches(r) {
			continue
		}
		if w.filter.PeerToPeer == r.peerToPeer() {
			m.waiters = slices.Delete(m.waiters, i, i+1)
			o.give()
			w.found <- r
			return o, given
		}
		o.result = otherBit
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

// wait takes the first request that f matches, or enters a waiter for one. Then
// those that it would match but for the peer-to-peer bit need not search on: they
// are to be rejected, as they would be if they came now (VT-3.3-M2).
func (m *matcher) wait(f Filter) (*waiter, *Pending) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, o := range m.offers {
		if f.matches(o.r) && f.PeerToPeer == o.r.peerToPeer() {
			m.offers = slices.Delete(m.offers, i, i+1)
			o.give()
			return nil, o.r
		}
	}
	m.offers = slices.DeleteFunc(m.offers, func(o *offer) bool {
		wrong := f.matches(o.r)
		if wrong {
			o.decide(otherBit)
		}
		return wrong
	})
	w := &waiter{filter: f, found: make(chan *Pending, 1)}
	m.waiters = append(m.waiters, w)
	return w, nil
}

// leave ends a wait. It returns the request that came at the last moment, if one
// did.
func (m *matcher) leave(w *waiter) *Pending {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i := slices.Index(m.waiters, w); i >= 0 {
		m.waiters = slices.Delete(m.waiters, i, i+1)
		return nil
	}
	return <-w.found
}

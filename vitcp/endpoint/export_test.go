package endpoint

// Skip has an endpoint that has not been started go on as if n receives had been posted at
// either end, told and used up.
func (e *Endpoint) Skip(n uint16) {
	e.posted, e.told, e.consumed = n, n, n
	e.peerPosted, e.spent = n, n
}

// Broken is what a write failed with before the end.
func (e *Endpoint) Broken() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.broken
}

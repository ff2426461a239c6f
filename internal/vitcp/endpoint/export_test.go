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

// WriterRests reports whether nobody is the writer, and nothing is there for it to do. As long as that is so, all that is told
// the Handler is told by the reader.
func (e *Endpoint) WriterRests() bool {
	if e.tx.more.Load() || !e.tx.own.TryLock() {
		return false
	}
	e.tx.own.Unlock()
	return true
}

// ReaderWaits reports whether the reader waits for something, and has told the group.
func (e *Endpoint) ReaderWaits() bool {
	if !e.rx.own.TryLock() {
		return false
	}
	defer e.rx.own.Unlock()
	return e.rx.waits
}

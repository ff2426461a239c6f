//go:build linux && (amd64 || arm64)

package uverbs

import "sync"

// errands are what a queue pair or a device has done by goroutines of its own: what a lock of the caller's forbids there, or may wait for
// a peer, for a bounded time. The zero value is ready to be used. Methods may be called from any goroutine.
type errands struct {
	mu   sync.Mutex
	over bool
	all  sync.WaitGroup
}

// run has f run in the background. It reports false, and does nothing, behind end.
func (e *errands) run(f func()) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.over {
		e.all.Go(f)
	}
	return !e.over
}

// end returns when all that was run has returned. Nothing runs from here on.
func (e *errands) end() {
	e.mu.Lock()
	e.over = true
	e.mu.Unlock()
	e.all.Wait()
}

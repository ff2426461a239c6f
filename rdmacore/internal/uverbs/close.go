//go:build linux && (amd64 || arm64)

package uverbs

import (
	"sync"
	"syscall"
)

var errClosed error = &Refusal{syscall.EIO, "the device is closed"}

// Close destroys what the program left: queue pairs first, whose streams close in good order, then what they were made of.
func (f *File) Close() {
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return
	}
	f.closed = true
	channels := f.channels
	f.channels = nil
	f.mu.Unlock()
	f.dev.mu.Lock()
	delete(f.dev.files, f)
	f.dev.mu.Unlock()

	f.dev.Settle()
	var parting sync.WaitGroup // at once: each may take endingTime
	for _, q := range f.qps.All {
		parting.Go(q.part)
	}
	parting.Wait()
	for _, q := range f.qps.All {
		_ = f.dev.endQP(q)
	}
	for _, s := range f.srqs.All {
		_ = f.dev.endSRQ(s)
	}
	for _, c := range f.cqs.All {
		_ = f.dev.endCQ(c)
	}
	for _, w := range f.mws.All {
		_ = w.mw.Deallocate()
	}
	for _, m := range f.mrs.All {
		_ = m.mr.Deregister()
	}
	for _, p := range f.pds.All {
		if p.parent == nil {
			_ = p.pd.Deallocate()
		}
	}
	for _, c := range channels {
		c.close()
	}
	if c := f.async.Load(); c != nil {
		c.close()
	}
}

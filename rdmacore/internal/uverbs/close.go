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
	f.qps.each(func(_ uint32, q *QP) { parting.Go(q.part) })
	parting.Wait()
	f.qps.each(func(_ uint32, q *QP) { _ = f.dev.endQP(q) })
	f.srqs.each(func(_ uint32, s *srq) { _ = f.dev.endSRQ(s) })
	f.cqs.each(func(_ uint32, c *cq) { _ = f.dev.endCQ(c) })
	f.mrs.each(func(_ uint32, m *mr) { _ = m.mr.Deregister() })
	f.pds.each(func(_ uint32, p *pd) { _ = p.pd.Deallocate() })
	for _, c := range channels {
		c.close()
	}
	if c := f.async.Load(); c != nil {
		c.close()
	}
}

package wr

import (
	"runtime"
	"sync"
	"sync/atomic"
	"weak"
)

// A Completion has no room for the reason that it failed for, and gets none: a program may
// have millions of those that succeed. One that failed has its reason's number where another
// has its Value. The number holds nothing: the reason is the queue pair's, which keeps it until
// it has another stream or is gone.

var kept struct {
	last    atomic.Uint64
	reasons sync.Map // of weak.Pointer[Reason], by number
}

// Number gives r a number, by which it is found for as long as somebody else has r.
func (r *Reason) Number() uint64 {
	n := kept.last.Add(1)
	kept.reasons.Store(n, weak.Make(r))
	runtime.AddCleanup(r, func(n uint64) { kept.reasons.Delete(n) }, n)
	return n
}

// reasonOf is the reason with that number; nil if there is none, or none any more.
func reasonOf(n uint64) *Reason {
	if p, ok := kept.reasons.Load(n); ok {
		return p.(weak.Pointer[Reason]).Value()
	}
	return nil
}

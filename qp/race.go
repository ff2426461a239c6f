//go:build race

package qp

import "sync/atomic"

// ioSync orders a write to a socket before the reads of others that follow, as
// package syscall does for its own reads and writes: the race detector does not
// see what comes through the kernel, and would report two queue pairs of one
// process that are connected to each other.
var ioSync atomic.Uint32

func raceRelease() { ioSync.Add(1) }

func raceAcquire() { ioSync.Load() }

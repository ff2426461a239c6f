//go:build race

package endpoint

import "syscall"

// null reads as empty at once.
var null, _ = syscall.Open("/dev/null", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)

// raceRelease and raceAcquire order a write to a socket before the reads of others that
// follow, as package syscall does for its own reads and writes: the race detector does
// not see what comes through the kernel, and would report the two ends of a connection
// in one process.
func raceRelease() { _, _ = syscall.Write(-1, nil) }

func raceAcquire() { _, _ = syscall.Read(null, nil) }

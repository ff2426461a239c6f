//go:build linux || darwin

package perf

import (
	"fmt"
	"syscall"
	"time"
)

// otherFiles is how many files a process has open besides its connections.
const otherFiles = 64

// allowFiles raises the limit on open files of this process as far as it may, and
// fails if that is too few for so many connections.
func allowFiles(connections int) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("asking for the limit on open files: %w", err)
	}
	if need := uint64(connections + otherFiles); need > limit.Max {
		return fmt.Errorf("%d queue pairs need %d open files, but the hard limit is %d: "+
			"raise it (ulimit -Hn %d, as root), or ask for --qps %d",
			connections, need, limit.Max, need, max(0, int64(limit.Max)-otherFiles))
	}
	limit.Cur = limit.Max
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("raising the limit on open files to %d: %w", limit.Max, err)
	}
	return nil
}

// processorTime is the processor time of this process so far; nil if it is not
// known.
func processorTime() *time.Duration {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return nil
	}
	used := time.Duration(r.Utime.Nano() + r.Stime.Nano())
	return &used
}

package perf

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

// clockTick is the unit of /proc/stat, the same on all processors.
const clockTick = time.Second / 100

// othersTime is the processor time, so far, of what is neither this process nor one of those that it has waited for: other
// programs, and other machines that take this one's processors. It is nil if it is not known.
func othersTime() *time.Duration {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return nil
	}
	var user, nice, system, idle, iowait, irq, softirq, steal int64
	line, _, _ := strings.Cut(string(text), "\n")
	if _, err := fmt.Sscanf(line, "cpu %d %d %d %d %d %d %d %d",
		&user, &nice, &system, &idle, &iowait, &irq, &softirq, &steal); err != nil {
		return nil
	}
	others := time.Duration(user+nice+system+steal) * clockTick
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var r syscall.Rusage
		if syscall.Getrusage(who, &r) != nil {
			return nil
		}
		others -= time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	return &others
}

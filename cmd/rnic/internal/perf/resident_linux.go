package perf

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
)

// residentMemory is how many octets of memory this process holds, after giving
// back to the system what it does not use.
func residentMemory() (*int64, error) {
	runtime.GC() // a first time, for what pools hold: they let go of it at the second
	debug.FreeOSMemory()
	// Unlike the figures of status, those of smaps are exact.
	const file = "/proc/self/smaps_rollup"
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("asking for the resident memory: %w", err)
	}
	for line := range bytes.Lines(text) {
		var kib int64
		if n, _ := fmt.Sscanf(string(line), "Rss: %d kB", &kib); n == 1 {
			octets := kib << 10
			return &octets, nil
		}
	}
	return nil, fmt.Errorf("%s does not tell the resident memory", file)
}

package perf

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
)

// residentMemory is the resident memory of this process in octets, after unused
// memory has been given back to the system.
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

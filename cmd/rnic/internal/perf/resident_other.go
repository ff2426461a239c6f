//go:build !linux

package perf

// residentMemory is not known on this system.
func residentMemory() (*int64, error) { return nil, nil }

//go:build !linux && !darwin

package perf

import "time"

// allowFiles has nothing to do where open files are not limited.
func allowFiles(int) error { return nil }

// processorTime is not known on this system.
func processorTime() *time.Duration { return nil }

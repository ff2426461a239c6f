//go:build !linux

package perf

import "time"

// othersTime is not known on this system.
func othersTime() *time.Duration { return nil }

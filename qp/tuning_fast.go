//go:build fastpaths

package qp

import "time"

// defaultTuning takes each fast path wherever it can. Direct is above what the tests
// of segments that break off leave away: what has come of those is in its place
// then.
var defaultTuning = Tuning{Gather: 1, Eager: 1, Hold: 1 << 20, HoldTime: time.Millisecond, Direct: 64, ReadSpin: 1000, WriteSpin: 1000}

//go:build fastpaths

package qp

// defaultTuning takes each fast path wherever it can. Direct is above what the tests
// of segments that break off leave away: what has come of those is in its place
// then.
var defaultTuning = Tuning{Gather: 1, Eager: 1, Hold: 1 << 20, Direct: 64, ReadSpin: 1000, WriteSpin: 1000}

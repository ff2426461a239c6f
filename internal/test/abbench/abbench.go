// Package abbench is for benchmarks: it times a loop and another one to compare it with in
// turns of one run, because a machine's speed changes from one run to the next.
package abbench

import (
	"slices"
	"testing"
	"time"
)

// turn is how many steps of one are taken in a row.
const turn = 8

// Run takes steps of ours and of theirs in turns. Each returns how long one of its steps took.
// It reports p50 and p99 of both in microseconds, those of theirs with the name what, and
// their ratios; ns/op is that of a step of either.
func Run(b *testing.B, what string, ours, theirs func() time.Duration) {
	var mine, other []time.Duration
	for b.Loop() {
		if len(mine)/turn == len(other)/turn {
			mine = append(mine, ours())
		} else {
			other = append(other, theirs())
		}
	}
	for len(other) < turn { // a run of one step, say
		mine, other = append(mine, ours()), append(other, theirs())
	}
	slices.Sort(mine)
	slices.Sort(other)
	for name, at := range map[string]int{"p50": 50, "p99": 99} {
		m, o := mine[len(mine)*at/100], other[len(other)*at/100]
		b.ReportMetric(float64(m)/1e3, name+"-us")
		b.ReportMetric(float64(o)/1e3, name+"-"+what+"-us")
		b.ReportMetric(float64(m)/float64(o), name+"-ratio")
	}
}

// Timed is a step that takes as long as f.
func Timed(f func()) func() time.Duration {
	return func() time.Duration {
		begin := time.Now()
		f()
		return time.Since(begin)
	}
}

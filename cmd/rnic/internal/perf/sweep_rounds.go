package perf

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/softrnic/softrnic/cmd/rnic/internal/histogram"
)

// sweepRounds is how often each figure is measured, unless the user wants another number.
const sweepRounds = 3

// busyShare is the share of the processors' time that others may have before a report says so.
const busyShare = 0.05

// spread says how sure a figure is: the least and the most of some rounds. A stream's is in GB/s, a latency's the p50 in us.
type spread struct {
	Rounds int     `json:"rounds"`
	Least  float64 `json:"least"`
	Most   float64 `json:"most"`
}

// figure is what a spread is of.
func (r *perfResult) figure() float64 {
	if r.Latency != nil {
		return r.Latency.P50
	}
	return r.GBps
}

// overRounds is the result of some rounds: of a stream the median one, of latencies all times together.
func overRounds(run perfRun, rounds []perfResult) perfResult {
	slices.SortFunc(rounds, func(a, b perfResult) int { return cmp.Compare(a.figure(), b.figure()) })
	all := rounds[len(rounds)/2]
	if run.Latency {
		var times histogram.Histogram
		var seconds float64
		for _, r := range rounds {
			times.Add(r.times)
			seconds += r.Seconds
		}
		all = newLatencyResult(run, &times, time.Duration(seconds*float64(time.Second)))
	}
	all.Spread = &spread{Rounds: len(rounds), Least: rounds[0].figure(), Most: rounds[len(rounds)-1].figure()}
	return all
}

// off is how far the round that was farthest off was from value, as a share of it.
func (s *spread) off(value float64) float64 { return max(s.Most-value, value-s.Least) / value }

// HowSure says in a sentence what the figures are.
func (r *sweepReport) HowSure() string {
	if r.Rounds == 1 {
		return "One round of each: nothing says how sure these figures are. --rounds 3 does."
	}
	var off []float64
	for _, p := range r.Streams {
		if p.figure() > 0 {
			off = append(off, p.Spread.off(p.figure()))
		}
	}
	slices.Sort(off)
	if len(off) == 0 {
		return fmt.Sprintf("Medians of %d rounds that took turns.", r.Rounds)
	}
	return fmt.Sprintf("Medians of %d rounds that took turns; ± is how far the farthest was off: at most %.0f %% for half of the streams, %.0f %% for the worst.",
		r.Rounds, 100*off[len(off)/2], 100*off[len(off)-1])
}

// Remark is what else a reader has to know of how sure the figures are: a sentence, or nothing.
func (r *sweepReport) Remark() string {
	if r.Others < busyShare {
		return ""
	}
	return fmt.Sprintf("Other programs, or other machines on the same processors, had %.0f %% of the processors' time meanwhile: "+
		"measure again when nothing else runs.", 100*r.Others)
}

// othersShare is the share of the processors' time that others had since then, when they had had so much; 0 if that is not known.
func othersShare(before *time.Duration, then time.Time) float64 {
	now := othersTime()
	if before == nil || now == nil {
		return 0
	}
	all := float64(time.Since(then)) * float64(runtime.NumCPU())
	return max(0, float64(*now-*before)) / all
}

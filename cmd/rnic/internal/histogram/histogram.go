// Package histogram counts durations.
package histogram

import (
	"math/bits"
	"time"
)

// Histogram counts durations in buckets that are at most 1/128 of their value
// wide, up to about an hour. Recording allocates nothing.
type Histogram struct {
	counts   [(42 - subBits) << subBits]uint64
	N        uint64
	sum      time.Duration
	Min, Max time.Duration // of those recorded; 0 without any
}

const subBits = 7

// Record counts d.
func (h *Histogram) Record(d time.Duration) {
	d = max(d, 0) // a clock may have been set back
	h.counts[min(bucketOf(uint64(d)), len(h.counts)-1)]++
	if h.N == 0 || d < h.Min {
		h.Min = d
	}
	h.N++
	h.sum += d
	h.Max = max(h.Max, d)
}

// Add counts all that other has.
func (h *Histogram) Add(other *Histogram) {
	if other.N == 0 {
		return
	}
	for i, n := range other.counts {
		h.counts[i] += n
	}
	if h.N == 0 || other.Min < h.Min {
		h.Min = other.Min
	}
	h.N += other.N
	h.sum += other.sum
	h.Max = max(h.Max, other.Max)
}

// bucketOf is the bucket of v: one a value below 1<<subBits, then 1<<subBits
// for each power of two.
func bucketOf(v uint64) int {
	if v < 1<<subBits {
		return int(v)
	}
	shift := bits.Len64(v) - subBits - 1
	return shift<<subBits + int(v>>shift)
}

// lowerBound is the least value of a bucket.
func lowerBound(bucket int) uint64 {
	if bucket < 1<<subBits {
		return uint64(bucket)
	}
	shift := bucket>>subBits - 1
	return uint64(bucket-shift<<subBits) << shift
}

// Mean is the average of what was recorded, 0 without any.
func (h *Histogram) Mean() time.Duration { return h.sum / time.Duration(max(h.N, 1)) }

// Shares calls f for each duration that was recorded, shortest first, with the
// share (0 to 1) of all that do not exceed it. Durations are exact to a bucket.
func (h *Histogram) Shares(f func(d time.Duration, share float64)) {
	var seen uint64
	for i, c := range h.counts {
		if c > 0 {
			seen += c
			f(max(time.Duration(lowerBound(i)), h.Min), float64(seen)/float64(h.N))
		}
	}
}

// Quantile is the duration that the share q (0 to 1) of all do not exceed.
func (h *Histogram) Quantile(q float64) time.Duration {
	rank := uint64(q * float64(h.N))
	var seen uint64
	for i, c := range h.counts {
		if seen += c; seen > rank {
			return min(max(time.Duration(lowerBound(i)), h.Min), h.Max)
		}
	}
	return h.Max
}

// Microseconds is d as figures of latency are shown.
func Microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

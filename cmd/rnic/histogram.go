package main

import (
	"math/bits"
	"time"
)

// histogram counts durations in buckets that are at most 1/128 of their value
// wide, up to about an hour. Recording allocates nothing.
type histogram struct {
	counts   [(42 - subBits) << subBits]uint64
	n        uint64
	sum      time.Duration
	min, max time.Duration // of those recorded; 0 without any
}

const subBits = 7

func (h *histogram) record(d time.Duration) {
	d = max(d, 0) // a clock may have been set back
	h.counts[min(bucketOf(uint64(d)), len(h.counts)-1)]++
	if h.n == 0 || d < h.min {
		h.min = d
	}
	h.n++
	h.sum += d
	h.max = max(h.max, d)
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

func (h *histogram) mean() time.Duration { return h.sum / time.Duration(max(h.n, 1)) }

// shares calls f for each duration that was recorded, shortest first, with the
// share (0 to 1) of all that do not exceed it. Durations are exact to a bucket.
func (h *histogram) shares(f func(d time.Duration, share float64)) {
	var seen uint64
	for i, c := range h.counts {
		if c > 0 {
			seen += c
			f(max(time.Duration(lowerBound(i)), h.min), float64(seen)/float64(h.n))
		}
	}
}

// quantile is the duration that the share q (0 to 1) of all do not exceed.
func (h *histogram) quantile(q float64) time.Duration {
	rank := uint64(q * float64(h.n))
	var seen uint64
	for i, c := range h.counts {
		if seen += c; seen > rank {
			return min(max(time.Duration(lowerBound(i)), h.min), h.max)
		}
	}
	return h.max
}

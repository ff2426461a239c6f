package main

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestBuckets(t *testing.T) {
	var values []uint64
	for shift := range 42 {
		for _, d := range []int64{-1, 0, 1, 1 << shift / 3} {
			values = append(values, uint64(max(0, int64(1)<<shift+d)))
		}
	}
	slices.Sort(values)
	last := 0
	for _, v := range values {
		b := bucketOf(v)
		assert.GreaterOrEqual(t, b, last, "value %d", v)
		last = b
		assert.LessOrEqual(t, lowerBound(b), v)
		assert.Greater(t, lowerBound(b+1), v)
		assert.LessOrEqual(t, lowerBound(b+1)-lowerBound(b), v/128+1, "width at %d", v)
	}
}

// The quantiles of random times are those of a sorted list, but for the width
// of a bucket.
func TestQuantiles(t *testing.T) {
	var h histogram
	random := rand.New(rand.NewPCG(1, 2))
	times := make([]time.Duration, 10000)
	for i := range times {
		times[i] = time.Duration(random.ExpFloat64() * 10000)
		h.record(times[i])
	}
	slices.Sort(times)
	for _, q := range []float64{0, 0.1, 0.5, 0.99, 0.999} {
		want := times[int(q*float64(len(times)))]
		assert.InDelta(t, float64(want), float64(h.quantile(q)), float64(want)/128+1, "quantile %v", q)
	}
	assert.Equal(t, times[len(times)-1], h.max)
	assert.Equal(t, h.max, h.quantile(1))
}

func TestHistogramExtremes(t *testing.T) {
	var h histogram
	assert.Zero(t, h.quantile(0.5), "nothing recorded")
	h.record(-1) // a clock that was set back
	h.record(1000 * time.Hour)
	assert.Zero(t, h.quantile(0))
	assert.Equal(t, 1000*time.Hour, h.max)
}

func TestRecordDoesNotAllocate(t *testing.T) {
	var h histogram
	assert.Zero(t, testing.AllocsPerRun(100, func() { h.record(time.Microsecond) }))
}

package histogram

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
	var h Histogram
	random := rand.New(rand.NewPCG(1, 2))
	times := make([]time.Duration, 10000)
	for i := range times {
		times[i] = time.Duration(random.ExpFloat64() * 10000)
		h.Record(times[i])
	}
	slices.Sort(times)
	for _, q := range []float64{0, 0.1, 0.5, 0.99, 0.999} {
		want := times[int(q*float64(len(times)))]
		assert.InDelta(t, float64(want), float64(h.Quantile(q)), float64(want)/128+1, "quantile %v", q)
	}
	assert.Equal(t, times[len(times)-1], h.Max)
	assert.Equal(t, h.Max, h.Quantile(1))
	assert.Equal(t, times[0], h.Min)
	var sum time.Duration
	for _, d := range times {
		sum += d
	}
	assert.Equal(t, sum/time.Duration(len(times)), h.Mean())
}

// The shares rise to all of what was recorded, each at a time that is in order.
func TestShares(t *testing.T) {
	var h Histogram
	h.Shares(func(time.Duration, float64) { t.Error("nothing was recorded") })
	for _, d := range []time.Duration{7, 7, 3, 5000} {
		h.Record(d)
	}
	var at []time.Duration
	var shares []float64
	h.Shares(func(d time.Duration, share float64) {
		at, shares = append(at, d), append(shares, share)
	})
	assert.Equal(t, []float64{0.25, 0.75, 1}, shares)
	assert.Equal(t, []time.Duration{3, 7}, at[:2])
	assert.InDelta(t, 5000, float64(at[2]), 5000/128)
}

func TestHistogramExtremes(t *testing.T) {
	var h Histogram
	assert.Zero(t, h.Quantile(0.5), "nothing recorded")
	assert.Zero(t, h.Mean(), "nothing recorded")
	h.Record(-1) // a clock that was set back
	h.Record(1000 * time.Hour)
	assert.Zero(t, h.Quantile(0))
	assert.Zero(t, h.Min)
	assert.Equal(t, 1000*time.Hour, h.Max)
}

func TestRecordDoesNotAllocate(t *testing.T) {
	var h Histogram
	assert.Zero(t, testing.AllocsPerRun(100, func() { h.Record(time.Microsecond) }))
}

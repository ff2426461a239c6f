package perf

import (
	"fmt"
	"math"
	"time"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
)

// opColours are the classes of sweep_svg.go that the lines of an operation have.
var opColours = map[string]string{"send": "blue", "write": "orange", "read": "green"}

const sizeLabel = "message size (octets; K = 1024)"

// charts are all charts of a report.
func (r *sweepReport) charts() []*chart {
	return []*chart{r.bandwidthChart(), r.rateChart(), r.latencyChart()}
}

// bandwidthChart has a linear scale: what counts is how high it gets.
func (r *sweepReport) bandwidthChart() *chart {
	c := newChart("Bandwidth by message size",
		axis{label: sizeLabel, ticks: sizeTicks}, axis{label: "bandwidth (GB/s)", ticks: roundTicks})
	c.y.include(0)
	r.addStreams(c, func(s perfResult) float64 { return s.GBps })
	for i, s := range sweepLines {
		for _, result := range r.series(s.op, s.crc) {
			if result.Spread.Rounds > 1 {
				c.between(&c.lines[i], math.Log2(float64(result.Size)), result.Spread.Least, result.Spread.Most)
			}
		}
	}
	c.y.to += (c.y.to - c.y.from) / 20
	return c
}

// rateChart has a logarithmic scale: rates differ by a factor of thousands.
func (r *sweepReport) rateChart() *chart {
	c := newChart("Message rate by message size",
		axis{label: sizeLabel, ticks: sizeTicks}, axis{label: "messages (millions a second)", ticks: decadeTicks})
	r.addStreams(c, func(s perfResult) float64 { return math.Log10(s.Mps) })
	return c
}

func (r *sweepReport) addStreams(c *chart, value func(perfResult) float64) {
	for _, s := range sweepLines {
		l := line{name: s.name, colour: opColours[s.op], dashed: s.crc, dots: true}
		for _, result := range r.series(s.op, s.crc) {
			l.points = append(l.points, point{math.Log2(float64(result.Size)), value(result)})
		}
		c.add(l)
	}
}

// latencyChart shows for each time what share of the messages did not take
// longer, up to the time that 99.9 % stay below.
func (r *sweepReport) latencyChart() *chart {
	c := newChart(fmt.Sprintf("Latency of a Send of %d octets, CRC off: cumulative distribution", sweepLatencySize),
		axis{label: "half a round trip (µs, logarithmic)", ticks: decadeTicks},
		axis{label: "messages that take no longer (%)", ticks: roundTicks})
	c.y.include(0)
	c.y.include(100)
	for i, latency := range r.Latency {
		l := line{colour: []string{"blue", "orange"}[i]}
		l.name = fmt.Sprintf("%s, p50 %.1f µs, p99 %.1f µs", latencyName(latency), latency.Latency.P50, latency.Latency.P99)
		latency.times.Shares(func(d time.Duration, share float64) {
			us := max(float64(d), 1) / 2 / float64(time.Microsecond)
			if share <= 0.999 || len(l.points) == 0 {
				l.points = append(l.points, point{math.Log10(us), 100 * share})
			}
		})
		l.points = append([]point{{l.points[0].x, 0}}, l.points...)
		c.add(l)
	}
	return c
}

// sizeTicks marks powers of two on an axis of their logarithms, and names every
// other one.
func sizeTicks(from, to float64) (ticks []tick) {
	for exp := math.Ceil(from); exp <= to; exp++ {
		t := tick{at: exp}
		if int(exp)%2 == 0 {
			t.label = cli.FormatSize(1 << uint(exp))
		}
		ticks = append(ticks, t)
	}
	return ticks
}

// decadeTicks marks 1, 2 and 5 and their multiples by powers of ten on an axis of
// decimal logarithms.
func decadeTicks(from, to float64) (ticks []tick) {
	for decade := math.Floor(from); decade <= to; decade++ {
		for _, digit := range []float64{1, 2, 5} {
			value := digit * math.Pow(10, decade)
			if at := math.Log10(value); at >= from && at <= to {
				ticks = append(ticks, tick{at, fmt.Sprintf("%.*f", int(max(0, -decade)), value)})
			}
		}
	}
	return ticks
}

// roundTicks marks four to ten round values on a linear axis.
func roundTicks(from, to float64) (ticks []tick) {
	if !(to > from) {
		return []tick{{from, fmt.Sprintf("%.3g", from)}}
	}
	decade := math.Floor(math.Log10(to - from))
	step := math.Pow(10, decade)
	switch n := (to - from) / step; {
	case n < 2:
		step, decade = step/5, decade-1
	case n < 5:
		step, decade = step/2, decade-1
	}
	for i := math.Ceil(from / step); i*step <= to; i++ {
		ticks = append(ticks, tick{i * step, fmt.Sprintf("%.*f", int(max(0, -decade)), i*step)})
	}
	return ticks
}

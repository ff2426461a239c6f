package perf

import (
	"fmt"
	"io"
	"time"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/cmd/rnic/internal/histogram"
)

// perfResult is what one run measured.
type perfResult struct {
	Op       string         `json:"op"`
	Size     int            `json:"size"`
	Depth    int            `json:"depth,omitempty"` // not of a latency run
	CRC      bool           `json:"crc"`
	Event    bool           `json:"event"`
	Messages uint64         `json:"messages"` // or round trips
	Seconds  float64        `json:"seconds"`
	GBps     float64        `json:"gb_per_s,omitempty"`
	Mps      float64        `json:"m_messages_per_s,omitempty"`
	Latency  *latencyResult `json:"latency,omitempty"`
	Spread   *spread        `json:"spread,omitempty"` // of a sweep

	times *histogram.Histogram // of a latency run: whole round trips
}

// latencyResult holds times in microseconds.
type latencyResult struct {
	HalfRoundTrip bool    `json:"half_round_trip"` // else: a whole one
	Min           float64 `json:"min_us"`
	Mean          float64 `json:"mean_us"`
	P50           float64 `json:"p50_us"`
	P90           float64 `json:"p90_us"`
	P99           float64 `json:"p99_us"`
	P999          float64 `json:"p999_us"`
	Max           float64 `json:"max_us"`
}

func newStreamResult(run perfRun, messages uint64, seconds float64) perfResult {
	rate := float64(messages) / seconds
	return perfResult{
		Op: run.Op, Size: run.Size, Depth: run.Depth, CRC: run.CRC, Event: run.Event,
		Messages: messages, Seconds: seconds,
		GBps: rate * float64(run.Size) / 1e9,
		Mps:  rate / 1e6,
	}
}

// newLatencyResult takes times of whole round trips. Half of one is how long a
// message takes; for a Read, the whole one is.
func newLatencyResult(run perfRun, times *histogram.Histogram, elapsed time.Duration) perfResult {
	half := !run.op().Reads()
	us := func(d time.Duration) float64 {
		v := float64(d) / float64(time.Microsecond)
		if half {
			v /= 2
		}
		return v
	}
	return perfResult{
		Op: run.Op, Size: run.Size, CRC: run.CRC, Event: run.Event,
		Messages: times.N, Seconds: elapsed.Seconds(),
		Latency: &latencyResult{
			HalfRoundTrip: half,
			Min:           us(times.Min),
			Mean:          us(times.Mean()),
			P50:           us(times.Quantile(0.50)),
			P90:           us(times.Quantile(0.90)),
			P99:           us(times.Quantile(0.99)),
			P999:          us(times.Quantile(0.999)),
			Max:           us(times.Max),
		},
		times: times,
	}
}

// printPerf writes a table of results, which are of one kind.
func printPerf(w io.Writer, results []perfResult) error {
	t := cli.NewTable(w)
	for i, r := range results {
		if l := r.Latency; l != nil {
			if i == 0 {
				what := "round trip"
				if l.HalfRoundTrip {
					what = "half round trip"
				}
				fmt.Fprintf(w, "%s, %s in us, CRC %s\n", r.Op, what, cli.OnOff(&r.CRC))
				fmt.Fprintln(t, "octets\tround trips\tmin\tmean\tp50\tp90\tp99\tp99.9\tmax\t")
			}
			fmt.Fprintf(t, "%d\t%s\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t\n",
				r.Size, cli.Grouped(r.Messages), l.Min, l.Mean, l.P50, l.P90, l.P99, l.P999, l.Max)
			continue
		}
		if i == 0 {
			fmt.Fprintf(w, "%s, %d at once, CRC %s\n", r.Op, r.Depth, cli.OnOff(&r.CRC))
			fmt.Fprintln(t, "octets\tmessages\tseconds\tGB/s\tM/s\t")
		}
		fmt.Fprintf(t, "%d\t%s\t%.3f\t%.3f\t%.4f\t\n", r.Size, cli.Grouped(r.Messages), r.Seconds, r.GBps, r.Mps)
	}
	return t.Flush()
}

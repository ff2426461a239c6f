package perf

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
)

// suiteDuration keeps the whole suite well within half a minute.
const suiteDuration = 300 * time.Millisecond

// suiteRun is a run of the suite, and the metrics it yields.
type suiteRun struct {
	run     perfRun
	metrics []suiteMetric
}

// suiteMetric is one figure of a result.
type suiteMetric struct {
	name  string
	unit  string
	value func(perfResult) float64
}

func p50(name string) suiteMetric {
	return suiteMetric{name, "us", func(r perfResult) float64 { return r.Latency.P50 }}
}

func p99(name string) suiteMetric {
	return suiteMetric{name, "us", func(r perfResult) float64 { return r.Latency.P99 }}
}

func rate(name string) suiteMetric {
	return suiteMetric{name, "M/s", func(r perfResult) float64 { return r.Mps }}
}

func bandwidth(name string) suiteMetric {
	return suiteMetric{name, "GB/s", func(r perfResult) float64 { return r.GBps }}
}

// suiteRuns are all runs, each of which is done without and with CRC.
func suiteRuns() []suiteRun {
	runs := []suiteRun{
		{perfRun{Op: "send", Latency: true, Size: 64}, []suiteMetric{p50("lat64_p50"), p99("lat64_p99")}},
		{perfRun{Op: "send", Latency: true, Size: 64, Event: true}, []suiteMetric{p50("lat64_event_p50")}},
		{perfRun{Op: "write", Latency: true, Size: 64}, []suiteMetric{p50("rdma_write_lat64")}},
		{perfRun{Op: "read", Latency: true, Size: 64}, []suiteMetric{p50("rdma_read_lat64_rtt")}},
	}
	for _, op := range []struct{ name, prefix string }{{"send", ""}, {"write", "rdma_write_"}, {"read", "rdma_read_"}} {
		runs = append(runs, suiteRun{perfRun{Op: op.name, Size: 64}, []suiteMetric{rate(op.prefix + "rate64")}})
		for _, size := range []int{4096, 65536, 1048576} {
			name := fmt.Sprintf("%sbw%d", op.prefix, size)
			runs = append(runs, suiteRun{perfRun{Op: op.name, Size: size}, []suiteMetric{bandwidth(name)}})
		}
	}
	return runs
}

// suiteValue is a line of the suite's output.
type suiteValue struct {
	Metric string  `json:"metric"`
	CRC    bool    `json:"crc"`
	Poll   bool    `json:"poll,omitempty"` // of many queue pairs: polling
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"`
}

// peer is the name under which tools that compare know this program.
func (v suiteValue) peer() string {
	switch {
	case v.CRC:
		return "ours-crc"
	case v.Poll:
		return "ours-poll"
	}
	return "ours"
}

func newPerfSuiteCommand() *cobra.Command {
	p := perfFlags{duration: suiteDuration}
	var lines bool
	var only string
	qps := manyQPs()
	cmd := &cobra.Command{
		Use:   "suite",
		Short: "Measure everything, between this process and one it starts",
		Long: `Measure every operation on one queue pair, without and with CRC, and many active
ones on a CQ as perf many does: waiting, polling, and waiting with CRC. It is
between this process and server processes that it starts.`,
		Args: cli.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if lines && p.json {
				return cli.Usagef("--lines and --json are two forms of the same: choose one")
			}
			if !slices.Contains([]string{"", suiteOne, suiteMany}, only) {
				return cli.Usagef("--only %s: want %s or %s", only, suiteOne, suiteMany)
			}
			text := printSuite
			if lines {
				text = printLines
			}
			return cli.Measure(cmd, "perf", "", p.json, func(ctx context.Context, _ *cli.Progress) ([]suiteValue, error) {
				return p.suite(ctx, only, qps)
			}, text)
		},
	}
	p.register(cmd.Flags())
	cmd.Flags().BoolVar(&lines, "lines", false, "print lines of METRIC PEER VALUE UNIT and nothing else")
	cmd.Flags().StringVar(&only, "only", "", "measure only `one|many` queue pairs at a time")
	cmd.Flags().Var(cli.IntList(&qps, 1, maxScaleQPs), "qps", "how many are many, such as 16 or 1,16,256")
	return cmd
}

// What --only of the suite chooses.
const (
	suiteOne  = "one"
	suiteMany = "many"
)

// suite does all runs, or only some.
func (p *perfFlags) suite(ctx context.Context, only string, qps []int) (values []suiteValue, err error) {
	if only != suiteMany {
		if values, err = p.suiteOfOne(ctx); err != nil {
			return nil, err
		}
	}
	if only != suiteOne {
		many, err := p.suiteOfMany(ctx, qps)
		if err != nil {
			return nil, err
		}
		values = append(values, many...)
	}
	return values, nil
}

// suiteOfOne does all runs of one queue pair against a server process of its own.
func (p *perfFlags) suiteOfOne(ctx context.Context) (values []suiteValue, err error) {
	err = cli.WithServer(ctx, ownServer, func(server *cli.Process) error {
		for _, crc := range []bool{false, true} {
			for _, s := range suiteRuns() {
				s.run.CRC = crc
				r, err := p.measureDefault(ctx, server.Address, s.run)
				if err != nil {
					return fmt.Errorf("%s: %w", s.metrics[0].name, err)
				}
				for _, m := range s.metrics {
					values = append(values, suiteValue{Metric: m.name, CRC: crc, Value: m.value(r), Unit: m.unit})
				}
			}
		}
		return nil
	})
	return values, err
}

// suiteOfMany measures many queue pairs, each number of them in each way once.
func (p *perfFlags) suiteOfMany(ctx context.Context, qps []int) (values []suiteValue, err error) {
	for _, n := range qps {
		for _, way := range []manyWay{manyWaiting, manyPolling, manyWithCRC} {
			r, err := measureMany(ctx, n, way, p.duration)
			if err != nil {
				return nil, fmt.Errorf("%d queue pairs, %v: %w", n, way, err)
			}
			v := suiteValue{Metric: fmt.Sprintf("many%d_rate", n), CRC: way.CRC, Poll: way.Poll, Value: r.Rate, Unit: "k/s"}
			values = append(values, v)
			if r.CPU != nil {
				v.Metric, v.Value, v.Unit = fmt.Sprintf("many%d_cpu", n), *r.CPU, "us"
				values = append(values, v)
			}
		}
	}
	return values, nil
}

func printLines(w io.Writer, values []suiteValue) error {
	for _, v := range values {
		if _, err := fmt.Fprintf(w, "%s %s %.4f %s\n", v.Metric, v.peer(), v.Value, v.Unit); err != nil {
			return err
		}
	}
	return nil
}

// printSuite writes a table with a row for each metric, and for each that was polled as
// well.
func printSuite(w io.Writer, values []suiteValue) error {
	withCRC := make(map[string]string)
	for _, v := range values {
		if v.CRC {
			withCRC[v.Metric] = fmt.Sprintf("%.3f", v.Value)
		}
	}
	t := cli.NewTable(w)
	fmt.Fprintln(t, "metric\tCRC off\tCRC on\tunit\t")
	for _, v := range values {
		switch {
		case v.Poll:
			fmt.Fprintf(t, "%s, polling\t%.3f\t-\t%s\t\n", v.Metric, v.Value, v.Unit)
		case !v.CRC:
			fmt.Fprintf(t, "%s\t%.3f\t%s\t%s\t\n", v.Metric, v.Value, withCRC[v.Metric], v.Unit)
		}
	}
	return t.Flush()
}

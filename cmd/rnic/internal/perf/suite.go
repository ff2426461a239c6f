package perf

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"`
}

// peer is the name under which tools that compare know this program.
func (v suiteValue) peer() string {
	if v.CRC {
		return "ours-crc"
	}
	return "ours"
}

func newPerfSuiteCommand() *cobra.Command {
	p := perfFlags{duration: suiteDuration}
	var lines bool
	cmd := &cobra.Command{
		Use:   "suite",
		Short: "Measure everything, between this process and one it starts",
		Long:  "Measure every operation, without and with CRC, between this process and a server process that it starts.",
		Args:  cli.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if lines && p.json {
				return cli.Usagef("--lines and --json are two forms of the same: choose one")
			}
			values, err := p.suite(cmd.Context())
			switch {
			case err != nil:
				return fmt.Errorf("perf: %w", err)
			case p.json:
				return cli.PrintJSON(cmd.OutOrStdout(), values)
			case lines:
				return printLines(cmd.OutOrStdout(), values)
			default:
				return printSuite(cmd.OutOrStdout(), values)
			}
		},
	}
	p.register(cmd.Flags())
	cmd.Flags().BoolVar(&lines, "lines", false, "print lines of METRIC PEER VALUE UNIT and nothing else")
	return cmd
}

// suite does all runs against a server process of its own.
func (p *perfFlags) suite(ctx context.Context) (values []suiteValue, err error) {
	server, where, err := cli.StartChild(ctx, "perf", "server", "127.0.0.1:0", "--child")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	f := cli.DefaultConnFlags()
	for _, f.CRC = range []bool{false, true} {
		for _, s := range suiteRuns() {
			r, err := p.measure(ctx, where.Address, &f, s.run)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.metrics[0].name, err)
			}
			for _, m := range s.metrics {
				values = append(values, suiteValue{m.name, f.CRC, m.value(r), m.unit})
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

// printSuite writes a table with a row for each metric.
func printSuite(w io.Writer, values []suiteValue) error {
	withCRC := make(map[string]float64)
	for _, v := range values {
		if v.CRC {
			withCRC[v.Metric] = v.Value
		}
	}
	t := cli.NewTable(w)
	fmt.Fprintln(t, "metric\tCRC off\tCRC on\tunit\t")
	for _, v := range values {
		if !v.CRC {
			fmt.Fprintf(t, "%s\t%.3f\t%.3f\t%s\t\n", v.Metric, v.Value, withCRC[v.Metric], v.Unit)
		}
	}
	return t.Flush()
}

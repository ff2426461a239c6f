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

const (
	baselineRounds   = 5
	baselineDuration = 300 * time.Millisecond
)

func newPerfBaselineCommand() *cobra.Command {
	p := perfFlags{duration: baselineDuration}
	rounds := baselineRounds
	cmd := &cobra.Command{
		Use:   "baseline",
		Short: "Compare with a bare TCP connection",
		Long: `Measure Send and RDMA Write of 1 MiB and a ping-pong of 64 octets, CRC off,
polling and once waiting, beside what a net.Conn does between the same two processes:
a stream of 1 MiB writes, and a ping-pong. The measurements take turns; medians are shown.`,
		Args: cli.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cli.Measure(cmd, "perf", "", p.json, func(ctx context.Context, _ *cli.Progress) ([]baselineRow, error) {
				return p.baseline(ctx, rounds)
			}, printBaseline)
		},
	}
	p.register(cmd.Flags())
	cmd.Flags().Var(cli.IntRange(&rounds, 1, 1000), "rounds", "`times` to measure each")
	return cmd
}

// baselineRow compares one figure: medians of all rounds.
type baselineRow struct {
	What  string  `json:"what"`
	CRC   bool    `json:"crc"` // of ours
	Ours  float64 `json:"ours"`
	Plain float64 `json:"net_conn"`
	Unit  string  `json:"unit"`
	Ratio float64 `json:"ratio"` // ours to net.Conn's
}

// baselineRun is a figure of ours; run says whether with CRC.
type baselineRun struct {
	what  string
	run   perfRun
	value suiteMetric
}

var baselineRuns = []baselineRun{
	{"1 MiB Send", perfRun{Op: "send", Size: 1 << 20}, bandwidth("")},
	{"1 MiB RDMA Write", perfRun{Op: "write", Size: 1 << 20}, bandwidth("")},
	{"64 octets, half round trip", perfRun{Op: "send", Latency: true, Size: 64}, p50("")},
	{"64 octets, half round trip, waiting", perfRun{Op: "send", Latency: true, Size: 64, Event: true}, p50("")},
}

// baseline measures ours and a net.Conn in turns, so that what else the machine
// does meets both.
func (p *perfFlags) baseline(ctx context.Context, rounds int) (rows []baselineRow, err error) {
	server := append(slices.Clone(ownServer), "--plain", "127.0.0.1:0")
	err = cli.WithServer(ctx, server, func(server *cli.Process) (err error) {
		rows, err = p.compare(ctx, server.Announcement, baselineRuns, rounds)
		return err
	})
	return rows, err
}

// compare does runs against the server at where, and the same over a net.Conn.
func (p *perfFlags) compare(
	ctx context.Context, where cli.Announcement, runs []baselineRun, rounds int,
) ([]baselineRow, error) {
	ours, plain := make([][]float64, len(runs)), make([][]float64, len(runs))
	crc := make([]bool, len(runs)) // as measured
	for range rounds {
		for i, b := range runs {
			r, err := p.measureDefault(ctx, where.Address, b.run)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", b.what, err)
			}
			crc[i] = r.CRC
			ours[i] = append(ours[i], b.value.value(r))
			v, err := measurePlain(ctx, where.Plain, b.run, p.duration)
			if err != nil {
				return nil, fmt.Errorf("%s over net.Conn: %w", b.what, err)
			}
			plain[i] = append(plain[i], v)
		}
	}
	var rows []baselineRow
	for i, b := range runs {
		row := baselineRow{What: b.what, CRC: crc[i], Ours: median(ours[i]), Plain: median(plain[i]), Unit: b.value.unit}
		row.Ratio = row.Ours / row.Plain
		rows = append(rows, row)
	}
	return rows, nil
}

// measurePlain is what a net.Conn does in the place of run.
func measurePlain(ctx context.Context, addr string, run perfRun, d time.Duration) (float64, error) {
	if !run.Latency {
		return plainStream(ctx, addr, run.Size, d)
	}
	times, err := plainPingPong(ctx, addr, run.Size, d)
	if err != nil {
		return 0, err
	}
	return newLatencyResult(run, times, d).Latency.P50, nil
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

func printBaseline(w io.Writer, rows []baselineRow) error {
	t := cli.NewTable(w)
	fmt.Fprintln(t, "figure\tsoftrnic\tnet.Conn\tunit\tratio\t")
	for _, r := range rows {
		fmt.Fprintf(t, "%s\t%.3f\t%.3f\t%s\t%.2f\t\n", r.What, r.Ours, r.Plain, r.Unit, r.Ratio)
	}
	return t.Flush()
}

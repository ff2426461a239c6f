package perf

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/internal/safeopen"
)

const (
	sweepDuration = 100 * time.Millisecond
	// sweepLatencyFactor is how much longer latency is measured: its rare long
	// times have to come up.
	sweepLatencyFactor = 10
	sweepLatencySize   = 64
)

// sweepSizes are the powers of two from 64 octets to 4 MiB.
func sweepSizes() (sizes []uint64) {
	for n := uint64(64); n <= 4<<20; n <<= 1 {
		sizes = append(sizes, n)
	}
	return sizes
}

func newPerfSweepCommand() *cobra.Command {
	p := perfFlags{sizes: sweepSizes(), duration: sweepDuration}
	var out string
	rounds := sweepRounds
	cmd := &cobra.Command{
		Use:   "sweep",
		Short: "Measure throughput by message size and the spread of latency, and draw them",
		Long: fmt.Sprintf(`Measure the throughput of Send, RDMA Write and RDMA Read by message size, without
and with CRC, and how the latency of Sends of %d octets is spread, polled and
with completion events; between this process and a server process that it
starts. Rounds of all measurements take turns: shown are medians, how far the
rounds were apart, and whether other programs kept the machine busy meanwhile.
With --out, draw charts: into a page of HTML that needs nothing else, tables
included, or into SVG.`, sweepLatencySize),
		Args: cli.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error { return p.sweep(cmd, out, rounds) },
	}
	f := cmd.Flags()
	f.Var(cli.SizeList(&p.sizes, 1, maxPerfSize), "size", "octets a message")
	p.register(f)
	f.Var(cli.IntRange(&rounds, 1, 1000), "rounds", "`times` to measure each")
	f.StringVar(&out, "out", "", "draw charts into `FILE`, which ends with .html or .svg")
	return cmd
}

// sweepReport is what a sweep measured, and how.
type sweepReport struct {
	Streams   []perfResult // by op, then CRC, then size
	Latency   []perfResult // polled, then with events
	Sizes     []uint64     // ascending
	Rounds    int
	Others    float64 // the share of the processors' time that other programs had
	Duration  time.Duration
	When      time.Time
	Machine   string
	drawnInto string
}

func (p *perfFlags) sweep(cmd *cobra.Command, out string, rounds int) error {
	file, err := createSweepFile(out)
	if err != nil {
		return err
	}
	find := func(ctx context.Context, progress *cli.Progress) (*sweepReport, error) {
		report, err := p.measureSweep(ctx, progress, rounds)
		report.drawnInto = out
		return report, errors.Join(err, file.finish(report, err))
	}
	return cli.Measure(cmd, "perf", "measurements", p.json, find,
		func(w io.Writer, r *sweepReport) error { return r.print(w) })
}

// MarshalJSON is a list of all results.
func (r *sweepReport) MarshalJSON() ([]byte, error) {
	return json.Marshal(slices.Concat(r.Streams, r.Latency))
}

// sweepFile is where the charts go; nil for nowhere.
type sweepFile struct {
	*os.File
	write func(io.Writer, *sweepReport) error
}

// createSweepFile creates the file, before the measurements rather than after
// them.
func createSweepFile(name string) (*sweepFile, error) {
	f := &sweepFile{}
	switch filepath.Ext(name) {
	case ".html":
		f.write = writeSweepPage
	case ".svg":
		f.write = writeSweepSVG
	default:
		if name != "" {
			return nil, cli.Usagef("--out %q: want a name that ends with .html or .svg", name)
		}
		return nil, nil
	}
	var err error
	if f.File, err = safeopen.Create(name); err != nil {
		return nil, fmt.Errorf("perf: %w", err)
	}
	return f, nil
}

// finish writes the charts, or removes the file if there is nothing to draw.
func (f *sweepFile) finish(report *sweepReport, measuring error) error {
	if f == nil {
		return nil
	}
	err := measuring
	if err == nil {
		err = f.write(f.File, report)
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		return nil
	}
	removeErr := os.Remove(f.Name())
	if measuring != nil {
		return removeErr // the caller has the rest
	}
	return errors.Join(fmt.Errorf("drawing into %s: %w", f.Name(), err), removeErr)
}

// measureSweep does all runs, so many times in turns, against a server process of its own.
func (p *perfFlags) measureSweep(ctx context.Context, progress *cli.Progress, rounds int) (*sweepReport, error) {
	report := &sweepReport{Duration: p.duration, Rounds: rounds, When: time.Now(), Machine: machine()}
	report.Sizes = slices.Compact(slices.Sorted(slices.Values(p.sizes)))
	runs := p.sweepRuns(report.Sizes)
	results := make([][]perfResult, len(runs)) // of the rounds of each
	others := othersTime()
	err := cli.WithServer(ctx, ownServer, func(server *cli.Process) error {
		for n := range rounds * len(runs) {
			i := n % len(runs)
			progress.Show(runs[i].Op, uint64(n), uint64(rounds*len(runs)))
			r, err := p.measureDefault(ctx, server.Address, runs[i])
			if err != nil {
				return fmt.Errorf("%s of %d octets: %w", runs[i].Op, runs[i].Size, err)
			}
			results[i] = append(results[i], r)
		}
		return nil
	})
	if err != nil {
		return report, err
	}
	report.Others = othersShare(others, report.When) // the server has been waited for
	for i, run := range runs {
		if r := overRounds(run, results[i]); run.Latency {
			report.Latency = append(report.Latency, r)
		} else {
			report.Streams = append(report.Streams, r)
		}
	}
	return report, nil
}

func (p *perfFlags) sweepRuns(sizes []uint64) (runs []perfRun) {
	for _, op := range []string{"send", "write", "read"} {
		for _, crc := range []bool{false, true} {
			for _, size := range sizes {
				runs = append(runs, perfRun{Op: op, CRC: crc, Size: int(size)})
			}
		}
	}
	for _, event := range []bool{false, true} {
		runs = append(runs, perfRun{
			Op: "send", Latency: true, Event: event, Size: sweepLatencySize, Depth: 1,
			Duration: sweepLatencyFactor * p.duration,
		})
	}
	return runs
}

// series are the streams of one op, without or with CRC, by ascending size.
func (r *sweepReport) series(op string, crc bool) (of []perfResult) {
	for _, s := range r.Streams {
		if s.Op == op && s.CRC == crc {
			of = append(of, s)
		}
	}
	return of
}

// print writes the tables.
func (r *sweepReport) print(w io.Writer) error {
	for i, table := range r.tables() {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintln(w, table.Title)
		t := cli.NewTable(w)
		for _, row := range append([][]string{table.Head}, table.Rows...) {
			for _, cell := range row {
				fmt.Fprintf(t, "%s\t", cell)
			}
			fmt.Fprintln(t)
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	fmt.Fprintf(w, "\n%s\n", r.HowSure())
	if remark := r.Remark(); remark != "" {
		fmt.Fprintln(w, remark)
	}
	if r.drawnInto != "" {
		fmt.Fprintf(w, "\nCharts: %s\n", r.drawnInto)
	}
	return nil
}

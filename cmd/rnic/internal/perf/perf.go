// Package perf is `rnic perf`: measurements between two processes.
package perf

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/cmd/rnic/internal/endpoint"
	"github.com/softrnic/softrnic/verbs"
)

const (
	perfPort     = 7175
	perfDuration = time.Second
)

// Command makes `rnic perf`.
func Command() *cobra.Command {
	return cli.Group("perf", "Measure between two processes",
		newPerfServerCommand(),
		newPerfOpCommand("send", "Measure Send"),
		newPerfOpCommand("write", "Measure RDMA Write"),
		newPerfOpCommand("read", "Measure RDMA Read"),
		cli.Group("atomic", "Measure FetchAdd (RFC 7306), of 8 octets",
			newPerfRunCommand("atomic", "rate", "Operations a second", []uint64{atomicSize}),
			newPerfRunCommand("atomic", "lat", "Latency: the whole round trip", []uint64{atomicSize}),
		),
		newPerfSuiteCommand(),
		newPerfBaselineCommand(),
		newPerfScaleCommand(),
		newPerfManyCommand(),
		newPerfSweepCommand(),
		newPerfMTUCommand(),
	)
}

func newPerfOpCommand(op, short string) *cobra.Command {
	return cli.Group(op, short,
		newPerfRunCommand(op, "bw", "Throughput, counted at the receiving end", []uint64{4 << 10, 64 << 10, 1 << 20}),
		newPerfRunCommand(op, "rate", "Messages a second, counted at the receiving end", []uint64{64}),
		newPerfRunCommand(op, "lat", "Latency: half a round trip, and the whole one for RDMA Read", []uint64{64}),
	)
}

// perfFlags are the flags of a measurement.
type perfFlags struct {
	conn     cli.ConnFlags
	sizes    []uint64
	depth    int // 0: by size
	duration time.Duration
	event    bool
	json     bool
}

// register adds the flags that all measurements have.
func (p *perfFlags) register(f *pflag.FlagSet) {
	f.SortFlags = false
	f.Var(cli.IntRange(&p.depth, 0, maxPerfDepth), "depth", "`messages` at once for throughput; 0 chooses by their size")
	f.Var(cli.DurationRange(&p.duration, time.Millisecond, maxPerfDuration), "duration", "`time` of each measurement")
	f.BoolVar(&p.json, "json", false, "print JSON")
}

func newPerfRunCommand(op, what, short string, sizes []uint64) *cobra.Command {
	p := perfFlags{sizes: sizes, duration: perfDuration}
	imm := false
	cmd := &cobra.Command{
		Use:   what + " ADDR",
		Short: short,
		Long:  short + ".\n\nADDR is HOST or HOST:PORT of rnic perf server.",
		Args:  cli.ExactArgs("ADDR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			run := perfRun{Op: op, Latency: what == "lat"}
			if imm {
				run.Op = "write-imm"
			}
			return p.run(cmd, args[0], run)
		},
	}
	f := cmd.Flags()
	if op != "atomic" {
		f.Var(cli.SizeList(&p.sizes, 1, maxPerfSize), "size", "octets a message, such as 64 or 4K,64K,1M")
	}
	p.register(f)
	if op == "write" {
		f.BoolVar(&imm, "imm", false, "send Immediate Data behind each Write (RFC 7306), as one request")
	}
	f.BoolVar(&p.event, "event", false, "wait for completion events instead of polling, at both ends")
	p.conn.AddTo(cmd)
	f.Lookup("timeout").Usage = "`time` that connecting may take, and the server to answer"
	return cmd
}

// run measures every size in turn.
func (p *perfFlags) run(cmd *cobra.Command, addr string, run perfRun) error {
	run.Event = p.event
	all := func(ctx context.Context, _ *cli.Progress) (results []perfResult, err error) {
		for _, size := range p.sizes {
			run.Size = int(size)
			r, err := p.measure(ctx, cli.WithPort(addr, perfPort), &p.conn, run)
			if err != nil {
				return nil, fmt.Errorf("%s of %d octets: %w", run.Op, size, err)
			}
			results = append(results, r)
		}
		return results, nil
	}
	return cli.Measure(cmd, "perf", "", p.json, all, printPerf)
}

// measure carries out run, with the depth and the duration of the flags where it has none.
func (p *perfFlags) measure(ctx context.Context, addr string, f *cli.ConnFlags, run perfRun) (perfResult, error) {
	run.Depth, run.Duration = cmp.Or(run.Depth, p.depth, depthFor(run.Size)), cmp.Or(run.Duration, p.duration)
	return measure(ctx, addr, f, run)
}

// measureDefault is measure with the default flags of a connection, but for the CRC of run.
func (p *perfFlags) measureDefault(ctx context.Context, addr string, run perfRun) (perfResult, error) {
	f := cli.DefaultConnFlags()
	f.CRC = run.CRC
	return p.measure(ctx, addr, &f, run)
}

// ownServer are the arguments of a server process of a measurement's own.
var ownServer = []string{"perf", "server", "127.0.0.1:0", "--child"}

// depthFor keeps 16 MiB on their way, with 16 to 2048 messages: the wait for the
// last of them stays short.
func depthFor(size int) int { return min(max(16<<20/size, 16), 2048) }

// perfServerFlags are the flags of `rnic perf server`.
type perfServerFlags struct {
	conn  cli.ConnFlags
	idle  time.Duration
	child bool   // announce the address, and end with standard input
	plain string // also listen here for bare TCP
	stats cli.Stats
}

func newPerfServerCommand() *cobra.Command {
	p := perfServerFlags{idle: endpoint.IdleLimit}
	cmd := &cobra.Command{
		Use:   "server [ADDR]",
		Short: "Answer measurements",
		Long: fmt.Sprintf(`Answer measurements of other rnic perf processes until stopped.

ADDR is HOST or HOST:PORT to listen on; without it, port %d of all addresses.
Whether a CRC is used is up to each client.

Up to %d clients are served at once, with %d MiB of memory for all of them; a run
takes four times its --size. A client that does nothing for the time of --idle is
disconnected; one that measures RDMA Writes or Reads, which the server does not
see, when its --duration, twice that time, and a second for each 64 MiB in its
--depth messages are over.`, perfPort, perfClients, perfBudget>>20),
		Args: cli.AtMostArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.serve(cmd, cli.WithPort(strings.Join(args, ""), perfPort))
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	p.conn.AddTo(cmd)
	f.Var(cli.DurationRange(&p.idle, time.Millisecond, 24*time.Hour), "idle", "`time` that a client may do nothing")
	p.stats.AddTo(f)
	f.BoolVar(&p.child, "child", false, "announce the address on standard output, end with standard input")
	f.StringVar(&p.plain, "plain", "", "`address` for bare TCP streams to compare with")
	f.Lookup("child").Hidden = true
	f.Lookup("plain").Hidden = true
	return cmd
}

func (p *perfServerFlags) serve(cmd *cobra.Command, addr string) error {
	if err := p.listen(cmd, addr); err != nil {
		return fmt.Errorf("perf: %w", err)
	}
	return nil
}

func (p *perfServerFlags) listen(cmd *cobra.Command, addr string) (err error) {
	ctx, log := cmd.Context(), cli.Logger(cmd)
	if p.child {
		var cancel context.CancelFunc
		ctx, cancel = cli.UntilEOF(ctx, cmd.InOrStdin())
		defer cancel()
	}
	l, err := cm.Listen(addr, p.conn.ListenConfig(log))
	if err != nil {
		return fmt.Errorf("listening: %w; choose another address", err)
	}
	defer l.Close()
	host, err := endpoint.OpenHost(verbs.Config{}, perfClients, perfBudget, p.idle)
	if err != nil {
		return err
	}
	defer host.Close()
	finish, err := p.stats.Serve(log, host.NIC)
	if err != nil {
		return err
	}
	defer func() { err = finish(err) }()
	where := cli.Announcement{Address: l.Addr().String()}
	if p.plain != "" {
		plain, err := net.Listen("tcp", p.plain)
		if err != nil {
			return fmt.Errorf("listening: %w", err)
		}
		defer plain.Close()
		where.Plain = plain.Addr().String()
		go servePlain(plain, host, log)
	}
	if !p.child {
		log.Info("listening on " + where.Address)
	} else if err := cli.Announce(cmd, where); err != nil {
		return err
	}
	return servePerf(ctx, l, host, &p.conn, log)
}

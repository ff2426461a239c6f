// Package perf is `rnic perf`: measurements between two processes.
package perf

import (
	"context"
	"fmt"
	"net"
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
	var results []perfResult
	for _, size := range p.sizes {
		run.Size = int(size)
		r, err := p.measure(cmd.Context(), cli.WithPort(addr, perfPort), &p.conn, run)
		if err != nil {
			return fmt.Errorf("perf: %s of %d octets: %w", run.Op, size, err)
		}
		results = append(results, r)
	}
	if p.json {
		return cli.PrintJSON(cmd.OutOrStdout(), results)
	}
	return printPerf(cmd.OutOrStdout(), results)
}

// measure carries out run as the flags say.
func (p *perfFlags) measure(ctx context.Context, addr string, f *cli.ConnFlags, run perfRun) (perfResult, error) {
	run.Depth, run.Duration = p.depth, p.duration
	if run.Depth == 0 {
		run.Depth = depthFor(run.Size)
	}
	return measure(ctx, addr, f, run)
}

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
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cli.Usagef("argument %q is one too many", args[1])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			addr := ""
			if len(args) == 1 {
				addr = args[0]
			}
			return p.serve(cmd, cli.WithPort(addr, perfPort))
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

func (p *perfServerFlags) serve(cmd *cobra.Command, addr string) (err error) {
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	if p.child {
		ctx, cancel = cli.UntilEOF(ctx, cmd.InOrStdin())
		defer cancel()
	}
	l, err := cm.Listen(addr, p.conn.ListenConfig(cmd.ErrOrStderr()))
	if err != nil {
		return fmt.Errorf("perf: listening: %w; choose another address", err)
	}
	defer l.Close()
	host, err := endpoint.OpenHost(verbs.Config{}, perfClients, perfBudget, p.idle)
	if err != nil {
		return fmt.Errorf("perf: %w", err)
	}
	defer host.Close()
	finish, err := p.stats.Serve(cmd.ErrOrStderr(), host.NIC)
	if err != nil {
		return fmt.Errorf("perf: %w", err)
	}
	defer func() { err = finish(err) }()
	where := cli.Announcement{Address: l.Addr().String()}
	if p.plain != "" {
		plain, err := net.Listen("tcp", p.plain)
		if err != nil {
			return fmt.Errorf("perf: listening: %w", err)
		}
		defer plain.Close()
		where.Plain = plain.Addr().String()
		go servePlain(plain, host, cmd.ErrOrStderr())
	}
	if p.child {
		err = cli.Announce(cmd.OutOrStdout(), where)
	} else {
		_, err = fmt.Fprintf(cmd.ErrOrStderr(), "rnic: listening on %s\n", where.Address)
	}
	if err != nil {
		return err
	}
	if err := servePerf(ctx, l, host, &p.conn, cmd.ErrOrStderr()); err != nil {
		return fmt.Errorf("perf: %w", err)
	}
	return nil
}

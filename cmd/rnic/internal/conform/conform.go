// Package conform is `rnic conform`, which runs the cases of package conformance.
package conform

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/cmd/rnic/internal/report"
	"github.com/softrnic/softrnic/conformance/cases"
	"github.com/softrnic/softrnic/conformance/uppertester"
)

// Command makes `rnic conform`: the requirements of iWARP, of VI over TCP and
// of NetworkDirect, executed.
func Command() *cobra.Command {
	return cli.Group("conform", "Check an RNIC against the verbs draft, the iWARP RFCs, VI over TCP and NetworkDirect",
		newConformListCommand(),
		newConformRunCommand(),
		newConformServeCommand(),
		newConformReportCommand(),
	)
}

func newConformListCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the requirements, and which cases assert them",
		Long: `list prints every MUST and SHOULD of the verbs draft, of RFC 5040, 5041, 5042, 5044,
6581 and 7306, of the VI/TCP draft, and of the VI Architecture, and every flag,
return value and remark of NetworkDirect's IND2QueuePair: its key, its class,
and a summary. Requirements of class test have cases; the note of any other says
why none can show it, or what softrnic lacks (not-implemented).`,
		Args: cli.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cli.Print(cmd, asJSON, report.List(cases.All()), printRequirements)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON array")
	return cmd
}

// printRequirements prints a requirement a line, and below it the names of its cases.
func printRequirements(w io.Writer, list []report.Listed) error {
	for _, r := range list {
		if _, err := fmt.Fprintf(w, "%-18s %-15s %s\n", r.Key, r.Class, r.Summary); err != nil {
			return err
		}
		if r.Note != "" {
			fmt.Fprintf(w, "%34s (%s)\n", "", r.Note)
		}
		for _, c := range r.Cases {
			fmt.Fprintf(w, "%34s %s\n", "", c)
		}
	}
	return nil
}

func newConformServeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "serve ADDR",
		Short: "Be the upper tester of this machine's RNIC, for `rnic conform run --target`",
		Long: `serve does what a conformance run on another machine tells it to: it opens queue
pairs, registers memory, connects, posts and looks. ADDR is host:port.

It does not authenticate its clients: serve where only the runner can connect.`,
		Example: "  rnic conform serve 192.0.2.2:7475",
		Args:    cli.ExactArgs("ADDR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return conformServe(cmd.Context(), args[0], cli.Logger(cmd))
		},
	}
}

func conformServe(ctx context.Context, addr string, log *slog.Logger) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("conform: listening: %w; choose another ADDR", err)
	}
	log.Info(fmt.Sprintf("listening on %v", l.Addr()))
	return uppertester.Serve(ctx, l)
}

func newConformReportCommand() *cobra.Command {
	var out conformOutputs
	cmd := &cobra.Command{
		Use:   "report FILE",
		Short: "Show a saved conformance run",
		Long: `report shows a run that was saved with run --record, or with run --json, which
has no octets. FILE is - for standard input.

Exit status: 0 all cases passed, 1 at least one failed, 2 the file cannot be read.`,
		Args: cli.ExactArgs("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			in, err := cli.OpenInput(cmd, args[0])
			if err != nil {
				return err
			}
			defer in.Close()
			run, err := report.Read(in)
			if err != nil {
				return cli.WithStatus(2, fmt.Errorf("%s: %w", args[0], err))
			}
			files, err := out.open(cmd.OutOrStdout())
			if err != nil {
				return err
			}
			return files.write(report.New(run))
		},
	}
	out.addTo(cmd.Flags())
	return cmd
}

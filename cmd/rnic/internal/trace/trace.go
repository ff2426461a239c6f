// Package trace is `rnic trace`: what an RNIC did, as text or as a page.
package trace

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/internal/safeopen"
	"github.com/softrnic/softrnic/lab/trace"
	"github.com/softrnic/softrnic/verbs"
)

// Command is `rnic trace`.
func Command() *cobra.Command {
	var (
		page, op string
		qp       uint32
	)
	cmd := &cobra.Command{
		Use:   "trace FILE",
		Short: "Show what an RNIC did",
		Long: `Show a trace that --trace of ping, demo or run has written, or a program with
package trace: verbs, posts, segments, completions, states, faults, in the order
in which they happened. FILE - is standard input. A trace has none of the
program's octets.`,
		Example: "  rnic ping -s &\n  rnic ping -c -a 127.0.0.1 -C 3 --trace t\n  rnic trace t\n  rnic trace --html t.html t",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			in, err := cli.OpenInput(cmd, args[0])
			if err != nil {
				return err
			}
			defer in.Close()
			list, err := trace.Read(in)
			if err != nil {
				return err
			}
			list = slices.DeleteFunc(list, func(r trace.Record) bool { return !shown(r, verbs.QPID(qp), strings.ToLower(op)) })
			slices.SortStableFunc(list, func(a, b trace.Record) int { return cmp.Compare(a.Time, b.Time) })
			for i := range list { // the file may say anything
				for _, s := range []*string{&list[i].Name, &list[i].Note} {
					*s = cli.Printable(*s)
				}
			}
			if page == "" {
				return trace.Timeline(cmd.OutOrStdout(), list)
			}
			f, err := safeopen.Private(page, os.O_TRUNC)
			if err != nil {
				return cli.WithStatus(2, fmt.Errorf("--html: %w", err))
			}
			return errors.Join(trace.HTML(f, "Trace "+filepath.Base(args[0]), list), f.Close())
		},
	}
	cmd.Flags().StringVar(&page, "html", "", "write a page to this `FILE` instead: a lane for each queue pair, filters, fields on a click")
	cmd.Flags().Uint32Var(&qp, "qp", 0, "only the records of this queue pair")
	cmd.Flags().StringVar(&op, "op", "", "only the records whose name has this `TEXT` in it, as send or read")
	return cmd
}

// shown reports whether r is of that queue pair, 0 for any, and has op, in small letters, in its name. A record of lost
// ones is always shown.
func shown(r trace.Record, qp verbs.QPID, op string) bool {
	return r.Kind == trace.Lost || (qp == 0 || r.QP == qp) && strings.Contains(strings.ToLower(r.Name), op)
}

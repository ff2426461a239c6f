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
		Use:   "trace FILE...",
		Short: "Show what an RNIC did",
		Long: `Show a trace that --trace of ping, demo or run has written, or a program with
package trace: verbs, posts, segments, completions, states, faults, in the order
in which they happened. FILE - is standard input. A trace has none of the
program's octets.

Of several FILEs, as of both ends of a connection, the records stand in the order
of their clocks, each with the name of its FILE.`,
		Example: "  rnic ping -s --trace server &\n  rnic ping -c -a 127.0.0.1 -C 3 --trace client\n  rnic trace client\n" +
			"  rnic trace --html t.html client server",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Usagef("argument FILE is missing")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			ends := make(trace.Ends, len(args))
			for i, name := range args {
				list, err := read(cmd, name, func(r trace.Record) bool { return shown(r, verbs.QPID(qp), strings.ToLower(op)) })
				if err != nil {
					return err
				}
				ends[i] = trace.End{Name: cli.Printable(filepath.Base(name)), Records: list}
			}
			told(ends)
			if page == "" {
				return ends.Timeline(cmd.OutOrStdout())
			}
			f, err := safeopen.Private(page, os.O_TRUNC)
			if err != nil {
				return cli.WithStatus(2, fmt.Errorf("--html: %w", err))
			}
			title := "Trace"
			for _, end := range ends {
				title += " " + end.Name
			}
			return errors.Join(ends.HTML(f, title), f.Close())
		},
	}
	cmd.Flags().StringVar(&page, "html", "", "write a page to this `FILE` instead: a lane for each queue pair, gaps, a search, filters, fields on a click")
	cmd.Flags().Uint32Var(&qp, "qp", 0, "only the records of this queue pair")
	cmd.Flags().StringVar(&op, "op", "", "only the records whose name has this `TEXT` in it, as send or read")
	return cmd
}

// read reads a trace, by its time, without what is not wanted.
func read(cmd *cobra.Command, name string, wanted func(trace.Record) bool) ([]trace.Record, error) {
	in, err := cli.OpenInput(cmd, name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	list, err := trace.Read(in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	list = slices.DeleteFunc(list, func(r trace.Record) bool { return !wanted(r) })
	slices.SortStableFunc(list, func(a, b trace.Record) int { return cmp.Compare(a.Time, b.Time) })
	for i := range list { // the file may say anything
		for _, s := range []*string{&list[i].Name, &list[i].Note} {
			*s = cli.Printable(*s)
		}
	}
	return list, nil
}

// told numbers the ends whose files have the same name.
func told(ends trace.Ends) {
	seen := map[string]int{}
	for i := range ends {
		name := ends[i].Name
		if seen[name]++; seen[name] > 1 {
			ends[i].Name = fmt.Sprintf("%s (%d)", name, seen[name])
		}
	}
}

// shown reports whether r is of that queue pair, 0 for any, and has op, in small letters, in its name. A record of lost
// ones is always shown.
func shown(r trace.Record, qp verbs.QPID, op string) bool {
	return r.Kind == trace.Lost || (qp == 0 || r.QP == qp) && strings.Contains(strings.ToLower(r.Name), op)
}

// Package top is `rnic top`: the activity of the RNICs of other processes.
package top

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/stats"
)

// top are the flags of the command.
type top struct {
	interval time.Duration
	counters bool
	json     bool
}

// Command makes `rnic top`.
func Command() *cobra.Command {
	t := top{interval: time.Second}
	cmd := &cobra.Command{
		Use:   "top [SOCKET...]",
		Short: "Watch what the queue pairs of other processes do",
		Long: `Show the queue pairs of processes that offer their counters, with what each sends and receives in a second.

SOCKET is one of those; without it, all processes of this user are shown that have theirs in the usual
place, as rnic ping, rnic perf server and rnic run do with --stats. On a terminal the table is drawn again and again until stopped.
Elsewhere there is one, over one --interval. docs/counters.md has what each counter means.`,
		Example: "  rnic perf server --stats &\n  rnic top",
		Args:    func(*cobra.Command, []string) error { return nil },
		RunE: func(cmd *cobra.Command, args []string) error {
			if t.counters && t.json {
				return cli.Usagef("--counters and --json both say what to print: choose one")
			}
			return t.run(cmd.Context(), cmd.OutOrStdout(), args)
		},
	}
	f := cmd.Flags()
	f.Var(cli.DurationRange(&t.interval, 10*time.Millisecond, time.Hour), "interval", "`time` from one table to the next")
	f.BoolVar(&t.counters, "counters", false, "print all counters of each RNIC once, as rdma statistic does")
	f.BoolVar(&t.json, "json", false, "print what the processes say once, as JSON")
	return cmd
}

func (t *top) run(ctx context.Context, w io.Writer, sockets []string) error {
	stats.Tidy()
	before, err := take(sockets)
	if err != nil {
		return err
	}
	switch {
	case t.json:
		return cli.PrintJSON(w, before)
	case t.counters:
		return counters(w, before)
	}
	window := terminal(w)
	for {
		select {
		case <-ctx.Done():
			return nil // stopped by the user
		case <-time.After(t.interval):
		}
		now, err := take(sockets)
		if err != nil {
			return err
		}
		text := table(rates(before, now), now)
		before = now
		if window == nil {
			_, err := io.WriteString(w, text)
			return err
		}
		lines, columns := window()
		if _, err := io.WriteString(w, screen(text, lines, columns)); err != nil {
			return err
		}
	}
}

// take asks the processes. With sockets named each has to answer; of those found, one that has just ended is left out.
func take(sockets []string) (all []stats.Snapshot, err error) {
	named := len(sockets) > 0
	if !named {
		if sockets, err = stats.Sockets(); err != nil {
			return nil, err
		}
	}
	for _, path := range sockets {
		s, err := stats.Read(path)
		if err == nil {
			all = append(all, s)
		} else if named {
			return nil, err
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("top: no process offers its counters in %s: start one with --stats", stats.Folder())
	}
	return all, nil
}

// counters lists all that each RNIC counts.
func counters(w io.Writer, all []stats.Snapshot) error {
	for _, p := range all {
		for _, nic := range p.RNICs {
			fmt.Fprintf(w, "%s[%d] rnic %s\n", cli.Printable(p.Program), p.PID, cli.Printable(nic.ID))
			for _, l := range nic.Lines() {
				if _, err := fmt.Fprintf(w, "  %s %d\n", cli.Printable(l.Name), l.Value); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// screen is text for a terminal of so many lines and columns, which replaces its contents.
func screen(text string, lines, columns int) string {
	list := strings.SplitAfter(text, "\n")
	for i, line := range list {
		if r := []rune(strings.TrimSuffix(line, "\n")); len(r) > columns {
			list[i] = string(r[:columns]) + "\n"
		}
	}
	if len(list) > lines {
		list = append(list[:max(lines-1, 0)], "...")
	}
	const home, clearLine, clearRest = "\x1b[H", "\x1b[K", "\x1b[J"
	return home + strings.ReplaceAll(strings.Join(list, ""), "\n", clearLine+"\n") + clearRest
}

// terminal is how many lines and columns w has if it is a terminal, else nil.
func terminal(w io.Writer) func() (lines, columns int) {
	f, ok := w.(*os.File)
	if !ok {
		return nil
	}
	if lines, _ := size(f); lines == 0 {
		return nil
	}
	return func() (lines, columns int) { return size(f) }
}

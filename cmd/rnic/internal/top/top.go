// Package top is `rnic top`: the activity of the RNICs of other processes.
package top

import (
	"bytes"
	"context"
	"fmt"
	"io"
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
place, as rnic ping, rnic perf server and rnic run do with --stats. On a terminal
the table is drawn again and again, with the columns that it is wide enough for,
until you press q (or ^C). Elsewhere there is one, over one --interval.
docs/counters.md has what each counter means.`,
		Example: "  rnic perf server --stats &\n  rnic top",
		Args:    func(*cobra.Command, []string) error { return nil },
		RunE: func(cmd *cobra.Command, args []string) error {
			if t.counters && t.json {
				return cli.Usagef("--counters and --json both say what to print: choose one")
			}
			return t.run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), args)
		},
	}
	f := cmd.Flags()
	f.Var(cli.DurationRange(&t.interval, 10*time.Millisecond, time.Hour), "interval", "`time` from one table to the next")
	f.BoolVar(&t.counters, "counters", false, "print all counters of each RNIC once, as rdma statistic does")
	f.BoolVar(&t.json, "json", false, "print what the processes say once, as JSON")
	return cmd
}

func (t *top) run(ctx context.Context, in io.Reader, w io.Writer, sockets []string) error {
	stats.Tidy()
	now, err := take(sockets)
	if err != nil {
		return err
	}
	switch {
	case t.json:
		return cli.PrintJSON(w, now)
	case t.counters:
		return counters(w, now)
	}
	window := openTerminal(in, w)
	if window == nil {
		select {
		case <-ctx.Done():
			return nil // stopped by the user
		case <-time.After(t.interval):
		}
		before := now
		if now, err = take(sockets); err != nil {
			return err
		}
		_, err := io.WriteString(w, table(rates(before, now), now, 0))
		return err
	}
	defer window.close()
	return t.watch(ctx, window, w, sockets, now)
}

// watch draws until the user stops it.
func (t *top) watch(ctx context.Context, window *terminal, w io.Writer, sockets []string, now []stats.Snapshot) error {
	if _, err := io.WriteString(w, "\x1b[H\x1b[J"); err != nil {
		return err
	}
	var rows []row // none until there are two looks to compare
	for then := time.Now().Add(t.interval); ; {
		switch window.wait(ctx, then) {
		case quit:
			_, err := io.WriteString(w, "\n")
			return err
		case due:
			before := now
			var err error
			if now, err = take(sockets); err != nil {
				return err
			}
			rows, then = rates(before, now), time.Now().Add(t.interval)
		case resized: // the same again
		}
		if _, err := io.WriteString(w, screen(table(rows, now, window.columns), window.lines, window.columns)); err != nil {
			return err
		}
	}
}

// event is what the wait between two tables ended with.
type event uint8

const (
	due     event = iota // it is time for the next
	resized              // the terminal has another size
	quit                 // the user wants no more
)

// quitKey reports whether one of the keys quits: q, and ^C and ^D where they come as keys.
func quitKey(keys []byte) bool { return bytes.ContainsAny(keys, "qQ\x03\x04") }

// take asks the processes. With sockets named each has to answer; of those found, one that has just ended is left out.
func take(sockets []string) (all []stats.Snapshot, err error) {
	named := len(sockets) > 0
	if !named {
		if sockets, err = stats.Sockets(); err != nil {
			return nil, err
		}
	}
	for _, p := range cli.ReadStats(sockets) {
		if p.Err == nil {
			all = append(all, p.Snapshot)
		} else if named {
			return nil, p.Err
		}
	}
	if len(all) == 0 {
		return nil, cli.NoStats("top")
	}
	return all, nil
}

// counters lists all that each RNIC counts.
func counters(w io.Writer, all []stats.Snapshot) error {
	for _, p := range all {
		for _, nic := range p.RNICs {
			name := ""
			if nic.Name != "" {
				name = " " + cli.Printable(nic.Name)
			}
			fmt.Fprintf(w, "%s[%d] rnic %s%s\n", cli.Printable(p.Program), p.PID, cli.Printable(nic.ID), name)
			for _, l := range nic.Lines() {
				if _, err := fmt.Fprintf(w, "  %s %d\n", cli.Printable(l.Name), l.Value); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// screen is text for a terminal of so many lines and columns, which replaces its contents. The last line says how to end, and what has no room.
func screen(text string, lines, columns int) string {
	list := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	last := "q quits"
	if room := max(lines-1, 0); len(list) > room {
		last = fmt.Sprintf("%d lines more; %s", len(list)-room, last)
		list = list[:room]
	}
	const home, clearLine, clearRest = "\x1b[H", "\x1b[K", "\x1b[J"
	var b strings.Builder
	b.WriteString(home)
	for i, line := range append(list, last) {
		if r := []rune(line); len(r) > columns { // a name that is longer than that
			line = string(r[:columns])
		}
		if i > 0 {
			b.WriteString("\n")
		}
		b.WriteString(line + clearLine)
	}
	return b.String() + clearRest
}

package fabric

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/cmd/rnic/internal/fabric/box"
	"github.com/softrnic/softrnic/stats"
)

// tell says what has come up.
func tell(w io.Writer, s *state) error {
	nics := 0
	for _, h := range s.Hosts {
		nics += len(h.NICs)
	}
	fmt.Fprintf(w, "fabric %s is up: %d hosts, %d NICs, %d links\n  in %s\n", s.Name, len(s.Hosts), nics, len(s.Links), s.In)
	for _, n := range s.Notes {
		fmt.Fprintf(w, "  %s\n", n)
	}
	_, err := fmt.Fprintf(w, "  %s\n", notTime)
	return err
}

func lsCommand(name *string) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the hosts, NICs, links and programs of a fabric",
		Args:  cli.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := found(cmd.Context(), *name)
			if err != nil {
				return err
			}
			a, err := ask(cmd.Context(), dir, msgState, nil)
			if err != nil {
				return fmt.Errorf("fabric: %w", err)
			}
			return cli.Print(cmd, asJSON, a.State, list)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print them as JSON")
	return cmd
}

// list is the tables of a fabric.
func list(w io.Writer, s *state) error {
	fmt.Fprintf(w, "%s: up for %v, in %s, held by process %d\n", s.Name, time.Since(s.Began).Round(time.Second), s.In, s.Keeper)
	var rows [][]string
	at := map[int]bool{}
	for _, h := range s.Hosts {
		for _, n := range h.NICs {
			at[n.Link] = true
			rows = append(rows, append([]string{h.Name, n.Name, n.Address}, cells(&s.Links[n.Link])...))
		}
		if len(h.NICs) == 0 {
			rows = append(rows, []string{h.Name, "-"})
		}
	}
	for i := range s.Links {
		if !at[i] {
			rows = append(rows, append([]string{"-", "-", "-"}, cells(&s.Links[i])...))
		}
	}
	if err := columns(w, []string{"HOST", "NIC", "ADDRESS", "LINK", "STATE", "PROPERTIES", "BY"}, rows); err != nil {
		return err
	}
	rows = nil
	for _, p := range s.Programs {
		is := "runs"
		if p.Ended {
			is = fmt.Sprintf("exit %d", p.Status)
		}
		rows = append(rows, []string{p.Host, fmt.Sprint(p.PID), is, cli.Printable(p.Command)})
	}
	if len(rows) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	return columns(w, []string{"HOST", "PID", "STATE", "PROGRAM"}, rows)
}

// cells are what a table says of a link.
func cells(l *box.State) []string {
	is := "down"
	if l.Up {
		is = "up"
	}
	properties, by := l.Is.String(), string(l.Medium)
	if properties == "" {
		properties, by = "-", "-"
	}
	return []string{l.Name, is, properties, by}
}

// columns writes a table whose columns begin below their heads.
func columns(w io.Writer, heads []string, rows [][]string) error {
	wide := make([]int, len(heads))
	rows = append([][]string{heads}, rows...)
	for _, r := range rows {
		for i, c := range r {
			wide[i] = max(wide[i], len(c))
		}
	}
	for _, r := range rows {
		var line strings.Builder
		for i, c := range r {
			fmt.Fprintf(&line, "%-*s  ", wide[i], c)
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(line.String(), " ")); err != nil {
			return err
		}
	}
	return nil
}

func logCommand(name *string) *cobra.Command {
	return &cobra.Command{
		Use:   "log [HOST]",
		Short: "Show what the programs of the file have printed, and what has happened by itself",
		Args:  cli.AtMostArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := found(cmd.Context(), *name)
			if err != nil {
				return err
			}
			logs, err := filepath.Glob(filepath.Join(dir, "log", "*"))
			if err != nil {
				return err
			}
			slices.Sort(logs)
			for _, path := range logs {
				of := filepath.Base(path)
				if len(args) > 0 && of != args[0] {
					continue
				}
				text, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				for line := range strings.Lines(string(text)) {
					fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", of, strings.TrimRight(line, "\n"))
				}
			}
			return nil
		},
	}
}

func topCommand(name *string) *cobra.Command {
	interval := time.Second
	var count int
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch what the hosts of a fabric send and receive",
		Long: `Show what the RDMA programs of each host send and receive in a second, from their counters (docs/counters.md), a
table each --interval. On a terminal it goes on until ^C, elsewhere there is one. rnic fabric exec HOST -- rnic top has
the queue pairs of one host.`,
		Args: cli.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := found(cmd.Context(), *name)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if count == 0 && cli.IsTerminal(out) {
				count = -1
			}
			before := take(dir)
			for n := 0; n < max(count, 1) || count < 0; n++ {
				select {
				case <-cmd.Context().Done():
					return nil
				case <-time.After(interval):
				}
				a, err := ask(cmd.Context(), dir, msgState, nil)
				if err != nil {
					return fmt.Errorf("fabric: %w", err)
				}
				now := take(dir)
				if count < 0 {
					fmt.Fprint(out, "\x1b[H\x1b[J")
				}
				if err := top(out, a.State, before, now); err != nil {
					return err
				}
				before = now
			}
			return nil
		},
	}
	fs := cmd.Flags()
	fs.Var(cli.DurationRange(&interval, 10*time.Millisecond, time.Hour), "interval", "`time` from one table to the next")
	fs.Var(cli.IntRange(&count, 0, 1<<30), "count", "`number` of tables")
	return cmd
}

// take is what the programs of each host say, by host.
func take(dir string) map[string][]stats.Snapshot {
	of := map[string][]stats.Snapshot{}
	sockets, _ := filepath.Glob(filepath.Join(dir, "run", "*", "softrnic", "*.sock"))
	for _, p := range cli.ReadStats(sockets) {
		if p.Err == nil { // one that has just ended is left out
			host := filepath.Base(filepath.Dir(filepath.Dir(p.Socket)))
			of[host] = append(of[host], p.Snapshot)
		}
	}
	return of
}

// total is what programs have done so far.
type total struct {
	programs, qps                                uint64
	outMessages, outOctets, inMessages, inOctets uint64
	failed, terminates                           uint64
}

// sum is that of the RNICs with such a name.
func sum(all []stats.Snapshot, named func(string) bool) (t total) {
	for i := range all {
		has := false
		for j := range all[i].RNICs {
			n := &all[i].RNICs[j]
			if !named(n.Name) {
				continue
			}
			has = true
			t.qps += n.Counters["qp"]
			t.outMessages += n.Sum("out_messages")
			t.outOctets += n.Sum("out_octets")
			t.inMessages += n.Sum("in_messages")
			t.inOctets += n.Sum("in_octets")
			t.failed += n.Sum("completions") - n.By["completions"]["Success"]
			t.terminates += n.Sum("out_terminates") + n.Sum("in_terminates")
		}
		if has {
			t.programs++
		}
	}
	return t
}

// top is one table: a line a NIC, and one for RNICs that are no NIC of the host, as those of Go programs.
func top(w io.Writer, s *state, before, now map[string][]stats.Snapshot) error {
	var rows [][]string
	for _, h := range s.Hosts {
		seconds := 0.0
		if len(before[h.Name]) > 0 && len(now[h.Name]) > 0 {
			seconds = now[h.Name][0].Time.Sub(before[h.Name][0].Time).Seconds()
		}
		line := func(nic, link string, named func(string) bool) {
			a, b := sum(before[h.Name], named), sum(now[h.Name], named)
			if link == "" && b.programs == 0 {
				return
			}
			rate := func(was, is uint64, unit float64, format string) string {
				if seconds <= 0 || is < was { // a program has ended meanwhile
					return "-"
				}
				return fmt.Sprintf(format, float64(is-was)/seconds/unit)
			}
			rows = append(rows, []string{
				h.Name, nic, fmt.Sprint(b.programs), fmt.Sprint(b.qps),
				rate(a.outMessages, b.outMessages, 1, "%.0f"), rate(a.outOctets, b.outOctets, 1e6, "%.1f"),
				rate(a.inMessages, b.inMessages, 1, "%.0f"), rate(a.inOctets, b.inOctets, 1e6, "%.1f"),
				fmt.Sprint(b.failed), fmt.Sprint(b.terminates), link,
			})
		}
		for _, n := range h.NICs {
			c := cells(&s.Links[n.Link])
			link := c[1]
			if c[2] != "-" {
				link += " " + c[2]
			}
			line(n.Name, link, func(name string) bool { return name == n.Name })
		}
		line("-", "", func(name string) bool {
			return !slices.ContainsFunc(h.NICs, func(n nicState) bool { return n.Name == name })
		})
	}
	return columns(w, []string{"HOST", "NIC", "PROGRAMS", "QPs", "OUT msg/s", "MB/s", "IN msg/s", "MB/s", "FAILED", "TERMINATES", "LINK"}, rows)
}

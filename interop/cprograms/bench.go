//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A goal is a figure of a C program, and what it is held against: the same of `rnic perf`, measured beside it round by round, another
// figure of the program's, or a number.
type goal struct {
	name   string
	unit   string
	c      row
	figure *regexp.Regexp            // in what c's client prints; the group is the number
	scale  float64                   // makes unit of it
	beside row                       // what to measure beside it
	field  func(perfFigures) float64 // of beside
	in     *regexp.Regexp            // instead of beside: in what c's client prints
	bound  float64                   // a ratio, or in unit if there is nothing beside it
	least  bool                      // bound is the least that is good; else the most
}

// perfFigures are of the JSON that `rnic perf` prints.
type perfFigures struct {
	GBPerS  float64 `json:"gb_per_s"`
	Million float64 `json:"m_messages_per_s"`
	Latency struct {
		P50 float64 `json:"p50_us"`
	} `json:"latency"`
}

const portPerf = 7175

// goals are the issue's.
func goals() []goal {
	perftest := func(command string) row {
		return row{pkg: "perftest", server: command, client: command + " HOST", port: portPerftest}
	}
	perf := func(command string) row {
		return row{server: "RNIC perf server HOST", client: "RNIC perf " + command + " --json HOST", port: portPerf, plain: both, stays: true}
	}
	// perftest's tables: size, iterations, and then least, most and typical latency in microseconds, or peak and average
	// MiB/s and million messages a second.
	column := func(size, skip int) *regexp.Regexp {
		return regexp.MustCompile(`(?m)^ *` + strconv.Itoa(size) + `(?: +\S+){` + strconv.Itoa(skip) + `}\s+([0-9.]+)`)
	}
	latency := func(f perfFigures) float64 { return f.Latency.P50 }
	throughput := func(f perfFigures) float64 { return f.GBPerS }
	measure := func(command string) row {
		return row{client: "./measure " + command, before: "gcc -O1 -Wall -Werror -o measure HERE/programs/measure.c -libverbs"}
	}
	rss := measure("rss rping -c -a HOST -C 100 -S 4096")
	rss.server, rss.port, rss.leaves = "rping -s -a HOST -C 100 -S 4096", portRping, "it may see the client's end first"
	own, old := regexp.MustCompile(`measured ([0-9.]+)`), regexp.MustCompile(`beside ([0-9.]+)`)
	posts := func(how string) row {
		return row{client: "./posts " + how, before: "gcc -O2 -Wall -Werror -o posts HERE/programs/posts.c -libverbs"}
	}
	return []goal{
		{name: "latency", unit: "us", c: perftest("ib_send_lat -R -s 64 -n 20000"), figure: column(64, 3), scale: 1, beside: perf("send lat --size 64"), field: latency, bound: 1.15},
		{name: "latency with events", unit: "us", c: perftest("ib_send_lat -R -s 64 -n 20000 -e"), figure: column(64, 3), scale: 1, beside: perf("send lat --event --size 64"), field: latency, bound: 1.25},
		{name: "Writes of 64 KiB", unit: "GB/s", c: perftest("ib_write_bw -R -s 65536 -n 40000"), figure: column(65536, 2), scale: 1 << 20 / 1e9, beside: perf("write bw --size 65536"), field: throughput, bound: 0.9, least: true},
		{name: "Writes of 1 MiB", unit: "GB/s", c: perftest("ib_write_bw -R -s 1048576 -n 3000"), figure: column(1048576, 2), scale: 1 << 20 / 1e9, beside: perf("write bw --size 1048576"), field: throughput, bound: 0.9, least: true},
		{name: "Sends of 64 octets", unit: "M/s", c: perftest("ib_send_bw -R -s 64 -n 1000000"), figure: column(64, 3), scale: 1, beside: perf("send bw --size 64"), field: func(f perfFigures) float64 { return f.Million }, bound: 0.5, least: true},
		{name: "Writes posted by `ibv_wr_*`, beside `ibv_post_send`", unit: "M/s", c: posts("wr"), figure: own, scale: 1, in: old, bound: 1, least: true},
		{name: "Writes polled by `ibv_start_poll`, beside `ibv_poll_cq`", unit: "M/s", c: posts("start"), figure: own, scale: 1, in: old, bound: 1, least: true},
		{name: "first `ibv_open_device`", unit: "ms", c: measure("open"), figure: own, scale: 1, bound: 15},
		{name: "resident, at most", unit: "MiB", c: rss, figure: own, scale: 1, bound: 25},
	}
}

// samples are a goal's figures, one a round.
type samples struct{ c, perf, ratio []float64 }

// benched measures all goals, o.bench rounds one after the other, and returns their table.
func (o options) benched(ctx context.Context) (text string, ok bool, err error) {
	all := goals()
	got := make([]samples, len(all))
	for round := range o.bench {
		for i, g := range all {
			if !o.only.MatchString(g.c.name()) {
				continue
			}
			out := o.run(ctx, g.c, false)
			c, err := out.figure(g.c, g.figure)
			if err != nil {
				return "", false, err
			}
			s := &got[i]
			s.c = append(s.c, c*g.scale)
			var p float64
			switch {
			case g.in != nil:
				p, err = out.figure(g.c, g.in)
			case g.field != nil:
				p, err = o.beside(ctx, g)
			}
			if err != nil {
				return "", false, err
			}
			if p > 0 {
				s.perf, s.ratio = append(s.perf, p), append(s.ratio, c*g.scale/p)
			}
			fmt.Fprintf(os.Stderr, "%d/%d %s: %.2f %s, ratios %.2f\n", round+1, o.bench, g.c.client, c*g.scale, g.unit, s.ratio)
		}
	}
	with, err := o.versions(ctx)
	if err != nil {
		return "", false, err
	}
	return benchTable(all, got, o.bench, with), true, nil
}

// figure finds a figure in what the client of r printed.
func (o outcome) figure(r row, figure *regexp.Regexp) (float64, error) {
	if o.err != nil {
		return 0, fmt.Errorf("%s: %w", r.name(), o.err)
	}
	m := figure.FindStringSubmatch(o.clientSaid())
	if m == nil {
		return 0, fmt.Errorf("%s: no figure in\n%s", r.name(), tail(o.left, 10))
	}
	return strconv.ParseFloat(m[1], 64)
}

// beside measures what the goal is held against.
func (o options) beside(ctx context.Context, g goal) (float64, error) {
	out := o.run(ctx, g.beside, false)
	if out.err != nil {
		return 0, fmt.Errorf("%s: %w", g.beside.name(), out.err)
	}
	var f []perfFigures
	if err := json.Unmarshal([]byte(out.clientSaid()), &f); err != nil || len(f) != 1 || g.field(f[0]) <= 0 {
		return 0, fmt.Errorf("%s: no figure in %q", g.beside.name(), out.left)
	}
	return g.field(f[0]), nil
}

// clientSaid is what the client printed.
func (o outcome) clientSaid() string {
	if _, text, ok := strings.Cut(o.left, "client:\n"); ok {
		return text
	}
	return o.left
}

// benchTable is the table of docs/c-programs.md.
func benchTable(all []goal, got []samples, rounds int, with string) string {
	var b strings.Builder
	b.WriteString("| what | command | C program | beside it | ratio: median (least to most) | goal | met |\n|---|---|---|---|---|---|---|\n")
	for i, g := range all {
		s := got[i]
		if len(s.c) == 0 {
			continue
		}
		perf, ratio, judged := "", "", median(s.c)
		if len(s.ratio) > 0 {
			judged = median(s.ratio)
			perf = fmt.Sprintf("%.2f %s", median(s.perf), g.unit)
			ratio = fmt.Sprintf("%.2f (%.2f to %.2f)", judged, slices.Min(s.ratio), slices.Max(s.ratio))
		}
		bound, met := "at most "+strconv.FormatFloat(g.bound, 'g', -1, 64), judged <= g.bound
		if g.least {
			bound, met = "at least "+strconv.FormatFloat(g.bound, 'g', -1, 64), judged >= g.bound
		}
		if len(s.ratio) == 0 {
			bound += " " + g.unit
		}
		fmt.Fprintf(&b, "| %s | `%s` | %.2f %s (%.2f to %.2f) | %s | %s | %s | %s |\n",
			g.name, g.c.client, median(s.c), g.unit, slices.Min(s.c), slices.Max(s.c), perf, ratio, bound, map[bool]string{true: "yes", false: "no"}[met])
	}
	fmt.Fprintf(&b, "\n%d rounds. %s.\n", rounds, with)
	return b.String()
}

// median is the middle of values, of which there is one at least.
func median(values []float64) float64 {
	s := slices.Sorted(slices.Values(values))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

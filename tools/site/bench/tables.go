package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// spread is what several runs gave.
type spread struct {
	n                           int
	least, low, mid, high, most float64 // low and high are the quartiles
}

func spreadOf(values []float64) spread {
	v := slices.Sorted(slices.Values(values))
	at := func(q float64) float64 { // between the two nearest
		x := q * float64(len(v)-1)
		i := int(x)
		if i+1 >= len(v) {
			return v[len(v)-1]
		}
		return v[i] + (x-float64(i))*(v[i+1]-v[i])
	}
	return spread{len(v), v[0], at(0.25), at(0.5), at(0.75), v[len(v)-1]}
}

// noise is how far half of the runs lie apart, beside the median, in percent.
func (s spread) noise() float64 { return 100 * (s.high - s.low) / s.mid }

// goBench is one Go benchmark.
type goBench struct {
	pkg, name string
	ns        []float64
}

// readGo reads what go test -bench prints.
func readGo(text string) (list []goBench, err error) {
	pkg := ""
	at := map[string]int{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if after, ok := strings.CutPrefix(line, "pkg: "); ok {
			pkg = after[strings.LastIndex(after, "softrnic/")+len("softrnic/"):]
			continue
		}
		f := strings.Fields(line)
		if len(f) < 4 || !strings.HasPrefix(f[0], "Benchmark") || f[3] != "ns/op" {
			continue
		}
		ns, err := strconv.ParseFloat(f[2], 64)
		if err != nil {
			return nil, err
		}
		name := strings.TrimPrefix(f[0], "Benchmark")
		if i := strings.LastIndexByte(name, '-'); i > 0 {
			name = name[:i] // the number of processors
		}
		key := pkg + " " + name
		i, known := at[key]
		if !known {
			i = len(list)
			at[key] = i
			list = append(list, goBench{pkg: pkg, name: name})
		}
		list[i].ns = append(list[i].ns, ns)
	}
	if len(list) == 0 {
		return nil, errors.New("no benchmark is in it")
	}
	return list, nil
}

// quiet is the share of the processors that others may use while a machine still counts as quiet.
const quiet = 0.15

// tables is all that is generated.
func tables(runs []turns, marks []goBench) string {
	var b strings.Builder
	b.WriteString("## Beside a bare TCP connection\n\n")
	for _, busy := range []bool{false, true} {
		var some []turns
		for _, r := range runs {
			if (r.Busy > quiet) == busy {
				some = append(some, r)
			}
		}
		switch {
		case len(some) > 0:
			writeTurns(&b, some, busy)
		case !busy:
			b.WriteString("### On a quiet machine\n\n" +
				"No such run is recorded: `make bench-record` on a quiet machine adds some.\n" +
				"[Performance](performance.md#beside-others) has what was measured by other means.\n\n")
		}
	}
	b.WriteString("## Go benchmarks\n\n" +
		"Of [bench.txt](bench.txt). \"Noise\" is how far the middle half of the runs lies apart, beside the median.\n\n| package | benchmark | runs | median | noise |\n|---|---|---:|---:|---:|\n")
	for _, m := range marks {
		s := spreadOf(m.ns)
		fmt.Fprintf(&b, "| `%s` | %s | %d | %s | %.0f %% |\n", m.pkg, m.name, s.n, duration(s.mid), s.noise())
	}
	var noises []float64
	for _, m := range marks {
		noises = append(noises, spreadOf(m.ns).noise())
	}
	s := spreadOf(noises)
	fmt.Fprintf(&b, "\nHalf of these benchmarks have a noise of %.0f %% or less, a quarter of more than %.0f %%.\n", s.mid, s.high)
	return b.String()
}

// writeTurns writes what runs in turns found, of a machine that was busy with other things or was not.
func writeTurns(b *strings.Builder, runs []turns, busy bool) {
	title, shares, cpus := "On a quiet machine", []float64{}, []string{}
	if busy {
		title = "On a busy machine"
	}
	for _, r := range runs {
		shares = append(shares, 100*r.Busy)
		if c := fmt.Sprintf("%d processors (%s)", r.Processors, r.CPU); !slices.Contains(cpus, c) {
			cpus = append(cpus, c)
		}
	}
	l := spreadOf(shares)
	first, last := runs[0].When.Format("2 January 2006"), runs[len(runs)-1].When.Format("2 January 2006")
	share := fmt.Sprintf("%.0f to %.0f", l.least, l.most)
	if l.least == l.most {
		share = fmt.Sprintf("%.0f", l.most)
	}
	when := "of " + first
	if last != first {
		when = "from " + first + " to " + last
	}
	fmt.Fprintf(b, "### %s\n\n%d runs %s; %s; others used %s %% of them.\n\n", title, l.n, when, strings.Join(cpus, ", "), share)
	b.WriteString("| figure | better is | ours | `net.Conn` | ratio | middle half | least | most |\n" +
		"|---|---|---:|---:|---:|---:|---:|---:|\n")
	for i, row := range runs[0].Rows {
		var ours, plain, ratio []float64
		for _, r := range runs {
			if i < len(r.Rows) && r.Rows[i].What == row.What {
				ours, plain, ratio = append(ours, r.Rows[i].Ours), append(plain, r.Rows[i].Plain), append(ratio, r.Rows[i].Ratio)
			}
		}
		better := "more"
		if row.Unit == "us" {
			better = "less"
		}
		s := spreadOf(ratio)
		fmt.Fprintf(b, "| %s | %s | %.3g %s | %.3g %s | **%.2f** | %.2f to %.2f | %.2f | %.2f |\n", row.What, better,
			spreadOf(ours).mid, row.Unit, spreadOf(plain).mid, row.Unit, s.mid, s.low, s.high, s.least, s.most)
	}
	b.WriteByte('\n')
}

func duration(ns float64) string {
	switch {
	case ns < 1e3:
		return fmt.Sprintf("%.3g ns", ns)
	case ns < 1e6:
		return fmt.Sprintf("%.3g us", ns/1e3)
	}
	return fmt.Sprintf("%.3g ms", ns/1e6)
}

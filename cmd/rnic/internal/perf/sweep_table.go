package perf

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
)

// sweepTable is a table of a sweep, for text and HTML alike.
type sweepTable struct {
	Title string
	Head  []string
	Rows  [][]string
}

// sweepLine names a series of streams.
type sweepLine struct {
	op   string
	crc  bool
	name string
}

var sweepLines = [...]sweepLine{
	{"send", false, "Send"},
	{"send", true, "Send, CRC"},
	{"write", false, "Write"},
	{"write", true, "Write, CRC"},
	{"read", false, "Read"},
	{"read", true, "Read, CRC"},
}

// tables are the bandwidth, the message rate and the latency.
func (r *sweepReport) tables() []sweepTable {
	return []sweepTable{
		r.streamTable("Bandwidth in GB/s, counted at the receiving end", func(p perfResult) string {
			return threeDigits(p.GBps) + plusMinus(p)
		}),
		r.streamTable("Messages in millions a second", func(p perfResult) string { return threeDigits(p.Mps) }),
		r.latencyTable(),
	}
}

func (r *sweepReport) streamTable(title string, cell func(perfResult) string) sweepTable {
	t := sweepTable{Title: title, Head: []string{"octets"}}
	for _, size := range r.Sizes {
		t.Rows = append(t.Rows, []string{cli.Grouped(size)})
	}
	for _, line := range sweepLines {
		t.Head = append(t.Head, line.name)
		for i, p := range r.series(line.op, line.crc) {
			t.Rows[i] = append(t.Rows[i], cell(p))
		}
	}
	return t
}

// plusMinus is how far the rounds of a figure were from it; nothing if there was one round.
func plusMinus(p perfResult) string {
	if p.Spread.Rounds < 2 || p.figure() == 0 {
		return ""
	}
	return fmt.Sprintf(" ±%.0f %%", 100*p.Spread.off(p.figure()))
}

// threeDigits writes v with three digits that count.
func threeDigits(v float64) string {
	after := 2
	if v > 0 {
		after = max(0, 2-int(math.Floor(math.Log10(v))))
	}
	return strconv.FormatFloat(v, 'f', after, 64)
}

func (r *sweepReport) latencyTable() sweepTable {
	t := sweepTable{
		Title: fmt.Sprintf("Half a round trip of a Send of %d octets in us, CRC off", sweepLatencySize),
		Head:  []string{"waiting", "round trips", "min", "mean", "p50", "p90", "p99", "p99.9", "max", "p50 of rounds"},
	}
	for _, p := range r.Latency {
		row := []string{latencyName(p), cli.Grouped(p.Messages)}
		l := p.Latency
		for _, us := range []float64{l.Min, l.Mean, l.P50, l.P90, l.P99, l.P999, l.Max} {
			row = append(row, fmt.Sprintf("%.2f", us))
		}
		t.Rows = append(t.Rows, append(row, fmt.Sprintf("%.2f to %.2f", p.Spread.Least, p.Spread.Most)))
	}
	return t
}

func latencyName(p perfResult) string {
	if p.Event {
		return "completion events"
	}
	return "polling"
}

// machine says in a line what was measured on.
func machine() string {
	m := fmt.Sprintf("%d processors, %s/%s, %s", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version())
	text, err := os.ReadFile("/proc/cpuinfo") // not everywhere
	if err != nil {
		return m
	}
	for line := range strings.Lines(string(text)) {
		if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value) + ", " + m
		}
	}
	return m
}

package top

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/stats"
)

// column is one of the table. Those of a low rank are wanted most; columns of the same rank come together, or not at all.
type column struct {
	head string
	rank int
	wide int // at least so many characters, so that the table stands still as numbers grow
	cell func(*row) string
}

func number[T float64 | uint64 | uint32 | int](format string, of func(*row) T) func(*row) string {
	return func(r *row) string { return fmt.Sprintf(format, of(r)) }
}

var columns = []column{
	{"PID", 0, 5, number("%d", func(r *row) int { return r.pid })},
	{nicHead, 0, 3, func(r *row) string { return cli.Printable(r.name) }},
	{"QP", 0, 3, number("%d", func(r *row) uint32 { return r.qp })},
	{"STATE", 3, 5, func(r *row) string { return cli.Printable(r.state) }},
	{"OUT msg/s", 1, 9, number("%.0f", func(r *row) float64 { return r.out.messages })},
	{"MB/s", 1, 6, number("%.1f", func(r *row) float64 { return r.out.octets / 1e6 })},
	{"IN msg/s", 2, 8, number("%.0f", func(r *row) float64 { return r.in.messages })},
	{"MB/s", 2, 6, number("%.1f", func(r *row) float64 { return r.in.octets / 1e6 })},
	{"SQ", 5, 3, number("%d", func(r *row) uint64 { return r.sendQueue })},
	{"RQ", 5, 3, number("%d", func(r *row) uint64 { return r.recvQueue })},
	{"READS out", 7, 9, number("%d", func(r *row) uint64 { return r.outReads })},
	{"in", 7, 2, number("%d", func(r *row) uint64 { return r.inReads })},
	{"FAILED", 4, 6, number("%d", func(r *row) uint64 { return r.failed })},
	{"PEER", 6, 15, func(r *row) string { return cmp.Or(cli.Printable(r.peer), "-") }},
}

// nicHead is the column of the NIC's name, which is there if one has a name.
const nicHead = "NIC"

const (
	lastRank = 7
	gap      = 2 // before each column
)

// table is the rows below what their processes have counted in all, in lines of at most width characters; 0 is no limit. What has no room
// for a whole column goes without.
func table(rows []row, now []stats.Snapshot, width int) string {
	var text strings.Builder
	for _, p := range now {
		for _, line := range summaries(p) {
			text.WriteString(wrap(line, width))
		}
	}
	columns := columns
	if !slices.ContainsFunc(rows, func(r row) bool { return r.name != "" }) {
		columns = slices.DeleteFunc(slices.Clone(columns), func(c column) bool { return c.head == nicHead })
	}
	text.WriteString("\n")
	widths := make([]int, len(columns))
	cells := make([][]string, len(rows))
	for i, c := range columns {
		widths[i] = max(c.wide, len(c.head))
		for j := range rows {
			cell := c.cell(&rows[j])
			cells[j] = append(cells[j], cell)
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	shown := chosen(columns, widths, width)
	line := func(cell func(i int) string) {
		for i, show := range shown {
			if show {
				fmt.Fprintf(&text, "%*s", gap+widths[i], cell(i))
			}
		}
		text.WriteString("\n")
	}
	line(func(i int) string { return columns[i].head })
	for _, of := range cells {
		line(func(i int) string { return of[i] })
	}
	if missing := missing(columns, shown); missing != "" {
		text.WriteString(wrap("not shown for want of width: "+missing, width))
	}
	return text.String()
}

// chosen says which columns there is room for: rank by rank, each that still fits. The first are always there.
func chosen(columns []column, widths []int, width int) []bool {
	shown := make([]bool, len(columns))
	left := width
	for rank := range lastRank + 1 {
		need := 0
		for i, c := range columns {
			if c.rank == rank {
				need += gap + widths[i]
			}
		}
		if width > 0 && need > left && rank > 0 {
			continue
		}
		left -= need
		for i, c := range columns {
			shown[i] = shown[i] || c.rank == rank
		}
	}
	return shown
}

// missing names the columns that are not shown.
func missing(columns []column, shown []bool) string {
	var names []string
	for i, show := range shown {
		if !show && !(columns[i].head == "MB/s" || columns[i].head == "in") { // the second of two
			names = append(names, columns[i].head)
		}
	}
	return strings.Join(names, ", ")
}

// wrap breaks a line behind commas, semicolons and colons, where it is longer than width; 0 is no limit. What follows is indented.
func wrap(line string, width int) string {
	const indent = "    "
	if width <= 0 {
		return line + "\n"
	}
	var text strings.Builder
	at := 0
	for i, part := range strings.SplitAfter(strings.NewReplacer(", ", ",\x00", "; ", ";\x00", ": ", ":\x00").Replace(line), "\x00") {
		part = strings.TrimSuffix(part, "\x00")
		n := utf8.RuneCountInString(part)
		switch {
		case i == 0:
		case at+1+n <= width:
			text.WriteString(" ")
			at++
		default:
			text.WriteString("\n" + indent)
			at = len(indent)
		}
		text.WriteString(part)
		at += n
	}
	return text.String() + "\n"
}

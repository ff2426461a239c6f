package trace

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"time"
	"unicode/utf8"
)

// Timeline writes records, a line each: the time since the first, the time since the one before, the end if there are several, the queue pair,
// what it was.
func (e Ends) Timeline(w io.Writer) error {
	list := e.merged()
	b := bufio.NewWriter(w)
	wide := 0 // of the names; 0 for none
	for _, r := range list {
		wide = max(wide, utf8.RuneCountInString(r.end))
	}
	column := func(name string) string {
		if wide == 0 {
			return ""
		}
		return fmt.Sprintf("  %-*s", max(wide, len("end")), name)
	}
	if len(list) > 0 {
		fmt.Fprintf(b, "%s\n%12s %10s%s  %-6s %s\n", list[0].When().Format(time.RFC3339Nano), "seconds", "since", column("end"), "qp", "what")
	}
	for i, r := range list {
		since := ""
		if i > 0 {
			since = time.Duration(r.Time - list[i-1].Time).String()
		}
		qp := "-"
		if r.QP != 0 {
			qp = strconv.FormatUint(uint64(r.QP), 10)
		}
		fmt.Fprintf(b, "%12.6f %10s%s  %-6s %s\n", time.Duration(r.Time-list[0].Time).Seconds(), since, column(r.end), qp, r.Record)
	}
	return b.Flush()
}

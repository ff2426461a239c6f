package trace

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"time"
)

// Timeline writes records, a line each: the time since the first, the time since the one before, the queue pair, what it was.
func Timeline(w io.Writer, list []Record) error {
	b := bufio.NewWriter(w)
	if len(list) > 0 {
		fmt.Fprintf(b, "%s\n%12s %10s  %-6s %s\n", list[0].When().Format(time.RFC3339Nano), "seconds", "since", "qp", "what")
	}
	for i := range list {
		r := &list[i]
		since := ""
		if i > 0 {
			since = time.Duration(r.Time - list[i-1].Time).String()
		}
		qp := "-"
		if r.QP != 0 {
			qp = strconv.FormatUint(uint64(r.QP), 10)
		}
		fmt.Fprintf(b, "%12.6f %10s  %-6s %s\n", time.Duration(r.Time-list[0].Time).Seconds(), since, qp, r)
	}
	return b.Flush()
}

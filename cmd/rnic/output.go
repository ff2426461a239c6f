package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"text/tabwriter"
	"time"
)

// printJSON writes v as one indented JSON value.
func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// newTable makes a writer of aligned columns: cells end with a tab, rows with a
// newline. Flush writes the table out.
func newTable(w io.Writer) *tabwriter.Writer {
	return tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
}

// grouped writes n with a comma between groups of three digits.
func grouped(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// progress redraws one line on a terminal while something long goes on. On
// anything else than a terminal it draws nothing.
type progress struct {
	w     io.Writer // nil: draw nothing
	unit  string    // of what is counted; "" stands for octets
	next  time.Time // do not draw before
	drawn bool
}

const progressInterval = 100 * time.Millisecond

func newProgress(w io.Writer) *progress {
	if f, ok := w.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			return &progress{w: w}
		}
	}
	return &progress{}
}

// show draws how much is done of a total, a few times a second at most.
func (p *progress) show(what string, done, total uint64) {
	if p.w == nil {
		return
	}
	now := time.Now()
	if now.Before(p.next) {
		return
	}
	p.next = now.Add(progressInterval)
	p.drawn = true
	// A line that wraps cannot be redrawn: with this bar even a demo of 100 GB
	// stays within 80 columns.
	const width = len(bar)
	filled := width
	if total > 0 {
		filled = int(done * uint64(width) / total)
	}
	fmt.Fprintf(p.w, "\r%-6s [%-*s] %s of %s %s\x1b[K",
		what, width, bar[:filled], grouped(done), grouped(total), cmp.Or(p.unit, "octets"))
}

const bar = "##############################"

// clear removes the line, so that results start on a clean one.
func (p *progress) clear() {
	if p.drawn {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}

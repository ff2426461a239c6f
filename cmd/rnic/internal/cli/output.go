package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// PrintJSON writes v as one indented JSON value.
func PrintJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// NewTable makes a writer of aligned columns: cells end with a tab, rows with a
// newline. Flush writes the table out.
func NewTable(w io.Writer) *tabwriter.Writer {
	return tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
}

// Grouped writes n with a comma between groups of three digits.
func Grouped(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Progress redraws one line on a terminal while something long goes on. On
// anything else than a terminal it draws nothing.
type Progress struct {
	w     io.Writer // nil: draw nothing
	Unit  string    // of what is counted; "" stands for octets
	Next  time.Time // do not draw before
	drawn bool
}

const progressInterval = 100 * time.Millisecond

// NewProgress draws on w if that is a terminal.
func NewProgress(w io.Writer) *Progress {
	if f, ok := w.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			return &Progress{w: w}
		}
	}
	return &Progress{}
}

// Show draws how much is done of a total, a few times a second at most.
func (p *Progress) Show(what string, done, total uint64) {
	if p.w == nil {
		return
	}
	now := time.Now()
	if now.Before(p.Next) {
		return
	}
	p.Next = now.Add(progressInterval)
	p.drawn = true
	// A line that wraps cannot be redrawn: with this bar even a demo of 100 GB
	// stays within 80 columns.
	const width = len(bar)
	filled := width
	if total > 0 {
		filled = int(done * uint64(width) / total)
	}
	fmt.Fprintf(p.w, "\r%-6s [%-*s] %s of %s %s\x1b[K",
		what, width, bar[:filled], Grouped(done), Grouped(total), cmp.Or(p.Unit, "octets"))
}

// Cases draws how far a run is.
func (p *Progress) Cases(done, of, failed int) {
	if p.w == nil {
		return
	}
	now := time.Now()
	if now.Before(p.Next) {
		return
	}
	p.Next = now.Add(progressInterval)
	p.drawn = true
	const width = len(bar)
	fmt.Fprintf(p.w, "\r[%-*s] %d of %d cases, %d failed\x1b[K", width, bar[:done*width/of], done, of, failed)
}

const bar = "##############################"

// Clear removes the line, so that results start on a clean one.
func (p *Progress) Clear() {
	if p.drawn {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}

// Printable is what a file or another process says, without what a terminal would act on.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return '?'
		}
		return r
	}, s)
}

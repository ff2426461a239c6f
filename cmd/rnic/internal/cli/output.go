package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
)

// PrintJSON writes v as one indented JSON value.
func PrintJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// Print writes v to standard output: as JSON, or as text does.
func Print[T any](cmd *cobra.Command, asJSON bool, v T, text func(io.Writer, T) error) error {
	if asJSON {
		return PrintJSON(cmd.OutOrStdout(), v)
	}
	return text(cmd.OutOrStdout(), v)
}

// Line writes v on a line of its own.
func Line[T fmt.Stringer](w io.Writer, v T) error {
	_, err := fmt.Fprintln(w, v)
	return err
}

// Measure prints what measure returns. Its progress counts in unit; errors begin with the name of the command.
func Measure[T any](
	cmd *cobra.Command, name, unit string, asJSON bool,
	measure func(context.Context, *Progress) (T, error), text func(io.Writer, T) error,
) error {
	p := NewProgress(cmd.ErrOrStderr())
	p.Unit = unit
	v, err := measure(cmd.Context(), p)
	p.Clear()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return Print(cmd, asJSON, v, text)
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
	if IsTerminal(w) {
		return &Progress{w: w}
	}
	return &Progress{}
}

// IsTerminal reports whether w is a terminal.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Show draws how much is done of a total, a few times a second at most.
func (p *Progress) Show(what string, done, total uint64) {
	if p.due() {
		p.draw(fmt.Sprintf("%-6s [%s] %s of %s %s",
			what, bar(done, total), Grouped(done), Grouped(total), cmp.Or(p.Unit, "octets")))
	}
}

// Cases draws how far a run is.
func (p *Progress) Cases(done, of, failed int) {
	if p.due() {
		p.draw(fmt.Sprintf("[%s] %d of %d cases, %d failed", bar(uint64(done), uint64(of)), done, of, failed))
	}
}

// due reports whether it is time to draw.
func (p *Progress) due() bool { return p.w != nil && !time.Now().Before(p.Next) }

func (p *Progress) draw(line string) {
	p.Next = time.Now().Add(progressInterval)
	p.drawn = true
	fmt.Fprintf(p.w, "\r%s\x1b[K", line)
}

// bar is so long that even a demo of 100 GB stays within 80 columns: a line that wraps cannot be redrawn.
func bar(done, total uint64) string {
	const width = 30
	filled := width
	if total > 0 {
		filled = int(done * width / total)
	}
	return strings.Repeat("#", filled) + strings.Repeat(" ", width-filled)
}

// Clear removes the line, so that results start on a clean one.
func (p *Progress) Clear() {
	if p.drawn {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}

// Printable is text of a file or another process, without control characters.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return '?'
		}
		return r
	}, s)
}

package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/softrnic/softrnic/conformance"
)

// WriteText writes a report for a terminal: why cases were skipped, what failed and
// how, and a table of the sections.
func WriteText(w io.Writer, r *Report) error {
	out := bufio.NewWriter(w)
	if t := r.Trouble(); t != "" {
		fmt.Fprintf(out, "STARTUP %s\n", t)
		r.Startup().exchange(out)
		fmt.Fprintln(out)
	}
	r.skips(out)
	r.notTestable(out)
	for _, c := range r.Faulty() {
		c.text(out)
	}
	r.table(out)
	fmt.Fprintf(out, "\n%s\n", r.Summary())
	return out.Flush()
}

// Summary is the run in a line.
func (r *Report) Summary() string {
	t := r.Total
	s := fmt.Sprintf("%d cases in %v: %d passed, %d failed, %d skipped; %d of %d testable requirements shown",
		t.Cases, r.Run.Took.Round(time.Millisecond), t.Pass, t.Fail, t.Skip, t.Shown, t.Keys)
	if r.Run.Target != "" {
		s += fmt.Sprintf("\ntarget %s, seed %d", r.Run.Target, r.Run.Seed)
	}
	return s
}

// skips says once why, and for how many cases.
func (r *Report) skips(out io.Writer) {
	reasons := r.Skips()
	for _, s := range reasons {
		fmt.Fprintf(out, "SKIP %s: %s\n", counted(s.Cases, "case"), s.Why)
	}
	if len(reasons) > 0 {
		fmt.Fprintln(out)
	}
}

// notTestable says why no case can show what was asked for.
func (r *Report) notTestable(out io.Writer) {
	some := false
	for _, s := range r.Sections {
		for _, k := range s.Keys {
			if r.Run.named(k.Requirement) {
				fmt.Fprintf(out, "%s %s: %s\n  %s\n", conformance.NotTestable, k.Key, k.Summary, notTestable(k.Requirement))
				some = true
			}
		}
	}
	if some {
		fmt.Fprintln(out)
	}
}

// mostLines bounds how much of a failed case's exchange the text shows.
const mostLines = 60

// Headline is a failed case in a line, without the end of it.
func Headline(r conformance.Result) string {
	return fmt.Sprintf("FAIL %s (%v)", r.Case, r.Duration().Round(time.Millisecond))
}

func (c *Case) text(out io.Writer) {
	fmt.Fprintln(out, Headline(c.Result))
	for _, k := range c.Keys {
		fmt.Fprintf(out, "  %s: %s\n", k.Key, k.Summary)
	}
	for line := range strings.Lines(strings.TrimRight(c.Detail, "\n") + "\n") {
		fmt.Fprintf(out, "    %s", line)
	}
	c.exchange(out)
	fmt.Fprintln(out)
}

// exchange is the end of what was sent and received.
func (c *Case) exchange(out io.Writer) {
	entries := Decode(c.Trace)
	if left := len(entries) - mostLines; left > 0 {
		fmt.Fprintf(out, "  ... %d more before\n", left)
		entries = entries[left:]
	}
	for _, e := range entries {
		if e.Kind != KindNote {
			fmt.Fprintf(out, "  %s\n", e.Line())
		}
	}
}

// Line is an entry of a stream on one line.
func (e Entry) Line() string {
	s := fmt.Sprintf("%9.6f %d %s %s", e.At.Seconds(), e.Stream, e.Arrow(), e.Title)
	if e.Complaint != "" {
		s += " [" + e.Complaint + "]"
	}
	return s
}

// Arrow shows the direction: the runner is left, the target right.
func (e Entry) Arrow() string {
	switch e.Direction {
	case conformance.Sent:
		return "->"
	case conformance.Received:
		return "<-"
	default:
		return "  "
	}
}

func (r *Report) table(out io.Writer) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "cases\tpass\tfail\tskip\tkeys\tshown\tnot testable\tnot implemented\t  section\n")
	row := func(c Counts, name string) {
		fmt.Fprintf(t, "%d\t%d\t%s\t%s\t%d\t%d\t%s\t%s\t  %s\n", c.Cases, c.Pass, dash(c.Fail), dash(c.Skip), c.Keys, c.Shown,
			dash(c.NotTestable), dash(c.NotImplemented), name)
	}
	for _, s := range r.Sections {
		row(s.Counts, s.Name())
	}
	row(r.Total, "all")
	_ = t.Flush()
}

func dash(n int) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

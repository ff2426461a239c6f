package report

import (
	"bufio"
	_ "embed" // the page's parts
	"encoding/hex"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/requirements"
)

//go:embed page.html
var pageText string

//go:embed page.css
var pageCSS string

//go:embed page.js
var pageJS string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"css":      func() template.CSS { return template.CSS(pageCSS) },
	"js":       func() template.JS { return template.JS(pageJS) },
	"id":       anchor,
	"tone":     tone,
	"word":     word,
	"exchange": shown,
	"rows":     rows,
	"percent":  percent,
	"failed":   failedHere,
	"trim":     strings.TrimSpace,
	"test":     func(k *Key) bool { return k.Class == requirements.Test },
	"seconds":  func(c *Case) string { return fmt.Sprintf("%.3f s", c.Seconds) },
	"stamp":    func(e viewed) string { return fmt.Sprintf("%.6f", e.At.Seconds()) },
	"plural": func(n int, what string) string {
		if n == 1 {
			return "1 " + what
		}
		return fmt.Sprintf("%d %ss", n, what)
	},
}).Parse(pageText))

// WriteHTML writes a report as one page that needs nothing else: neither files nor a
// network. Without scripts only the filter does not work.
func WriteHTML(w io.Writer, r *Report) error {
	out := bufio.NewWriter(w)
	if err := page.Execute(out, r); err != nil {
		return fmt.Errorf("conformance report: %w", err)
	}
	return out.Flush()
}

// anchor is the name of a place in the page.
func anchor(parts ...string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '-':
			return r
		}
		return '_'
	}, strings.Join(parts, "-"))
}

// tone is a verdict's style.
func tone(v conformance.Verdict) string {
	switch v {
	case conformance.Pass:
		return "pass"
	case conformance.Fail:
		return "fail"
	case conformance.Skip:
		return "skip"
	case conformance.NotTestable:
		return "none"
	}
	return "open"
}

// word is a verdict as the page has it.
func word(v conformance.Verdict) string {
	if v == "" {
		return "NOT RUN"
	}
	return string(v)
}

// mostEntries bounds how much of an exchange the page shows.
const mostEntries = 150

// view is an exchange as it is shown.
type view struct {
	Entries []viewed
	Left    int // how many were left out before
}

type viewed struct {
	Entry
	Open bool // its octets are shown at once
}

// shown is a case's exchange. A case fails at its end: so that is what is shown of a
// long one, and the last frames are open.
func shown(c *Case) view {
	entries := Decode(c.Trace)
	v := view{Left: max(0, len(entries)-mostEntries)}
	for _, e := range entries[v.Left:] {
		v.Entries = append(v.Entries, viewed{Entry: e})
	}
	open := 0
	if c.Verdict == conformance.Fail {
		open = 2
	}
	for i := len(v.Entries) - 1; i >= 0 && open > 0; i-- {
		if len(v.Entries[i].Fields) > 0 {
			v.Entries[i].Open = true
			open--
		}
	}
	return v
}

// row is a field on the page.
type row struct {
	Offset, Octets, Layer, Text string
}

func rows(e viewed) []row {
	var all []row
	at := 0
	for _, f := range e.Fields {
		layer := f.Layer
		if layer == "" {
			layer = "data"
		}
		all = append(all, row{fmt.Sprintf("%04x", at), octets(f.Octets), layer, f.Text})
		at += len(f.Octets)
	}
	return all
}

// octets writes the first and last of many.
func octets(b []byte) string {
	const head, tail = 128, 16
	if len(b) <= head+tail+16 {
		return spaced(b)
	}
	return fmt.Sprintf("%s … %d more … %s", spaced(b[:head]), len(b)-head-tail, spaced(b[len(b)-tail:]))
}

func spaced(b []byte) string {
	s := hex.EncodeToString(b)
	var out strings.Builder
	for i := 0; i < len(s); i += 2 {
		if i > 0 {
			out.WriteByte(' ')
		}
		out.WriteString(s[i : i+2])
	}
	return out.String()
}

func percent(n, of int) string {
	if of == 0 {
		return "0"
	}
	return fmt.Sprintf("%.2f", float64(n)*100/float64(of))
}

// failedHere reports whether a note is where an assertion failed; what it said is in
// the case's detail.
func failedHere(e viewed) bool { return strings.HasPrefix(e.Title, "failed: ") }

// Verdicts are those that the page filters by.
func (*Report) Verdicts() []conformance.Verdict {
	return []conformance.Verdict{conformance.Fail, conformance.Pass, conformance.Skip, conformance.NotTestable, ""}
}

// TookText is the run's time.
func (r *Report) TookText() string { return fmt.Sprintf("%.1f s", r.Run.Took.Seconds()) }

// SpecName is the source of a section as people call it.
func (s *Section) SpecName() string { return specName(s.Spec) }

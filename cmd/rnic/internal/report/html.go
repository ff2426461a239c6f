package report

import (
	"bufio"
	"cmp"
	_ "embed" // the page's parts
	"encoding/hex"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/softrnic/softrnic/cmd/rnic/internal/dissect"
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
	"traffic":  traffic,
	"hex":      hex.EncodeToString,
	"stamp":    func(e viewed) string { return fmt.Sprintf("%.6f", e.At.Seconds()) },
	"plural":   counted,
	"reason":   reason,
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
	default:
		return "open"
	}
}

// word is a verdict as the page has it.
func word(v conformance.Verdict) string {
	if v == "" {
		return "NOT RUN"
	}
	return string(v)
}

// mostEntries bounds how much of an exchange the page shows at once.
const mostEntries = 150

// view is an exchange as it is shown.
type view struct {
	Entries []viewed
	Earlier []viewed // folded up before them, each a line, if the case did not pass
	Left    int      // how many were left out before them, if it passed
}

type viewed struct {
	Entry
	Open  bool // its octets are shown at once
	whole bool // none of its octets is left out
}

// shown is a case's exchange. A case fails at its end: so the end of a long one is seen
// at once, and the last frames are open. Of a case that passed it is all there is.
func shown(c *Case) view {
	var v view
	for _, e := range Decode(c.Trace) {
		v.Entries = append(v.Entries, viewed{Entry: e, whole: c.Verdict != conformance.Pass})
	}
	if n := len(v.Entries) - mostEntries; n > 0 {
		if c.Verdict == conformance.Pass {
			v.Left = n
		} else {
			v.Earlier = v.Entries[:n]
		}
		v.Entries = v.Entries[n:]
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
	Offset      string
	Head, Tail  string // hexadecimal; of few octets all are in Head
	Middle      string // what is between, folded up
	Between     int    // how many octets that are, or would be
	Layer, Text string
}

func rows(e viewed) []row {
	var all []row
	at := 0
	for _, f := range e.Fields {
		r := row{Offset: fmt.Sprintf("%04x", at), Layer: cmp.Or(f.Layer, "data"), Text: f.Text}
		r.cut(f.Octets, e.whole)
		all = append(all, r)
		at += len(f.Octets)
	}
	return all
}

// cut takes the first and last of many octets, and what is between if all are wanted.
func (r *row) cut(b []byte, whole bool) {
	const head, tail = 128, 16
	r.Between = len(b) - head - tail
	if r.Between <= 16 {
		r.Head, r.Between = spaced(b), 0
		return
	}
	r.Head, r.Tail = spaced(b[:head]), spaced(b[len(b)-tail:])
	if whole {
		r.Middle = hex.EncodeToString(b[head : len(b)-tail])
	}
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

// traffic is how much went over a case's streams, of which no octet was kept.
func traffic(c *Case) string {
	t := c.Traffic
	switch t.Streams {
	case 0:
		return "Nothing was recorded on a wire."
	case 1:
		return fmt.Sprintf("1 stream: %s sent, %s received. Their octets are kept with --record-all.", dissect.OctetsText(t.Sent), dissect.OctetsText(t.Received))
	}
	return fmt.Sprintf("%d streams: %s sent, %s received. Their octets are kept with --record-all.", t.Streams, dissect.OctetsText(t.Sent), dissect.OctetsText(t.Received))
}

// failedHere reports whether a note is where an assertion failed; what it said is in
// the case's detail.
func failedHere(e viewed) bool { return strings.HasPrefix(e.Title, "failed: ") }

// Verdicts are those that the page filters by.
func (*Report) Verdicts() []conformance.Verdict {
	return []conformance.Verdict{conformance.Fail, conformance.Pass, conformance.Skip, conformance.NotTestable, ""}
}

// Foreign reports whether the target is not the RNIC of this program: what such a target lacks is
// then of no interest, and hidden at first.
func (r *Report) Foreign() bool {
	return r.Run.Target != "" && r.Run.Target != conformance.InProcess{}.Name()
}

// TookText is the run's time.
func (r *Report) TookText() string { return fmt.Sprintf("%.1f s", r.Run.Took.Seconds()) }

// SpecName is the source of a section as people call it.
func (s *Section) SpecName() string { return specName(s.Spec) }

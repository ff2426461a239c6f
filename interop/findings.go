package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/requirements"
)

// findings are what the conformance cases said about siw, in the order of the cases.
type findings struct {
	order []string                                  // names of cases
	by    map[string]map[conformance.Role]attempted // by name
	total map[conformance.Role]map[conformance.Verdict]int
}

func newFindings() *findings {
	return &findings{
		by:    map[string]map[conformance.Role]attempted{},
		total: map[conformance.Role]map[conformance.Verdict]int{},
	}
}

func (f *findings) add(role conformance.Role, o attempted) {
	if f.by[o.Case] == nil {
		f.by[o.Case] = map[conformance.Role]attempted{}
		f.order = append(f.order, o.Case)
	}
	f.by[o.Case][role] = o
	if f.total[role] == nil {
		f.total[role] = map[conformance.Verdict]int{}
	}
	f.total[role][o.Verdict]++
}

// siwRole is what siw is when cases play a role.
func siwRole(r conformance.Role) string {
	if r == conformance.Initiator {
		return "server"
	}
	return "client"
}

var bothRoles = []conformance.Role{conformance.Initiator, conformance.Responder}

// line is why a case failed, in a line.
func (o attempted) line() string {
	text := oneLine(o.Detail)
	switch {
	case o.crash == "":
		return text
	case text == "":
		return "its kernel failed: " + o.crash
	}
	return text + "; its kernel failed: " + o.crash
}

// oneLine is a failure in a line: of testify's text, which names where and what on
// lines of their own, the message and the error.
func oneLine(detail string) string {
	var said, message []string
	var label string
	for line := range strings.Lines(detail) {
		line = strings.TrimSpace(line)
		rest := line
		if at := strings.Index(line, "Error Trace:"); at >= 0 { // what stands before is the part
			if part := strings.TrimSpace(line[:at]); part != "" {
				message = append(message, strings.TrimSuffix(part, ":"))
			}
			label = "trace"
			continue
		}
		for _, l := range []string{"Error:", "Messages:"} {
			if after, ok := strings.CutPrefix(line, l); ok {
				label, rest = l, strings.TrimSpace(after)
			}
		}
		switch {
		case rest == "" || label == "trace":
		case strings.HasPrefix(rest, "Diff:"):
			label = "trace"
		case label == "Messages:":
			message = append(message, rest)
			label = ""
		default:
			said = append(said, rest)
		}
	}
	join := ": "
	if len(message) == 0 {
		join = ""
	}
	text := strings.Join(message, ": ") + join + strings.Join(said, "; ")
	const most = 220
	if len(text) > most {
		text = text[:most] + "..."
	}
	return text
}

// row is a line of the table.
type row struct{ key, asks, did, siw, name string }

// rows are the findings, key by key.
func (f *findings) rows() []row {
	var all []row
	for _, name := range f.order {
		did := map[string][]string{}
		var lines []string
		var keys []string
		for _, role := range bothRoles {
			o, ok := f.by[name][role]
			if !ok || o.Verdict != conformance.Fail && o.crash == "" {
				continue
			}
			keys = o.Keys
			if did[o.line()] == nil {
				lines = append(lines, o.line())
			}
			did[o.line()] = append(did[o.line()], siwRole(role))
		}
		for _, line := range lines {
			for _, k := range keys {
				all = append(all, row{k, requirements.ByKey()[k].Summary, line, strings.Join(did[line], ", "), name})
			}
		}
	}
	return all
}

// passedLate are the cases that did not pass at once.
func (f *findings) passedLate() []string {
	var all []string
	for _, name := range f.order {
		for _, role := range bothRoles {
			if o := f.by[name][role]; o.Verdict == conformance.Pass && o.tries > 1 {
				all = append(all, fmt.Sprintf("%s (siw as %s) passed on try %d", name, siwRole(role), o.tries))
			}
		}
	}
	return all
}

func (f *findings) totals() []string {
	var all []string
	for _, role := range bothRoles {
		n := f.total[role]
		all = append(all, fmt.Sprintf("siw as %s: %d pass, %d fail, %d skip",
			siwRole(role), n[conformance.Pass], n[conformance.Fail], n[conformance.Skip]))
	}
	return all
}

// writeText prints the findings for a terminal, a case a line.
func (f *findings) writeText(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	last := row{}
	for _, r := range f.rows() {
		if r.name != last.name || r.did != last.did {
			fmt.Fprintf(tw, "%s\t%s\t%s\n", r.name, r.siw, r.did)
		}
		last = r
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, strings.Join(append(f.passedLate(), f.totals()...), "\n"))
	return err
}

// markdown returns the table for docs/interop.md. versions says what was run.
func (f *findings) markdown(versions string) string {
	var b strings.Builder
	b.WriteString("| key | what it asks | what siw does | siw as | case |\n|---|---|---|---|---|\n")
	cell := strings.NewReplacer("|", "\\|", "\n", " ")
	for _, r := range f.rows() {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", r.key, cell.Replace(r.asks), cell.Replace(r.did), r.siw, r.name)
	}
	b.WriteString("\n")
	for _, l := range append(f.totals(), f.passedLate()...) {
		fmt.Fprintf(&b, "- %s\n", l)
	}
	fmt.Fprintf(&b, "\nPeer: %s.\n", versions)
	return b.String()
}

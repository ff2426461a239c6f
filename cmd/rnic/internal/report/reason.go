package report

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/softrnic/softrnic/conformance"
)

// longest bounds a reason, in octets.
const longest = 240

// reason is why a case did not pass, in one line: what its first assertion says, without the places in
// the code that testify tells.
func reason(c *Case) string {
	detail := strings.TrimSpace(c.Detail)
	text, rest, told := strings.Cut(detail, "Error Trace:")
	if !told {
		line, _, _ := strings.Cut(detail, "\n")
		return shortened(line)
	}
	parts := map[string][]string{}
	at := ""
	for i, line := range strings.Split(rest, "\n") {
		words := strings.TrimSpace(line)
		if i > 0 && words != "" && !strings.HasPrefix(line, "\t") {
			break // a second failure is not needed
		}
		for _, label := range []string{"Error:", "Messages:", "Test:"} {
			if tail, ok := strings.CutPrefix(words, label); ok {
				at, words = label, strings.TrimSpace(tail)
			}
		}
		if at == "Error:" && strings.HasPrefix(words, "Diff:") {
			at = "" // expected and actual say the same
		}
		if words != "" {
			parts[at] = append(parts[at], words)
		}
	}
	if differ := difference(parts["Error:"]); differ != "" {
		parts["Error:"] = []string{differ}
	}
	whole := strings.TrimSuffix(strings.TrimSpace(text), ":")
	for _, label := range []string{"Messages:", "Error:"} {
		if more := strings.TrimSuffix(strings.Join(parts[label], " "), ":"); more != "" && whole != "" {
			whole += ": " + more
		} else {
			whole += more
		}
	}
	return shortened(whole)
}

// octetsOf are octets as testify shows them.
var octetsOf = regexp.MustCompile(`^(expected|actual  ?): \[\]byte\{(.*)\}$`)

// difference is the first one of octets that were compared; empty if something else was.
func difference(lines []string) string {
	var sides [][]string
	for _, line := range lines {
		if m := octetsOf.FindStringSubmatch(line); m != nil {
			sides = append(sides, strings.Split(m[2], ", "))
		}
	}
	if len(sides) != 2 {
		return ""
	}
	want, got := sides[0], sides[1]
	for i := range min(len(want), len(got)) {
		if want[i] != got[i] {
			return fmt.Sprintf("octet %#04x of %d is %s, not %s", i, len(got), got[i], want[i])
		}
	}
	return fmt.Sprintf("%d octets, not %d", len(got), len(want))
}

func shortened(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) <= longest {
		return s
	}
	cut := longest
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + " …"
}

// Skipped is a reason, and how many cases were skipped for it.
type Skipped struct {
	Why   string
	Cases int
}

// Skips are the reasons for which cases were skipped, in order of appearance.
func (r *Report) Skips() (list []Skipped) {
	at := map[string]int{}
	for _, s := range r.Sections {
		for _, c := range s.Cases {
			if c.Verdict != conformance.Skip {
				continue
			}
			i, known := at[c.Detail]
			if !known {
				i = len(list)
				at[c.Detail] = i
				list = append(list, Skipped{Why: c.Detail})
			}
			list[i].Cases++
		}
	}
	return list
}

// sources are what stands before the section of a key of plain.
var sources = []struct{ before, spec string }{
	{"PV-", "verbs"}, {"PR-", "rfc"}, {"PA-", "via"}, {"PT-", "vitcp"},
}

// Where is a key's source and section as people call them: "RFC 5044 7.1.2".
func (k *Key) Where() string {
	if k.Spec == "plain" {
		for _, s := range sources {
			section, ok := strings.CutPrefix(k.Section, s.before)
			if !ok {
				continue
			}
			if s.spec != "rfc" {
				return specName(s.spec) + " " + section
			}
			number, section, _ := strings.Cut(section, "-")
			return specName("rfc"+number) + " " + section
		}
	}
	return specName(k.Spec) + " " + k.Section
}

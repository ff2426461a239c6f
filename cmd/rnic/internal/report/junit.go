package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/requirements"
)

// JUnit's elements, as the tools that read them agree on: a suite for each section.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Name     string       `xml:"name,attr"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Skipped  int          `xml:"skipped,attr"`
		Time     string       `xml:"time,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name      string      `xml:"name,attr"`
		Tests     int         `xml:"tests,attr"`
		Failures  int         `xml:"failures,attr"`
		Skipped   int         `xml:"skipped,attr"`
		Time      string      `xml:"time,attr"`
		Timestamp string      `xml:"timestamp,attr,omitempty"`
		Cases     []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string     `xml:"classname,attr"`
		Name    string     `xml:"name,attr"`
		Time    string     `xml:"time,attr"`
		Failure *junitText `xml:"failure"`
		Skipped *junitText `xml:"skipped"`
		Out     *junitText `xml:"system-out"`
	}
	junitText struct {
		Message string `xml:"message,attr,omitempty"`
		Text    string `xml:",chardata"`
	}
)

// WriteJUnit writes a report as JUnit's XML. Requirements that no case can show are
// skipped cases, named by their keys.
func WriteJUnit(w io.Writer, r *Report) error {
	all := junitSuites{Name: "conform", Failures: r.Total.Fail, Time: junitTime(r.Run.Took)}
	for _, s := range r.Sections {
		suite := junitSuite{Name: s.Name(), Failures: s.Counts.Fail, Skipped: s.Counts.Skip + s.Counts.NotTestable + s.Counts.NotImplemented}
		if !r.Run.Started.IsZero() {
			suite.Timestamp = r.Run.Started.UTC().Format("2006-01-02T15:04:05")
		}
		class := s.Spec + "." + strings.ReplaceAll(s.Number, ".", "_")
		took := time.Duration(0)
		for _, c := range s.Cases {
			took += c.Duration()
			suite.Cases = append(suite.Cases, c.junit(class))
		}
		for _, k := range s.Keys {
			if k.Class != requirements.Test {
				why := fmt.Sprintf("%s: %s", conformance.NotTestable, notTestable(k.Requirement))
				suite.Cases = append(suite.Cases, junitCase{Class: class, Name: k.Key, Time: junitTime(0), Skipped: &junitText{Message: why}})
			}
		}
		suite.Tests, suite.Time = len(suite.Cases), junitTime(took)
		if suite.Tests == 0 {
			continue
		}
		all.Tests += suite.Tests
		all.Skipped += suite.Skipped
		all.Suites = append(all.Suites, suite)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func (c *Case) junit(class string) junitCase {
	j := junitCase{Class: class, Name: c.Case, Time: junitTime(c.Duration())}
	switch c.Verdict {
	case conformance.Fail:
		j.Failure = &junitText{Message: reason(c), Text: c.Detail}
		var lines []string
		for _, e := range Decode(c.Trace) {
			if e.Kind != KindNote {
				lines = append(lines, e.Line())
			}
		}
		if len(lines) > 0 {
			j.Out = &junitText{Text: strings.Join(lines, "\n")}
		}
	case conformance.Skip:
		j.Skipped = &junitText{Message: c.Detail}
	default:
	}
	return j
}

func junitTime(d time.Duration) string { return fmt.Sprintf("%.6f", d.Seconds()) }

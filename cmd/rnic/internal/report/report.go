// Package report shows what a conformance run found: as text, JSON, JUnit's XML, one
// page of HTML, and a capture file for each case that failed.
//
//	report.go  verdicts by section, key and case
//	json.go    the lists that programs read, and the record of a run
//	text.go, junit.go, html.go
//	decode.go  a trace as startup frames, FPDUs, segments of VI/TCP and ends, which package
//	           dissect finds, and whose octets it names
//	pcap.go    a trace as pcapng
package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/requirements"
)

// Run is a run of cases.
type Run struct {
	Target  string
	Started time.Time
	// Took is the whole run's time.
	Took   time.Duration
	Seed   uint64
	Strict bool
	// Selection is what was asked for.
	Selection conformance.Selection
	// Startup is what the target's MPA startup looked like before the cases.
	Startup conformance.Startup
	Results []conformance.Result
}

// Report is a Run by sections.
type Report struct {
	Run      Run
	Sections []*Section // in the order of the sources; those with a key or a case only
	Total    Counts
	hit      map[string]bool // keys that have a result
}

// Section is a section of a source, and what is below it from the third number on:
// "7.10" has 7.10.6.1 in it.
type Section struct {
	Spec   string // "verbs", "rfc5044", "vitcp", "nd2", "plain"
	Number string // of nd2 a method's name, of plain with the source before it
	Keys   []*Key
	Cases  []*Case // named after this section
	Counts Counts
}

// Name is the section in words.
func (s *Section) Name() string { return specName(s.Spec) + " " + s.Number }

// specName is a source as people call it.
func specName(spec string) string {
	if spec == "" {
		return "other"
	}
	if n, ok := strings.CutPrefix(spec, "rfc"); ok {
		return "RFC " + n
	}
	switch spec {
	case "vitcp":
		return "VI/TCP draft"
	case "via":
		return "VI Architecture"
	case "nd2":
		return "NetworkDirect"
	case "plain":
		return spec
	}
	return spec + " draft"
}

// Key is a requirement and what came of it.
type Key struct {
	requirements.Requirement
	// Verdict is Fail if a case of it failed, else Pass if one passed, else Skip
	// if there is one; "" if no case ran.
	Verdict conformance.Verdict
	Cases   []*Case
}

// Case is a result with its keys.
type Case struct {
	conformance.Result
	Keys []*Key
}

// Counts are numbers of cases by verdict, and of keys.
type Counts struct {
	Cases, Pass, Fail, Skip int
	// Keys that a case has to show, of which some were shown, some were not for
	// sure, and of some no case could say.
	Keys, Shown, Broken, Unsure int
	// NotTestable are keys of another class, but for NotImplemented, which softrnic
	// does not keep.
	NotTestable, NotImplemented int
}

func (c *Counts) add(d Counts) {
	c.Cases += d.Cases
	c.Pass += d.Pass
	c.Fail += d.Fail
	c.Skip += d.Skip
	c.Keys += d.Keys
	c.Shown += d.Shown
	c.Broken += d.Broken
	c.Unsure += d.Unsure
	c.NotTestable += d.NotTestable
	c.NotImplemented += d.NotImplemented
}

// New sorts a run's results by section. Requirements are those of the registry that
// the run's selection takes, and those that have a result.
func New(run Run) *Report {
	r := &Report{Run: run}
	keys := map[string]*Key{}
	bySection := map[string]*Section{}
	section := func(spec, number string) *Section {
		number = twoParts(number)
		s := bySection[spec+" "+number]
		if s == nil {
			s = &Section{Spec: spec, Number: number}
			bySection[spec+" "+number] = s
			r.Sections = append(r.Sections, s)
		}
		return s
	}
	r.hit = map[string]bool{}
	for _, res := range run.Results {
		for _, k := range res.Keys {
			r.hit[k] = true
		}
	}
	for _, req := range requirements.All() {
		if !r.hit[req.Key] && !run.takes(req) {
			continue
		}
		k := &Key{Requirement: req}
		if req.Class != requirements.Test {
			k.Verdict = conformance.NotTestable
		}
		keys[req.Key] = k
		s := section(req.Spec, req.Section)
		s.Keys = append(s.Keys, k)
	}
	for _, res := range run.Results {
		if res.Case == "" || res.Verdict == "" {
			continue
		}
		c := &Case{Result: res}
		for _, name := range res.Keys {
			if k := keys[name]; k != nil {
				c.Keys = append(c.Keys, k)
				k.Cases = append(k.Cases, c)
				k.Verdict = worse(k.Verdict, c.Verdict)
			}
		}
		home := c.home()
		s := section(home.Spec, home.Section)
		s.Cases = append(s.Cases, c)
	}
	r.Sections = slices.DeleteFunc(r.Sections, func(s *Section) bool { return len(s.Keys)+len(s.Cases) == 0 })
	for _, s := range r.Sections {
		s.count()
		r.Total.add(s.Counts)
	}
	return r
}

// home is the key whose section the case is shown in: the first of the section that
// its name begins with, else the first.
func (c *Case) home() requirements.Requirement {
	number, _, _ := strings.Cut(c.Case, "/")
	for _, k := range c.Keys {
		if twoParts(k.Section) == twoParts(number) {
			return k.Requirement
		}
	}
	if len(c.Keys) > 0 {
		return c.Keys[0].Requirement
	}
	return requirements.Requirement{Section: number}
}

// takes reports whether a requirement without a result belongs into the report.
func (r *Run) takes(req requirements.Requirement) bool {
	return (req.Level == "MUST" || r.Strict || r.named(req)) && r.Selection.Takes(req.Key)
}

// named reports whether a key that no case can show was asked for.
func (r *Run) named(req requirements.Requirement) bool {
	return len(r.Selection.Run) > 0 && req.Class != requirements.Test
}

// twoParts is a section's number up to the second dot.
func twoParts(number string) string {
	parts := strings.Split(number, ".")
	return strings.Join(parts[:min(2, len(parts))], ".")
}

// worse joins the verdicts of two cases on one key. A skip says nothing.
func worse(a, b conformance.Verdict) conformance.Verdict {
	rank := func(v conformance.Verdict) int {
		return slices.Index([]conformance.Verdict{"", conformance.NotTestable, conformance.Skip, conformance.Pass, conformance.Fail}, v)
	}
	if cmp.Compare(rank(a), rank(b)) < 0 {
		return b
	}
	return a
}

func (s *Section) count() {
	s.Counts = Counts{Cases: len(s.Cases)}
	for _, c := range s.Cases {
		switch c.Verdict {
		case conformance.Pass:
			s.Counts.Pass++
		case conformance.Fail:
			s.Counts.Fail++
		default:
			s.Counts.Skip++
		}
	}
	for _, k := range s.Keys {
		switch k.Class {
		case requirements.Test:
		case requirements.NotImplemented:
			s.Counts.NotImplemented++
			continue
		default:
			s.Counts.NotTestable++
			continue
		}
		s.Counts.Keys++
		switch k.Verdict {
		case conformance.Pass:
			s.Counts.Shown++
		case conformance.Fail:
			s.Counts.Broken++
		case conformance.Skip:
			s.Counts.Unsure++
		default:
		}
	}
}

// Trouble is what is wrong with the target's startup, in one line; empty if nothing is.
func (r *Report) Trouble() string {
	switch t := r.Run.Startup.Trouble; {
	case t == "":
		return ""
	case r.Run.Startup.Broken:
		return fmt.Sprintf("no stream to the target begins: %s; %s failed by that", t, counted(len(r.Barred()), "case"))
	default:
		return "in the target's MPA startup: " + t
	}
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Barred are the cases that failed because no stream to the target begins, in order.
func (r *Report) Barred() []*Case { return barred(r.Failed(), true) }

// Faulty are the cases that failed by themselves, in order.
func (r *Report) Faulty() []*Case { return barred(r.Failed(), false) }

func barred(failed []*Case, want bool) []*Case {
	return slices.DeleteFunc(failed, func(c *Case) bool { return c.Barred != want })
}

// Startup is the probe of the target's MPA startup as a case of no name, if there is trouble.
func (r *Report) Startup() *Case {
	if r.Run.Startup.Trouble == "" {
		return nil
	}
	return &Case{Result: conformance.Result{Verdict: conformance.Fail, Detail: r.Run.Startup.Trouble, Trace: r.Run.Startup.Trace}}
}

// Failed are the cases that failed, in order.
func (r *Report) Failed() []*Case {
	var failed []*Case
	for _, s := range r.Sections {
		for _, c := range s.Cases {
			if c.Verdict == conformance.Fail {
				failed = append(failed, c)
			}
		}
	}
	return failed
}

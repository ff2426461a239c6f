package report

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/requirements"
)

// Listed is a line of `conform list --json`.
type Listed struct {
	requirements.Requirement
	Cases []string `json:"cases"`
}

// List is the registry, each key with the cases that assert it.
func List(all []conformance.Case) []Listed {
	cases := map[string][]string{}
	for _, c := range all {
		for _, k := range c.Keys {
			cases[k] = append(cases[k], c.Name)
		}
	}
	list := make([]Listed, 0, len(requirements.All()))
	for _, r := range requirements.All() {
		l := Listed{Requirement: r, Cases: cases[r.Key]}
		if l.Cases == nil {
			l.Cases = []string{}
		}
		list = append(list, l)
	}
	return list
}

// WriteResults writes `conform run --json`: the results, and the selection's other keys,
// which no case can show or of which none ran.
func WriteResults(w io.Writer, r *Report) error {
	results := make([]conformance.Result, 0, len(r.Run.Results))
	for _, res := range r.Run.Results {
		if res.Case != "" {
			results = append(results, res)
		}
	}
	for _, req := range requirements.All() {
		if !r.hit[req.Key] && r.Run.Selection.Takes(req.Key) {
			results = append(results, without(req))
		}
	}
	return write(w, results)
}

// without is the result of a requirement that no result is of.
func without(req requirements.Requirement) conformance.Result {
	res := conformance.Result{Verdict: conformance.NotTestable, Keys: []string{req.Key}, Detail: notTestable(req)}
	if req.Class == requirements.Test {
		res.Verdict, res.Detail = conformance.NotRun, "no case that ran asserts it"
	}
	return res
}

// notTestable says why no case can show a requirement.
func notTestable(req requirements.Requirement) string {
	return fmt.Sprintf("%s: %s", req.Class, req.Note)
}

func write(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// record is a Run as it is saved, with the traces that there are.
type record struct {
	Target  string    `json:"target"`
	Started time.Time `json:"started"`
	Seconds float64   `json:"duration"`
	Seed    uint64    `json:"seed"`
	Strict  bool      `json:"strict"`
	Run     []string  `json:"run,omitempty"`
	Skip    []string  `json:"skip,omitempty"`
	Startup *startup  `json:"startup,omitempty"`
	Results []traced  `json:"results"`
}

// startup is a conformance.Startup with trouble.
type startup struct {
	Trouble string `json:"trouble"`
	Broken  bool   `json:"broken,omitempty"`
	Trace   []mark `json:"trace,omitempty"`
}

type traced struct {
	conformance.Result
	Traffic conformance.Traffic `json:"traffic,omitzero"`
	Trace   []mark              `json:"trace,omitempty"`
}

// mark is a conformance.Mark.
type mark struct {
	At        float64               `json:"at"` // seconds since the case began
	Stream    int                   `json:"stream,omitempty"`
	Direction conformance.Direction `json:"direction,omitempty"`
	Octets    string                `json:"octets,omitempty"` // hexadecimal
	Text      string                `json:"text,omitempty"`
}

// WriteRecord saves a run whole, for Read.
func WriteRecord(w io.Writer, r Run) error {
	saved := record{
		Target: r.Target, Started: r.Started, Seconds: r.Took.Seconds(), Seed: r.Seed, Strict: r.Strict,
		Run: r.Selection.Run, Skip: r.Selection.Skip, Results: []traced{},
	}
	if s := r.Startup; s.Trouble != "" {
		saved.Startup = &startup{s.Trouble, s.Broken, marksOf(s.Trace)}
	}
	for _, res := range r.Results {
		saved.Results = append(saved.Results, traced{res, res.Traffic, marksOf(res.Trace)})
	}
	return json.NewEncoder(w).Encode(saved)
}

func marksOf(trace []conformance.Mark) (marks []mark) {
	for _, m := range trace {
		marks = append(marks, mark{m.At.Seconds(), m.Stream, m.Direction, hex.EncodeToString(m.Octets), m.Text})
	}
	return marks
}

func traceOf(marks []mark) (trace []conformance.Mark, err error) {
	for _, m := range marks {
		octets, err := hex.DecodeString(m.Octets)
		if err != nil {
			return nil, err
		}
		trace = append(trace, conformance.Mark{
			At: seconds(m.At), Stream: m.Stream, Direction: m.Direction, Octets: octets, Text: m.Text,
		})
	}
	return trace, nil
}

// Read reads what WriteRecord or WriteResults wrote. Of the latter it does not know
// the target, and there are no traces.
func Read(r io.Reader) (Run, error) {
	all, err := io.ReadAll(r)
	if err != nil {
		return Run{}, err
	}
	var saved record
	if bytes.HasPrefix(bytes.TrimSpace(all), []byte("[")) {
		err = json.Unmarshal(all, &saved.Results)
	} else {
		err = json.Unmarshal(all, &saved)
	}
	if err != nil {
		return Run{}, fmt.Errorf("not a saved run: %w", err)
	}
	if saved.Results == nil {
		return Run{}, errors.New("not a saved run: it has no results")
	}
	run := Run{
		Target: saved.Target, Started: saved.Started, Took: seconds(saved.Seconds), Seed: saved.Seed, Strict: saved.Strict,
		Selection: conformance.Selection{Run: saved.Run, Skip: saved.Skip, Strict: saved.Strict},
	}
	if s := saved.Startup; s != nil {
		run.Startup = conformance.Startup{Trouble: s.Trouble, Broken: s.Broken}
		if run.Startup.Trace, err = traceOf(s.Trace); err != nil {
			return Run{}, fmt.Errorf("not a saved run: its startup: %w", err)
		}
	}
	for _, t := range saved.Results {
		res := t.Result
		res.Traffic = t.Traffic
		if res.Case == "" {
			continue // the registry knows those
		}
		switch res.Verdict {
		case conformance.Pass, conformance.Fail, conformance.Skip:
		default:
			return Run{}, fmt.Errorf("not a saved run: case %s has verdict %q", res.Case, res.Verdict)
		}
		if res.Trace, err = traceOf(t.Trace); err != nil {
			return Run{}, fmt.Errorf("not a saved run: case %s: %w", res.Case, err)
		}
		run.Results = append(run.Results, res)
	}
	return run, nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

package report

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/requirements"
)

// sample is a run in which everything happens.
func sample(t *testing.T) Run {
	p := newTape(t, 3, true, false)
	p.conversation(true, true, false)
	p.note("failed: Error Trace: x")
	return Run{
		Target: "a <target>", Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Took: 1500 * time.Millisecond, Seed: 7,
		Selection: conformance.Selection{Run: []string{"RV-5.1", "R5040-4.1"}},
		Results: []conformance.Result{
			{Case: "5.1/scope", Verdict: conformance.Pass, Keys: []string{"RV-5.1-M1"}, Seconds: 0.25,
				Traffic: conformance.Traffic{Streams: 2, Sent: 3, Received: 1}},
			{Case: "5.1/query", Verdict: conformance.Skip, Keys: []string{"RV-5.1.3-M1"}, Detail: "no verbs"},
			{
				Case: "4.1/control", Verdict: conformance.Fail, Keys: []string{"R5040-3.1-M1", "R5040-4.1-M1", "RV-5.1-M1"},
				Detail: "Error: <script>alert(1)</script>\n\texpected: 1", Seconds: 0.5, Trace: p.marks,
			},
		},
	}
}

func TestReport(t *testing.T) {
	r := New(sample(t))
	var names []string
	for _, s := range r.Sections {
		names = append(names, s.Name())
	}
	assert.Equal(t, []string{"verbs draft 5.1", "RFC 5040 3.1", "RFC 5040 4.1"}, names)
	verdicts := map[string]conformance.Verdict{}
	for _, s := range r.Sections {
		for _, k := range s.Keys {
			verdicts[k.Key] = k.Verdict
		}
	}
	assert.Equal(t, conformance.Fail, verdicts["RV-5.1-M1"], "one of two cases failed")
	assert.Equal(t, conformance.Skip, verdicts["RV-5.1.3-M1"])
	assert.Empty(t, verdicts["RV-5.1.4-M1"], "of the selection, but not run")
	assert.NotContains(t, verdicts, "RV-5.2-M1", "not of the selection")
	assert.Contains(t, verdicts, "R5040-3.1-M1", "not of the selection, but of a result")

	verbs, rfc := r.Sections[0], r.Sections[2]
	assert.Equal(t, Counts{Cases: 2, Pass: 1, Skip: 1, Keys: 7, Broken: 1, Unsure: 1}, verbs.Counts)
	require.Len(t, rfc.Cases, 1, "its name says 4.1, though its first key is of 3.1")
	assert.Equal(t, r.Failed(), rfc.Cases)
	assert.Equal(t, 3, r.Total.Cases)
	assert.Equal(t, 1, r.Total.Fail)
}

func TestWorse(t *testing.T) {
	assert.Equal(t, conformance.Fail, worse(conformance.Pass, conformance.Fail))
	assert.Equal(t, conformance.Fail, worse(conformance.Fail, conformance.Skip))
	assert.Equal(t, conformance.Pass, worse(conformance.Skip, conformance.Pass))
	assert.Equal(t, conformance.Skip, worse("", conformance.Skip))
}

func TestShouldsAreOfStrictRuns(t *testing.T) {
	has := func(strict bool) bool {
		for _, s := range New(Run{Strict: strict}).Sections {
			for _, k := range s.Keys {
				if k.Level == "SHOULD" {
					return true
				}
			}
		}
		return false
	}
	assert.False(t, has(false))
	assert.True(t, has(true))
}

// keysOf are the keys of a JSON object, in order of appearance.
func keysOf(t *testing.T, object json.RawMessage) []string {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(object))
	_, err := d.Token()
	require.NoError(t, err)
	var keys []string
	for d.More() {
		k, err := d.Token()
		require.NoError(t, err)
		keys = append(keys, k.(string))
		var skip json.RawMessage
		require.NoError(t, d.Decode(&skip))
	}
	return keys
}

func TestList(t *testing.T) {
	list := List([]conformance.Case{{Name: "5.1/a", Keys: []string{"RV-5.1-M1"}}, {Name: "5.1/b", Keys: []string{"RV-5.1-M1"}}})
	require.Len(t, list, len(requirements.All()))
	assert.Equal(t, []string{"5.1/a", "5.1/b"}, list[0].Cases)
	b, err := json.Marshal(list[1])
	require.NoError(t, err)
	assert.Equal(t, []string{"key", "spec", "section", "level", "class", "summary", "note", "cases"}, keysOf(t, b))
	assert.Contains(t, string(b), `"cases":[]`)
}

func TestResultsAsJSON(t *testing.T) {
	run := sample(t)
	run.Selection = conformance.Selection{}
	var out bytes.Buffer
	require.NoError(t, WriteResults(&out, New(run)))
	var objects []json.RawMessage
	require.NoError(t, json.Unmarshal(out.Bytes(), &objects))
	for _, o := range objects {
		require.Equal(t, []string{"case", "verdict", "keys", "detail", "duration"}, keysOf(t, o))
	}
	var results []conformance.Result
	require.NoError(t, json.Unmarshal(out.Bytes(), &results))
	assert.Equal(t, "5.1/scope", results[0].Case)
	assert.InDelta(t, 0.25, results[0].Seconds, 1e-9)
	others := map[string]conformance.Verdict{}
	for _, r := range results[3:] {
		require.Empty(t, r.Case)
		require.NotEmpty(t, r.Detail)
		others[r.Keys[0]] = r.Verdict
	}
	for _, req := range requirements.All() { // every key, SHOULDs too
		want := conformance.NotTestable
		switch {
		case slices.ContainsFunc(results[:3], func(r conformance.Result) bool { return slices.Contains(r.Keys, req.Key) }):
			want = ""
		case req.Class == requirements.Test:
			want = conformance.NotRun
		}
		require.Equal(t, want, others[req.Key], req.Key)
	}

	run.Selection = conformance.Selection{Run: []string{"R5044-9"}, Skip: []string{"R5044-9.4"}}
	run.Results = nil
	out.Reset()
	require.NoError(t, WriteResults(&out, New(run)))
	require.NoError(t, json.Unmarshal(out.Bytes(), &results))
	require.Len(t, results, 1, "those of the selection only")
	assert.Equal(t, []string{"R5044-9.3-M1"}, results[0].Keys)
	assert.Contains(t, results[0].Detail, "other-layer: IPsec")
}

// A key that softrnic does not keep is counted apart, and not as testable.
func TestNotImplementedIsCounted(t *testing.T) {
	s := &Section{Keys: []*Key{
		{Requirement: requirements.Requirement{Class: requirements.NotImplemented}},
		{Requirement: requirements.Requirement{Class: requirements.Hardware}},
		{Requirement: requirements.Requirement{Class: requirements.Test}, Verdict: conformance.Pass},
	}}
	s.count()
	assert.Equal(t, Counts{Keys: 1, Shown: 1, NotTestable: 1, NotImplemented: 1}, s.Counts)
	all := s.Counts
	all.add(s.Counts)
	assert.Equal(t, 2, all.NotImplemented)
	r := &Report{Sections: []*Section{s}, Total: s.Counts}
	var out bytes.Buffer
	require.NoError(t, WriteText(&out, r))
	assert.Contains(t, out.String(), "not implemented  section\n")
	assert.Contains(t, out.String(), "      0     0     -     -     1      1             1                1  all\n")
	out.Reset()
	require.NoError(t, WriteHTML(&out, r))
	assert.Contains(t, out.String(), "<b>1</b>not implemented")
	assert.Contains(t, out.String(), "<i>(not-implemented)</i>")
}

func TestRecordIsRead(t *testing.T) {
	run := sample(t)
	var out bytes.Buffer
	require.NoError(t, WriteRecord(&out, run))
	got, err := Read(&out)
	require.NoError(t, err)
	require.Len(t, got.Results, len(run.Results))
	for i := range run.Results { // nothing and empty are the same
		require.Len(t, got.Results[i].Trace, len(run.Results[i].Trace))
		for j := range run.Results[i].Trace {
			if len(run.Results[i].Trace[j].Octets) == 0 {
				got.Results[i].Trace[j].Octets = nil
			}
		}
	}
	assert.Equal(t, run, got)

	require.NoError(t, WriteResults(&out, New(run)))
	got, err = Read(&out)
	require.NoError(t, err)
	assert.Equal(t, 1, New(got).Total.Fail)
	require.Len(t, got.Results, 3)
	assert.Empty(t, got.Results[2].Trace)
}

func TestReadRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"empty":     "",
		"nothing":   "{}",
		"no JSON":   "hello",
		"verdict":   `[{"case":"x","verdict":"MAYBE"}]`,
		"octets":    `{"results":[{"case":"x","verdict":"PASS","trace":[{"octets":"xyz"}]}]}`,
		"no string": `[{"case":1}]`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read(strings.NewReader(text))
			require.ErrorContains(t, err, "not a saved run")
		})
	}
}

func TestText(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, WriteText(&out, New(sample(t))))
	text := out.String()
	for _, want := range []string{
		"SKIP 1 case: no verbs\n",
		"FAIL 4.1/control (500ms)\n",
		"  R5040-4.1-M1: The RDMAP control octet sits",
		"    \texpected: 1\n",
		" 1 -> Send, QN 0, MSN 1, MO 0, 3 octets\n",
		" 1 <- FIN\n",
		"      2     1     -     1     7      0             -                -  verbs draft 5.1\n",
		"3 cases in 1.5s: 1 passed, 1 failed, 1 skipped; ",
		"target a <target>, seed 7\n",
	} {
		assert.Contains(t, text, want)
	}
	assert.NotContains(t, text, "Error Trace", "a note")
}

func TestJUnit(t *testing.T) {
	run := sample(t)
	run.Selection = conformance.Selection{}
	var out bytes.Buffer
	require.NoError(t, WriteJUnit(&out, New(run)))
	var got junitSuites
	require.NoError(t, xml.Unmarshal(out.Bytes(), &got))
	assert.Equal(t, 1, got.Failures)
	tests, skipped := 0, 0
	for _, s := range got.Suites {
		require.Len(t, s.Cases, s.Tests)
		tests += s.Tests
		for _, c := range s.Cases {
			if c.Skipped != nil {
				skipped++
			}
			if c.Failure != nil {
				assert.Equal(t, "4.1/control", c.Name)
				assert.Equal(t, "rfc5040.4_1", c.Class)
				assert.Equal(t, run.Results[2].Detail, c.Failure.Text)
				assert.Contains(t, c.Out.Text, "<- FIN")
			}
		}
	}
	assert.Equal(t, got.Tests, tests)
	assert.Equal(t, got.Skipped, skipped)
	assert.Greater(t, skipped, 50, "the requirements that no case can show are among them")
	assert.Contains(t, out.String(), `time="0.250000"`)
}

func TestHTML(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, WriteHTML(&out, New(sample(t))))
	page := out.String()
	for _, want := range []string{
		"<b>a &lt;target&gt;</b> on 2026-01-02 03:04:05 UTC, seed 7, 1.5 s",
		`<details class="case fail" id="c-4.1_control" data-v="fail" open>`,
		`<a href="#c-4.1_control">`,
		`<section class="section" id="s-verbs-5.1">`,
		"&lt;script&gt;alert(1)&lt;/script&gt;",
		"<tr class=\"DDP\"><td>0010<td>00 00 00 00<td>DDP<td>MO = 0\n",
		"<td>Payload, 900 octets",
		"<summary>… 756 more …</summary>",
		"2 streams: 3 octets sent, 1 octet received. Their octets are kept with --record-all.",
		"Nothing was recorded on a wire.",
		"the case failed here",
		"Send, QN 0, MSN 1, MO 0, 3 octets",
		"> FIN</p>",
		`<tr id="k-RV-5.1.3-M1" data-v="skip">`,
		".bar i.fail{", "function filter()",
	} {
		assert.Contains(t, page, want)
	}
	for _, never := range []string{"<script>alert", "http://", "https://", "ZgotmplZ", " src=", "<link", "@import", "url("} {
		assert.NotContains(t, page, never, "the page needs nothing else")
	}
	// Each reference has its place.
	for part := range strings.SplitSeq(page, `href="#`) {
		name, _, ok := strings.Cut(part, `"`)
		if ok && !strings.ContainsAny(name, " <\n") {
			assert.Contains(t, page, `id="`+name+`"`)
		}
	}
}

func TestRowsAreCut(t *testing.T) {
	cut := func(n int, whole bool) (r row) {
		r.cut(bytes.Repeat([]byte{0xFF}, n), whole)
		return r
	}
	assert.Empty(t, cut(0, false))
	assert.Equal(t, row{Head: "ff ff"}, cut(2, false))
	assert.Equal(t, row{Head: strings.TrimSpace(strings.Repeat("ff ", 160))}, cut(160, true), "it would not get shorter")
	ends := row{Head: strings.TrimSpace(strings.Repeat("ff ", 128)), Tail: strings.TrimSpace(strings.Repeat("ff ", 16)), Between: 17}
	assert.Equal(t, ends, cut(161, false))
	ends.Middle = strings.Repeat("ff", 17)
	assert.Equal(t, ends, cut(161, true))
}

// Of a long exchange the end is shown. What was before it is folded up if the case
// failed, and left out if it passed.
func TestLongExchangesAreCut(t *testing.T) {
	p := newTape(t, 1, true, false)
	for range mostEntries + 7 {
		p.note("x")
	}
	v := shown(&Case{Result: conformance.Result{Verdict: conformance.Pass, Trace: p.marks}})
	assert.Len(t, v.Entries, mostEntries)
	assert.Equal(t, 7, v.Left)
	assert.Empty(t, v.Earlier)
	v = shown(&Case{Result: conformance.Result{Verdict: conformance.Fail, Trace: p.marks}})
	assert.Len(t, v.Entries, mostEntries)
	assert.Zero(t, v.Left)
	assert.Len(t, v.Earlier, 7)
}

// Whatever a failed case sent and received is on the page.
func TestHTMLOfAFailureIsWhole(t *testing.T) {
	var marks []conformance.Mark
	for i := range 400 {
		octets := binary.BigEndian.AppendUint32([]byte("MPA ID Req Frame"), 0x40010200) // 512 octets of private data
		for j := range 512 {
			octets = append(octets, byte(i), byte(j))[:20+j+1]
		}
		marks = append(marks, conformance.Mark{Stream: i + 1, Direction: conformance.Sent, Octets: octets})
	}
	var out bytes.Buffer
	run := Run{Results: []conformance.Result{{Case: "5.1/x", Verdict: conformance.Fail, Keys: []string{"RV-5.1-M1"}, Trace: marks}}}
	require.NoError(t, WriteHTML(&out, New(run)))
	page := regexp.MustCompile(`<[^>]*>|… \d+ more …|\s`).ReplaceAllString(out.String(), "")
	for _, m := range marks {
		require.Contains(t, page, hex.EncodeToString(m.Octets[20:]), "stream %d", m.Stream)
	}
}

// Nothing in the parts ends the element that the page puts them into.
func TestEmbeddedParts(t *testing.T) {
	assert.NotContains(t, pageCSS, "</")
	assert.NotContains(t, pageJS, "</")
}

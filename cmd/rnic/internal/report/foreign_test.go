package report

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/requirements"
)

// What somebody with another RNIC sees: its startup, why a case failed, and what it lacks.

// detail is what a case says that fails so.
func detail(t *testing.T, run func(*conformance.T)) *Case {
	results, err := conformance.Run(t.Context(), []conformance.Case{{Name: "1/x", Need: conformance.NeedAPI, Run: run}},
		conformance.InProcess{}, conformance.Options{})
	require.NoError(t, err)
	return &Case{Result: results[0]}
}

// A reason is what an assertion says, in a line, without where it stands.
func TestReason(t *testing.T) {
	for want, run := range map[string]func(*conformance.T){
		"the state: Not equal: expected: 1 actual : 2": func(t *conformance.T) { require.Equal(t, 1, 2, "the state") },
		"the frame: octet 0x0001 of 3 is 0x7, not 0x2": func(t *conformance.T) {
			require.Equal(t, []byte{1, 2, 3}, []byte{1, 7, 3}, "the frame")
		},
		"2 octets, not 3":       func(t *conformance.T) { require.Equal(t, []byte{1, 2, 3}, []byte{1, 2}) },
		"outer: Should be true": func(t *conformance.T) { t.In("outer", func() { require.True(t, false) }) },
		`the text: Not equal: expected: "a" actual : "b"`: func(t *conformance.T) {
			assert.Equal(t, "a", "b", "the text")
			assert.Equal(t, "c", "d", "another")
		},
		"no Terminate Message: the stream ended": func(t *conformance.T) { t.Fatalf("no Terminate Message: %s\nand more", "the stream ended") },
		"":                                       func(*conformance.T) {},
	} {
		assert.Equal(t, want, reason(detail(t, run)))
	}
	long := reason(&Case{Result: conformance.Result{Detail: strings.Repeat("ä", 999)}})
	assert.Equal(t, strings.Repeat("ä", longest/2)+" …", long)
}

func TestWhere(t *testing.T) {
	for key, want := range map[string]string{
		"RV-7.2-M3": "verbs draft 7.2", "R5044-7.1.2-M4": "RFC 5044 7.1.2", "ND-Send-F1": "NetworkDirect Send",
		"PV-7.2-M1": "verbs draft 7.2", "PR-5040-4.8-M1": "RFC 5040 4.8", "PA-5.2-M2": "VI Architecture 5.2",
		"VT-3.2-M1": "VI/TCP draft 3.2",
	} {
		req, ok := requirements.ByKey()[key]
		require.True(t, ok, key)
		assert.Equal(t, want, (&Key{Requirement: req}).Where(), key)
	}
}

// barredRun is a run against a target whose startup does not work.
func barredRun(t *testing.T) Run {
	run := sample(t)
	request := binary.BigEndian.AppendUint32([]byte("MPA ID Req Frame"), 0x40010000)
	run.Startup = conformance.Startup{
		Trouble: "the connection was closed after the Request", Broken: true,
		Trace: []conformance.Mark{{Stream: 1, Direction: conformance.Sent, Octets: request}},
	}
	for _, name := range []string{"7.1/one", "7.1/two"} {
		run.Results = append(run.Results, conformance.Result{
			Case: name, Verdict: conformance.Fail, Keys: []string{"R5044-7.1.2-M4"}, Barred: true, Detail: "no stream to the target begins",
		})
	}
	return run
}

const barredLine = "no stream to the target begins: the connection was closed after the Request; 2 cases failed by that"

func TestStartupInText(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, WriteText(&out, New(barredRun(t))))
	text := out.String()
	assert.True(t, strings.HasPrefix(text, "STARTUP "+barredLine+"\n"), text)
	assert.Contains(t, text, " 1 -> MPA Request, revision 1, CRC\n")
	assert.Equal(t, 1, strings.Count(text, "FAIL "), "the one that failed by itself")
	assert.Contains(t, text, "1 passed, 3 failed, 1 skipped")

	run := sample(t)
	run.Startup = conformance.Startup{Trouble: "the Reply has revision 9"}
	out.Reset()
	require.NoError(t, WriteText(&out, New(run)))
	assert.True(t, strings.HasPrefix(out.String(), "STARTUP in the target's MPA startup: the Reply has revision 9\n"))
}

func TestStartupIsRecorded(t *testing.T) {
	run := barredRun(t)
	var out bytes.Buffer
	require.NoError(t, WriteRecord(&out, run))
	got, err := Read(&out)
	require.NoError(t, err)
	assert.Equal(t, run.Startup, got.Startup)
	assert.True(t, got.Results[3].Barred)
	_, err = Read(strings.NewReader(`{"startup":{"trouble":"x","trace":[{"octets":"xyz"}]},"results":[]}`))
	require.ErrorContains(t, err, "not a saved run: its startup: ")
}

func TestForeignPage(t *testing.T) {
	page := func(run Run) string {
		var out bytes.Buffer
		require.NoError(t, WriteHTML(&out, New(run)))
		return out.String()
	}
	failures := func(p string) string {
		_, p, _ = strings.Cut(p, `<section class="failures">`)
		p, _, _ = strings.Cut(p, "</header>")
		return p
	}
	run := barredRun(t)
	run.Results[2].Detail = "\tError Trace:\tx.go:1\n\tError:      \tNot equal: \n\t            \texpected: 1\n\tMessages:   \tits octet"
	p := page(run)
	assert.Contains(t, p, `<input type="checkbox" value="skip">SKIP`)
	assert.Contains(t, p, `<input type="checkbox" value="fail" checked>FAIL`)
	f := failures(p)
	assert.Contains(t, f, "<p>"+barredLine+"</p>")
	assert.Contains(t, f, "MPA Request, revision 1, CRC")
	assert.Contains(t, f, `<summary>2 cases</summary><p><a href="#c-7.1_one">7.1/one</a> <a href="#c-7.1_two">7.1/two</a> </p>`)
	assert.Contains(t, f, `<a href="#c-4.1_control">4.1/control</a> <span class="reason">its octet: Not equal: expected: 1</span>`)
	assert.Contains(t, f, `<li><code>R5040-3.1-M1</code> <small>RFC 5040 3.1</small> Every RDMAP message travels inside DDP segments.`)
	assert.Contains(t, f, "<li>1 case: no verbs")
	assert.Contains(t, p, `<code>RV-5.1.3-M1</code><br><small>verbs draft 5.1.3</small>`, "in the table of the section")

	// Of the RNIC of this program nothing is hidden.
	run = sample(t)
	run.Target = conformance.InProcess{}.Name()
	p = page(run)
	assert.Contains(t, p, `<input type="checkbox" value="skip" checked>SKIP`)
	assert.NotContains(t, p, "Show them")
	assert.NotContains(t, p, "MPA startup</h2>")
}

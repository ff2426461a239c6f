package conform

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/rnic/internal/clitest"
	"github.com/softrnic/softrnic/cmd/rnic/internal/dissect"
	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/cases"
)

// conformResult is a result as other programs see it.
type conformResult struct {
	Case     string   `json:"case"`
	Verdict  string   `json:"verdict"`
	Keys     []string `json:"keys"`
	Detail   string   `json:"detail"`
	Duration float64  `json:"duration"`
	Barred   bool     `json:"barred"`
}

// caseOf is the name of a case with this need, which no other case matches.
func caseOf(t *testing.T, need conformance.Need) string {
	t.Helper()
	all := cases.All()
	for _, c := range all {
		only := len(conformance.Selection{Run: []string{c.Name}}.Cases(all)) == 1
		if c.Need == need && !c.Strict && only {
			return c.Name
		}
	}
	require.Fail(t, "no case has this need", "%v", need)
	return ""
}

func TestConformList(t *testing.T) {
	text := clitest.Run(t.Context(), "conform", "list")
	assert.Zero(t, text.Status, text.Stderr)
	assert.Contains(t, text.Stdout, "\nRV-5.2-M1          test            A QP lives in exactly one Protection Domain.\n")
	assert.Contains(t, text.Stdout, "(IPsec: ")

	r := clitest.Run(t.Context(), "conform", "list", "--json")
	assert.Zero(t, r.Status)
	var list []struct {
		Key     string    `json:"key"`
		Spec    string    `json:"spec"`
		Section string    `json:"section"`
		Level   string    `json:"level"`
		Class   string    `json:"class"`
		Summary string    `json:"summary"`
		Note    string    `json:"note"`
		Cases   *[]string `json:"cases"`
	}
	clitest.Decode(t, r.Stdout, &list)
	keys := map[string]bool{}
	for _, l := range list {
		require.NotNil(t, l.Cases, l.Key)
		require.NotEmpty(t, l.Summary)
		keys[l.Key] = true
	}
	assert.Len(t, keys, len(list))
	for _, k := range []string{"RV-5.1-M1", "RV-9.5.3-M1", "R5040-8.1-M1", "R5044-7.1.2-M4", "R6581-10-M1"} {
		assert.True(t, keys[k], k)
	}
}

func TestConformRun(t *testing.T) {
	name := caseOf(t, conformance.NeedAPI)
	r := clitest.Run(t.Context(), "conform", "run", "--run", name)
	assert.Zero(t, r.Status, r.Stdout)
	assert.Contains(t, r.Stdout, "1 passed, 0 failed, 0 skipped; ")
	assert.Empty(t, r.Stderr, "no terminal, no progress")

	r = clitest.Run(t.Context(), "conform", "run", "--run", "RV-5.1", "--skip", name, "--json", "-", "--seed", "3", "--parallel", "2")
	assert.Zero(t, r.Status, r.Stdout)
	var results []conformResult
	clitest.Decode(t, r.Stdout, &results)
	require.NotEmpty(t, results)
	for _, res := range results {
		assert.Equal(t, "PASS", res.Verdict, res.Detail)
		assert.NotEqual(t, name, res.Case)
	}

	// One that no case can show says so, alone and beside cases.
	r = clitest.Run(t.Context(), "conform", "run", "--run", "R5044-9.3-M1")
	assert.Zero(t, r.Status, r.Stderr)
	assert.Contains(t, r.Stdout, "NOT-TESTABLE R5044-9.3-M1: ")
	assert.Contains(t, r.Stdout, "  other-layer: IPsec: ")
	assert.Contains(t, r.Stdout, "0 cases in ")
	r = clitest.Run(t.Context(), "conform", "run", "--run", name+",R5044-9.3-M1")
	assert.Contains(t, r.Stdout, "NOT-TESTABLE R5044-9.3-M1: ")
	assert.Contains(t, r.Stdout, "1 passed, 0 failed, 0 skipped; ")

	// Requirements of another class are named, without a case.
	r = clitest.Run(t.Context(), "conform", "run", "--run", name, "--run", "RV-8.1", "--json", "-")
	clitest.Decode(t, r.Stdout, &results)
	none := 0
	for _, res := range results {
		if res.Verdict == "NOT-TESTABLE" {
			none++
			assert.Empty(t, res.Case)
			assert.Len(t, res.Keys, 1)
		}
	}
	assert.Positive(t, none)
}

// answering is a target that answers any MPA Request with the same octets, and hangs up if there are none.
func answering(t *testing.T, octets string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				head := make([]byte, 20)
				if _, err := io.ReadFull(c, head); err != nil {
					return
				}
				if _, err := io.ReadFull(c, make([]byte, head[19])); err == nil && octets != "" {
					_, _ = io.WriteString(c, octets)
					_, _ = io.Copy(io.Discard, c)
				}
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		wg.Wait()
	})
	return l.Addr().String()
}

// A target whose startup does not work: the cases that need a stream fail at once, by one cause, which
// is told once.
func TestConformBarred(t *testing.T) {
	count := map[string]int{}
	for _, c := range cases.All() {
		if c.Need == conformance.NeedWire {
			count["wire"]++
		}
	}
	dir := t.TempDir()
	r := clitest.Run(t.Context(), "conform", "run", "--target", answering(t, ""), "--rping", "--json", filepath.Join(dir, "r.json"))
	assert.Equal(t, 1, r.Status)
	const cause = "no stream to the target begins: the connection was closed after the Request"
	assert.Equal(t, "rnic: "+cause+"; the cases that need one are not run, and fail\n", r.Stderr)
	assert.True(t, strings.HasPrefix(r.Stdout, "STARTUP "+cause+"; "), r.Stdout)
	assert.Equal(t, 1, strings.Count(r.Stdout, "the connection was closed after the Request"), "once")
	assert.NotContains(t, r.Stdout, "FAIL ")
	var results []conformResult
	text, err := os.ReadFile(filepath.Join(dir, "r.json"))
	require.NoError(t, err)
	clitest.Decode(t, string(text), &results)
	for _, res := range results {
		if res.Case != "" && res.Verdict != "SKIP" {
			count["failed"]++
			assert.Equal(t, "FAIL", res.Verdict, res.Case)
			assert.True(t, res.Barred, res.Case)
			assert.Equal(t, cause, res.Detail, res.Case)
		}
	}
	assert.Contains(t, r.Stdout, fmt.Sprintf("; %d cases failed by that\n", count["failed"]))
	// The rest of them play the other role.
	assert.Contains(t, r.Stdout, fmt.Sprintf("SKIP %d cases: the target is run in one role only", count["wire"]-count["failed"]))
	assert.Greater(t, count["failed"], 30)
}

// A target of which something is wrong, and streams begin all the same: its cases are run.
func TestConformStartupTrouble(t *testing.T) {
	wire := caseOf(t, conformance.NeedWire)
	at := answering(t, "MPA ID Rep Frame\x40\x09\x00\x00")
	r := clitest.Run(t.Context(), "conform", "run", "--target", at, "--rping", "--run", wire, "--timeout", "2s")
	warning, failed, _ := strings.Cut(r.Stderr, "\n")
	assert.Equal(t, "rnic: in the target's MPA startup: the Reply has revision 9, the Request 2 (RFC 5044 7.1.1, RFC 6581 10)", warning)
	assert.True(t, strings.HasPrefix(failed, "FAIL "+wire+" ("), failed)
	assert.True(t, strings.HasPrefix(r.Stdout, "STARTUP in the target's MPA startup: the Reply has revision 9"), r.Stdout)
	assert.Contains(t, r.Stdout, "FAIL "+wire, "it was run, and failed by itself")
	assert.NotContains(t, r.Stdout, "no stream to the target begins")
}

// A run that fails, in all its forms.
func TestConformFails(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	wire, api := caseOf(t, conformance.NeedWire), caseOf(t, conformance.NeedAPI)
	// A good Reply, and then nothing that is iWARP.
	at := answering(t, "MPA ID Rep Frame\x40\x02\x00\x00")
	r := clitest.Run(t.Context(), "conform", "run", "--target", at, "--rping", "--run", wire, "--run", api, "--timeout", "2s",
		"--json", in("r.json"), "--junit", in("r.xml"), "--html", in("r.html"), "--record", in("r.rec"), "--pcap-dir", in("pcap"))
	assert.Equal(t, 1, r.Status, r.Stderr)
	assert.Regexp(t, `^FAIL `+regexp.QuoteMeta(wire)+` \(\S+\)\n$`, r.Stderr, "it is told at once")
	assert.Contains(t, r.Stdout, r.Stderr)
	assert.Contains(t, r.Stdout, "SKIP 1 case: this target has no verbs here")
	assert.Contains(t, r.Stdout, "0 passed, 1 failed, 1 skipped; ")

	var results []conformResult
	text, err := os.ReadFile(in("r.json"))
	require.NoError(t, err)
	clitest.Decode(t, string(text), &results)
	verdicts := map[string]string{}
	for _, res := range results {
		verdicts[res.Case] = res.Verdict
	}
	assert.Equal(t, "FAIL", verdicts[wire])
	assert.Equal(t, "SKIP", verdicts[api])
	for name, want := range map[string]string{"r.xml": "<failure", "r.html": "MPA Reply"} {
		text, err := os.ReadFile(in(name))
		require.NoError(t, err)
		assert.Contains(t, string(text), want, name)
	}
	f, err := os.Open(in("pcap/" + pcapName(wire)))
	require.NoError(t, err)
	defer f.Close()
	_, err = dissect.Read(f, nil)
	require.NoError(t, err)

	// The record says the same later.
	again := clitest.Run(t.Context(), "conform", "report", in("r.rec"), "--html", in("again.html"), "--pcap-dir", in("again"))
	assert.Equal(t, 1, again.Status)
	assert.Equal(t, r.Stdout, again.Stdout)
	first, err := os.ReadFile(in("r.html"))
	require.NoError(t, err)
	second, err := os.ReadFile(in("again.html"))
	require.NoError(t, err)
	assert.Equal(t, string(first), string(second))
	assert.FileExists(t, in("again/"+pcapName(wire)))
	// And the JSON has the verdicts.
	short := clitest.Run(t.Context(), "conform", "report", in("r.json"))
	assert.Equal(t, 1, short.Status)
	assert.Contains(t, short.Stdout, "0 passed, 1 failed, 1 skipped; ")
}

func TestConformServe(t *testing.T) {
	s := clitest.StartServer(t, "conform", "serve", "127.0.0.1:0")
	upper, api := caseOf(t, conformance.NeedUpper), caseOf(t, conformance.NeedAPI)
	r := clitest.Run(t.Context(), "conform", "run", "--target", s.Addr, "--role", "initiator", "--run", upper, "--run", api)
	assert.Zero(t, r.Status, r.Stdout+r.Stderr)
	assert.Contains(t, r.Stdout, "1 passed, 0 failed, 1 skipped; ")
	assert.Contains(t, r.Stdout, "target upper tester at "+s.Addr)
	s.Stop()
	assert.Zero(t, (<-s.Done).Status)
}

// An upper tester that is none, or says nothing, costs its run, with a sentence.
func TestConformHostileTesters(t *testing.T) {
	for name, tt := range map[string]struct{ answer, want string }{
		"garbage": {"220 mail.example.com ESMTP\r\n", "is no upper tester: uppertester: Open: what came is no answer of JSON-RPC 1.0: "},
		"silence": {"", "is no upper tester: uppertester: Open: no answer: context deadline exceeded"},
		"refusal": {`{"id":0,"result":null,"error":"not yet"}`, "is no upper tester: not yet"},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			var wg sync.WaitGroup
			wg.Go(func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					wg.Go(func() {
						defer c.Close()
						one := make([]byte, 1)
						if _, err := c.Read(one); err == nil { // a call
							_, _ = io.WriteString(c, tt.answer)
							_, _ = io.Copy(io.Discard, c)
						}
					})
				}
			})
			defer wg.Wait()
			defer l.Close()
			r := clitest.Run(t.Context(), "conform", "run", "--target", l.Addr().String(), "--timeout", "1s")
			assert.Equal(t, 2, r.Status)
			assert.Contains(t, r.Stderr, tt.want)
			assert.Empty(t, r.Stdout)
		})
	}
}

func TestConformErrors(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.json")
	require.NoError(t, os.WriteFile(bad, []byte("hello"), 0o600))
	for _, tt := range []struct{ args, want string }{
		{"conform report " + bad, "not a saved run"},
		{"conform report " + bad + "x", "no such file"},
		{"conform run --target 127.0.0.1:1", "reaching the target"},
		{"conform run --target 127.0.0.1:1 --rping", "reaching the target"},
		{"conform run --run 5.1 --json " + dir, "is a directory"},
		{"conform run --run 5.1 --pcap-dir " + bad, "not a directory"},
	} {
		r := clitest.Run(t.Context(), strings.Fields(tt.args)...)
		assert.Equal(t, 2, r.Status, tt.args)
		assert.Contains(t, r.Stderr, tt.want)
		assert.Empty(t, r.Stdout)
	}
	r := clitest.Run(t.Context(), "conform", "serve", "192.0.2.1:0") // not an address of this machine
	assert.Equal(t, 1, r.Status)
	assert.Contains(t, r.Stderr, "choose another ADDR")
}

func TestConformReportOfPassedRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "r.json")
	text, err := json.Marshal([]conformance.Result{{Case: "5.1/x", Verdict: conformance.Pass, Keys: []string{"RV-5.1-M1"}}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, text, 0o600))
	r := clitest.Run(t.Context(), "conform", "report", file, "--junit", "-")
	assert.Zero(t, r.Status)
	assert.True(t, strings.HasPrefix(r.Stdout, "<?xml"), "and no text")
}

func TestPcapName(t *testing.T) {
	assert.Equal(t, "7.10.6_bind_refused-1.pcapng", pcapName("7.10.6/bind refused-1"))
	assert.Equal(t, ".._.._x.pcapng", pcapName("../../x"), "it stays in its directory")
}

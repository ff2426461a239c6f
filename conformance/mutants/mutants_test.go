package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/cases"
)

// The mutants are well-formed, and their faults and cases exist: what only a long
// run would tell otherwise.
func TestMutantsAreCurrent(t *testing.T) {
	known := map[string]bool{}
	for _, c := range cases.All() {
		known[c.Name] = true
	}
	mutants, err := readAll(".")
	require.NoError(t, err)
	for _, m := range mutants {
		if m.ofTests() {
			for _, c := range m.cases {
				known[c] = isTest(t, c)
			}
		}
	}
	names := map[string]bool{}
	for _, m := range mutants {
		assert.False(t, names[m.String()], "%v is there twice", &m)
		names[m.String()] = true
		source, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(m.file)))
		if !assert.NoError(t, err, "%v", &m) {
			continue
		}
		_, err = m.apply(string(source), m.is)
		assert.NoError(t, err, "%v", &m)
		for _, c := range m.cases {
			assert.True(t, known[c], "%v: there is no case %s", &m, c)
		}
	}
}

// isTest reports whether there is such a test.
func isTest(t *testing.T, name string) bool {
	pkg, test := testOf(name)
	files, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(pkg), "*_test.go"))
	require.NoError(t, err)
	for _, f := range files {
		source, err := os.ReadFile(f)
		require.NoError(t, err)
		if bytes.Contains(source, []byte("\nfunc "+test+"(t *testing.T) {\n")) {
			return true
		}
	}
	return false
}

func TestParse(t *testing.T) {
	m, err := parse(`lost` + "\t" + `qp/x.go` + "\t" + `a\n\tb` + "\t" + `'\\n'` + "\t" + `5.1/a, 5.2/b`)
	require.NoError(t, err)
	assert.Equal(t, mutant{name: "lost", file: "qp/x.go", was: "a\n\tb", is: `'\n'`, cases: []string{"5.1/a", "5.2/b"}}, m)
	m, err = parse("lost\tqp/x.go\ta\tb\t5.1/a\tRV-5.1-M1,RV-5.1-M2")
	require.NoError(t, err)
	assert.Equal(t, []string{"RV-5.1-M1", "RV-5.1-M2"}, m.keys)
	for name, line := range map[string]string{
		"fields":    "a\tqp/x.go\tb",
		"too many":  "x\tqp/x.go\ta\tb\tc\tk\tl",
		"name":      "\tqp/x.go\ta\tb\tc",
		"no cases":  "x\tqp/x.go\ta\tb\t,",
		"nothing":   "x\tqp/x.go\ta\ta\tc",
		"empty":     "x\tqp/x.go\t\ta\tc",
		"a test":    "x\tqp/x_test.go\ta\tb\tc",
		"the cases": "x\tconformance/t.go\ta\tb\tc",
		"outside":   "x\tqp/../internal/test/rawpeer/peer.go\ta\tb\tc",
	} {
		_, err := parse(line)
		require.Error(t, err, name)
	}
}

func TestRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "share.tsv")
	require.NoError(t, os.WriteFile(file, []byte("name\tfile\told text\tnew text\tcases\n\n# why\nx\tqp/x.go\ta\tb\tc\n"), 0o600))
	part, err := readFile(file)
	require.NoError(t, err)
	require.Len(t, part, 1)
	assert.Equal(t, "share/x", part[0].String())

	require.NoError(t, os.WriteFile(file, []byte("x\n"), 0o600))
	_, err = readFile(file)
	require.ErrorContains(t, err, "share.tsv:1: ")
}

func TestApply(t *testing.T) {
	m := mutant{file: "x.go", was: "a", is: "b"}
	got, err := m.apply("xay", m.is)
	require.NoError(t, err)
	assert.Equal(t, "xby", got)
	for _, source := range []string{"", "aa"} {
		_, err := m.apply(source, m.is)
		require.ErrorContains(t, err, fmt.Sprintf("%d times", len(source)))
	}
}

func TestFit(t *testing.T) {
	for is, want := range map[string]string{
		"a\nb":                               "a\nb",
		"a":                                  "a\n",
		"\tif x {\n\t\ty()\n\t\treturn\n\t}": "\tif x { y(); return\n\t}",
		"case a:\n\ti++\n\tb,\n":             "case a: i++; b,\n",
		"if x { // why\n\ty()\n}":            "if x { y()\n}",
	} {
		assert.Equal(t, want, fit(is, 1))
	}
	assert.Equal(t, "a; b", fit("a\nb", 0))
}

func TestChoose(t *testing.T) {
	all := []mutant{{share: "s", name: "ab"}, {share: "t", name: "ac"}, {share: "t", name: "b"}}
	for pattern, want := range map[string]int{"*": 3, "a*": 2, "t/*": 2, "s/ab": 1, "x": 0, "ab,s/*,b": 2} {
		got, err := choose(all, pattern)
		require.NoError(t, err)
		assert.Len(t, got, want, pattern)
	}
	_, err := choose(all, "[")
	require.Error(t, err)
}

// stand stands in for the forge. Cases pass in a mutant unless failing has them
// under the mutant's name.
type stand struct {
	failing map[string]string // "mutant case": why
	broken  map[string]bool   // mutants that do not build
	unfit   bool              // nothing builds

	mu      sync.Mutex
	dropped []string // guarded by mu
}

func (s *stand) healthy(context.Context) (string, error) {
	if s.unfit {
		return "", errors.New("no compiler")
	}
	return "healthy", nil
}

func (s *stand) build(_ context.Context, _ string, m *mutant) (string, error) {
	if s.broken[m.name] {
		return "", errors.New("it does not build")
	}
	return m.name, nil
}

func (s *stand) ask(_ context.Context, program, name string) (bool, string, error) {
	why, failed := s.failing[program+" "+name]
	if why == "unfit" {
		return false, "", errors.New("there is no case " + name)
	}
	return !failed, why, nil
}

func (s *stand) drop(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropped = append(s.dropped, name)
}

func TestHunt(t *testing.T) {
	s := &stand{
		broken: map[string]bool{"broken": true},
		failing: map[string]string{
			"caught a": "1 is not 2", "caught b": "x", "half a": "x",
			"healthy ill": "it is ill", "ill ill": "x", "healthy none": "unfit",
		},
	}
	mutants := []mutant{
		{share: "s", name: "caught", file: "qp/x.go", cases: []string{"a", "b"}},
		{share: "s", name: "missed", file: "qp/x.go", cases: []string{"a"}},
		{share: "s", name: "half", file: "qp/x.go", cases: []string{"a", "b"}},
		{share: "s", name: "broken", file: "qp/x.go", cases: []string{"a"}},
		{share: "s", name: "ill", file: "qp/x.go", cases: []string{"a", "ill"}},
		{share: "s", name: "nobody", file: "qp/x.go", cases: []string{"none"}},
	}
	var out, more bytes.Buffer
	assert.Equal(t, 1, hunt(t.Context(), s, mutants, 3, &out, &more))
	assert.Contains(t, more.String(), "        a: 1 is not 2\n        b: x\n")
	for _, want := range []string{
		"caught  s/caught (qp/x.go): a: 1 is not 2 (and 1 more)\n",
		"MISSED  s/missed (qp/x.go): case a passes\n",
		"MISSED  s/half (qp/x.go): case b passes\n",
		"MISSED  s/broken (qp/x.go): it does not build\n",
		"MISSED  s/ill (qp/x.go): case ill does not pass without the fault: it is ill\n",
		"MISSED  s/nobody (qp/x.go): case none does not pass without the fault: there is no case none\n",
	} {
		assert.Contains(t, out.String(), want)
	}
	assert.Equal(t, len(mutants), strings.Count(out.String(), "\n"))
	assert.Len(t, s.dropped, len(mutants))

	out.Reset()
	assert.Zero(t, hunt(t.Context(), &stand{unfit: true}, mutants, 3, &out, &more))
	assert.Equal(t, "without a fault: no compiler\n", out.String())
}

func TestHeard(t *testing.T) {
	exit := errors.New("exit status")
	for said, want := range map[string]struct {
		err    error
		passed bool
		why    string
		unfit  string
	}{
		"=== RUN   TestX\n--- PASS: TestX (0.00s)\nPASS\n":                                                     {passed: true},
		"testing: warning: no tests to run\nPASS\n":                                                            {unfit: "there is no test p.TestX"},
		"    x_test.go:1: \n\tError Trace:\tx.go:1\n\tError:      \tShould be true\n--- FAIL: TestX (0.00s)\n": {err: exit, why: "Should be true --- FAIL: TestX (0.00s)"},
		"\tError Trace:\tx.go:1\n\tError:      \tShould be true\n\tTest:       \tTestX\npanic: test timed out after 1m0s": {
			err: exit, why: "Should be true Test: TestX panic: test timed out after 1m0s"},
		"=== RUN   TestX\npanic: test timed out after 1m0s\n": {err: exit, unfit: "test p.TestX says nothing within"},
		"=== RUN   TestX\npanic: oh\n\ngoroutine 1":           {err: exit, why: "crashed: oh"},
		"--- FAIL: TestX (0.00s)\n":                           {err: exit, why: "failed: TestX (0.00s)"},
		"killed":                                              {err: exit, unfit: "exit status"},
	} {
		passed, why, err := heard("p.TestX", said, want.err)
		assert.Equal(t, want.passed, passed, said)
		assert.Equal(t, want.why, why, said)
		if want.unfit == "" {
			assert.NoError(t, err, said)
		} else {
			assert.ErrorContains(t, err, want.unfit, said)
		}
	}
}

func TestReason(t *testing.T) {
	for want, detail := range map[string]string{
		"the status: expected: 1 actual : 2": "Error Trace:\t/x/y.go:12\n\t            \t/x/z.go:3\n\tError:      \tNot equal: \n" +
			"\t            \texpected: 1\n\t            \tactual  : 2\n\tMessages:   \tthe status",
		"what: Should be true":      "Error Trace:\tx.go:1\n\tError:      \tShould be true\n\tMessages:   \twhat",
		"not done within 10s":       "not done within 10s",
		"panic: index out of range": "panic: index out of range\ngoroutine 1",
	} {
		assert.Equal(t, want, reason(detail))
	}
	assert.Len(t, clip(strings.Repeat("x", 1000), 160), 163)
}

func TestJudge(t *testing.T) {
	var out bytes.Buffer
	assert.Equal(t, statusUnfit, judge(t.Context(), "5.1/no-such-case", &out))
	assert.Equal(t, "there is no case 5.1/no-such-case\n", out.String())
	out.Reset()
	assert.Equal(t, statusPass, judge(t.Context(), cases.All()[0].Name, &out), out.String())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.Equal(t, statusUnfit, judge(ctx, cases.All()[0].Name, &out))
}

func TestJudgeAll(t *testing.T) {
	some := append([]conformance.Case{}, cases.All()[:3]...)
	var out bytes.Buffer
	assert.Equal(t, statusPass, judgeAll(t.Context(), some, &out), out.String())
	ran := 0
	for i := range 100 {
		some = append(some, conformance.Case{Name: fmt.Sprintf("9/no-%d", i), Need: conformance.NeedAPI, Run: func(ct *conformance.T) {
			ran++
			assert.Fail(ct, "no reason")
		}})
	}
	assert.Equal(t, statusFail, judgeAll(t.Context(), some, &out))
	assert.Equal(t, "9/no-0: no reason\n", out.String())
	assert.Less(t, ran, 100, "the first to fail is enough")
}

func TestFaultsOfAnother(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mine.tsv")
	require.NoError(t, os.WriteFile(file, []byte("x\tqp/no-such.go\ta\tb\t9/no-such\n"), 0o600))
	var stdout, stderr bytes.Buffer
	assert.Equal(t, 2, run(t.Context(), []string{"-faults", file, "-run", "mine/y"}, &stdout, &stderr))
	assert.Contains(t, stderr.String(), `no mutant matches "mine/y"`)
	stderr.Reset()
	assert.Equal(t, 2, run(t.Context(), []string{"-faults", file + "x"}, &stdout, &stderr))
	assert.Contains(t, stderr.String(), "no such file")
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{"-bogus"}, {"-run", "no-such-mutant"}, {"-run", "["}} {
		var stdout, stderr bytes.Buffer
		assert.Equal(t, 2, run(t.Context(), args, &stdout, &stderr), args)
		assert.NotEmpty(t, stderr.String())
		assert.Empty(t, stdout.String())
	}
}

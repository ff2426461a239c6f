//go:build linux

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// packaged is where Debian's rdma-core has the tests of pyverbs, some of them compressed.
const packaged = "/usr/share/doc/rdma-core/tests"

// moduleTime bounds a module of tests, which runs in a network and a process of its own.
const moduleTime = 3 * time.Minute

// Outcomes of a test of pyverbs, as programs/pytests.py prints them.
const (
	testOK   = "ok"
	testSkip = "skip"
	testFail = "fail"
	// testCannot is a test that failed, and has to: cannots says why.
	testCannot = "cannot"
)

// writeIsSent is why some tests cannot pass.
const writeIsSent = "it looks for an RDMA Write's octets, or for its refusal, at the peer when the Write has completed, which over iWARP says that it was sent"

// sendIsSent is why others cannot, in both presentations.
const sendIsSent = "it looks at the sender for the refusal of a Send by the memory of its receive, where the Send has completed when it was sent"

// terminated is why one cannot.
const terminated = "it wants Remote access error: a completion over iWARP says that the peer has ended the stream (Remote Termination Error, verbs draft 8.2), which is Remote operation error"

// cannots are the tests that ask for what the wire has not, and why. Some of them pass by luck.
var cannots = map[string]string{
	"iwarp test_mr.MRTest.test_mr_rereg_access":                          writeIsSent,
	"iwarp test_mr.MRTest.test_mr_rereg_access_bad_flow":                 writeIsSent,
	"iwarp test_mr.MRTest.test_mr_rereg_addr":                            sendIsSent,
	"iwarp test_mr.MRTest.test_mr_rereg_pd":                              sendIsSent,
	"iwarp test_mr.MRTest.test_mr_rereg_atomic":                          terminated,
	"iwarp test_mr.MRTest.test_mrex_rereg_access":                        writeIsSent,
	"iwarp test_mr.MRTest.test_mrex_rereg_addr":                          sendIsSent,
	"roce test_mr.MRTest.test_mrex_rereg_addr":                           sendIsSent,
	"iwarp test_relaxed_ordering.RoTestCase.test_ro_mr_ex_traffic":       writeIsSent,
	"roce test_mr.MRTest.test_mr_rereg_addr":                             sendIsSent,
	"roce test_mr.MRTest.test_mr_rereg_pd":                               sendIsSent,
	"iwarp test_mr.MWTest.test_mw_type1":                                 writeIsSent,
	"iwarp test_mr.MWTest.test_mw_ex_type1":                              writeIsSent,
	"iwarp test_mr.MWTest.test_invalidate_mw_type1":                      writeIsSent,
	"iwarp test_mr.MWTest.test_mw_type2":                                 writeIsSent,
	"iwarp test_mr.MWTest.test_mw_type2_invalidate_dealloc":              writeIsSent,
	"iwarp test_mr.MWTest.test_mw_type2_invalidate_local":                writeIsSent,
	"iwarp test_mr.MWTest.test_mw_type2_invalidate_remote":               writeIsSent,
	"iwarp test_qpex.QpExTestCase.test_qp_ex_rc_bind_mw":                 writeIsSent,
	"iwarp test_qpex.QpExTestCase.test_qp_ex_rc_rdma_write":              writeIsSent,
	"iwarp test_rdmacm.CMTestCase.test_rdmacm_async_traffic_external_qp": "it waits for RDMA_CM_EVENT_CONNECT_RESPONSE, which InfiniBand has; an iWARP connection is ESTABLISHED by the peer's Reply",
}

// longWhy bounds what is shown of a reason, in octets: some tests print what they compared.
const longWhy = 160

// tested is what became of a test of pyverbs.
type tested struct{ outcome, name, why string }

// pyverbs runs pyverbs' own tests, in both presentations, of the release in whose root folder programs run. A test that passed once, says
// passes.txt or that of the release, has to pass; what passes for the first time is added there.
func (o options) pyverbs(ctx context.Context) (text string, ok bool, err error) {
	if _, err := os.Stat(o.root + packaged); err != nil {
		return "", false, fmt.Errorf("%w; install the packages with interop/cprograms/packages", err)
	}
	dir, err := o.folder()
	if err != nil {
		return "", false, err
	}
	if !o.keep {
		defer os.RemoveAll(dir)
	}
	unpack := exec.CommandContext(ctx, "sh", "-ec", `cp -r "$1" . && find tests -name '*.gz' -exec gunzip -f {} + && chmod -R a+rX tests && cp "$2" .`, "sh",
		o.root+packaged, filepath.Join(o.here, "programs", "pytests.py"))
	unpack.Dir = dir
	if out, err := unpack.CombinedOutput(); err != nil {
		return "", false, fmt.Errorf("unpacking the tests: %w: %s", err, out)
	}
	modules, err := filepath.Glob(filepath.Join(dir, "tests", "test_*.py"))
	if err != nil {
		return "", false, err
	}
	var all []tested
	for _, as := range []string{"iwarp", "roce"} {
		for _, path := range modules {
			module := strings.TrimSuffix(filepath.Base(path), ".py")
			if !o.only.MatchString("pyverbs " + as + " " + module) {
				continue
			}
			some, err := o.module(ctx, dir, as, module)
			if err != nil {
				return "", false, err
			}
			fmt.Fprintf(os.Stderr, "pyverbs %s: %s\n", strings.TrimSpace(o.suite+" "+as+" "+module), counts(some))
			for _, t := range some {
				if t.outcome == testFail {
					fmt.Fprintf(os.Stderr, "      | %s: %s\n", t.name, t.why)
				}
			}
			all = append(all, some...)
		}
	}
	lost, err := o.compare(all)
	if err != nil {
		return "", false, err
	}
	for _, name := range lost {
		fmt.Fprintf(os.Stderr, "pyverbs %s passed before, and does not now\n", name)
	}
	return testsMarkdown(all), len(lost) == 0, nil
}

// module runs a module of tests. A process that dies or hangs fails the test that it was at.
func (o options) module(ctx context.Context, dir, as, module string) ([]tested, error) {
	ctx2, cancel := context.WithTimeout(ctx, moduleTime)
	defer cancel()
	s, err := newSpace()
	if err != nil {
		return nil, err
	}
	defer s.end()
	if _, err := s.do(ctx2, alone); err != nil {
		return nil, err
	}
	if err := o.enter(ctx2, s); err != nil {
		return nil, err
	}
	words := []string{o.rnic, "run", "--as", as}
	if o.strace != "" {
		words = append(words, "--strace", filepath.Join(o.strace, "pyverbs-"+as+"-"+module))
	}
	words = append(words, "--", "/usr/bin/python3", filepath.Join(dir, "pytests.py"), dir, module)
	p, err := s.start(ctx2, dir, o.inRoot(dir, words))
	if err != nil {
		return nil, err
	}
	end := p.wait(ctx2)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if o.keep {
		_ = os.WriteFile(filepath.Join(dir, as+"-"+module), []byte(p.out.String()), 0o644)
	}
	return parseTests(p.out.String(), as, end), nil
}

// parseTests reads what pytests.py printed. end is how it ended.
func parseTests(text, as string, end error) []tested {
	var all []tested
	at := ""
	for line := range strings.Lines(text) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		if len(fields) < 2 {
			continue
		}
		name := as + " " + fields[1]
		why := ""
		if len(fields) > 2 {
			why = fields[2]
			if len(why) > longWhy {
				why = why[:longWhy] + "..."
			}
		}
		switch fields[0] {
		case "begin":
			at = name
		case testOK, testSkip, testFail:
			if reason := cannots[name]; reason != "" && fields[0] == testFail {
				fields[0], why = testCannot, reason
			}
			all = append(all, tested{fields[0], name, why})
			at = ""
		}
	}
	if end != nil {
		all = append(all, tested{testFail, cmp.Or(at, as+" a module's end"), "the process: " + end.Error() + last(text)})
	}
	return all
}

// compare holds the tests against passes.txt. lost are those that passed before and did not now; in a whole run a test
// that did not run at all is lost too, and passes.txt grows by what passed for the first time.
func (o options) compare(all []tested) (lost []string, err error) {
	path := filepath.Join(o.here, strings.TrimSuffix("passes-"+o.suite, "-")+".txt")
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	before := strings.Split(strings.TrimSpace(string(old)), "\n")
	now := map[string]string{}
	for _, t := range all {
		now[t.name] = t.outcome
	}
	passes := map[string]bool{}
	for _, name := range before {
		if name == "" {
			continue
		}
		passes[name] = true
		outcome, ran := now[name]
		if outcome != testOK && (ran || o.only.String() == "") {
			lost = append(lost, name)
		}
	}
	if o.only.String() != "" {
		return lost, nil
	}
	for name, outcome := range now {
		if outcome == testOK && cannots[name] == "" { // else by luck
			passes[name] = true
		}
	}
	list := slices.Sorted(maps.Keys(passes))
	return lost, os.WriteFile(path, []byte(strings.Join(list, "\n")+"\n"), 0o644)
}

// counts is a line of figures.
func counts(all []tested) string {
	n := map[string]int{}
	for _, t := range all {
		n[t.outcome]++
	}
	return fmt.Sprintf("%d passed, %d failed, %d cannot, %d skipped", n[testOK], n[testFail], n[testCannot], n[testSkip])
}

// testsMarkdown is the table of docs/c-programs.md: what passed a module, then each skip's reason and each failure's.
func testsMarkdown(all []tested) string {
	type line struct{ n map[string]int }
	lines := map[string]line{}
	reasons := map[string][]string{}
	var failures, cannot []string
	for _, t := range all {
		as, rest, _ := strings.Cut(t.name, " ")
		module, _, _ := strings.Cut(rest, ".")
		if lines[module].n == nil {
			lines[module] = line{map[string]int{}}
		}
		lines[module].n[as+" "+t.outcome]++
		switch t.outcome {
		case testSkip:
			if !slices.Contains(reasons[t.why], rest) {
				reasons[t.why] = append(reasons[t.why], rest)
			}
		case testFail:
			failures = append(failures, "- `"+t.name+"`: "+cell(t.why)+"\n")
		case testCannot:
			cannot = append(cannot, "- `"+t.name+"`: "+cell(t.why)+"\n")
		}
	}
	var b strings.Builder
	b.WriteString("| module | iwarp: passed, failed, cannot, skipped | roce: the same |\n|---|---|---|\n")
	quiet := 0
	for _, module := range slices.Sorted(maps.Keys(lines)) {
		n := lines[module].n
		if n["iwarp ok"]+n["iwarp fail"]+n["iwarp cannot"]+n["roce ok"]+n["roce fail"]+n["roce cannot"] == 0 {
			quiet++
			continue
		}
		fmt.Fprintf(&b, "| `%s` | %d, %d, %d, %d | %d, %d, %d, %d |\n", module,
			n["iwarp ok"], n["iwarp fail"], n["iwarp cannot"], n["iwarp skip"], n["roce ok"], n["roce fail"], n["roce cannot"], n["roce skip"])
	}
	fmt.Fprintf(&b, "\nIn all: %s; %d more modules have skips only.\n", counts(all), quiet)
	for _, kind := range []struct {
		name string
		list []string
	}{{"Failed", failures}, {"Cannot", cannot}} {
		if len(kind.list) > 0 {
			b.WriteString("\n" + kind.name + ":\n\n" + strings.Join(slices.Compact(slices.Sorted(slices.Values(kind.list))), ""))
		}
	}
	b.WriteString("\nSkips, by the reason that the test gives:\n\n")
	for _, why := range slices.Sorted(maps.Keys(reasons)) {
		fmt.Fprintf(&b, "- %s: %s\n", cell(why), some(reasons[why]))
	}
	return b.String()
}

// some names a few of many.
func some(names []string) string {
	const few = 4
	shown := "`" + strings.Join(names[:min(few, len(names))], "`, `") + "`"
	if n := len(names) - few; n > 0 {
		shown += fmt.Sprintf(" and %d more", n)
	}
	return shown
}

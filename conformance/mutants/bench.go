package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Environment of a test: how long it waits for what does not come.
const (
	patienceEnv = "SOFTRNIC_PATIENCE"
	patience    = 5 * time.Second
)

// bench judges mutants by tests of packages, where forge does by conformance cases. A case is
// then called "package.TestName", the package's path being that in the module; a program is a
// directory with a test binary of each package.
type bench struct {
	forge
	packages []string // that the cases are of
}

// ofTests reports whether the cases of a mutant are tests.
func (m *mutant) ofTests() bool { return strings.Contains(m.cases[0], ".Test") }

// testOf is the package and the test that a case of a bench is.
func testOf(name string) (pkg, test string) {
	pkg, test, _ = strings.Cut(name, ".")
	return pkg, test
}

// packagesOf are those of the cases of mutants.
func packagesOf(mutants ...mutant) (list []string) {
	for _, m := range mutants {
		for _, c := range m.cases {
			pkg, _ := testOf(c)
			list = append(list, pkg)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func (b *bench) healthy(ctx context.Context) (program string, err error) {
	return b.compile(ctx, "healthy", b.packages)
}

func (b *bench) build(ctx context.Context, name string, m *mutant) (program string, err error) {
	overlay, err := b.overlay(name, m, m.is)
	if err != nil {
		return "", err
	}
	return b.compile(ctx, name, packagesOf(*m), "-overlay", overlay)
}

// compile makes the tests of packages.
func (b *bench) compile(ctx context.Context, name string, packages []string, flags ...string) (program string, err error) {
	program = filepath.Join(b.dir, name)
	for _, pkg := range packages {
		args := append([]string{"test", "-c", "-ldflags=-s -w", "-o", binary(program, pkg)}, flags...)
		if _, err := goTool(ctx, b.root, append(args, "./"+pkg)...); err != nil {
			return "", err
		}
	}
	return program, nil
}

func binary(program, pkg string) string {
	return filepath.Join(program, strings.ReplaceAll(pkg, "/", "_")+".test")
}

// ask runs one test. One that says nothing until its time is up has not noticed: it shall say
// what is wrong.
func (b *bench) ask(ctx context.Context, program, name string) (passed bool, why string, err error) {
	ctx, cancel := context.WithTimeout(ctx, mostTime+10*time.Second)
	defer cancel()
	pkg, test := testOf(name)
	cmd := exec.CommandContext(ctx, binary(program, pkg), "-test.v", "-test.run", "^"+test+"$", "-test.timeout", mostTime.String())
	cmd.Dir = filepath.Join(b.root, filepath.FromSlash(pkg))
	cmd.Env = append(os.Environ(), patienceEnv+"="+patience.String())
	out := listener{enough: cancel}
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	return heard(name, out.said.String(), err)
}

// listener keeps what a test says. One that has complained is ended soon: a fault may have
// it wait for ever then, for what it started.
type listener struct {
	said   bytes.Buffer
	enough func()
	heard  bool
}

// lastWords is how long a test may go on after its complaint.
const lastWords = 2 * time.Second

func (l *listener) Write(p []byte) (int, error) {
	l.said.Write(p)
	if !l.heard && bytes.Contains(l.said.Bytes(), []byte(complaint)) {
		l.heard = true
		time.AfterFunc(lastWords, l.enough)
	}
	return len(p), nil
}

// complaint is how testify's begin.
const complaint = "Error Trace:"

// heard is what a test has answered: what it said, and how it ended.
func heard(name, said string, err error) (passed bool, why string, _ error) {
	_, test := testOf(name)
	_, failed, complains := strings.Cut(said, complaint)
	_, crash, crashes := strings.Cut(said, "\npanic: ")
	_, fail, fails := strings.Cut(said, "--- FAIL: ")
	switch {
	case err == nil && strings.Contains(said, "--- PASS: "+test):
		return true, "", nil
	case err == nil:
		return false, "", fmt.Errorf("there is no test %s", name)
	case complains: // what it does then, to end, is the fault's affair
		return false, reason(complaint + failed), nil
	case strings.Contains(said, "panic: test timed out"):
		return false, "", fmt.Errorf("test %s says nothing within %v", name, mostTime)
	case crashes:
		return false, "crashed: " + firstLine(crash), nil
	case fails:
		return false, "failed: " + firstLine(fail), nil
	}
	return false, "", fmt.Errorf("test %s: %w: %s", name, err, clip(said, 300))
}

// drop removes what build made.
func (b *bench) drop(name string) {
	b.forge.drop(name)
	_ = os.RemoveAll(filepath.Join(b.dir, name))
}

//go:build linux

// Command cprograms runs C programs of Debian's packages, which nobody changed, under `rnic run`: each pair in a
// network of its own, the server first. It waits for what it can see (a listening socket, an exit), never for a time, and bounds each row.
// A whole run updates the tables of docs/c-programs.md, and those of docs/lab.md and docs/nic.md that say what programs
// see. Rows that cannot work are run too: they are red when they do work.
//
// It exits with 0 if every row is as its table says, 1 if not, 2 on wrong usage. Run it with `make c-test`, on Debian;
// interop/cprograms/packages installs what it needs. As root, or where user namespaces are allowed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/softrnic/softrnic/interop/internal/docsection"
)

// options are the flags.
type options struct {
	rnic   string // absolute
	here   string // folder of this program's sources, absolute
	doc    string
	only   *regexp.Regexp
	veth   bool
	part   string
	strace string
	keep   bool
	soak   time.Duration
	bench  int    // rounds
	root   string // of the release that the programs are of; empty: this machine's
	suite  string // the name of that release
}

// The parts of a run, which are sections of pages.
const (
	partPrograms = "programs"
	partLossy    = "lossy"
	partPyverbs  = "pyverbs"
	partSiw      = "siw"
	partNewer    = "newer"
	partFaults   = "c-faults"
	partNICs     = "c-nic"
)

func main() {
	var opts options
	flag.StringVar(&opts.rnic, "rnic", "bin/rnic", "the program to test, its two libraries beside it")
	flag.StringVar(&opts.here, "dir", "interop/cprograms", "where ring.c and the lists are")
	flag.StringVar(&opts.doc, "doc", "docs/c-programs.md", "`page` whose tables are updated after a whole part, and lab.md and nic.md beside it; empty for none")
	flag.StringVar(&opts.strace, "strace", "", "`folder` that gets what rnic run --strace writes, a file a side")
	flag.BoolVar(&opts.keep, "keep", false, "keep the folder of each row, with what was printed")
	flag.BoolVar(&opts.veth, "veth", false, "only the second run: two networks joined by a wire that loses 1 % of the packets")
	flag.StringVar(&opts.part, "part", "", "run only this `part`: programs, lossy, pyverbs, siw, newer, c-faults or c-nic")
	flag.DurationVar(&opts.soak, "soak", 0, "instead: start, kill and start programs again for this `time`, and look for leaks")
	flag.IntVar(&opts.bench, "bench", 0, "instead: measure the goals of speed in so many `rounds`, and update the page's table of them")
	only := flag.String("run", "", "run only rows whose name matches this `regexp`, and update no page")
	flag.Parse()
	var err error
	opts.only, err = regexp.Compile(*only)
	if opts.veth {
		opts.part = partLossy
	}
	known := opts.part == "" || slices.ContainsFunc(opts.parts(), func(p part) bool { return p.name == opts.part })
	if err != nil || flag.NArg() > 0 || !known {
		flag.Usage()
		os.Exit(2)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ok, err := opts.all(ctx)
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "cprograms:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

// part is a part of a run, which makes the section of its name.
type part struct {
	name string
	page string // beside -doc; empty: -doc
	run  func(context.Context) (text string, ok bool, err error)
}

// parts are those of a whole run.
func (o options) parts() []part {
	return []part{
		{partPrograms, "", o.programs}, {partLossy, "", o.lossy}, {partPyverbs, "", o.pyverbs}, {partSiw, "", o.siw}, {partNewer, "", o.newer},
		{partFaults, "lab.md", o.faults}, {partNICs, "nic.md", o.nics},
	}
}

// all does the parts that are asked for.
func (o options) all(ctx context.Context) (ok bool, err error) {
	for _, path := range []*string{&o.rnic, &o.here} {
		if *path, err = filepath.Abs(*path); err != nil {
			return false, err
		}
		if _, err := os.Stat(*path); err != nil {
			return false, fmt.Errorf("%w; build it first with `make build c`", err)
		}
	}
	if o.strace != "" {
		if o.strace, err = filepath.Abs(o.strace); err != nil {
			return false, err
		}
		if err := errors.Join(os.MkdirAll(o.strace, 0o755), os.Chmod(o.strace, 0o777)); err != nil {
			return false, err
		}
	}
	remove, err := o.copyBuilt()
	if err != nil {
		return false, err
	}
	defer remove()
	if o.soak > 0 {
		return o.soaked(ctx)
	}
	parts := o.parts()
	if o.bench > 0 {
		parts, o.part = []part{{"bench", "", o.benched}}, ""
	}
	ok = true
	for _, p := range parts {
		if o.part != "" && o.part != p.name {
			continue
		}
		text, good, err := p.run(ctx)
		if err != nil {
			return false, fmt.Errorf("%s: %w", p.name, err)
		}
		ok = ok && good
		if o.doc != "" && o.only.String() == "" {
			page := o.doc
			if p.page != "" {
				page = filepath.Join(filepath.Dir(o.doc), p.page)
			}
			if err := docsection.Update(page, p.name, text); err != nil {
				return false, err
			}
		}
	}
	return ok, nil
}

// copyBuilt copies rnic and its libraries to a folder that any user can read, which a build meanwhile does not change.
func (o *options) copyBuilt() (remove func(), err error) {
	dir, err := os.MkdirTemp("", "cprograms-bin-")
	if err != nil {
		return nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) }
	built := []string{o.rnic}
	libraries, err := filepath.Glob(filepath.Join(filepath.Dir(o.rnic), "*.so"))
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err == nil {
		err = exec.Command("cp", append(append([]string{"--"}, append(built, libraries...)...), dir)...).Run()
	}
	if err != nil {
		remove()
		return nil, fmt.Errorf("copying what was built: %w", err)
	}
	o.rnic = filepath.Join(dir, filepath.Base(o.rnic))
	return remove, nil
}

// programs runs the table.
func (o options) programs(ctx context.Context) (text string, ok bool, err error) {
	return o.table(ctx, rows(), false)
}

// lossy runs some rows of the table over a wire that loses packets.
func (o options) lossy(ctx context.Context) (text string, ok bool, err error) {
	var some []row
	for _, r := range rows() {
		if r.lossy {
			some = append(some, r)
		}
	}
	return o.table(ctx, some, true)
}

// table runs rows and returns their table; ok tells whether each is as it should be.
func (o options) table(ctx context.Context, all []row, joined bool) (text string, ok bool, err error) {
	var done []outcome
	ok = true
	for i, r := range all {
		if !o.only.MatchString(r.name()) {
			continue
		}
		fmt.Fprintf(os.Stderr, "%3d/%d %s ... ", i+1, len(all), r.name())
		got := o.run(ctx, r, joined)
		if err := ctx.Err(); err != nil {
			return "", false, err
		}
		fmt.Fprintf(os.Stderr, "%s, %.1f s\n", got.verdict(), got.took.Seconds())
		if !got.good() {
			ok = false
			fmt.Fprintln(os.Stderr, indent(tail(got.left, 24)))
		}
		done = append(done, got)
	}
	with, err := o.versions(ctx)
	if err != nil {
		return "", false, err
	}
	return markdown(done, joined, with), ok, nil
}

// tail is the last n lines of text.
func tail(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

func indent(text string) string { return "      | " + strings.ReplaceAll(text, "\n", "\n      | ") }

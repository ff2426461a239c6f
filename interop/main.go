// Command interop runs softrnic against Linux Soft-iWARP, in both roles, and reports the result as a table. Then it
// connects to its server again and again, and counts what works. Last it turns the conformance cases on Linux
// Soft-iWARP, again in both roles, and reports what they find.
//
// The peer is rping of rdma-core in a QEMU guest (see siw-guest). What a server in the guest does follows from
// the request, so as a server siw is the stock driver. What its client asks for is fixed when the driver is
// compiled; there the guest has the same source with those switches made module parameters. Each setting is
// first run with siw at both ends: what siw cannot do with itself is not held against softrnic.
//
// It exits with 0 if no cell and no connection failed, 1 if one did or the guest could not be used, 2 on wrong usage. Run it
// through interop/run or `make interop`.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/softrnic/softrnic/interop/internal/docsection"
)

// options are the flags.
type options struct {
	rnic   string
	dir    string
	doc    string
	only   *regexp.Regexp
	cases  *regexp.Regexp
	parts  string
	rounds int
	times  int
}

// The parts of a run.
const (
	partMatrix  = "matrix"
	partFirst   = "first"
	partConform = "conform"
)

func (o options) part(name string) bool { return o.parts == "" || o.parts == name }

func main() {
	opts := options{only: regexp.MustCompile(""), cases: regexp.MustCompile("")}
	flag.StringVar(&opts.rnic, "rnic", "bin/rnic", "the program to test")
	flag.StringVar(&opts.dir, "dir", "interop", "where siw-guest is")
	flag.StringVar(&opts.doc, "doc", "docs/interop.md", "page whose matrix is updated after a whole run; empty for none")
	flag.IntVar(&opts.rounds, "rounds", 3, "rounds of each connection")
	flag.IntVar(&opts.times, "times", 1, "connections of each cell, and of siw with itself; more than 1 update no matrix")
	flag.Func("only", "run only cells whose name matches this `regexp`, and update no page", func(s string) (err error) {
		opts.only, err = regexp.Compile(s)
		return err
	})
	flag.Func("cases", "run only conformance cases whose name matches this `regexp`, and update no page", func(s string) (err error) {
		opts.cases, err = regexp.Compile(s)
		return err
	})
	flag.StringVar(&opts.parts, "part", "", "run only this `part`: matrix, first or conform")
	flag.Parse()
	known := opts.part(partMatrix) || opts.part(partFirst) || opts.part(partConform)
	if flag.NArg() > 0 || opts.rounds < 1 || opts.times < 1 || !known {
		flag.Usage()
		os.Exit(2)
	}

	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ok, err := run(ctx, opts)
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "interop:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

// run does what is asked for; ok tells whether no connection of softrnic's failed. What the cases find about siw is no
// failure of this program.
func run(ctx context.Context, opts options) (ok bool, err error) {
	if _, err := os.Stat(opts.rnic); err != nil {
		return false, fmt.Errorf("%w; build it first with `make build`", err)
	}
	ok = true
	if opts.part(partMatrix) {
		if ok, err = runMatrix(ctx, opts); err != nil {
			return false, err
		}
	}
	if opts.part(partFirst) {
		all, err := runFirst(ctx, opts)
		if err != nil {
			return false, err
		}
		ok = ok && all
	}
	if opts.part(partConform) {
		if err := runConform(ctx, opts); err != nil {
			return false, err
		}
	}
	return ok, nil
}

// runConform turns the conformance cases on siw, the stock driver.
func runConform(ctx context.Context, opts options) error {
	var found *findings
	begun := time.Now()
	err := withGuest(ctx, opts, "conform", "", func(h *harness) (err error) {
		found, err = conformBoth(ctx, h, opts.cases)
		return err
	})
	if err != nil {
		return err
	}
	if err := found.writeText(os.Stdout); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "conformance: %v\n", time.Since(begun).Round(time.Second))
	if opts.doc == "" || opts.cases.String() != "" {
		return nil
	}
	versions, err := peerVersions()
	if err != nil {
		return err
	}
	return docsection.Update(opts.doc, partConform, found.markdown(versions))
}

// runMatrix does the whole matrix; ok tells whether no cell failed.
func runMatrix(ctx context.Context, opts options) (ok bool, err error) {
	r := newReport()
	controls := make(map[cell]error) // without a direction

	// The driver with parameters: siw as client, and siw with itself.
	err = withGuest(ctx, opts, "parameters", "mpa_version=2", func(h *harness) error {
		for _, c := range cells(ourServer) {
			// siw with itself serves both directions, and is needed if either is to run.
			mirrored := c
			mirrored.dir = ourClient
			if !opts.only.MatchString(c.String()) && !opts.only.MatchString(mirrored.String()) {
				continue
			}
			if err := h.each(ctx, c, controls, r, opts); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return false, err
	}

	// The stock driver: siw as server.
	err = withGuest(ctx, opts, "stock", "", func(h *harness) error {
		for _, c := range cells(ourClient) {
			if !opts.only.MatchString(c.String()) {
				continue // nor is its control, which this driver could not be set for
			}
			if err := h.each(ctx, c, controls, r, opts); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return false, err
	}

	if err := r.writeText(os.Stdout); err != nil {
		return false, err
	}
	ok = r.count(failed) == 0
	if opts.doc == "" || opts.only.String() != "" || opts.times > 1 {
		return ok, nil
	}
	versions, err := peerVersions()
	if err != nil {
		return false, err
	}
	return ok, docsection.Update(opts.doc, partMatrix, r.markdown(versions))
}

// withGuest boots a guest, lets f use it, and powers it off.
func withGuest(ctx context.Context, opts options, kind, parameters string, f func(*harness) error) (err error) {
	h := &harness{rnic: opts.rnic, rounds: opts.rounds}
	h.boot = func() (guest, error) { return startGuest(ctx, opts.dir, kind, parameters) }
	if h.guest, err = h.boot(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.guest.Stop()) }()
	return f(h)
}

// each runs one cell, and its control if that has not been run, and notes the outcome. Its error is ctx's.
func (h *harness) each(ctx context.Context, c cell, controls map[cell]error, r *report, opts options) error {
	if why := c.impossible(); why != "" {
		if opts.only.MatchString(c.String()) {
			r.add(c, outcome{impossible, why})
		}
		return ctx.Err()
	}
	key := c
	key.dir = 0
	control, done := controls[key]
	if !done {
		control = h.controls(ctx, c, opts.times)
		controls[key] = control
	}
	if opts.only.MatchString(c.String()) {
		o := judge(c, h.repeat(opts.times, func() error { return h.run(ctx, c) }), control)
		r.add(c, o)
		fmt.Fprintf(os.Stderr, "%v: %v %s\n", c, o.verdict, o.cause)
	}
	return ctx.Err()
}

// controls runs siw with itself until it works, or, to see how often it does, as often as softrnic.
func (h *harness) controls(ctx context.Context, c cell, times int) error {
	run := func() error { return h.control(ctx, c) }
	if times > 1 {
		err := h.repeat(times, run)
		fmt.Fprintf(os.Stderr, "%v: siw with itself: %v\n", c, err)
		return err
	}
	n := tries
	if c.siwLimit() != "" {
		n = 1 // it is not chance
	}
	all := h.attempt(n, run)
	return all[len(all)-1]
}

// peerVersions says which kernel and rdma-core the guest has, from the file that siw-image leaves.
func peerVersions() (string, error) {
	cache := os.Getenv("SIW_GUEST_CACHE")
	if cache == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		cache = filepath.Join(home, ".cache", "softrnic-siw-guest")
	}
	text, err := os.ReadFile(filepath.Join(cache, "versions"))
	if err != nil {
		return "", err
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return "Linux siw with rping, " + strings.Join(lines, ", "), nil
}

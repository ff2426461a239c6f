//go:build linux

// Command ulps runs the rsocket programs of Debian's rdmacm-utils under `rnic run` against the same exchanges written in Go on package
// ulp/rsocket, in both roles, and gRPC-Go's interop cases, and measures. It needs no root, but for the part siw: the same programs over Linux's siw, in
// a QEMU guest.
//
//	ulps [-rnic FILE] [-only REGEXP] [-o docs/ulps.md] [PART...]
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/softrnic/softrnic/interop/internal/docsection"
	"github.com/softrnic/softrnic/ulp/rsocket"
)

// rowTime bounds a row.
const rowTime = 60 * time.Second

type options struct {
	rnic, page string
	only       *regexp.Regexp
}

// row is one program of C and its other half in Go.
type row struct {
	command string // PORT and, of a client, HOST
	client  bool   // the C program is
	flags   string // of `rnic run`
	config  rsocket.Config
	half    half
}

// half is the other half, given the end of a connection, and the files of the C program.
type half func(c *rsocket.Conn, at files) error

func main() {
	if len(os.Args) == 3 && os.Args[1] == "serve" {
		serve(os.Args[2])
		return
	}
	var o options
	flag.StringVar(&o.rnic, "rnic", "bin/rnic", "the program, with its two libraries beside it")
	only := flag.String("only", "", "only rows that match")
	flag.StringVar(&o.page, "o", "docs/ulps.md", "the page to write")
	flag.Parse()
	o.only = regexp.MustCompile(*only)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	ok, err := o.run(ctx, flag.Args())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "ulps:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

// part is a part of the page, between markers. It says whether all of it was good.
type part struct {
	name  string
	guest bool // it needs a QEMU guest, and so root: it is run only when it is named
	run   func(o options, ctx context.Context) (text string, ok bool, err error)
}

// parts are all, in the page's order.
var parts = []part{
	{"programs", false, options.programs}, {"siw", true, options.siw}, {"grpc", false, options.grpc}, {"tcp", false, options.besideTCP}, {"c", false, options.besideC},
}

// run runs the parts that are named, or all without a guest, and writes each into the page: of a run of some rows, and of one that failed, it prints them.
func (o options) run(ctx context.Context, names []string) (ok bool, err error) {
	if o.rnic, err = exec.LookPath(o.rnic); err != nil {
		return false, fmt.Errorf("%w: `make c` builds it", err)
	}
	if o.rnic, err = filepath.Abs(o.rnic); err != nil {
		return false, err
	}
	ok = true
	for _, p := range parts {
		if named := slices.Contains(names, p.name); !named && (p.guest || len(names) > 0) {
			continue
		}
		text, good, err := p.run(o, ctx)
		if err != nil {
			return false, fmt.Errorf("%s: %w", p.name, err)
		}
		ok = ok && good
		if !good || o.only.String() != "" {
			fmt.Print(text)
		} else if err := docsection.Update(o.page, p.name, text); err != nil {
			return false, err
		}
	}
	return ok, nil
}

// programs runs the programs of C under `rnic run`, and returns a table.
func (o options) programs(ctx context.Context) (text string, ok bool, err error) {
	return o.table(ctx, here{o.rnic}, rows(), "program of C, under `rnic run`")
}

// table runs rows at a place, and returns a table of what came of them.
func (o options) table(ctx context.Context, at place, all []row, title string) (text string, ok bool, err error) {
	var b strings.Builder
	b.WriteString("| " + title + " | Go is | result | seconds |\n|---|---|---|---|\n")
	ok = true
	ran := 0
	for _, r := range all {
		if !o.only.MatchString(r.command) {
			continue
		}
		begun := time.Now()
		printed, err := r.run(ctx, at)
		took := time.Since(begun)
		if ctx.Err() != nil {
			return "", false, ctx.Err()
		}
		result, role := verdict("ran, data compared", err), "client"
		if r.client {
			role = "server"
		}
		ran++
		flags := ""
		if r.flags != "" {
			flags = " (`" + r.flags + "`)"
		}
		fmt.Fprintf(os.Stderr, "%s%s, Go is the %s: %s, %.1f s\n", r.command, flags, role, result, took.Seconds())
		if err != nil {
			fmt.Fprintln(os.Stderr, printed)
			ok = false
		}
		fmt.Fprintf(&b, "| `%s`%s | %s | %s | %.1f |\n", r.command, flags, role, result, took.Seconds())
	}
	fmt.Fprintf(&b, "\n%d rows.\n", ran)
	return b.String(), ok, nil
}

// verdict is a row's cell: good, or what failed.
func verdict(good string, err error) string {
	if err != nil {
		return "FAIL: " + strings.ReplaceAll(err.Error(), "|", "\\|")
	}
	return good
}

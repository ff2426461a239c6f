//go:build linux

// Command nvme has Linux's own NVMe over Fabrics initiator, over siw in a QEMU guest, use the disk that `rnic nvme
// serve` exports from this machine, and the commands of `rnic nvme` a disk that Linux's own target exports there. It
// writes what came of each step into docs/nvme.md.
//
// It exits with 0 if every step went well, 1 if not, 2 on wrong usage. Run it with `make ulps-nvme`: Debian on amd64, as root.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/softrnic/softrnic/interop/internal/docsection"
	"github.com/softrnic/softrnic/interop/internal/siw"
)

// options are the flags.
type options struct {
	rnic, guest, doc string
}

func main() {
	var o options
	flag.StringVar(&o.rnic, "rnic", "bin/rnic", "the program to test")
	flag.StringVar(&o.guest, "guest", "interop/siw-guest", "the script that runs the guest")
	flag.StringVar(&o.doc, "doc", "docs/nvme.md", "page whose table is updated; empty for none")
	flag.Parse()
	if flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ok, err := o.run(ctx)
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "nvme:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

// run starts a guest and does each step in it. A failed step does not keep the next ones from being tried.
func (o options) run(ctx context.Context) (ok bool, err error) {
	for _, path := range []*string{&o.rnic, &o.guest} {
		if *path, err = filepath.Abs(*path); err != nil {
			return false, err
		}
	}
	dir, err := os.MkdirTemp("", "softrnic-nvme-")
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	fmt.Fprintln(os.Stderr, "nvme: starting the guest; its image takes a few minutes to make the first time")
	g, err := siw.Start(ctx, o.guest, "nvme", linuxPort, "--smp", "4")
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, g.Stop()) }()
	l := &lab{rnic: o.rnic, dir: dir, guest: g}
	defer l.end()

	var table strings.Builder
	table.WriteString("| step | result | seconds |\n|---|---|---|\n")
	ok = true
	for _, s := range steps {
		fmt.Fprintf(os.Stderr, "nvme: %s ... ", s.name)
		begun := time.Now()
		printed, failed := s.do(ctx, l)
		if err := ctx.Err(); err != nil {
			return false, err
		}
		took := time.Since(begun).Seconds()
		result := s.good
		if result == "" {
			result = strings.TrimSpace(printed)
		}
		if failed != nil {
			ok, result = false, "FAIL: "+failed.Error()
		}
		fmt.Fprintf(os.Stderr, "%s, %.1f s\n", result, took)
		if failed != nil {
			fmt.Fprintln(os.Stderr, "      | "+strings.ReplaceAll(strings.TrimSpace(printed), "\n", "\n      | "))
		}
		fmt.Fprintf(&table, "| %s | %s | %.1f |\n", s.name, strings.ReplaceAll(result, "|", `\|`), took)
	}
	release, err := g.Run(ctx, time.Minute, "uname -r; nproc")
	if err != nil {
		return false, fmt.Errorf("asking the guest for its kernel: %w", err)
	}
	kernel, processors, _ := strings.Cut(strings.TrimSpace(release), "\n")
	fmt.Fprintf(&table, "\nLinux %s in QEMU with %s CPUs; `rnic nvme` in one process outside.\n", kernel, processors)
	if o.doc == "" {
		return ok, nil
	}
	return ok, docsection.Update(o.doc, "linux", table.String())
}

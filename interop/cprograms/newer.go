//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// releases are those of Debian whose rdma-core is newer than the one that the other parts run: the same two libraries of
// ours, with another libc and another private ABI between libibverbs and its providers.
var releases = []struct{ suite, title string }{
	{"trixie", "Debian 13 (trixie)"},
	{"sid", "Debian's unstable (sid): the newest rdma-core that is packaged"},
}

// newerPackages are what a root folder gets, with what they depend on.
var newerPackages = []string{
	"ibverbs-providers", "ibverbs-utils", "rdmacm-utils", "perftest", "libfabric-bin", "rdma-core", "python3-pyverbs", "iproute2",
}

// noLinks stands for rdma(8) of iproute2 in the root folders, which asks the kernel: pyverbs does, and is told what one with the module
// ib_core says that has no device.
const noLinks = "#!/bin/sh\necho []\n"

// newerRows are the rows of the table that run on newer releases too.
func newerRows() []row {
	var some []row
	for _, r := range rows() {
		if r.newer {
			r.cannot = "" // what an old program cannot
			some = append(some, r)
		}
	}
	return some
}

// newer runs some rows in the root folder of each release.
func (o options) newer(ctx context.Context) (text string, ok bool, err error) {
	tests := o.only.MatchString("pyverbs iwarp test_qp")
	if !tests && !slices.ContainsFunc(newerRows(), func(r row) bool { return o.only.MatchString(r.name()) }) {
		return "", true, nil
	}
	ok = true
	for _, r := range releases {
		title, good, err := o.release(ctx, r.suite, r.title, tests)
		if err != nil {
			return "", false, fmt.Errorf("%s: %w", r.suite, err)
		}
		text += title
		ok = ok && good
	}
	return text, ok, nil
}

// release makes the root folder of a release, runs the rows and pyverbs' tests there and removes it.
func (o options) release(ctx context.Context, suite, title string, tests bool) (text string, ok bool, err error) {
	if os.Geteuid() != 0 {
		return "", false, errors.New("a root folder of another release can be made and entered by root only")
	}
	if o.root, err = os.MkdirTemp("", "cprograms-root-"); err != nil {
		return "", false, err
	}
	defer os.RemoveAll(o.root)
	fmt.Fprintf(os.Stderr, "%s: fetching its packages ... ", suite)
	// A mirror that is frozen, or late, offers what has run out; nothing of it is installed here.
	fill := exec.CommandContext(ctx, "mmdebstrap", "--quiet", "--variant=essential", `--aptopt=Acquire::Check-Valid-Until "false"`,
		"--include="+strings.Join(newerPackages, ","), suite, o.root)
	if out, err := fill.CombinedOutput(); err != nil {
		return "", false, fmt.Errorf("filling a root folder: %w: %s", err, tail(string(out), 3))
	}
	fmt.Fprintln(os.Stderr, "done")
	hosts, err := os.ReadFile("/etc/hosts") // libfabric looks for this host's name
	if err == nil {
		err = os.WriteFile(o.root+"/etc/hosts", hosts, 0o644)
	}
	if err != nil {
		return "", false, err
	}
	text, ok, err = o.table(ctx, newerRows(), false)
	text = "**" + title + "**\n\n" + text + "\n"
	if err != nil || !tests {
		return text, ok, err
	}
	for _, link := range []string{"/usr/bin/rdma", "/usr/sbin/rdma"} {
		_ = os.Remove(o.root + link)
	}
	if err := os.WriteFile(o.root+"/usr/bin/rdma", []byte(noLinks), 0o755); err != nil {
		return "", false, err
	}
	o.suite = suite
	passed, good, err := o.pyverbs(ctx)
	return text + "pyverbs' own tests there:\n\n" + passed + "\n", ok && good, err
}

// enter has commands of a space run in o.root: with its own devices and processes, and the folders of temporary files of
// outside, where the programs' folders and rnic are.
func (o options) enter(ctx context.Context, s *space) error {
	if o.root == "" {
		return nil
	}
	_, err := s.do(ctx, strings.NewReplacer("ROOT", o.root, "TEMP", os.TempDir()).Replace(
		`mount --rbind /dev ROOT/dev && mount -t proc proc ROOT/proc && mount --rbind /sys ROOT/sys
		mkdir -p ROOT/TEMP && mount --bind TEMP ROOT/TEMP`))
	return err
}

// inRoot is a shell's words there.
func (o options) inRoot(dir string, words []string) []string {
	if o.root == "" {
		return words
	}
	return append([]string{"chroot", o.root, "env", "-C", dir, "PATH=/usr/bin:/usr/sbin"}, words...)
}

// packageData is where dpkg keeps what it knows of the packages that run.
func (o options) packageData() string { return o.root + "/var/lib/dpkg" }

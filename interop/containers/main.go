//go:build linux

// Command containers runs RDMA programs of Debian in containers, in each way in which docs/containers.md gives them a
// device, and updates the page's table. It makes an image of its own, of Debian's packages, and keeps it, with podman's storage, in a
// folder of caches; no registry is asked, and no other container, image or network of podman's is touched.
//
// It exits with 0 if every row is as it should be, 1 if not, 2 on wrong usage. Run it with `make container-test`, on Debian, as root;
// interop/containers/packages installs what it needs.
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
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/softrnic/softrnic/interop/internal/docsection"
)

func main() {
	rnic := flag.String("rnic", "bin/rnic", "the program to test, its two libraries beside it")
	doc := flag.String("doc", "docs/containers.md", "page whose table is updated after a whole run; empty for none")
	here := flag.String("dir", "interop/containers", "where look.c is")
	compose := flag.String("compose", "packaging/compose.yaml", "the compose file to run")
	only := flag.String("run", "", "run only rows whose name matches this `regexp`, and update no page")
	flag.Parse()
	match, err := regexp.Compile(*only)
	if err != nil || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	text, ok, err := all(ctx, *rnic, *here, *compose, match)
	cancel()
	if err == nil && *doc != "" && *only == "" {
		err = docsection.Update(*doc, "rows", text)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "containers:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

// all runs the rows and returns their table, and whether each is as it should be.
func all(ctx context.Context, rnic, here, compose string, only *regexp.Regexp) (text string, ok bool, err error) {
	if os.Geteuid() != 0 {
		return "", false, errors.New("containers with networks of their own are made by root here")
	}
	l, err := newLab(ctx, rnic, here, compose)
	if err != nil {
		return "", false, err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	var table strings.Builder
	table.WriteString("| what | with | result | seconds |\n|---|---|---|---|\n")
	ok = true
	ran, failed, not := 0, 0, 0
	for i, r := range rows {
		if !only.MatchString(r.what + " " + r.with) {
			continue
		}
		fmt.Fprintf(os.Stderr, "%2d/%d %s, %s ... ", i+1, len(rows), r.what, r.with)
		begun := time.Now()
		result, err := l.row(ctx, r)
		took := time.Since(begun).Seconds()
		if err := ctx.Err(); err != nil {
			return "", false, err
		}
		switch {
		case errors.Is(err, errNotHere):
			not++
			result = "not run: " + strings.TrimPrefix(err.Error(), errNotHere.Error()+": ")
		case err != nil:
			ok = false
			failed++
			result = "FAIL: " + lastLine(err.Error())
			fmt.Fprintln(os.Stderr, err)
		default:
			ran++
		}
		fmt.Fprintf(os.Stderr, "%s, %.1f s\n", result, took)
		fmt.Fprintf(&table, "| %s | %s | %s | %.1f |\n", cell(r.what), cell(r.with), cell(result), took)
	}
	versions, err := l.versions(ctx)
	if err != nil {
		return "", false, err
	}
	fmt.Fprintf(&table, "\n%d rows: %d ran, %d not run, %d failed. %s.\n", ran+not+failed, ran, not, failed, versions)
	return table.String(), ok, nil
}

// rowTime bounds a row.
const rowTime = 90 * time.Second

func (l *lab) row(ctx context.Context, r row) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, rowTime)
	defer cancel()
	result, err := r.run(ctx, l)
	return result, errors.Join(err, l.remove(context.WithoutCancel(ctx)))
}

// versions says what was run on what.
func (l *lab) versions(ctx context.Context) (string, error) {
	kernel, err := exec.CommandContext(ctx, "uname", "-r").Output()
	if err != nil {
		return "", err
	}
	list, err := exec.CommandContext(ctx, "dpkg-query", "-W", "-f", "${Package} ${Version}, ", "podman", "runc", "bubblewrap").Output()
	if err != nil {
		return "", err
	}
	inside, err := l.podman(ctx, "run", "--rm", l.image, "dpkg-query", "-W", "-f", "${Package} ${Version}, ", "libibverbs1", "perftest", "libc6")
	return fmt.Sprintf("Linux %s on %s; %sand in the image %s", strings.TrimSpace(string(kernel)), runtime.GOARCH, list, strings.TrimSuffix(inside, ", ")), err
}

// cell fits text into a cell of a table.
func cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// cacheFolder is where the image and podman's storage stay.
func cacheFolder() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "softrnic", "containers")
	return dir, os.MkdirAll(dir, 0o755)
}

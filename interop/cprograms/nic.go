//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// condition is something that `rnic nic` makes of a NIC, and what three programs see of it, in lines.
type condition struct {
	name          string // of programs/sees.c
	shown         string // in the table
	c, goes, ucxs string
}

// nicPlans are the fault plans of the conditions that have their names.
var nicPlans = map[string]string{
	"plan.verb": "verb reg_mr 1: errno ENOMEM\ncompletion 3: status RETRY_EXC_ERR\n",
	"plan.post": "post 3: fail\n",
}

// The degradation of the conditions. It is one that is seen on a busy machine.
const (
	nicSlow  = "10g 200ms"
	nicDelay = 200 * time.Millisecond
)

// conditionTime bounds one program in one condition.
const conditionTime = 60 * time.Second

// viewer is a program that sees conditions.
type viewer struct {
	name string
	want func(condition) string
	see  func(ctx context.Context, dir, condition string) (string, error)
}

// nics has the programs see each condition, for the table of docs/nic.md.
func (o options) nics(ctx context.Context) (text string, ok bool, err error) {
	dir, err := o.folder()
	if err != nil {
		return "", false, err
	}
	defer os.RemoveAll(dir)
	undo, err := ownRuntime(dir)
	if err != nil {
		return "", false, err
	}
	defer undo()
	build := exec.CommandContext(ctx, "gcc", "-O1", "-Wall", "-Wextra", "-Werror", "-o", filepath.Join(dir, "sees"), filepath.Join(o.here, "programs", "sees.c"), "-libverbs")
	if out, err := build.CombinedOutput(); err != nil {
		return "", false, fmt.Errorf("sees.c: %w\n%s", err, out)
	}
	for name, plan := range nicPlans {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(plan), 0o600); err != nil {
			return "", false, err
		}
	}
	viewers := []viewer{
		{"a C program", func(c condition) string { return c.c }, o.cSees},
		{"a Go program", func(c condition) string { return c.goes }, o.goSees},
		{"`ucx_perftest -e`", func(c condition) string { return c.ucxs }, o.ucxSees},
	}
	var b strings.Builder
	head := "| condition |"
	for _, v := range viewers {
		head += " " + v.name + " |"
	}
	fmt.Fprintf(&b, "%s\n|%s\n", head, strings.Repeat("---|", len(viewers)+1))
	ok = true
	for _, c := range conditions() {
		if !o.only.MatchString(c.name) {
			continue
		}
		fmt.Fprintf(&b, "| %s |", c.shown)
		for _, v := range viewers {
			begun := time.Now()
			saw, err := bounded(ctx, conditionTime, func(ctx context.Context) (string, error) { return v.see(ctx, dir, c.name) })
			if err := ctx.Err(); err != nil {
				return "", false, err
			}
			want := v.want(c)
			good := err == nil && saw == want
			fmt.Fprintf(os.Stderr, "nic %s, %s ... %s, %.1f s\n", c.name, v.name, map[bool]string{true: "as it should", false: "FAIL"}[good], time.Since(begun).Seconds())
			if !good {
				ok = false
				fmt.Fprintf(os.Stderr, "%v; it saw\n%s\nwant\n%s\n", orGood(err), indent(saw), indent(want))
			}
			fmt.Fprintf(&b, " %s |", strings.ReplaceAll(cell(strings.ReplaceAll(want, "\n", "<br>")), "<br> ", "<br>"))
		}
		b.WriteString("\n")
	}
	with, err := o.versions(ctx)
	if err != nil {
		return "", false, err
	}
	fmt.Fprintf(&b, "\n%s.\n", with)
	return b.String(), ok, nil
}

// bounded calls f with a time limit.
func bounded(ctx context.Context, limit time.Duration, f func(context.Context) (string, error)) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errTime)
	defer cancel()
	return f(ctx)
}

// ownRuntime has programs, and this one, offer their NICs in a folder below dir, where nobody else's are.
func ownRuntime(dir string) (undo func(), err error) {
	const name = "XDG_RUNTIME_DIR"
	was, had := os.LookupEnv(name)
	run := filepath.Join(dir, "run")
	if err := errors.Join(os.Mkdir(run, 0o700), os.Setenv(name, run)); err != nil {
		return nil, err
	}
	return func() {
		if had {
			_ = os.Setenv(name, was)
		} else {
			_ = os.Unsetenv(name)
		}
	}, nil
}

// cSees runs programs/sees.c, which has `rnic nic` break its own NIC.
func (o options) cSees(ctx context.Context, dir, condition string) (string, error) {
	p, err := begin(exec.CommandContext(ctx, o.rnic, "run", "--stats", "--as", "roce", "--", "./sees", o.rnic, condition), dir)
	if err != nil {
		return "", err
	}
	err = p.wait(ctx)
	const end = "\nsees: ok\n"
	saw, whole := strings.CutSuffix(p.says.String(), end)
	if err == nil && !whole {
		err = errors.New("it does not say that it is done")
	}
	if err != nil {
		err = fmt.Errorf("%w%s", err, p.said())
	}
	return saw, errors.Join(err, o.residue(dir))
}

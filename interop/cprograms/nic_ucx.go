//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ucxPair is a pair of ucx_perftest with error handling in a space of its own. The client's NIC is broken.
type ucxPair struct {
	rnic   string
	space  *space
	dir    string
	client *program
	pid    string // of the client, as its space has it
}

// ucxSees has `rnic nic` break the NIC of a client of UCX.
func (o options) ucxSees(ctx context.Context, dir, condition string) (saw string, err error) {
	s, err := newSpace()
	if err != nil {
		return "", err
	}
	defer s.end()
	timeout := "20s" // for each of its tries
	if condition == "longer" {
		timeout = "250ms"
	}
	words := func(script string, more ...string) []string {
		return append([]string{
			o.rnic, "run", "--stats", "--as", "roce", "--", "sh", "-c", script, "sh", "env", "UCX_TLS=rc_v,ud_v", "UCX_RC_TIMEOUT=" + timeout,
			"UCX_RC_RETRY_COUNT=3", "ucx_perftest", "-e", "-t", "tag_bw", "-s", "4096", "-n", "1000000000", "-p", strconv.Itoa(portUCX),
		}, more...)
	}
	server, err := s.start(ctx, dir, words(`exec "$@"`))
	if err != nil {
		return "", err
	}
	defer func() { <-server.done }() // the space's end ends it
	defer s.end()
	if err := server.ready(ctx, s, portUCX); err != nil {
		return server.out.String(), err
	}
	u := &ucxPair{rnic: o.rnic, space: s, dir: dir}
	if u.client, err = s.start(ctx, dir, words(`echo $$ >client.pid && exec "$@"`, "127.0.0.1")); err != nil {
		return "", err
	}
	defer func() { <-u.client.done }()
	defer s.end()
	if err := u.await(ctx, func() bool { return len(u.rates()) > 0 }); err != nil {
		return u.client.out.String(), err
	}
	pid, err := os.ReadFile(filepath.Join(dir, "client.pid"))
	if err != nil {
		return "", err
	}
	u.pid = strings.TrimSpace(string(pid))
	lines, err := u.in(ctx, condition)
	if err != nil {
		err = fmt.Errorf("%w; it printed\n%s", err, tail(u.client.out.String(), 24))
	}
	return strings.Join(lines, "\n"), err
}

// await waits for what the client prints.
func (u *ucxPair) await(ctx context.Context, seen func() bool) error {
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for !seen() {
		select {
		case <-u.client.done:
			if seen() {
				return nil
			}
			return fmt.Errorf("it ended: %w", orGood(u.client.err))
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-look.C:
		}
	}
	return nil
}

// tell has `rnic nic` do that to the client.
func (u *ucxPair) tell(ctx context.Context, command string, args ...string) error {
	out, err := u.space.command(ctx, u.dir, append([]string{u.rnic, "nic", command, u.pid}, args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("rnic nic %s: %w: %s", command, err, out)
	}
	return nil
}

var rateLine = regexp.MustCompile(`(?m)^\[thread 0\](?: +[0-9.]+){6} +([0-9]+) +[0-9]+$`)

// rates are the messages of each second that the client has told.
func (u *ucxPair) rates() (all []int) {
	for _, m := range rateLine.FindAllStringSubmatch(u.client.out.String(), -1) {
		n, _ := strconv.Atoi(m[1]) // digits
		all = append(all, n)
	}
	return all
}

// goesOn waits for three more lines, of which the first is of before, in part, and returns what is told besides.
func (u *ucxPair) goesOn(ctx context.Context) ([]string, error) {
	n := len(u.rates())
	err := u.await(ctx, func() bool { return len(u.rates()) >= n+3 })
	return append(u.told(), "messages go on"), err
}

// What UCX tells of its NIC.
var ucxTells = regexp.MustCompile(`IB Async event on softrnic0: .*|error handler called with status .*|Fatal: `)

func (u *ucxPair) told() (lines []string) {
	for _, line := range ucxTells.FindAllString(u.client.out.String(), -1) {
		lines = append(lines, strings.TrimPrefix(line, "IB "))
	}
	return lines
}

// aborts waits for UCX to give up. Whether a post or a poll finds out first, and whether the event is told, differs; and so does whether the
// command, whose process ends, is answered.
func (u *ucxPair) aborts(ctx context.Context, command string, args ...string) ([]string, error) {
	told := u.tell(ctx, command, args...)
	select {
	case <-u.client.done:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	exit := new(exec.ExitError)
	if !errors.As(u.client.err, &exit) || exit.ExitCode() != 128+int(syscall.SIGABRT) {
		return nil, errors.Join(fmt.Errorf("it ends otherwise: %w", orGood(u.client.err)), told)
	}
	for _, line := range u.told() {
		if line == "Fatal: " {
			return []string{"a post or a poll fails, which is `Fatal` to it: it aborts"}, nil
		}
	}
	return nil, errors.New("it says no reason")
}

// in sees a condition.
func (u *ucxPair) in(ctx context.Context, condition string) ([]string, error) {
	switch condition {
	case "down":
		if err := u.tell(ctx, "down"); err != nil {
			return nil, err
		}
		if err := pause(ctx, 300*time.Millisecond); err != nil {
			return nil, err
		}
		if err := u.tell(ctx, "up"); err != nil {
			return nil, err
		}
		return u.goesOn(ctx)
	case "longer":
		if err := u.tell(ctx, "down"); err != nil {
			return nil, err
		}
		return u.fails(ctx)
	case "degrade":
		return u.degraded(ctx)
	case "fatal", "unplug":
		return u.aborts(ctx, condition)
	case "plan.post":
		return u.aborts(ctx, "plan", filepath.Join(u.dir, condition))
	case "plan.verb":
		if err := u.tell(ctx, "plan", filepath.Join(u.dir, condition)); err != nil {
			return nil, err
		}
		return u.fails(ctx)
	case "quiet":
		for _, words := range [][]string{{"down"}, {"degrade", "10g", "5s"}, {"move-gid"}, {"plan", filepath.Join(u.dir, "plan.verb")}, {"quiet"}} {
			if err := u.tell(ctx, words[0], words[1:]...); err != nil {
				return nil, err
			}
		}
		return u.goesOn(ctx)
	}
	if err := u.tell(ctx, condition); err != nil {
		return nil, err
	}
	return u.goesOn(ctx)
}

// fails waits for the first that UCX tells. What it does then tells nothing: its messages fail at once, and count.
func (u *ucxPair) fails(ctx context.Context) ([]string, error) {
	err := u.await(ctx, func() bool { return len(u.told()) > 0 })
	return u.told(), err
}

func (u *ucxPair) degraded(ctx context.Context) ([]string, error) {
	if err := u.tell(ctx, "degrade", strings.Fields(nicSlow)...); err != nil {
		return nil, err
	}
	n := len(u.rates())
	lines, err := u.goesOn(ctx)
	if all := u.rates(); err == nil && all[len(all)-1] < all[n-1]/2 {
		lines = append(lines, "and are slower")
	}
	return lines, err
}

// pause waits.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Package siw runs QEMU guests whose Linux has Soft-iWARP: see interop/siw-guest.
package siw

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Addresses of QEMU's user networking: the guest's own, and the one by which it reaches 127.0.0.1 of this machine.
const (
	GuestAddr = "10.0.2.15"
	HostAddr  = "10.0.2.2"
)

// Guest is a running guest.
type Guest struct {
	Script string // path of siw-guest
	Name   string
	Port   int // on 127.0.0.1 of this machine; leads to the forwarded port of the guest; 0: there is none
}

// Start boots a guest that is named after its kind and this process, with options of siw-guest. A port of the guest that
// is not 0 is forwarded.
func Start(ctx context.Context, script, kind string, port int, options ...string) (*Guest, error) {
	g := &Guest{Script: script, Name: fmt.Sprintf("%s-%d", kind, os.Getpid())}
	args := append([]string{"start", "-n", g.Name}, options...)
	if port != 0 {
		args = append(args, "-f", fmt.Sprintf("0:%d", port))
	}
	cmd := exec.CommandContext(ctx, g.Script, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("starting guest %s: %w", g.Name, err)
	}
	if port == 0 {
		return g, nil
	}
	for line := range strings.Lines(string(out)) {
		if ports, ok := strings.CutPrefix(strings.TrimSpace(line), "fwd "); ok {
			host, _, _ := strings.Cut(ports, ":")
			g.Port, err = strconv.Atoi(host)
		}
	}
	if err != nil || g.Port == 0 {
		return nil, errors.Join(fmt.Errorf("siw-guest printed %q, and no forwarded port", out), err, g.Stop())
	}
	return g, nil
}

// Stop powers the guest off. It takes no context: it has to happen after a cancelled one too.
func (g *Guest) Stop() error {
	if err := exec.Command(g.Script, "stop", "-n", g.Name).Run(); err != nil {
		return fmt.Errorf("stopping guest %s: %w", g.Name, err)
	}
	return nil
}

// Command prepares a shell script to run in the guest, for at most limit.
func (g *Guest) Command(ctx context.Context, limit time.Duration, script string) *exec.Cmd {
	return exec.CommandContext(ctx, g.Script, "exec", "-n", g.Name,
		"-t", strconv.Itoa(int(limit.Seconds())), "--", script)
}

// Beside prepares a command of this machine to run on the network of a guest that was started with --tap.
func (g *Guest) Beside(ctx context.Context, command ...string) *exec.Cmd {
	return exec.CommandContext(ctx, g.Script, append([]string{"nsexec", "-n", g.Name, "--"}, command...)...)
}

// Run runs a shell script in the guest and returns what it printed, without the space around. A status that is not 0 is an
// error, which ends with the script's last line.
func (g *Guest) Run(ctx context.Context, limit time.Duration, script string) (printed string, err error) {
	out, err := g.Command(ctx, limit, script).CombinedOutput()
	printed = strings.TrimSpace(string(out))
	if err != nil {
		err = fmt.Errorf("in the guest: %w: %s", err, printed[strings.LastIndexByte(printed, '\n')+1:])
	}
	return printed, err
}

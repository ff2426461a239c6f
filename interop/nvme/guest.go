//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// hostAddr is 127.0.0.1 of this machine, in the guest.
const hostAddr = "10.0.2.2"

// guest is a running QEMU guest: see interop/siw-guest.
type guest struct{ script, name string }

func startGuest(ctx context.Context, script string) (*guest, error) {
	g := &guest{script, fmt.Sprintf("nvme-%d", os.Getpid())}
	cmd := exec.CommandContext(ctx, script, "start", "-n", g.name, "--smp", "4")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("starting guest %s: %w", g.name, err)
	}
	return g, nil
}

// stop powers the guest off. It takes no context: it has to happen after a cancelled one too.
func (g *guest) stop() error {
	if err := exec.Command(g.script, "stop", "-n", g.name).Run(); err != nil {
		return fmt.Errorf("stopping guest %s: %w", g.name, err)
	}
	return nil
}

// exec runs a shell script in the guest and returns what it printed. A status that is not 0 is an error,
// which ends with the script's last line.
func (g *guest) exec(ctx context.Context, limit time.Duration, script string) (printed string, err error) {
	cmd := exec.CommandContext(ctx, g.script, "exec", "-n", g.name, "-t", strconv.Itoa(int(limit.Seconds())), "--", script)
	out, err := cmd.CombinedOutput()
	printed = string(out)
	if err != nil {
		lines := strings.Split(strings.TrimSpace(printed), "\n")
		err = fmt.Errorf("%w: %s", err, lines[len(lines)-1])
	}
	return printed, err
}

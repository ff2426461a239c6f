package perf

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
)

// The link between the two namespaces: its name in both, and its addresses, which
// are seen nowhere else.
const (
	mtuLink          = "rnic0"
	mtuClientAddress = "10.77.0.1"
	mtuServerAddress = "10.77.0.2"
)

// startInNamespace is cli.StartProcess with a network namespace for the process alone.
func startInNamespace(ctx context.Context, role string, args ...string) (*cli.Process, error) {
	if _, err := exec.LookPath("ip"); err != nil {
		return nil, fmt.Errorf("%w; this needs the package iproute2", err)
	}
	c, err := cli.StartProcess(ctx, role, &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}, args...)
	if errors.Is(err, syscall.EPERM) {
		return nil, fmt.Errorf("making a network namespace takes root: try it with sudo (%w)", err)
	}
	return c, err
}

// joinNamespaces puts the ends of a link into the namespaces of two processes.
func joinNamespaces(ctx context.Context, a, b int) error {
	return ip(ctx, "link", "add", "name", mtuLink, "netns", strconv.Itoa(a),
		"type", "veth", "peer", "name", mtuLink, "netns", strconv.Itoa(b))
}

// setUpLink makes this process's end of the link usable.
func setUpLink(ctx context.Context, address string, mtu int) error {
	if err := ip(ctx, "address", "add", address+"/24", "dev", mtuLink); err != nil {
		return err
	}
	return ip(ctx, "link", "set", "dev", mtuLink, "mtu", strconv.Itoa(mtu), "up")
}

// ip runs iproute2's program.
func ip(ctx context.Context, args ...string) error {
	out, err := exec.CommandContext(ctx, "ip", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

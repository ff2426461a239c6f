package nvme

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/ulp/nvmeof"
)

// port is what NVMe over RDMA has by default.
const port = 4420

// host holds the flags of the commands that connect to a target.
type host struct {
	nqn       string
	asked     string // the discovery service; empty: none
	namespace int
	timeout   time.Duration
	json      bool
	config    nvmeof.HostConfig
	lab       cli.Lab
}

// addTo adds the flags to cmd.
func (h *host) addTo(cmd *cobra.Command) {
	h.config.Queues, h.config.Depth = 1, 32
	h.timeout, h.namespace = 30*time.Second, 1
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&h.nqn, "nqn", "", "`name` of the subsystem, at ADDR (default: what discovery at ADDR tells)")
	f.StringVar(&h.config.HostNQN, "host-nqn", "", "`name` of this host, for targets that allow some only (default: random)")
	f.Var(cli.IntRange(&h.config.Queues, 1, 1024), "queues", "I/O `queues`, a connection each, to ask for")
	f.Var(cli.IntRange(&h.config.Depth, 1, 1023), "depth", "`commands` outstanding on an I/O queue at most")
	f.Var(cli.DurationRange(&h.timeout, time.Millisecond, time.Hour), "timeout", "`time` for connecting, and for each command")
	f.BoolVar(&h.json, "json", false, "print JSON")
}

// addDisk adds the flags of commands that use one disk.
func (h *host) addDisk(cmd *cobra.Command) {
	disk := cli.IntRange(&h.namespace, 1, math.MaxInt32)
	cmd.Flags().Var(disk, "namespace", "`number` of the disk in its subsystem: see rnic nvme ls")
}

// open prepares the RNIC; finish ends what the lab's flags have begun.
func (h *host) open(log *slog.Logger) (finish func(error) error, err error) {
	h.config.ConnectTimeout, h.config.CommandTimeout = h.timeout, h.timeout
	h.config.RNIC, finish, err = h.lab.RNIC(log)
	return finish, err
}

// find is the subsystem at addr that the flags name, or the one that discovery tells.
func (h *host) find(ctx context.Context, addr string) (at, nqn string, err error) {
	addr = cli.WithPort(addr, port)
	if h.nqn != "" {
		return addr, h.nqn, nil
	}
	found, err := h.discover(ctx, addr)
	if err != nil {
		return "", "", err
	}
	var names []string
	for _, e := range found {
		names = append(names, cli.Printable(e.NQN))
	}
	switch len(found) {
	case 0:
		return "", "", fmt.Errorf("%s has no subsystem for RDMA", addr)
	case 1:
		return found[0].Address, found[0].NQN, nil
	}
	return "", "", cli.Usagef("%s has %d subsystems: give --nqn, one of %s", addr, len(found), strings.Join(names, ", "))
}

// discover are the subsystems that the target at addr tells, and which RDMA reaches.
func (h *host) discover(ctx context.Context, addr string) (found []nvmeof.DiscoveryEntry, err error) {
	h.asked = addr
	all, err := nvmeof.Discover(ctx, addr, h.config)
	for _, e := range all {
		if e.Transport == "rdma" && !e.Discovery {
			found = append(found, e)
		}
	}
	return found, err
}

// dial connects, has use do its work, and closes. An interrupt ends that.
func (h *host) dial(ctx context.Context, at, nqn string, use func(*nvmeof.Host) error) error {
	to, err := nvmeof.Dial(ctx, at, nqn, h.config)
	if err != nil && h.asked != "" && h.asked != at { // an address of its own network, maybe
		err = fmt.Errorf("%w; discovery at %s gave that address: --nqn connects to %s itself", err, h.asked, h.asked)
	}
	if err != nil {
		return cli.Instead(ctx, err)
	}
	interrupted := context.AfterFunc(ctx, func() { _ = to.Close() })
	err = use(to)
	interrupted()
	return cli.Instead(ctx, errors.Join(err, to.Close()))
}

// disk is dial for one namespace of one subsystem.
func (h *host) disk(ctx context.Context, addr string, use func(*nvmeof.Namespace) error) error {
	at, nqn, err := h.find(ctx, addr)
	if err != nil {
		return err
	}
	return h.dial(ctx, at, nqn, func(to *nvmeof.Host) error {
		n, err := to.Namespace(ctx, uint32(h.namespace))
		if err != nil {
			return err
		}
		return use(n)
	})
}

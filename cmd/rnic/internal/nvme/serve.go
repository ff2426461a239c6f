package nvme

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/ulp/nvmeof"
)

// serve holds the flags.
type serve struct {
	listen, nqn string
	config      nvmeof.Config
	lab         cli.Lab
}

func serveCommand() *cobra.Command {
	s := serve{config: nvmeof.Config{Queues: 16, Depth: 128, InlineData: 4096}}
	cmd := &cobra.Command{
		Use:   "serve DISK...",
		Short: "Export files, and memory, to hosts such as Linux's nvme connect",
		Long: `serve is an NVMe over Fabrics target. Each DISK is a namespace, 1, 2 and so on, of one
subsystem: a file of the size that it has, or mem:MiB for a disk in memory. Any host
that can connect may read and write them.

What a host has flushed, or written with FUA, is in the file. It goes on until it is stopped.`,
		Example: "  truncate -s 1G disk.img\n  rnic nvme serve --listen 0.0.0.0:4420 disk.img\n  nvme connect -t rdma -a ADDR -s 4420 -n nqn.2026-01.org.softrnic:disks",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Usagef("DISK is missing: give a disk image, or mem:64")
			}
			return nil
		},
		RunE: s.run,
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&s.listen, "listen", "127.0.0.1:4420", "`address` to listen on; port 0 for any")
	f.StringVar(&s.nqn, "nqn", "nqn.2026-01.org.softrnic:disks", "`name` of the subsystem")
	f.StringVar(&s.config.Advertise, "advertise", "", "`address` that discovery tells (default: the one that the host came to)")
	f.Var(cli.IntRange(&s.config.Queues, 1, 1024), "queues", "I/O `queues` of a host at most")
	f.Var(cli.IntRange(&s.config.Depth, 2, 1024), "depth", "`commands` outstanding on an I/O queue at most")
	f.Var(cli.IntRange(&s.config.SharedReceives, 0, 1<<16), "shared", "`receives` that all queues share; 0 gives each its own")
	f.BoolVar(&s.config.NoInvalidate, "no-invalidate", false, "answer with plain Sends, never with Send with Invalidate")
	s.lab.AddTo(f)
	return cmd
}

func (s *serve) run(cmd *cobra.Command, args []string) (err error) {
	if a := s.config.Advertise; a != "" {
		if _, port, err := net.SplitHostPort(a); err != nil || port == "" {
			return cli.Usagef("--advertise %q: want an address and a port, such as 192.0.2.1:4420", a)
		}
	}
	var disks []nvmeof.Disk
	defer func() {
		for _, d := range disks {
			err = errors.Join(err, d.Sync(), d.Close())
		}
	}()
	for _, arg := range args {
		d, err := open(arg)
		if err != nil {
			return err
		}
		disks = append(disks, d)
	}
	subsystem, err := nvmeof.NewSubsystem(s.nqn, disks)
	if err != nil {
		return cli.WithStatus(2, err)
	}
	log := cli.Logger(cmd)
	rnic, finish, err := s.lab.RNIC(log)
	if err != nil {
		return err
	}
	s.config.RNIC = rnic
	s.config.Logger = log
	target, err := nvmeof.New(s.config, subsystem)
	if err != nil {
		return finish(err)
	}
	l, err := cm.Listen(s.listen, cm.ListenConfig{Logger: log})
	if err == nil {
		log.Info(fmt.Sprintf("listening on %v", l.Addr()))
		s.tell(log, l.Addr().String())
		err = target.Serve(cmd.Context(), l)
	}
	return finish(errors.Join(err, target.Close()))
}

// tell prints what a Linux host connects with, a line for each address that may be its way here.
func (s *serve) tell(log *slog.Logger, at string) {
	if s.config.Advertise != "" {
		at = s.config.Advertise
	}
	host, port, err := net.SplitHostPort(at)
	if err != nil {
		return
	}
	hosts := []string{host}
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsUnspecified() {
		hosts = reachable(ip)
	}
	for _, host := range hosts {
		log.Info(fmt.Sprintf("a Linux host connects with: nvme connect -t rdma -a %s -s %s -n %s", host, port, s.nqn))
	}
}

// reachable are this machine's addresses that others may reach, or the loopback if there is none: of IPv4 where that is
// what is listened on.
func reachable(unspecified netip.Addr) (hosts []string) {
	all, _ := net.InterfaceAddrs()
	for _, a := range all {
		p, err := netip.ParsePrefix(a.String())
		if err == nil && p.Addr().IsGlobalUnicast() && (p.Addr().Is4() || unspecified.Is6()) {
			hosts = append(hosts, p.Addr().String())
		}
	}
	if len(hosts) == 0 {
		hosts = []string{"127.0.0.1"}
	}
	return hosts
}

// open makes the disk that an argument names.
func open(arg string) (nvmeof.Disk, error) {
	size, ok := strings.CutPrefix(arg, "mem:")
	if !ok {
		return nvmeof.OpenFile(arg)
	}
	mib, err := strconv.Atoi(size)
	if err != nil || mib < 1 || mib > 1<<20 {
		return nil, cli.Usagef("DISK %q: want mem: and 1 to %d MiB, such as mem:64", arg, 1<<20)
	}
	return nvmeof.Memory(int64(mib) << 20), nil
}

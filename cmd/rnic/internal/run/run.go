// Package run is `rnic run`: it starts a C program with libraries that make it find an RDMA device where there is none.
package run

import (
	"fmt"
	"net/netip"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/rdmacore"
)

// flags are those of the command.
type flags struct {
	addr    netip.Addr // invalid: choose
	as      string     // iwarp or roce
	devices cli.Devices
	crc     bool
	strace  string // a file; "": none
	lab     cli.Lab
	stats   cli.Stats
}

// Command makes `rnic run`.
func Command() *cobra.Command {
	f := flags{as: "iwarp", crc: true}
	var addr string
	var checkHost bool
	cmd := &cobra.Command{
		Use:   "run [flags] -- COMMAND [ARG...]",
		Short: "Run a C program that uses libibverbs or librdmacm over this RNIC",
		Long: `Run a program that was written for rdma-core (libibverbs, librdmacm), unchanged, over this RNIC: it finds a
device softrnic0 that has one of this host's addresses. No kernel module, no hardware and no privilege is
needed; rdma-core is as packaged. --device names other devices, as many as you like (rnic info --devices shows them). The peer may be another such program, rnic ping, Linux siw or an adapter.

The exit status is the program's; 126 and 127 are as a shell's.`,
		Example: `  rnic run --check
  rnic run -- ibv_devinfo -v
  rnic run -- ib_write_bw -R &
  rnic run -- ib_write_bw -R 127.0.0.1
  rnic run --device mlx5_0=eth0,numa=0 --device mlx5_1=eth1,numa=1 -- ibv_devinfo`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case checkHost && len(args) > 0:
				return cli.Usagef("--check runs no COMMAND")
			case !checkHost && len(args) == 0:
				return cli.Usagef("COMMAND is missing")
			case f.as != "iwarp" && f.as != "roce":
				return cli.Usagef("--as %s: want iwarp or roce", f.as)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if addr != "" {
				var err error
				if f.addr, err = netip.ParseAddr(cli.BareHost(addr)); err != nil || f.addr.Zone() != "" {
					return cli.Usagef("--addr %s: want an address such as 192.0.2.1 or 2001:db8::1", addr)
				}
				f.addr = f.addr.Unmap()
			}
			if err := f.devices.Read(f.as == "roce"); err != nil {
				return err
			}
			if addr != "" && len(f.devices.List) > 0 {
				return cli.Usagef("--addr is of softrnic0; give each --device its own: --device NAME=%s", addr)
			}
			if checkHost {
				return check(cmd.OutOrStdout(), f.addr)
			}
			return execute(cmd, f, args)
		},
	}
	fs := cmd.Flags()
	fs.SetInterspersed(false) // the flags behind COMMAND are its own
	fs.StringVar(&addr, "addr", "", "the device's address, one of this host; default: the first global one, else loopback")
	f.devices.AddTo(fs)
	fs.StringVar(&f.as, "as", f.as, "what the device says it is: iwarp, or roce for programs that want InfiniBand's ways")
	fs.Var(cli.OnOff(&f.crc), "crc", "ask for CRCs: on or off")
	fs.StringVar(&f.strace, "strace", "", "write each command of the program to this `FILE`, decoded, with its result")
	f.lab.AddTo(fs)
	f.stats.AddTo(fs)
	fs.BoolVar(&checkHost, "check", false, "tell what works on this host, and what would install the rest")
	return cmd
}

// settings are those of the engine in the program.
func (f flags) settings(libs libraries) rdmacore.Settings {
	return rdmacore.Settings{
		Engine: libs.engine, Addr: f.addr, RoCE: f.as == "roce", Devices: f.devices.List, CRC: f.crc, Strace: f.strace, Faults: f.lab.Faults,
		Pcap: f.lab.Pcap, PcapPayload: f.lab.Payload, Trace: f.lab.Trace, Stats: f.stats.On(),
	}
}

// envTree leads libibverbs to the device's files.
const envTree = "SYSFS_PATH"

// environment are the additional variables of the program: name, value. tree is the folder of sysfs files, preload what
// LD_PRELOAD is to be.
func environment(s rdmacore.Settings, tree, preload string) [][2]string {
	return append(s.Environment(), [2]string{"LD_PRELOAD", preload}, [2]string{envTree, tree})
}

// failed is the error of a step before the program runs.
func failed(status int, format string, args ...any) error {
	return cli.WithStatus(status, fmt.Errorf(format, args...))
}

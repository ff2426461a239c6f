// Package vi is `rnic vi`: two programs of the VI Provider Library.
package vi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/internal/vitcp"
	"github.com/softrnic/softrnic/vipl"
)

// maxViSize is the longest message of `rnic vi ping`, in octets.
const maxViSize = 16 << 20

// viPing holds the flags of `rnic vi ping`.
type viPing struct {
	server  bool
	client  bool
	count   int
	sizes   []uint64
	levels  []vipl.ReliabilityLevel
	crcs    []bool
	timeout time.Duration
	json    bool
	called  string // the server's discriminator
}

// Command makes `rnic vi`.
func Command() *cobra.Command {
	return cli.Group("vi", "Try the VI Architecture over TCP", newViPingCommand())
}

func newViPingCommand() *cobra.Command {
	p := viPing{
		count:   100,
		sizes:   []uint64{64, 4 << 10, 1 << 20},
		levels:  slices.Clone(allViLevels),
		crcs:    []bool{false, true},
		timeout: 10 * time.Second,
		called:  viService,
	}
	cmd := &cobra.Command{
		Use:   "ping {-s | -c} [ADDR]",
		Short: "Echo data between two programs of the VI Provider Library",
		Long: fmt.Sprintf(`Echo data between two processes that use the VI Provider Library over VI/TCP, at
each reliability level, with and without CRC: by Send, by RDMA Write with
immediate data, and by RDMA Read, which Unreliable Delivery does not have. In
each round both ends compare every octet with what it should be. The table has
the median round trip of each series; for an RDMA Read it is that of the Read, which
fetches what an RDMA Write has brought just before. Both ends tell of the CRC what
they agreed on: a connection has it if both ask for it.

ADDR is HOST, HOST:PORT or :PORT. The port is %d if there is none; a server may
say 0 for any. The server listens on all addresses unless told otherwise, serves
one client and ends. A client without ADDR looks for it on this machine.

Several servers, and other VI programs of this user, can have one port: each is
called by its discriminator.`, vitcp.DefaultPort),
		Example: "  rnic vi ping -s &\n  rnic vi ping -c 127.0.0.1\n  rnic vi ping -s --discriminator blue &\n" +
			"  rnic vi ping -c localhost --discriminator blue",
		Args: cli.AtMostArgs(1),
		RunE: p.run,
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVarP(&p.server, "server", "s", false, "be the server")
	f.BoolVarP(&p.client, "client", "c", false, "be the client")
	f.VarP(cli.IntRange(&p.count, 1, maxViCount), "count", "C", "client: `rounds` of each series")
	f.VarP(cli.SizeList(&p.sizes, 1, maxViSize), "size", "S", "client: octets in a message")
	f.Var(cli.List(&p.levels, viLevel), "level", "client: reliability levels")
	f.Var(viCRC(&p.crcs), "crc", "client: a CRC on each segment: `on|off|both`")
	f.StringVar(&p.called, "discriminator", p.called, "`name` of the server at its host, of 64 octets at most")
	f.Var(cli.DurationRange(&p.timeout, time.Millisecond, time.Hour), "timeout",
		"`time` that connecting may take; for a client also a round")
	f.BoolVar(&p.json, "json", false, "print JSON")
	return cmd
}

// viClientFlags are of use to a client only: the server does what its client asks for.
var viClientFlags = []string{"count", "size", "level", "crc"}

func (p *viPing) run(cmd *cobra.Command, args []string) error {
	if p.server == p.client {
		return cli.Usagef("choose one of -s (server) and -c (client)")
	}
	if len(p.called) > vipl.MaxDiscriminator {
		return cli.Usagef("a --discriminator of %d octets, want %d at most", len(p.called), vipl.MaxDiscriminator)
	}
	addr := viAddress(args)
	if p.client {
		return p.runClient(cmd, addr)
	}
	for _, name := range viClientFlags {
		if cmd.Flags().Changed(name) {
			return cli.Usagef("--%s is for the client", name)
		}
	}
	return p.runServer(cmd, addr)
}

// viAddress is the host and port of an optional argument.
func viAddress(args []string) string {
	arg := strings.Join(args, "")
	if _, port, err := net.SplitHostPort(arg); err == nil && port == "" {
		arg = strings.TrimSuffix(arg, ":")
	}
	return cli.WithPort(arg, vitcp.DefaultPort)
}

// resolveVi finds where a client may have to connect to, in the order in which to try.
func (p *viPing) resolveVi(ctx context.Context, addr string) ([]*vipl.NetAddress, error) {
	host, service, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	if service == "0" {
		return nil, errors.New("port 0 is for the server, the client needs the server's port")
	}
	return vipl.ResolveNetAddress(ctx, net.JoinHostPort(cmp.Or(host, "127.0.0.1"), service), []byte(p.called))
}

// viAdvice adds to an error of connecting what to do about it, where that is known.
func viAdvice(err error) error {
	switch {
	case errors.Is(err, context.Canceled):
	case errors.Is(err, vipl.ErrRefused):
		return fmt.Errorf("%w; start rnic vi ping -s there first", err)
	case errors.Is(err, vitcp.ErrNoMatch):
		return fmt.Errorf("%w; no rnic vi ping -s there has that --discriminator, or it serves another client: try again later", err)
	case errors.Is(err, vipl.ErrTimeout):
		return fmt.Errorf("%w; does rnic vi ping -s listen there? a server far away needs a longer --timeout", err)
	}
	return err
}

var allViLevels = []vipl.ReliabilityLevel{
	vipl.ServiceUnreliable, vipl.ServiceReliableDelivery, vipl.ServiceReliableReception,
}

// viLevel is a flag with a reliability level.
func viLevel(p *vipl.ReliabilityLevel) pflag.Value {
	return cli.Word(p, "level", "want one or more of unreliable,delivery,reception",
		[]string{"unreliable", "delivery", "reception"}, allViLevels)
}

// viCRC is a flag that says whether to try without a CRC, with one, or both.
func viCRC(p *[]bool) pflag.Value {
	return cli.Word(p, "on|off|both", "want on, off or both",
		[]string{"off", "on", "both"}, [][]bool{{false}, {true}, {false, true}})
}

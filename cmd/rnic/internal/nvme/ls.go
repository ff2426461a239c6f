package nvme

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/ulp/nvmeof"
)

// listing is what a target has.
type listing struct {
	Subsystems []subsystem `json:"subsystems"`
}

type subsystem struct {
	NQN        string      `json:"nqn"`
	Address    string      `json:"address"`
	Error      string      `json:"error,omitempty"` // why the rest is missing
	Controller *controller `json:"controller,omitempty"`
	Namespaces []namespace `json:"namespaces"`
}

type controller struct {
	Model       string `json:"model"`
	Serial      string `json:"serial"`
	Firmware    string `json:"firmware"`
	Version     string `json:"nvme_version"`
	MaxTransfer int    `json:"max_transfer"`
	WriteCache  bool   `json:"write_cache"`
}

type namespace struct {
	ID     uint32 `json:"id"`
	Octets uint64 `json:"octets"`
	Block  int    `json:"block"`
	NGUID  string `json:"nguid"`
}

func lsCommand() *cobra.Command {
	var h host
	cmd := &cobra.Command{
		Use:   "ls ADDR",
		Short: "List the subsystems of a target, and their disks",
		Long: `ls asks the target at ADDR, port 4420 unless it says another, for its discovery log,
connects to each subsystem that it names for RDMA, and lists the namespaces there. With
--nqn it connects to that subsystem at ADDR and asks for no log.`,
		Example: "  rnic nvme ls 192.0.2.1",
		Args:    cli.ExactArgs("ADDR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			finish, err := h.open(cli.Logger(cmd))
			if err != nil {
				return err
			}
			l, err := h.list(cmd.Context(), cli.WithPort(args[0], port))
			if len(l.Subsystems) > 0 || err == nil {
				err = errors.Join(cli.Print(cmd, h.json, l, printListing), err)
			}
			return finish(err)
		},
	}
	h.addTo(cmd)
	h.lab.AddTo(cmd.Flags())
	return cmd
}

// list asks for all; the errors are those of subsystems that did not answer.
func (h *host) list(ctx context.Context, addr string) (l listing, err error) {
	l.Subsystems = []subsystem{}
	found := []nvmeof.DiscoveryEntry{{NQN: h.nqn, Address: addr}}
	if h.nqn == "" {
		if found, err = h.discover(ctx, addr); err != nil {
			return l, err
		}
	}
	for _, e := range found {
		s := subsystem{NQN: e.NQN, Address: e.Address, Namespaces: []namespace{}}
		if failed := h.dial(ctx, e.Address, e.NQN, func(to *nvmeof.Host) error { return s.ask(ctx, to) }); failed != nil {
			s.Error = failed.Error()
			err = errors.Join(err, failed)
		}
		l.Subsystems = append(l.Subsystems, s)
	}
	return l, err
}

// ask fills in what the subsystem says of itself.
func (s *subsystem) ask(ctx context.Context, to *nvmeof.Host) error {
	c := to.Controller()
	s.Controller = &controller{c.Model, c.Serial, c.Firmware, c.Version, c.MaxTransfer, c.WriteCache}
	all, err := to.Namespaces(ctx)
	for _, n := range all {
		id := n.NGUID()
		s.Namespaces = append(s.Namespaces, namespace{n.ID(), uint64(n.Size()), n.BlockSize(), hex.EncodeToString(id[:])})
	}
	return err
}

func printListing(w io.Writer, l listing) error {
	if len(l.Subsystems) == 0 {
		_, err := fmt.Fprintln(w, "no subsystem for RDMA")
		return err
	}
	for _, s := range l.Subsystems {
		fmt.Fprintf(w, "%s at %s", cli.Printable(s.NQN), cli.Printable(s.Address))
		if s.Error != "" {
			fmt.Fprintln(w, ": no answer")
			continue
		}
		c := s.Controller
		fmt.Fprintf(w, "\n  %s, serial %s, firmware %s, NVMe %s\n",
			cli.Printable(c.Model), cli.Printable(c.Serial), cli.Printable(c.Firmware), c.Version)
		t := cli.NewTable(w)
		fmt.Fprintln(t, "namespace\toctets\tblock\tNGUID\t")
		for _, n := range s.Namespaces {
			fmt.Fprintf(t, "%d\t%s\t%d\t%s\t\n", n.ID, cli.Grouped(n.Octets), n.Block, n.NGUID)
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	return nil
}

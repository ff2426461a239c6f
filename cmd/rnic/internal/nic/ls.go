package nic

import (
	"cmp"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/stats"
)

// listed is a NIC of a process.
type listed struct {
	Program string `json:"program"`
	PID     int    `json:"pid"`
	RNIC    string `json:"rnic"`
	stats.Port
	QPs   int      `json:"qps"`
	Peers []string `json:"peers"`
}

func lsCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "ls", Short: "List the NICs of programs that run",
		Long: `ls lists the NICs of this user's programs that offer their counters, with the state of their ports, the rate that
the program is told, what degrades them, how many rules of a fault plan are carried out, and the hosts that they are
connected to. A NIC without a device can be told nothing.`,
		Example: "  rnic nic ls",
		Args:    cli.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := processes()
			if err != nil {
				return err
			}
			return cli.Print(cmd, asJSON, list(all), table)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// list is what there is, by process and device.
func list(all []cli.Answer) (nics []listed) {
	nics = []listed{}
	for _, p := range all {
		for i := range p.RNICs {
			r := &p.RNICs[i]
			one := listed{Program: p.Program, PID: p.PID, RNIC: r.ID, QPs: len(r.QPs), Peers: peers(r)}
			if r.Port != nil {
				one.Port = *r.Port
			}
			nics = append(nics, one)
		}
	}
	slices.SortStableFunc(nics, func(a, b listed) int {
		return cmp.Or(cmp.Compare(a.PID, b.PID), cmp.Compare(a.Device, b.Device))
	})
	return nics
}

// peers are the hosts at the other ends of streams.
func peers(r *stats.RNIC) []string {
	hosts := []string{}
	for _, q := range r.QPs {
		host, _, err := net.SplitHostPort(q.Remote)
		if err == nil && !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	slices.Sort(hosts)
	return hosts
}

// mostPeers is how many the table names.
const mostPeers = 3

func table(w io.Writer, nics []listed) error {
	t := cli.NewTable(w)
	fmt.Fprint(t, "PROGRAM\tPID\tDEVICE\tSTATE\tRATE\tDEGRADED\tRULES\tQPS\tPEERS\t\n")
	for _, n := range nics {
		peers := strings.Join(n.Peers[:min(len(n.Peers), mostPeers)], ",")
		if more := len(n.Peers) - mostPeers; more > 0 {
			peers += fmt.Sprintf(" and %d", more)
		}
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%s\t%d\t%d\t%s\t\n", cli.Printable(n.Program), n.PID, or(n.Device), or(n.State), or(n.Rate),
			or(n.Degraded), n.Rules, n.QPs, or(peers))
	}
	return t.Flush()
}

// or is a cell that is not empty.
func or(s string) string { return cmp.Or(cli.Printable(s), "-") }

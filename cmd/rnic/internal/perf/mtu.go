package perf

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
)

// mtuFlags are the flags of `rnic perf mtu`.
type mtuFlags struct {
	perfFlags
	mtu    int
	rounds int
	end    string // be one of the two processes; set by the command itself
}

const (
	mtuClient = "client"
	mtuServer = "server"

	ethernetMTU = 1500
)

// mtuRuns are what is measured.
var mtuRuns = []baselineRun{
	{"1 MiB Send, CRC on", perfRun{Op: "send", Size: 1 << 20, CRC: true}, bandwidth("")},
	{"1 MiB Send, CRC off", perfRun{Op: "send", Size: 1 << 20}, bandwidth("")},
}

func newPerfMTUCommand() *cobra.Command {
	m := mtuFlags{perfFlags: perfFlags{duration: baselineDuration}, mtu: ethernetMTU, rounds: baselineRounds}
	cmd := &cobra.Command{
		Use:   "mtu",
		Short: "Compare with a bare TCP connection where packets are small",
		Long: `Measure Send of 1 MiB, with and without CRC, beside a stream of 1 MiB writes
through a net.Conn, over a link with the MTU of an Ethernet. The link is a pair
of virtual interfaces between two network namespaces, with a process in each;
all are made for this and end with it. The measurements take turns; medians are
shown.

Needs Linux, root, and the program ip of iproute2.`,
		Args: cli.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if m.end != "" {
				return m.runEnd(cmd)
			}
			find := func(ctx context.Context, _ *cli.Progress) ([]baselineRow, error) {
				rows, err := m.twoNamespaces(ctx)
				return rows, cli.Instead(ctx, err)
			}
			return cli.Measure(cmd, "perf", "", m.json, find, func(w io.Writer, rows []baselineRow) error {
				fmt.Fprintf(w, "MTU of %d octets, between two network namespaces\n", m.mtu)
				return printBaseline(w, rows)
			})
		},
	}
	f := cmd.Flags()
	m.register(f)
	f.Var(cli.IntRange(&m.rounds, 1, 1000), "rounds", "`times` to measure each")
	f.Var(cli.IntRange(&m.mtu, 576, 65535), "mtu", "`octets` of a packet at most")
	f.StringVar(&m.end, "end", "", "be this process of the two")
	f.Lookup("end").Hidden = true
	return cmd
}

// args are the flags for one of the two processes.
func (m *mtuFlags) args(end string) []string {
	return []string{
		"perf", "mtu", "--end=" + end, fmt.Sprintf("--mtu=%d", m.mtu), fmt.Sprintf("--rounds=%d", m.rounds),
		fmt.Sprintf("--duration=%s", m.duration), fmt.Sprintf("--depth=%d", m.depth),
	}
}

// twoNamespaces starts both processes, each in a network namespace of its own,
// joins these, and returns what the client measured. A namespace ends with the
// last process in it, and takes its end of the link with it: however this
// process ends, so do its children, and nothing is left behind.
func (m *mtuFlags) twoNamespaces(ctx context.Context) (rows []baselineRow, err error) {
	client, err := startInNamespace(ctx, mtuClient, m.args(mtuClient)...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, client.Stop()) }()
	server, err := startInNamespace(ctx, mtuServer, m.args(mtuServer)...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	if err := joinNamespaces(ctx, client.Cmd.Process.Pid, server.Cmd.Process.Pid); err != nil {
		return nil, err
	}
	var where cli.Announcement
	if err := server.Request(where, &where); err != nil {
		return nil, fmt.Errorf("the server process did not start: %w", err)
	}
	if err := client.Request(where, &rows); err != nil {
		return nil, fmt.Errorf("the client process did not answer: %w", err)
	}
	return rows, nil
}

// runEnd is one of the two processes. The first line of standard input means that
// the link is there, and for the client has the addresses of the server. The process
// ends with the rest.
func (m *mtuFlags) runEnd(cmd *cobra.Command) error {
	in := bufio.NewReader(cmd.InOrStdin())
	line, err := in.ReadBytes('\n')
	if errors.Is(err, io.EOF) {
		return nil // the parent gave up
	}
	var where cli.Announcement
	if err == nil {
		err = json.Unmarshal(line, &where)
	}
	if err != nil {
		return fmt.Errorf("perf: reading what to do: %w", err)
	}
	cmd.SetIn(in)
	if m.end == mtuServer {
		if err := setUpLink(cmd.Context(), mtuServerAddress, m.mtu); err != nil {
			return fmt.Errorf("perf: %w", err)
		}
		s := perfServerFlags{conn: cli.DefaultConnFlags(), child: true, plain: mtuServerAddress + ":0"}
		return s.serve(cmd, mtuServerAddress+":0")
	}
	if err := setUpLink(cmd.Context(), mtuClientAddress, m.mtu); err != nil {
		return fmt.Errorf("perf: %w", err)
	}
	ctx, cancel := cli.UntilEOF(cmd.Context(), in)
	defer cancel()
	rows, err := m.compare(ctx, where, mtuRuns, m.rounds)
	if err != nil {
		return fmt.Errorf("perf: %w", err)
	}
	return json.NewEncoder(cmd.OutOrStdout()).Encode(rows)
}

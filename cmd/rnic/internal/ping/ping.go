// Package ping is `rnic ping`, in the manner of rping of rdma-core: a worked example of packages verbs and cm.
package ping

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/cmd/rnic/internal/endpoint"
	"github.com/softrnic/softrnic/cmd/rnic/internal/histogram"
	"github.com/softrnic/softrnic/internal/rping"
	"github.com/softrnic/softrnic/verbs"
)

const (
	pingPort    = 7174 // rping's
	pingSize    = 64
	maxPingSize = 1 << 20

	pingClients    = 64 // at once, of a server with -P, unless its user says otherwise
	maxPingClients = 1 << 14
)

// ping holds the flags of `rnic ping`. Their letters are rping's.
type ping struct {
	flags      cli.ConnFlags
	lab        cli.Lab
	stats      cli.Stats
	server     bool
	client     bool
	persistent bool
	addr       string
	port       int
	count      int
	size       uint64
	verbose    bool
	validate   bool
	idle       time.Duration
	clients    int
	json       bool
}

// Command makes `rnic ping`.
func Command() *cobra.Command {
	p := ping{port: pingPort, size: pingSize, idle: endpoint.IdleLimit, clients: pingClients}
	cmd := &cobra.Command{
		Use:   "ping {-s | -c -a ADDR}",
		Short: "Exchange data with rping or another rnic",
		Long: `Exchange data with rdma-core's rping, or with another rnic, in either role.

In each round the client sends the address of a buffer, the server fetches the
data with an RDMA Read, and returns it with an RDMA Write to a second buffer of
the client. With -V the client compares the two.

The server serves one client and ends, or goes on with -P, for --clients at once
and with the memory of -S for each. With -C it stops after so many rounds of a
client. A client that does nothing for the time of --idle is disconnected.

The client tells how long its rounds took, which are two messages there and two
back each. It gives up when one takes longer than --timeout.`,
		Example: "  rnic ping -s &\n  rnic ping -c -a 127.0.0.1 -C 10 -V",
		Args:    cli.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.run(cmd)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVarP(&p.server, "server", "s", false, "be the server")
	f.BoolVarP(&p.client, "client", "c", false, "be the client")
	f.StringVarP(&p.addr, "addr", "a", "", "`address` to connect to, or to listen on (default: all)")
	f.VarP(cli.IntRange(&p.port, 0, 1<<16-1), "port", "p", "TCP `port`; a server may say 0 for any")
	f.VarP(cli.IntRange(&p.count, 0, 1<<31-1), "count", "C", "`rounds`; 0 goes on until stopped")
	f.VarP(cli.SizeRange(&p.size, 1, maxPingSize), "size", "S",
		"octets of data in a round; for a server the most it takes (default 1M there)")
	f.BoolVarP(&p.verbose, "verbose", "v", false, "print the data of each round")
	f.BoolVarP(&p.validate, "validate", "V", false, "verify the data of each round")
	f.BoolVarP(&p.persistent, "persistent", "P", false, "server: go on serving clients, several at once")
	f.Var(cli.DurationRange(&p.idle, time.Millisecond, 24*time.Hour), "idle", "server: `time` that a client may do nothing")
	f.Var(cli.IntRange(&p.clients, 1, maxPingClients), "clients",
		"server: `clients` at once with -P; one too many is refused")
	f.BoolVar(&p.json, "json", false, "print the summary as JSON")
	p.flags.AddTo(cmd)
	p.lab.AddTo(f)
	p.stats.AddTo(f)
	f.Lookup("timeout").Usage = "`time` that connecting may take; for a client also a round"
	return cmd
}

func (p *ping) run(cmd *cobra.Command) error {
	switch {
	case p.server == p.client:
		return cli.Usagef("choose one of -s (server) and -c (client)")
	case p.client && p.addr == "":
		return cli.Usagef("the client needs -a, the address of the server")
	case p.client && p.port == 0:
		return cli.Usagef("-p 0 is for the server, the client needs the server's port")
	case p.client && p.persistent:
		return cli.Usagef("-P is for the server")
	case p.client && (cmd.Flags().Changed("idle") || cmd.Flags().Changed("clients")):
		return cli.Usagef("--idle and --clients are for the server")
	case p.json && p.verbose:
		return cli.Usagef("-v and --json both write to standard output: choose one")
	}
	out, log := &pingOutput{w: cmd.OutOrStdout(), json: p.json}, cli.Logger(cmd)
	var finish func(error) error
	var err error
	if p.flags.RNIC, finish, err = p.lab.RNIC(log); err != nil {
		return err
	}
	if p.client {
		return finish(p.runClient(cmd.Context(), out, log))
	}
	if !cmd.Flags().Changed("size") {
		p.size = maxPingSize
	}
	return finish(p.runServer(cmd.Context(), out, log))
}

func (p *ping) hostPort() string { return net.JoinHostPort(cli.BareHost(p.addr), strconv.Itoa(p.port)) }

// limits are what one end needs. IRD and ORD are rping's 1 unless asked for:
// there is one RDMA Read at a time, and MPA revision 1 has no way to agree on
// more.
func (p *ping) limits() endpoint.Limits {
	return endpoint.Limits{
		SendDepth: 16, RecvDepth: 2, IRD: cmp.Or(p.flags.IRD, 1), ORD: cmp.Or(p.flags.ORD, 1), RNIC: p.flags.RNIC,
	}
}

// pingEnd is what client and server have in common: an endpoint, memory for
// control messages, and one posted Receive.
type pingEnd struct {
	*endpoint.Endpoint
	in, out     []byte
	inMR, outMR *verbs.MR
}

// open prepares everything up to the connection, the Receive for the peer's first message included, on the endpoint
// that Open or New of package endpoint returned.
func open(ep *endpoint.Endpoint, err error) (*pingEnd, error) {
	if err != nil {
		return nil, err
	}
	e := &pingEnd{Endpoint: ep}
	if err := e.prepare(); err != nil {
		_ = ep.Abort()
		return nil, err
	}
	return e, nil
}

func (e *pingEnd) prepare() (err error) {
	if e.in, e.inMR, err = e.Register(rping.MessageSize, verbs.LocalWrite); err != nil {
		return err
	}
	if e.out, e.outMR, err = e.Register(rping.MessageSize, verbs.LocalRead); err != nil {
		return err
	}
	return e.postMessage()
}

func (e *pingEnd) postMessage() error {
	return e.PostRecv(verbs.Recv{SGL: e.inMR.SGL(0, rping.MessageSize)})
}

// sendBuffer sends a control message. It is unsignaled: the peer answers each
// one, and the answer says that it was sent and that e.out is free again.
func (e *pingEnd) sendBuffer(b rping.Buffer) error {
	b.Put(e.out)
	return e.PostSend(verbs.Request{
		Flags: verbs.Unsignaled,
		SGL:   e.outMR.SGL(0, rping.MessageSize),
	})
}

// recvBuffer waits for a control message, and posts the Receive for the next
// one before the caller can answer.
func (e *pingEnd) recvBuffer(ctx context.Context) (rping.Buffer, error) {
	n, err := e.await(ctx, verbs.OpRecv)
	if err != nil {
		return rping.Buffer{}, err
	}
	b, err := rping.Parse(e.in[:min(int(n), len(e.in))])
	if err != nil {
		return rping.Buffer{}, err
	}
	return b, e.postMessage()
}

// await waits for a completion, which must be one of op: the protocol is
// strictly alternating.
func (e *pingEnd) await(ctx context.Context, op verbs.Op) (bytes uint32, err error) {
	wc, err := e.Next(ctx)
	if err != nil {
		return 0, err
	}
	if wc.Op != op {
		return 0, fmt.Errorf("completion of %v while waiting for %v: the peer does not speak the rping protocol", wc.Op, op)
	}
	return wc.Bytes, nil
}

// compare is an error if two buffers of the same length differ.
func compare(round int, want, got []byte) error {
	for i := range want {
		if want[i] != got[i] {
			return fmt.Errorf("data mismatch in round %d at octet %d: want %s, got %s",
				round, i, hex.EncodeToString(want[i:i+1]), hex.EncodeToString(got[i:i+1]))
		}
	}
	return nil
}

// pingSummary is the result of one connection, at either end.
type pingSummary struct {
	Role      string  `json:"role"`
	Peer      string  `json:"peer"`
	Rounds    int     `json:"rounds"`
	Bytes     uint64  `json:"bytes"` // each way
	Seconds   float64 `json:"seconds"`
	Validated bool    `json:"validated"`
	Times     *times  `json:"round_trip_us,omitempty"` // of a client
}

// times are those of rounds, in microseconds.
type times struct {
	Min  float64 `json:"min"`
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P99  float64 `json:"p99"`
	Max  float64 `json:"max"`
}

func newTimes(h *histogram.Histogram) *times {
	if h.N == 0 {
		return nil
	}
	us := histogram.Microseconds
	return &times{us(h.Min), us(h.Mean()), us(h.Quantile(0.5)), us(h.Quantile(0.99)), us(h.Max)}
}

func (s pingSummary) String() string {
	text := fmt.Sprintf("%d rounds with %s, %s octets each way in %v",
		s.Rounds, s.Peer, cli.Grouped(s.Bytes), time.Duration(s.Seconds*float64(time.Second)).Round(time.Microsecond))
	if s.Validated {
		text += ", data valid"
	}
	if t := s.Times; t != nil {
		text += fmt.Sprintf("\nround trip min/avg/p50/p99/max = %.1f/%.1f/%.1f/%.1f/%.1f us",
			t.Min, t.Mean, t.P50, t.P99, t.Max)
	}
	return text
}

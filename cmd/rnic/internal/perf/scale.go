package perf

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
)

// scaleFlags are the flags of `rnic perf scale`.
type scaleFlags struct {
	qps      int
	duration time.Duration
	json     bool
	serve    bool // be the server process; set by the command itself
}

const (
	scaleQPs    = 10000
	maxScaleQPs = 60000 // ports are 16 bits
)

func newPerfScaleCommand() *cobra.Command {
	s := scaleFlags{qps: scaleQPs, duration: time.Second}
	cmd := &cobra.Command{
		Use:   "scale",
		Short: "Connect many queue pairs: the rate, their memory, the latency among them",
		Long: fmt.Sprintf(`Connect many queue pairs between this process and a server process that it
starts, CRC on, and show

  - how many it connects a second, creating them and filling their Receive
    Queues included, beside bare TCP connections: as many, made and accepted in
    the same manner just before, and closed again;
  - by how many octets each of them makes resident memory grow, at either end:
    when connected, and when it has carried a message each way;
  - the latency of 64 octets, polled, over the first one alone and then among
    all others, idle.

SQ and RQ of %d, %d SGEs; one CQ for each processor, shared by all. Each
connection is an open file at either end.`, scaleDepth, scaleSGEs),
		Args: cli.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if s.serve {
				return runScaleServer(cmd, s.qps, idleShape())
			}
			return s.run(cmd)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.Var(cli.IntRange(&s.qps, 2, maxScaleQPs), "qps", "connected pairs of `queue pairs`")
	f.Var(cli.DurationRange(&s.duration, time.Millisecond, time.Hour), "duration", "`time` of each measurement of latency")
	f.BoolVar(&s.json, "json", false, "print JSON")
	f.BoolVar(&s.serve, "serve", false, "be the server process")
	f.Lookup("serve").Hidden = true
	return cmd
}

// scaleResult is what `rnic perf scale` measured. Octets are nil where they are
// not known.
type scaleResult struct {
	QPs             int       `json:"qps"`
	ConnectsPerS    float64   `json:"connects_per_s"`
	TCPConnectsPerS float64   `json:"tcp_connects_per_s"`
	IdleBytes       *int64    `json:"idle_bytes_per_qp"` // the larger of both sides, as the next
	ActiveBytes     *int64    `json:"active_bytes_per_qp"`
	Client          scaleSide `json:"client"`
	Server          scaleSide `json:"server"`
	AloneUS         float64   `json:"lat64_p50_alone_us"` // half round trips
	AmongUS         float64   `json:"lat64_p50_among_us"`
}

// scaleSide holds what one side of the connections measured of itself.
type scaleSide struct {
	IdleBytes   *int64 `json:"idle_bytes_per_qp"`
	ActiveBytes *int64 `json:"active_bytes_per_qp"`
	// Of the whole process: with one queue pair connected, with all, and when
	// each has carried a message.
	OneResident    *int64 `json:"one_resident_bytes"`
	IdleResident   *int64 `json:"idle_resident_bytes"`
	ActiveResident *int64 `json:"active_resident_bytes"`
	Goroutines     int    `json:"goroutines"` // with all connected
}

// perQP derives what each of more queue pairs took.
func (s *scaleSide) perQP(more int) {
	growth := func(resident *int64) *int64 {
		if s.OneResident == nil || resident == nil {
			return nil
		}
		n := (*resident - *s.OneResident) / int64(more)
		return &n
	}
	s.IdleBytes, s.ActiveBytes = growth(s.IdleResident), growth(s.ActiveResident)
}

// larger is the larger of two figures, nil if there is none.
func larger(a, b *int64) *int64 {
	if a == nil || b == nil || *a > *b {
		return a
	}
	return b
}

func (s *scaleFlags) run(cmd *cobra.Command) error {
	return cli.Measure(cmd, "perf", "connections", s.json, s.measure,
		func(w io.Writer, r scaleResult) error { return r.print(w) })
}

// measure is the client process.
func (s *scaleFlags) measure(ctx context.Context, p *cli.Progress) (result scaleResult, err error) {
	server := []string{"perf", "scale", "--serve", fmt.Sprintf("--qps=%d", s.qps)}
	err = withScaleClient(ctx, s.qps, idleShape(), server, func(c *scaleClient) (err error) {
		c.duration, c.progress = s.duration, p
		result, err = c.measure(ctx)
		return err
	})
	return result, err
}

func (r *scaleResult) print(w io.Writer) error {
	fmt.Fprintf(w, "%s connected pairs of queue pairs, SQ and RQ of %d, %d SGEs, CRC on\n\n",
		cli.Grouped(uint64(r.QPs)), scaleDepth, scaleSGEs)
	t := cli.NewTable(w)
	fmt.Fprintln(t, "figure\tqueue pairs\tcompared with\t\tratio\t")
	fmt.Fprintf(t, "connects a second\t%.0f\tbare TCP\t%.0f\t%.2f\t\n",
		r.ConnectsPerS, r.TCPConnectsPerS, r.ConnectsPerS/r.TCPConnectsPerS)
	fmt.Fprintf(t, "64 octets among all, half round trip, p50, us\t%.2f\talone\t%.2f\t%.2f\t\n\n",
		r.AmongUS, r.AloneUS, r.AmongUS/r.AloneUS)
	if err := t.Flush(); err != nil {
		return err
	}
	octets := func(n *int64) string {
		if n == nil {
			return "not known"
		}
		return cli.Grouped(uint64(max(*n, 0)))
	}
	fmt.Fprintln(t, "resident octets a queue pair\tclient\tserver\t")
	fmt.Fprintf(t, "idle\t%s\t%s\t\n", octets(r.Client.IdleBytes), octets(r.Server.IdleBytes))
	fmt.Fprintf(t, "after a message each way\t%s\t%s\t\n", octets(r.Client.ActiveBytes), octets(r.Server.ActiveBytes))
	return t.Flush()
}

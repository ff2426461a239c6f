package perf

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/cmd/rnic/internal/endpoint"
)

const (
	manyDuration  = 500 * time.Millisecond
	manyRounds    = 3
	manySendDepth = 8
	manyRecvDepth = 4
)

// manyQPs are the numbers of queue pairs that are measured.
func manyQPs() []int { return []int{1, 16, 256, 2000} }

// manyFlags are the flags of `rnic perf many`.
type manyFlags struct {
	qps      []int
	way      manyWay
	duration time.Duration
	rounds   int
	json     bool
	plain    bool
	serve    bool // be the server process; set by the command itself
}

// manyWay is the use of the connections, at both ends.
type manyWay struct {
	Poll  bool `json:"poll"` // poll the CQ in a loop, rather than wait on it
	CRC   bool `json:"crc"`
	Plain bool `json:"net_conn"` // a goroutine for each net.Conn instead, without the others
}

func (w manyWay) String() string {
	if w.Plain {
		return "net.Conn"
	}
	how := "waiting"
	if w.Poll {
		how = "polling"
	}
	return how + ", CRC " + cli.OnOff(&w.CRC).String()
}

// shape is what queue pairs are like that are used so: just deep enough for the one
// message.
func (w manyWay) shape() scaleShape {
	s := scaleShape{
		cqs: 1, sendDepth: manySendDepth, recvDepth: manyRecvDepth, sges: 1, crc: w.CRC, waiting: endpoint.WaitSleep,
	}
	if w.Poll {
		s.waiting = endpoint.WaitPoll
	}
	return s
}

func newPerfManyCommand() *cobra.Command {
	m := manyFlags{qps: manyQPs(), way: manyWay{CRC: true}, duration: manyDuration, rounds: manyRounds}
	cmd := &cobra.Command{
		Use:   "many",
		Short: "Measure many active queue pairs on one CQ: the rate, its cost, the slowest",
		Long: fmt.Sprintf(`Connect queue pairs between this process and a server process that it starts,
all with the same CQ at either end, send a message of %d octets back and forth on
each of them, and show

  - how many round trips a second all of them make together;
  - how much processor time a round trip takes, both processes together;
  - how many the slowest queue pair made, beside the median.

It is measured for each number of queue pairs, after a quarter of --duration.
With --plain, waiting for completions, polling, and waiting with CRC take turns
with as many net.Conn, a goroutine for each at either end. Medians are shown.

SQ of %d and RQ of %d. Each connection is an open file at either end.`, scaleSize, manySendDepth, manyRecvDepth),
		Args: cli.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if m.plain && (cmd.Flags().Changed("poll") || cmd.Flags().Changed("crc")) {
				return cli.Usagef("--plain measures with and without --poll and --crc: leave them out")
			}
			if m.serve {
				return runScaleServer(cmd, slices.Max(m.qps), m.way.shape())
			}
			return m.run(cmd)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.Var(cli.IntList(&m.qps, 1, maxScaleQPs), "qps", "connected pairs of queue pairs, such as 16 or 1,16,256")
	f.BoolVar(&m.way.Poll, "poll", false, "poll in a loop instead of waiting for completions, at both ends")
	f.Var(cli.OnOff(&m.way.CRC), "crc", "CRC32C over each FPDU: `on|off`")
	f.BoolVar(&m.plain, "plain", false, "compare all ways with a goroutine for each net.Conn")
	f.Var(cli.DurationRange(&m.duration, time.Millisecond, time.Hour), "duration", "`time` of each measurement")
	f.Var(cli.IntRange(&m.rounds, 1, 1000), "rounds", "`times` to measure each")
	f.BoolVar(&m.json, "json", false, "print JSON")
	f.BoolVar(&m.serve, "serve", false, "be the server process")
	f.Lookup("serve").Hidden = true
	return cmd
}

// The ways that are compared, in the order of the table's columns.
var (
	manyWaiting = manyWay{}
	manyPolling = manyWay{Poll: true}
	manyWithCRC = manyWay{CRC: true}
	manyPlain   = manyWay{Plain: true}
)

func (m *manyFlags) ways() []manyWay {
	if m.plain {
		return []manyWay{manyWaiting, manyPolling, manyWithCRC, manyPlain}
	}
	return []manyWay{m.way}
}

func (m *manyFlags) run(cmd *cobra.Command) error {
	text := func(w io.Writer, results []manyResult) error { return printMany(w, m.way, results) }
	if m.plain {
		text = printManyBesidePlain
	}
	return cli.Measure(cmd, "perf", "measurements", m.json, m.measure, text)
}

// manyResult is what was measured with so many connections, used one way.
type manyResult struct {
	QPs int `json:"qps"`
	manyWay
	Rate    float64  `json:"k_round_trips_per_s"` // of all together, in thousands
	CPU     *float64 `json:"cpu_us_per_round_trip"`
	Slowest float64  `json:"slowest_to_median"` // round trips of the slowest one; 0 if most made none
}

// measure returns medians of all rounds, by number of connections, then way. The ways
// take turns, so that what else the machine does meets all.
func (m *manyFlags) measure(ctx context.Context, p *cli.Progress) ([]manyResult, error) {
	type kind struct {
		n   int
		way manyWay
	}
	var kinds []kind
	for _, n := range m.qps {
		for _, way := range m.ways() {
			kinds = append(kinds, kind{n, way})
		}
	}
	all := make([][]manyResult, len(kinds))
	for round := range m.rounds {
		for i, k := range kinds {
			p.Show("many", uint64(round*len(kinds)+i), uint64(m.rounds*len(kinds)))
			r, err := measureMany(ctx, k.n, k.way, m.duration)
			if err != nil {
				return nil, fmt.Errorf("%d connections, %v: %w", k.n, k.way, err)
			}
			all[i] = append(all[i], r)
		}
	}
	var results []manyResult
	for _, of := range all {
		results = append(results, medianOfMany(of))
	}
	return results, nil
}

// medianOfMany takes the median of each figure.
func medianOfMany(of []manyResult) manyResult {
	r := of[0]
	var rate, cpu, slowest []float64
	for _, o := range of {
		rate, slowest = append(rate, o.Rate), append(slowest, o.Slowest)
		if o.CPU != nil {
			cpu = append(cpu, *o.CPU)
		}
	}
	r.Rate, r.Slowest = median(rate), median(slowest)
	if len(cpu) > 0 {
		us := median(cpu)
		r.CPU = &us
	}
	return r
}

func printMany(w io.Writer, way manyWay, results []manyResult) error {
	fmt.Fprintf(w, "round trips of %d octets, %v\n", scaleSize, way)
	t := cli.NewTable(w)
	fmt.Fprintln(t, "qps\tk/s\tus each\tslowest/median\t")
	for _, r := range results {
		fmt.Fprintf(t, "%d\t%.2f\t%s\t%.2f\t\n", r.QPs, r.Rate, orUnknown(r.CPU), r.Slowest)
	}
	return t.Flush()
}

// orUnknown is a figure that some systems do not have.
func orUnknown(v *float64) string {
	if v == nil {
		return "not known"
	}
	return fmt.Sprintf("%.2f", *v)
}

// printManyBesidePlain writes a table with a column for each way.
func printManyBesidePlain(w io.Writer, results []manyResult) error {
	var qps []int
	by := map[int]map[manyWay]manyResult{}
	for _, r := range results {
		if by[r.QPs] == nil {
			qps = append(qps, r.QPs)
			by[r.QPs] = map[manyWay]manyResult{}
		}
		by[r.QPs][r.manyWay] = r
	}
	fmt.Fprintf(w, "round trips of %d octets; CRC off but for the column CRC, which waits\n", scaleSize)
	t := cli.NewTable(w)
	fmt.Fprintln(t, "figure\tqps\twaiting\tpolling\tCRC\tnet.Conn\twaiting/net.Conn\tpolling/net.Conn\tCRC/waiting\t")
	for _, figure := range []struct {
		name string
		of   func(manyResult) *float64
	}{
		{"k/s", func(r manyResult) *float64 { return &r.Rate }},
		{"us each", func(r manyResult) *float64 { return r.CPU }},
		{"slowest/median", func(r manyResult) *float64 { return &r.Slowest }},
	} {
		for _, n := range qps {
			waiting, polling := figure.of(by[n][manyWaiting]), figure.of(by[n][manyPolling])
			crc, plain := figure.of(by[n][manyWithCRC]), figure.of(by[n][manyPlain])
			fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", figure.name, n,
				orUnknown(waiting), orUnknown(polling), orUnknown(crc), orUnknown(plain),
				ratioOf(waiting, plain), ratioOf(polling, plain), ratioOf(crc, waiting))
		}
	}
	return t.Flush()
}

// ratioOf is a to b, or nothing where there is none.
func ratioOf(a, b *float64) string {
	if a == nil || b == nil || *b == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", *a / *b)
}

package vi

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/cmd/rnic/internal/histogram"
	"github.com/softrnic/softrnic/vipl"
)

// runClient makes the connections and prints the table.
func (p *viPing) runClient(cmd *cobra.Command, addr string) error {
	if len(p.sizes) > maxViSeries {
		return cli.Usagef("%d sizes, want %d at most", len(p.sizes), maxViSeries)
	}
	begin := time.Now()
	draw := cli.NewProgress(cmd.ErrOrStderr())
	draw.Unit = "rounds"
	draw.Next = begin.Add(time.Second) // a server may share the terminal: a short run is not worth a line there
	report, err := p.ping(cmd.Context(), addr, draw)
	draw.Clear()
	if err != nil {
		return fmt.Errorf("vi ping: %w", err)
	}
	report.Seconds = time.Since(begin).Seconds()
	if p.json {
		return cli.PrintJSON(cmd.OutOrStdout(), report)
	}
	return report.print(cmd.OutOrStdout())
}

// viCase is what a connection is to be like, or is like.
type viCase struct {
	level vipl.ReliabilityLevel
	crc   bool
}

func (c viCase) String() string { return fmt.Sprintf("%v, CRC %s", c.level, cli.OnOff(&c.crc)) }

func (p *viPing) cases() []viCase {
	var all []viCase
	for _, level := range p.levels {
		for _, crc := range p.crcs {
			all = append(all, viCase{level, crc})
		}
	}
	return all
}

func (p *viPing) ping(ctx context.Context, addr string, draw *cli.Progress) (viReport, error) {
	server, err := resolveVi(ctx, addr)
	if err != nil {
		return viReport{}, fmt.Errorf("%s: %w", addr, err)
	}
	report := viReport{Server: server.String()}
	cases := p.cases()
	plan := viPlan{Session: fmt.Sprintf("%s %016x", viService, rand.Uint64()), Count: p.count, Sizes: p.sizes}
	called := viService
	c := &viClient{draw: draw, timeout: p.timeout}
	for _, k := range cases {
		c.total += uint64(len(plan.series(k.level)) * plan.Count)
	}
	for i, k := range cases {
		plan.Seed, plan.Left = rand.Uint64(), len(cases)-1-i
		rows, err := c.connection(ctx, vipl.NewNetAddress(server, []byte(called)), k, plan)
		if err != nil {
			return viReport{}, fmt.Errorf("%v: %w", c.agreed, err)
		}
		report.Rows = append(report.Rows, rows...)
		report.Connections++
		called = plan.Session
	}
	return report, nil
}

// viClient is the client's end of one connection after the other.
type viClient struct {
	*viEnd
	plan    viPlan
	remote  viBuffer // the server's slots
	rounds  int      // of this connection so far
	agreed  viCase   // what the connection is like, or before it is made, is to be like
	timeout time.Duration

	draw        *cli.Progress
	done, total uint64 // rounds of all connections
}

// connection makes one connection and a row of each of its series.
func (c *viClient) connection(ctx context.Context, server *vipl.NetAddress, k viCase, plan viPlan) ([]viRow, error) {
	c.agreed = k
	nic, err := vipl.OpenNic(viAnyAddress(server), vipl.Config{CRC: k.crc}) // it does not listen
	if err != nil {
		return nil, fmt.Errorf("opening the NIC: %w", err)
	}
	defer nic.CloseNic() //nolint:errcheck // it is open
	if c.viEnd, err = openViEnd(nic, k.level); err != nil {
		return nil, err
	}
	c.plan, c.rounds = plan, 0
	rows, err := c.run(ctx, server, k)
	if closeErr := c.close(); err == nil && closeErr != nil {
		err = fmt.Errorf("closing the connection: %w", closeErr)
	}
	return rows, err
}

// viAnyAddress is the address of this host that leads to server, whichever it is.
func viAnyAddress(server *vipl.NetAddress) string {
	if at, err := server.AddrPort(); err == nil && at.Addr().Is6() {
		return netip.IPv6Unspecified().String()
	}
	return netip.IPv4Unspecified().String()
}

func (c *viClient) run(ctx context.Context, server *vipl.NetAddress, k viCase) ([]viRow, error) {
	if err := c.allocate(c.plan.slot()); err != nil {
		return nil, err
	}
	if err := c.meet(ctx, server); err != nil {
		return nil, err
	}
	var err error
	if c.agreed.crc, err = c.crc(); err != nil {
		return nil, err
	}
	var rows []viRow
	for _, s := range c.plan.series(k.level) {
		row, err := c.series(ctx, &s)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, c.leave(ctx)
}

// meet connects, and exchanges notes with the server.
func (c *viClient) meet(ctx context.Context, server *vipl.NetAddress) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	if _, err := c.vi.ConnectRequest(ctx, nil, server); err != nil {
		return viAdvice(fmt.Errorf("connecting to %v: %w", server, err))
	}
	c.plan.Sink = c.buffer(viInSlot)
	if err := c.sendNote(ctx, c.plan); err != nil {
		return err
	}
	d, err := c.recv(ctx, vipl.StatusOpReceive)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(c.note(d), &c.remote); err != nil {
		return fmt.Errorf("the server does not speak the protocol of rnic vi ping: %w", err)
	}
	return nil
}

// leave tells the server that all was right, and hears the same of it.
func (c *viClient) leave(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	if err := c.postRecv(); err != nil {
		return err
	}
	if err := c.sendAll(ctx); err != nil {
		return err
	}
	_, err := c.recv(ctx, vipl.StatusOpReceive)
	return err
}

// series does the rounds of s.
func (c *viClient) series(ctx context.Context, s *viSeries) (viRow, error) {
	var times histogram.Histogram
	row := viRow{Level: c.agreed.level.String(), CRC: c.agreed.crc, Op: s.op.String(), Size: s.size}
	for ; row.Count < c.plan.Count; row.Count++ {
		took, err := c.round(ctx, s, row.Count)
		if err != nil {
			return row, fmt.Errorf("%v %d of %d octets: %w", s.op, row.Count, s.size, err)
		}
		times.Record(took)
		row.Verified += s.size
		c.done++
		c.draw.Show("ping", c.done, c.total)
	}
	row.P50 = float64(times.Quantile(0.5)) / float64(time.Microsecond)
	return row, nil
}

// round sends the data of round k out, has them back and compares.
func (c *viClient) round(ctx context.Context, s *viSeries, k int) (took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	out, in := c.data(viOutSlot, s.size), c.data(viInSlot, s.size)
	s.pattern.Fill(out, s.offset(k))
	for i := range in { // no octet passes that was here before
		in[i] = ^out[i]
	}
	switch s.op {
	case viSend:
		took, err = c.echoSend(ctx, s)
	case viWrite:
		took, err = c.echoWrite(ctx, s, k)
	case viRead:
		took, err = c.writeAndRead(ctx, s)
	}
	if err != nil {
		return took, err
	}
	c.rounds++
	return took, s.compare(k, in)
}

func (c *viClient) echoSend(ctx context.Context, s *viSeries) (time.Duration, error) {
	if err := c.postRecv(c.part(viInSlot, s.size)); err != nil {
		return 0, err
	}
	begin := time.Now()
	if err := c.postSend(func(d *vipl.Descriptor) { d.SetSend(c.part(viOutSlot, s.size)) }); err != nil {
		return 0, err
	}
	d, err := c.recv(ctx, vipl.StatusOpReceive)
	if err != nil {
		return 0, err
	}
	took := time.Since(begin)
	if uint64(d.Control.Length) != s.size {
		return 0, fmt.Errorf("data mismatch: %d octets came back", d.Control.Length)
	}
	return took, c.sent(ctx)
}

func (c *viClient) echoWrite(ctx context.Context, s *viSeries, k int) (time.Duration, error) {
	if err := c.postRecv(); err != nil { // for the immediate data
		return 0, err
	}
	to := c.remote.at(uint64(c.rounds%2) * c.slot)
	begin := time.Now()
	err := c.postSend(func(d *vipl.Descriptor) {
		d.SetRdmaWrite(to, c.part(viOutSlot, s.size))
		d.SetImmediate(s.immediate(k))
	})
	if err != nil {
		return 0, err
	}
	d, err := c.recv(ctx, vipl.StatusOpRemoteRdmaWrite)
	if err != nil {
		return 0, err
	}
	took := time.Since(begin)
	if want := ^s.immediate(k); d.Control.ImmediateData != want {
		return 0, fmt.Errorf("data mismatch: immediate data %#x came back, want %#x", d.Control.ImmediateData, want)
	}
	return took, c.sent(ctx)
}

// writeAndRead puts the data into the server's memory, and fetches them from there. The
// time is that of the RDMA Read, which does not pass the RDMA Write (VI Architecture 6.3.1.1).
func (c *viClient) writeAndRead(ctx context.Context, s *viSeries) (time.Duration, error) {
	there := c.remote.at(viReadSlot * c.slot)
	if err := c.postSend(func(d *vipl.Descriptor) { d.SetRdmaWrite(there, c.part(viOutSlot, s.size)) }); err != nil {
		return 0, err
	}
	if err := c.sent(ctx); err != nil {
		return 0, err
	}
	begin := time.Now()
	if err := c.postSend(func(d *vipl.Descriptor) { d.SetRdmaRead(there, c.part(viInSlot, s.size)) }); err != nil {
		return 0, err
	}
	if err := c.sent(ctx); err != nil {
		return 0, err
	}
	return time.Since(begin), nil
}

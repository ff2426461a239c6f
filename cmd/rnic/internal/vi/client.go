package vi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/cmd/rnic/internal/histogram"
	"github.com/softrnic/softrnic/internal/vitcp"
	"github.com/softrnic/softrnic/vipl"
)

// runClient makes the connections and prints the table.
func (p *viPing) runClient(cmd *cobra.Command, addr string) error {
	if len(p.sizes) > maxViSeries {
		return cli.Usagef("%d sizes, want %d at most", len(p.sizes), maxViSeries)
	}
	return cli.Measure(cmd, "vi ping", "rounds", p.json, func(ctx context.Context, draw *cli.Progress) (viReport, error) {
		begin := time.Now()
		draw.Next = begin.Add(time.Second) // a server may share the terminal: a short run is not worth a line there
		report, err := p.ping(ctx, addr, draw)
		report.Seconds = time.Since(begin).Seconds()
		return report, err
	}, func(w io.Writer, r viReport) error { return r.print(w) })
}

// viCase is the kind of a connection.
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
	servers, err := p.resolveVi(ctx, addr)
	if err != nil {
		return viReport{}, fmt.Errorf("%s: %w", addr, err)
	}
	var report viReport
	cases := p.cases()
	plan := viPlan{Session: fmt.Sprintf("%s %016x", viService, rand.Uint64()), Count: p.count, Sizes: p.sizes}
	c := &viClient{draw: draw, timeout: p.timeout}
	for _, k := range cases {
		c.total += uint64(len(plan.series(k.level)) * plan.Count)
	}
	for i, k := range cases {
		plan.Seed, plan.Left = rand.Uint64(), len(cases)-1-i
		rows, err := c.connection(ctx, servers[0], k, plan)
		for err != nil && i == 0 && len(servers) > 1 && errors.Is(err, vipl.ErrRefused) { // another address of that name
			servers = servers[1:]
			rows, err = c.connection(ctx, servers[0], k, plan)
		}
		if err != nil {
			return viReport{}, fmt.Errorf("%v: %w", c.agreed, err)
		}
		report.Server = viServerAt(servers[0])
		servers[0].Discriminator = []byte(plan.Session)
		report.Rows = append(report.Rows, rows...)
		report.Connections++
	}
	return report, nil
}

// viServerAt is the address and port of a server.
func viServerAt(a *vipl.NetAddress) string {
	at, err := a.AddrPort()
	if err != nil {
		return a.String()
	}
	if at.Port() == 0 {
		at = netip.AddrPortFrom(at.Addr(), vitcp.DefaultPort)
	}
	return at.String()
}

// viClient is the client's end of one connection after the other.
type viClient struct {
	*viEnd
	plan    viPlan
	remote  viBuffer // the server's slots
	rounds  int      // of this connection so far
	agreed  viCase   // of the connection; before it is made, the one that is asked for
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

// leave exchanges with the server that all was right.
func (c *viClient) leave(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	if err := c.postRecv(); err != nil {
		return err
	}
	if err := c.send(ctx); err != nil {
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
	row.P50 = histogram.Microseconds(times.Quantile(0.5))
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
	if s.op == viRead {
		took, err = c.writeAndRead(ctx, s)
	} else {
		took, err = c.echo(ctx, s, k)
	}
	if err != nil {
		return took, err
	}
	c.rounds++
	return took, s.compare(k, in)
}

// echo has the server send or write the data back.
func (c *viClient) echo(ctx context.Context, s *viSeries, k int) (time.Duration, error) {
	var in []vipl.DataSegment // for immediate data: none
	if s.op == viSend {
		in = []vipl.DataSegment{c.part(viInSlot, s.size)}
	}
	if err := c.postRecv(in...); err != nil {
		return 0, err
	}
	begin := time.Now()
	err := c.postSend(func(d *vipl.Descriptor) {
		if s.op == viSend {
			d.SetSend(c.part(viOutSlot, s.size))
			return
		}
		d.SetRdmaWrite(c.remote.at(uint64(c.rounds%2)*c.slot), c.part(viOutSlot, s.size))
		d.SetImmediate(s.immediate(k))
	})
	if err != nil {
		return 0, err
	}
	d, err := c.recv(ctx, s.op.arrival())
	if err != nil {
		return 0, err
	}
	took := time.Since(begin)
	switch want := ^s.immediate(k); {
	case s.op == viSend && uint64(d.Control.Length) != s.size:
		return 0, fmt.Errorf("data mismatch: %d octets came back", d.Control.Length)
	case s.op == viWrite && d.Control.ImmediateData != want:
		return 0, fmt.Errorf("data mismatch: immediate data %#x came back, want %#x", d.Control.ImmediateData, want)
	}
	return took, c.sent(ctx)
}

// writeAndRead puts the data into the server's memory, and fetches them from there. The
// time is that of the RDMA Read, which does not pass the RDMA Write (VI Architecture 6.3.1.1).
func (c *viClient) writeAndRead(ctx context.Context, s *viSeries) (time.Duration, error) {
	there := c.remote.at(viReadSlot * c.slot)
	if err := c.do(ctx, func(d *vipl.Descriptor) { d.SetRdmaWrite(there, c.part(viOutSlot, s.size)) }); err != nil {
		return 0, err
	}
	begin := time.Now()
	err := c.do(ctx, func(d *vipl.Descriptor) { d.SetRdmaRead(there, c.part(viInSlot, s.size)) })
	return time.Since(begin), err
}

package vi

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/internal/vitcp"
	"github.com/softrnic/softrnic/vipl"
)

// viMatchTimeout is how long a client may wait for a server that is busy with another.
const viMatchTimeout = 5 * time.Second

// runServer serves one client and prints a summary.
func (p *viPing) runServer(cmd *cobra.Command, addr string) error {
	nic, err := vipl.OpenNic(addr, vipl.Config{CRC: true, MatchTimeout: viMatchTimeout})
	switch {
	case errors.Is(err, vipl.ErrInUse): // which says what to do
		return fmt.Errorf("vi ping: opening the NIC: %w", err)
	case err != nil:
		return fmt.Errorf("vi ping: opening the NIC: %w; choose another ADDR", err)
	}
	cli.Logger(cmd).Info("listening on " + p.at(nic))
	summary, err := p.serve(cmd.Context(), nic)
	if closeErr := nic.CloseNic(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("vi ping: %w", err)
	}
	return cli.Print(cmd, p.json, summary, cli.Line)
}

// at is where a server listens; a discriminator that was given is named too.
func (p *viPing) at(nic *vipl.Nic) string {
	attributes, err := nic.QueryNic()
	if err != nil {
		return err.Error()
	}
	host, err := (&vipl.NetAddress{HostAddress: attributes.LocalNicAddress}).AddrPort()
	if err != nil {
		return err.Error()
	}
	if host.Port() == 0 {
		host = netip.AddrPortFrom(host.Addr(), vitcp.DefaultPort)
	}
	if p.called == viService {
		return host.String()
	}
	return fmt.Sprintf("%v for %q", host, p.called)
}

// serve serves the connections of one client, one after the other.
func (p *viPing) serve(ctx context.Context, nic *vipl.Nic) (viSummary, error) {
	var summary viSummary
	conn, err := nic.ConnectWait(ctx, &vipl.NetAddress{Discriminator: []byte(p.called)})
	if err != nil {
		return summary, fmt.Errorf("waiting for a client: %w", err)
	}
	begin := time.Now()
	for {
		summary.Client = viHost(conn)
		s := &viServer{summary: &summary}
		if err := s.serve(ctx, nic, conn); err != nil {
			return summary, fmt.Errorf("client %s, %v: %w", summary.Client, conn.RemoteViAttribs().ReliabilityLevel, err)
		}
		summary.Connections++
		if s.plan.Left == 0 {
			summary.Seconds = time.Since(begin).Seconds()
			return summary, nil
		}
		if conn, err = p.again(ctx, nic, s.plan.Session); err != nil {
			return summary, fmt.Errorf("waiting for the next connection of %s: %w", summary.Client, err)
		}
	}
}

// viHost is the address that a request came from.
func viHost(conn *vipl.Conn) string {
	at, err := conn.RemoteAddr().AddrPort()
	if err != nil {
		return conn.RemoteAddr().String()
	}
	return at.Addr().String()
}

// again waits for the next connection of a session.
func (p *viPing) again(ctx context.Context, nic *vipl.Nic, session string) (*vipl.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	return nic.ConnectWait(ctx, &vipl.NetAddress{Discriminator: []byte(session)})
}

// viServer is the server's end of one connection.
type viServer struct {
	*viEnd
	plan    viPlan
	rounds  []viSeries // those in which the program takes part
	summary *viSummary
}

// serve answers one connection.
func (s *viServer) serve(ctx context.Context, nic *vipl.Nic, conn *vipl.Conn) (err error) {
	level := conn.RemoteViAttribs().ReliabilityLevel
	if s.viEnd, err = openViEnd(nic, level); err != nil {
		return errors.Join(err, conn.ConnectReject())
	}
	if err = conn.ConnectAccept(s.vi); err != nil {
		err = fmt.Errorf("accepting: %w", err)
		_ = conn.ConnectReject() // if it still stands
	} else {
		err = s.answer(ctx, level)
	}
	return errors.Join(err, s.close())
}

func (s *viServer) answer(ctx context.Context, level vipl.ReliabilityLevel) error {
	crc, err := s.crc()
	if err != nil {
		return err
	}
	if crc {
		s.summary.CRC++
	}
	d, err := s.recv(ctx, vipl.StatusOpReceive)
	if err != nil {
		return err
	}
	if s.plan, err = parseViPlan(s.note(d)); err != nil {
		return err
	}
	for _, series := range s.plan.series(level) {
		if series.op != viRead {
			s.rounds = append(s.rounds, series)
		}
	}
	if err := s.allocate(s.plan.slot()); err != nil {
		return err
	}
	if err := s.expect(0); err != nil {
		return err
	}
	if err := s.sendNote(ctx, s.buffer(0)); err != nil {
		return err
	}
	for n := range s.total() {
		if err := s.round(ctx, n); err != nil {
			return err
		}
	}
	return s.leave(ctx)
}

// total is how many rounds there are.
func (s *viServer) total() int { return len(s.rounds) * s.plan.Count }

// at is round n of the connection: the series, and the number in it.
func (s *viServer) at(n int) (*viSeries, int) { return &s.rounds[n/s.plan.Count], n % s.plan.Count }

// expect posts the receive for round n, or for the client's end.
func (s *viServer) expect(n int) error {
	if n < s.total() {
		if series, _ := s.at(n); series.op == viSend {
			return s.postRecv(s.part(n%2, series.size))
		}
	}
	return s.postRecv()
}

// round answers a round. The data are compared while the answer is on its way.
func (s *viServer) round(ctx context.Context, n int) error {
	series, k := s.at(n)
	length, err := s.take(ctx, series, k)
	if err != nil {
		return err
	}
	if err := s.expect(n + 1); err != nil {
		return err
	}
	err = s.postSend(func(d *vipl.Descriptor) {
		if series.op == viSend {
			d.SetSend(s.part(n%2, length))
			return
		}
		d.SetRdmaWrite(s.plan.Sink.at(0), s.part(n%2, length))
		d.SetImmediate(^series.immediate(k))
	})
	if err != nil {
		return err
	}
	if err := series.compare(k, s.data(n%2, length)); err != nil {
		return err
	}
	s.summary.Rounds++
	s.summary.Verified += length
	return s.sent(ctx)
}

// take waits for round k of a series and returns how many octets came.
func (s *viServer) take(ctx context.Context, series *viSeries, k int) (uint64, error) {
	d, err := s.recv(ctx, series.op.arrival())
	if err != nil {
		return 0, err
	}
	if series.op == viSend {
		return uint64(d.Control.Length), nil
	}
	if want := series.immediate(k); d.Control.ImmediateData != want {
		return 0, fmt.Errorf("data mismatch: RDMA Write %d came with immediate data %#x, want %#x",
			k, d.Control.ImmediateData, want)
	}
	return series.size, nil
}

// leave takes the client's word that all was right, answers it, and waits until the client has gone.
func (s *viServer) leave(ctx context.Context) error {
	if _, err := s.recv(ctx, vipl.StatusOpReceive); err != nil {
		return err
	}
	if err := s.postRecv(); err != nil { // what completes it is the end of the connection
		return err
	}
	if err := s.postSend(func(d *vipl.Descriptor) { d.SetSend() }); err != nil {
		return err
	}
	if _, err := s.recv(ctx, vipl.StatusOpReceive); !errors.Is(err, errViEnded) {
		return errors.Join(errors.New("the client did not end the connection"), err)
	}
	return nil
}

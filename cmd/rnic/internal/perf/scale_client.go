package perf

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/cmd/rnic/internal/endpoint"
	"github.com/softrnic/softrnic/cmd/rnic/internal/histogram"
	"github.com/softrnic/softrnic/verbs"
)

// scaleClient is the measuring side of `rnic perf scale`.
type scaleClient struct {
	*scaleEnd
	server   *cli.Child
	where    cli.Announcement
	duration time.Duration
	progress *cli.Progress
}

// measure does everything in turn, so that nothing is beside anything else. The
// first queue pair is there all the time: to measure latency with, and so that
// the memory of the others is not mixed up with what the program needs anyway.
func (c *scaleClient) measure(ctx context.Context) (r scaleResult, err error) {
	n := len(c.pool)
	r.QPs = n
	c.fill()
	if r.TCPConnectsPerS, err = c.connectTCP(ctx); err != nil {
		return r, err
	}
	if _, err = c.connectQPs(ctx, 0, 1); err != nil {
		return r, err
	}
	if r.AloneUS, err = c.latency(ctx, 0); err != nil {
		return r, err
	}
	if err = c.memory(&r, func(s *scaleSide, m scaleMemory) { s.OneResident = m.Resident }); err != nil {
		return r, err
	}
	if r.ConnectsPerS, err = c.connectQPs(ctx, 1, n); err != nil {
		return r, err
	}
	err = c.memory(&r, func(s *scaleSide, m scaleMemory) { s.IdleResident, s.Goroutines = m.Resident, m.Goroutines })
	if err != nil {
		return r, err
	}
	if r.AmongUS, err = c.latency(ctx, 0); err != nil {
		return r, err
	}
	if err = c.traffic(ctx); err != nil {
		return r, err
	}
	if err = c.memory(&r, func(s *scaleSide, m scaleMemory) { s.ActiveResident = m.Resident }); err != nil {
		return r, err
	}
	r.Client.perQP(n - 1)
	r.Server.perQP(n - 1)
	r.IdleBytes = larger(r.Client.IdleBytes, r.Server.IdleBytes)
	r.ActiveBytes = larger(r.Client.ActiveBytes, r.Server.ActiveBytes)
	return r, nil
}

// askServer has the server do something.
func (c *scaleClient) askServer(what string, n int) (answer scaleAnswer, err error) {
	if err := c.server.Ask(scaleQuestion{what, n}, &answer); err != nil {
		return answer, fmt.Errorf("the server process ended: %w", err)
	}
	if answer.Error != "" {
		return answer, errors.New("the server says: " + answer.Error)
	}
	return answer, nil
}

// memory measures both sides' memory and has keep store it.
func (c *scaleClient) memory(r *scaleResult, keep func(*scaleSide, scaleMemory)) error {
	here, err := measureMemory()
	if err != nil {
		return err
	}
	there, err := c.askServer(askMemory, 0)
	if err != nil {
		return err
	}
	keep(&r.Client, here)
	keep(&r.Server, there.scaleMemory)
	return nil
}

// connectTCP makes as many bare TCP connections, and closes them when all are
// open at a time.
func (c *scaleClient) connectTCP(ctx context.Context) (float64, error) {
	conns := make([]net.Conn, len(c.pool))
	defer resetAll(conns)
	rate, err := c.dialTCP(ctx, conns)
	if err != nil {
		return 0, err
	}
	_, err = c.askServer(askTCPClosed, 0)
	return rate, err
}

// dialTCP makes all conns, bare ones. It may leave some nil when it fails.
func (c *scaleClient) dialTCP(ctx context.Context, conns []net.Conn) (float64, error) {
	return connectMany(ctx, "TCP", 0, len(conns), c.progress,
		func(ctx context.Context, i int) (err error) {
			var d net.Dialer
			if conns[i], err = d.DialContext(ctx, "tcp", c.where.Plain); err != nil {
				return shortOfPorts(fmt.Errorf("connecting to %s: %w", c.where.Plain, err))
			}
			return nil
		},
		func() error {
			_, err := c.askServer(askTCP, len(conns))
			return err
		})
}

// resetAll is reset for those that are not nil.
func resetAll(conns []net.Conn) {
	for _, conn := range conns {
		if conn != nil {
			reset(conn)
		}
	}
}

// reset closes a connection that does not linger: thousands that do would take
// the ports that are needed next.
func reset(conn net.Conn) {
	_ = conn.(*net.TCPConn).SetLinger(0) // closing is all that counts
	conn.Close()
}

// shortOfPorts adds what to do about it, if that is what err says.
func shortOfPorts(err error) error {
	if errors.Is(err, syscall.EADDRNOTAVAIL) {
		err = fmt.Errorf("%w; too few local ports, see net.ipv4.ip_local_port_range, or ask for fewer with --qps", err)
	}
	return err
}

// connectQPs connects queue pairs from to to-1.
func (c *scaleClient) connectQPs(ctx context.Context, from, to int) (float64, error) {
	f := c.connFlags()
	cfg := f.Config()
	return connectMany(ctx, "QPs", from, to, c.progress,
		func(ctx context.Context, i int) error {
			qp, err := c.create(i)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(ctx, f.Timeout)
			defer cancel()
			if c.pool[i].conn, err = cm.Dial(ctx, c.where.Address, qp, cfg); err != nil {
				return shortOfPorts(fmt.Errorf("connecting to %s: %w", c.where.Address, err))
			}
			return nil
		},
		func() error {
			_, err := c.askServer(askQPs, to-from)
			return err
		})
}

// latency measures round trips of queue pair i, and returns the median of half of
// one in microseconds.
func (c *scaleClient) latency(ctx context.Context, i int) (float64, error) {
	q := &c.pool[i]
	r := c.reaper(c.cq[i%len(c.cq)])
	var times histogram.Histogram
	begin := time.Now()
	for n, now := 0, begin; n <= warmUp || now.Sub(begin) < c.duration; n++ { // one counts at least
		if err := q.send(); err != nil {
			return 0, err
		}
		if _, err := c.arrival(ctx, &r); err != nil {
			return 0, err
		}
		end := time.Now()
		if n >= warmUp {
			times.Record(end.Sub(now))
		}
		now = end
	}
	return float64(times.Quantile(0.5)) / 2 / float64(time.Microsecond), nil
}

// arrival waits for a message from the server, checks it, posts its Receive again,
// and returns its queue pair.
func (c *scaleClient) arrival(ctx context.Context, r *endpoint.Reaper) (*scaleQP, error) {
	for {
		wc, err := r.Next(ctx)
		if err != nil {
			return nil, err
		}
		if wc.Op != verbs.OpRecv {
			continue
		}
		q := wc.Context.(*scaleQP)
		if err := c.verify(q.index, int(wc.Bytes)); err != nil {
			return nil, err
		}
		err = q.receive()
		return q, err
	}
}

// fill makes the messages that are sent, each other than the rest.
func (c *scaleClient) fill() {
	for i := range c.pool {
		firstPattern.Fill(c.buf[c.source(i):][:scaleSize], uint64(i*scaleSize))
	}
}

// verify compares the message of so many octets that queue pair i received last with
// the one that it sends.
func (c *scaleClient) verify(i, octets int) error {
	if at := firstPattern.Mismatch(c.arrived(i), uint64(i*scaleSize)); at >= 0 || octets != scaleSize {
		return fmt.Errorf("what queue pair %d of %d got back is not what it sent: %d octets, the first wrong one %d",
			i, len(c.pool), octets, at)
	}
	return nil
}

// arrived is what queue pair i received last.
func (c *scaleClient) arrived(i int) []byte { return c.buf[c.sink(i):][:scaleSize] }

// traffic has every queue pair carry a message each way, scaleDialers of them at a
// time.
func (c *scaleClient) traffic(ctx context.Context) error {
	for k, cq := range c.cq {
		r := c.reaper(cq)
		next, open := k, 0
		for next < len(c.pool) || open > 0 {
			if next < len(c.pool) && open < scaleDialers {
				if err := c.pool[next].send(); err != nil {
					return err
				}
				next += len(c.cq)
				open++
				continue
			}
			q, err := c.arrival(ctx, &r)
			if err != nil {
				return err
			}
			clear(c.arrived(q.index)) // so that an old message does not pass for a new one
			open--
		}
	}
	return nil
}

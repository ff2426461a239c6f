package perf

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/cmd/rnic/internal/endpoint"
	"github.com/softrnic/softrnic/cmd/rnic/internal/histogram"
	"github.com/softrnic/softrnic/internal/tcpsock"
)

// scaleClient is the measuring end of many connections.
type scaleClient struct {
	*scaleEnd
	server   *cli.Process
	duration time.Duration
	progress *cli.Progress
}

// withScaleClient prepares both ends of n connections, the other one as a server process with these arguments.
func withScaleClient(
	ctx context.Context, n int, shape scaleShape, server []string, use func(*scaleClient) error,
) error {
	if err := allowFiles(n); err != nil {
		return err
	}
	end, err := newScaleEnd(n, shape)
	if err != nil {
		return err
	}
	// The server ends first: it takes the end of a connection for an error.
	defer end.nic.Close()
	return cli.WithServer(ctx, server, func(p *cli.Process) error {
		return use(&scaleClient{scaleEnd: end, server: p, progress: &cli.Progress{}})
	})
}

// measure does everything in turn, so that nothing is beside anything else. The
// first queue pair is there all the time: to measure latency with, and so that
// the memory of the others is not mixed up with that of the program itself.
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
	if r.AloneUS, err = c.latency(ctx); err != nil {
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
	if r.AmongUS, err = c.latency(ctx); err != nil {
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

// request has the server do something.
func (c *scaleClient) request(what string, n int) (response scaleResponse, err error) {
	if err := c.server.Request(scaleRequest{what, n}, &response); err != nil {
		return response, fmt.Errorf("the server process ended: %w", err)
	}
	if response.Error != "" {
		return response, errors.New("the server says: " + response.Error)
	}
	return response, nil
}

// memory measures both sides' memory and has keep store it.
func (c *scaleClient) memory(r *scaleResult, keep func(*scaleSide, scaleMemory)) error {
	here, err := measureMemory()
	if err != nil {
		return err
	}
	there, err := c.request(doMemory, 0)
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
	_, err = c.request(doTCPClosed, 0)
	return rate, err
}

// dialTCP makes all conns, bare ones. It may leave some nil when it fails.
func (c *scaleClient) dialTCP(ctx context.Context, conns []net.Conn) (float64, error) {
	return connectMany(ctx, "TCP", 0, len(conns), c.progress,
		func(ctx context.Context, i int) (err error) {
			var d net.Dialer
			if conns[i], err = d.DialContext(ctx, "tcp", c.server.Plain); err != nil {
				return shortOfPorts(fmt.Errorf("connecting to %s: %w", c.server.Plain, tcpsock.NoPort(err)))
			}
			return nil
		},
		func() error {
			_, err := c.request(doTCP, len(conns))
			return err
		})
}

// resetAll closes connections, some of which may be nil, at once: thousands that
// linger would take the ports that are needed next.
func resetAll(conns []net.Conn) {
	for _, conn := range conns {
		if conn != nil {
			_ = conn.(*net.TCPConn).SetLinger(0) // closing is all that counts
			conn.Close()
		}
	}
}

// shortOfPorts adds what to do about it, if that is what err says.
func shortOfPorts(err error) error {
	if tcpsock.IsNoPort(err) {
		err = fmt.Errorf("%w; or ask for fewer with --qps", err)
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
			if c.pool[i].conn, err = cm.Dial(ctx, c.server.Address, qp, cfg); err != nil {
				return shortOfPorts(fmt.Errorf("connecting to %s: %w", c.server.Address, err))
			}
			return nil
		},
		func() error {
			_, err := c.request(doQPs, to-from)
			return err
		})
}

// latency measures round trips of the first queue pair, and returns the median of
// half of one in microseconds.
func (c *scaleClient) latency(ctx context.Context) (float64, error) {
	q := &c.pool[0]
	r := c.reaper(c.cq[0])
	times, _, err := pingPong(c.duration, warmUp, func() error {
		if err := q.send(); err != nil {
			return err
		}
		_, err := c.arrival(ctx, &r)
		return err
	})
	if err != nil {
		return 0, err
	}
	return histogram.Microseconds(times.Quantile(0.5)) / 2, nil
}

// arrival waits for a message from the server, checks it, posts its Receive again,
// and returns its queue pair.
func (c *scaleClient) arrival(ctx context.Context, r *endpoint.Reaper) (*scaleQP, error) {
	wc, err := r.NextRecv(ctx)
	if err != nil {
		return nil, err
	}
	q := wc.Context.(*scaleQP)
	if err := c.verify(q.index, int(wc.Bytes)); err != nil {
		return nil, err
	}
	err = q.receive()
	return q, err
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

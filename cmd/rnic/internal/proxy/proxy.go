// Package proxy is `rnic proxy`: faults, and a capture, between any two iWARP ends.
package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/fault"
)

// maxConnections is how many connections a proxy carries at once.
const maxConnections = 1024

// proxy holds the flags.
type proxy struct {
	listen string
	lab    cli.Lab
}

// Command makes `rnic proxy`.
func Command() *cobra.Command {
	p := proxy{}
	cmd := &cobra.Command{
		Use:   "proxy TARGET",
		Short: "Make faults between any two iWARP ends, and write down what goes over",
		Long: `proxy takes connections and carries each to TARGET, an address such as 192.0.2.1:7174,
with the faults of a plan between: it understands MPA, DDP and RDMAP. The ends may be any,
an adapter, Linux siw or another rnic. out is what the client sends, in what it gets.

It listens on the loopback unless --listen says otherwise, and goes on until it is stopped.`,
		Example: "  rnic proxy --faults plan --listen 127.0.0.1:7175 192.0.2.1:7174",
		Args:    cli.ExactArgs("TARGET"),
		RunE:    func(cmd *cobra.Command, args []string) error { return p.run(cmd, args[0]) },
	}
	f := cmd.Flags()
	f.StringVar(&p.listen, "listen", "127.0.0.1:0", "`address` to listen on; port 0 for any")
	p.lab.AddFaults(f)
	p.lab.AddCapture(f) // a trace is of an RNIC, which a proxy has none of
	return cmd
}

func (p *proxy) run(cmd *cobra.Command, target string) error {
	if _, port, err := net.SplitHostPort(target); err != nil || port == "" {
		return cli.Usagef("TARGET %q: want an address and a port, such as 192.0.2.1:7174", target)
	}
	plan, err := p.lab.Plan()
	if err != nil {
		return err
	}
	if plan == nil {
		plan = &fault.Plan{}
	}
	if err := plan.NeedsRNIC(); err != nil {
		return cli.WithStatus(2, fmt.Errorf("--faults: %s, %w", p.lab.Faults, err))
	}
	log := cmd.ErrOrStderr()
	in, err := fault.New(plan, func(s fault.Strike) { fmt.Fprintf(log, "rnic: fault: %v\n", s) })
	if err != nil {
		return cli.WithStatus(2, err)
	}
	t, err := p.lab.Tap()
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", p.listen)
	if err != nil {
		return fmt.Errorf("proxy: %w; choose another --listen", err)
	}
	fmt.Fprintf(log, "rnic: listening on %v\n", l.Addr())
	s := &server{ctx: cmd.Context(), target: target, in: in}
	s.log = func(err error) { fmt.Fprintf(log, "rnic: %s\n", cli.OneLine(err)) }
	if t != nil {
		s.between = t.Conn
	}
	err = s.serve(l)
	if t != nil {
		err = errors.Join(err, t.Close())
	}
	return err
}

// server carries connections.
type server struct {
	ctx     context.Context
	target  string
	in      *fault.Injector
	between func(client, server net.Conn) net.Conn // nil: no capture
	log     func(error)
}

// serve goes on until the context ends, or l fails, and ends all connections then.
func (s *server) serve(l net.Listener) error {
	stop := context.AfterFunc(s.ctx, func() { _ = l.Close() })
	defer stop()
	ctx, cancel := context.WithCancel(s.ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	places := make(chan struct{}, maxConnections)
	for {
		places <- struct{}{}
		client, err := l.Accept()
		if s.ctx.Err() != nil {
			return nil // stopped by the user
		}
		if err != nil {
			return fmt.Errorf("proxy: %w", err)
		}
		all.Go(func() {
			defer func() { <-places }()
			if err := s.carry(ctx, client); err != nil {
				s.log(fmt.Errorf("proxy: %v: %w", client.RemoteAddr(), err))
			}
		})
	}
}

// carry carries one connection.
func (s *server) carry(ctx context.Context, client net.Conn) error {
	d := net.Dialer{Timeout: 10 * time.Second}
	server, err := d.DialContext(ctx, "tcp", s.target)
	if err != nil {
		_ = client.(*net.TCPConn).SetLinger(0)
		_ = client.Close()
		return err
	}
	stop := context.AfterFunc(ctx, func() {
		_ = client.Close()
		_ = server.Close()
	})
	defer stop()
	to := server
	if s.between != nil {
		to = s.between(client, server)
	}
	return s.in.Relay(client, to)
}

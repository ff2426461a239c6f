// Package proxy is `rnic proxy`: faults, and a capture, between any two iWARP ends.
package proxy

import (
	"errors"
	"fmt"
	"net"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/lab/fault"
	"github.com/softrnic/softrnic/lab/relay"
)

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
	log := cli.Logger(cmd)
	in, err := p.lab.Injector(plan, log)
	if err != nil {
		return err
	}
	t, err := p.lab.Tap()
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", p.listen)
	if err != nil {
		return fmt.Errorf("proxy: %w; choose another --listen", err)
	}
	log.Info(fmt.Sprintf("listening on %v", l.Addr()))
	c := relay.Config{Faults: in, Logger: log}
	if t != nil {
		c.Between = t.Conn
	}
	err = relay.New(target, c).Serve(cmd.Context(), l)
	if t != nil {
		err = errors.Join(err, t.Close())
	}
	return err
}

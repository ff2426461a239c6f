// Package demo is `rnic demo`: the main job of an RNIC on one machine, between two processes.
package demo

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
)

// demo holds the flags of `rnic demo`.
type demo struct {
	flags cli.ConnFlags
	lab   cli.Lab
	bytes uint64
	json  bool
	serve bool // be the server process; set by the demo itself
}

// maxDemo bounds the octets of a demo: a day at full speed.
const maxDemo = 1 << 49

// Command makes `rnic demo`.
func Command() *cobra.Command {
	d := demo{bytes: 1 << 30}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Move and verify data between two processes",
		Long: `Start a server process and connect to it over loopback; move data by Send, RDMA
Write and RDMA Read, a third each; verify every octet where it arrives. The
server receives through a shared receive queue. Writes and Reads go through a
memory window. At the end the client invalidates the window and shows that a
Write through it is refused then.`,
		Args: cli.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if d.serve {
				return d.runServer(cmd)
			}
			return d.run(cmd)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.Var(cli.SizeRange(&d.bytes, uint64(len(demoOps)), maxDemo), "bytes", "octets to move in all, such as 100M or 4G")
	f.BoolVar(&d.json, "json", false, "print JSON")
	f.BoolVar(&d.serve, "serve", false, "be the server process")
	f.Lookup("serve").Hidden = true
	d.flags.AddTo(cmd)
	d.lab.AddCapture(f)
	d.lab.AddTrace(f)
	return cmd
}

// runServer is the server process: it ends with its client or its parent.
func (d *demo) runServer(cmd *cobra.Command) error {
	ctx, cancel := cli.UntilEOF(cmd.Context(), cmd.InOrStdin())
	defer cancel()
	err := serveDemo(ctx, &d.flags, func(address string) error {
		return cli.Announce(cmd, cli.Announcement{Address: address})
	})
	if ctx.Err() != nil {
		return nil // the parent gave up, and says why
	}
	return err
}

func (d *demo) run(cmd *cobra.Command) error {
	rnic, finish, err := d.lab.RNIC(cli.Logger(cmd))
	if err != nil {
		return err
	}
	d.flags.RNIC = rnic
	begin := time.Now()
	return cli.Measure(cmd, "demo", "octets", d.json, func(ctx context.Context, p *cli.Progress) (demoReport, error) {
		results, err := d.twoProcesses(ctx, p)
		err = finish(err)
		return newDemoReport(results, time.Since(begin), d.flags.CRC), err
	}, func(w io.Writer, r demoReport) error { return r.print(w) })
}

// twoProcesses is the client; the server is another process.
func (d *demo) twoProcesses(ctx context.Context, p *cli.Progress) (results []demoResult, err error) {
	args := append([]string{"demo", "--serve"}, d.flags.Args()...)
	err = cli.WithServer(ctx, args, func(server *cli.Process) (err error) {
		plan := demoPlan{Bytes: d.bytes, Seed: rand.Uint64()}
		if results, err = runDemoClient(ctx, server.Address, &d.flags, plan, p); err != nil {
			return err
		}
		return server.Wait()
	})
	return results, err
}

// demoReport is the result of the demo.
type demoReport struct {
	Ops      []demoResult `json:"ops"`
	Bytes    uint64       `json:"bytes"`
	Verified uint64       `json:"verified_bytes"`
	Seconds  float64      `json:"seconds"` // starting the server included
	CRC      bool         `json:"crc"`
}

func newDemoReport(results []demoResult, took time.Duration, crc bool) demoReport {
	r := demoReport{Ops: results, Seconds: took.Seconds(), CRC: crc}
	for _, op := range results {
		r.Bytes += op.Bytes
		r.Verified += op.Verified
	}
	return r
}

func (r demoReport) print(w io.Writer) error {
	t := cli.NewTable(w)
	fmt.Fprintln(t, "operation\ttarget\toctets\tmessages\tseconds\tGB/s\toutcome\t")
	for _, op := range r.Ops {
		octets, rate := "-", "-"
		if op.Bytes > 0 {
			octets, rate = cli.Grouped(op.Bytes), fmt.Sprintf("%.2f", op.GBps)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%.3f\t%s\t%s\t\n", op.Op, op.Target,
			octets, cli.Grouped(uint64(op.Messages)), op.Seconds, rate, op.Outcome)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\n%s octets between two processes in %.2f s, CRC %s; all verified\n",
		cli.Grouped(r.Verified), r.Seconds, cli.OnOff(&r.CRC))
	last := r.Ops[len(r.Ops)-1]
	_, err := fmt.Fprintf(w, "The last %s was refused as it should be: Terminate %s\n", last.Op, last.Terminate)
	if last.Why != "" && err == nil {
		_, err = fmt.Fprintf(w, "%s\n", last.Why)
	}
	return err
}

package nvme

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/cmd/rnic/internal/pattern"
	"github.com/softrnic/softrnic/ulp/nvmeof"
)

// checking is `rnic nvme check`.
type checking struct {
	host
	span
	yes bool
}

func checkCommand() *cobra.Command {
	var c checking
	cmd := &cobra.Command{
		Use:   "check ADDR",
		Short: "Write a pattern onto a part of a disk, and verify it",
		Long: `check overwrites a part of a disk of the target at ADDR, port 4420 unless it says another,
with data of which every octet depends on its place and on the run, flushes, reads it
again and compares. What was there is lost: it wants --offset, --length and --yes.`,
		Example: "  rnic nvme check 192.0.2.1 --offset 0 --length 64M --yes",
		Args:    cli.ExactArgs("ADDR"),
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := given(cmd, "offset", "length"); err != nil {
				return err
			}
			if !c.yes {
				return cli.Usagef("--yes is missing: %d octets from %d on of namespace %d are lost", c.length, c.offset, c.namespace)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd, args[0]) },
	}
	c.host.addTo(cmd)
	c.addDisk(cmd)
	c.span.addTo(cmd, " to overwrite, whole blocks, such as 64M")
	cmd.Flags().BoolVar(&c.yes, "yes", false, "overwrite what is there")
	c.lab.AddTo(cmd.Flags())
	return cmd
}

// checked is what check prints.
type checked struct {
	Namespace uint32      `json:"namespace"`
	Offset    uint64      `json:"offset"`
	Verified  uint64      `json:"verified_octets"`
	Steps     []checkStep `json:"steps"`
}

type checkStep struct {
	Step    string  `json:"step"`
	Octets  uint64  `json:"octets"`
	Seconds float64 `json:"seconds"`
	GBps    float64 `json:"gbps"`
}

func (c *checking) run(cmd *cobra.Command, addr string) error {
	if c.length == 0 {
		return cli.Usagef("--length 0: want a block at least")
	}
	finish, err := c.open(cli.Logger(cmd))
	if err != nil {
		return err
	}
	measure := func(ctx context.Context, p *cli.Progress) (report checked, err error) {
		err = c.disk(ctx, addr, func(n *nvmeof.Namespace) error {
			if err := c.check(n, true); err != nil {
				return err
			}
			report, err = c.verify(ctx, n, p)
			return err
		})
		return report, finish(err)
	}
	return cli.Measure(cmd, "nvme check", "octets", c.json, measure, func(w io.Writer, r checked) error { return r.print(w) })
}

// verify writes, flushes, reads and compares.
func (c *checking) verify(ctx context.Context, n *nvmeof.Namespace, p *cli.Progress) (checked, error) {
	report := checked{Namespace: n.ID(), Offset: c.offset}
	seed := pattern.Pattern(rand.Uint64())
	for _, s := range []struct {
		name   string
		octets uint64
		do     func() error
	}{
		{"write", c.length, func() error {
			return c.each(ctx, p, "write", func(b []byte, off int64) error {
				seed.Fill(b, uint64(off))
				return writeSpan(n, b, off)
			})
		}},
		{"flush", 0, func() error { return n.Flush(ctx) }},
		{"read", c.length, func() error {
			return c.each(ctx, p, "verify", func(b []byte, off int64) error {
				clear(b)
				if err := readSpan(n, b, off); err != nil {
					return err
				}
				if i := seed.Mismatch(b, uint64(off)); i >= 0 {
					return fmt.Errorf("octet %d of namespace %d is %#02x, and not what was written there", off+int64(i), n.ID(), b[i])
				}
				return nil
			})
		}},
	} {
		begin := time.Now()
		if err := s.do(); err != nil {
			return report, err
		}
		took := time.Since(begin).Seconds()
		report.Steps = append(report.Steps, checkStep{s.name, s.octets, took, rate(s.octets, took)})
	}
	report.Verified = c.length
	return report, nil
}

func (r checked) print(w io.Writer) error {
	t := cli.NewTable(w)
	fmt.Fprintln(t, "step\toctets\tseconds\tGB/s\t")
	for _, s := range r.Steps {
		octets, gbps := "-", "-"
		if s.Octets > 0 {
			octets, gbps = cli.Grouped(s.Octets), fmt.Sprintf("%.3f", s.GBps)
		}
		fmt.Fprintf(t, "%s\t%s\t%.3f\t%s\t\n", s.Step, octets, s.Seconds, gbps)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s octets at %s of namespace %d: all verified\n",
		cli.Grouped(r.Verified), cli.Grouped(r.Offset), r.Namespace)
	return err
}

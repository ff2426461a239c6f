package nvme

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/internal/safeopen"
	"github.com/softrnic/softrnic/ulp/nvmeof"
)

// copying is `rnic nvme read` and `write`: a part of a disk, and a file.
type copying struct {
	host
	span
}

func readCommand() *cobra.Command {
	var c copying
	cmd := &cobra.Command{
		Use:   "read ADDR FILE",
		Short: "Copy a disk, or a part of it, into a file",
		Long: `read copies a part of a disk of the target at ADDR, port 4420 unless it says another,
into FILE, which is made anew; - is the standard output. Without --length it is the rest of the disk.`,
		Example: "  rnic nvme read 192.0.2.1 disk.img\n  rnic nvme read 192.0.2.1 - --length 512 | xxd | head",
		Args:    cli.ExactArgs("ADDR", "FILE"),
		RunE:    func(cmd *cobra.Command, args []string) error { return c.read(cmd, args[0], args[1]) },
	}
	c.addTo(cmd)
	c.addDisk(cmd)
	c.span.addTo(cmd, " to read; 0 for the rest of the disk")
	c.lab.AddTo(cmd.Flags())
	return cmd
}

func (c *copying) addTo(cmd *cobra.Command) { c.host.addTo(cmd) }

func (c *copying) read(cmd *cobra.Command, addr, name string) error {
	if name == "-" && c.json {
		return cli.Usagef("--json: the standard output has the data; give a FILE")
	}
	read := func(ctx context.Context, n *nvmeof.Namespace, p *cli.Progress) (err error) {
		if size := uint64(n.Size()); c.length == 0 && c.offset < size {
			c.length = size - c.offset
		}
		if err := c.check(n, false); err != nil {
			return err
		}
		out := cmd.OutOrStdout()
		if name != "-" {
			f, err := safeopen.Private(name, os.O_TRUNC)
			if err != nil {
				return cli.WithStatus(2, err)
			}
			defer func() { err = errors.Join(err, f.Close()) }()
			out = f
		}
		return c.each(ctx, p, "read", func(b []byte, off int64) error {
			if err := readSpan(n, b, off); err != nil {
				return err
			}
			_, err := out.Write(b)
			return err
		})
	}
	return c.measure(cmd, addr, name != "-", "read", read)
}

func writeCommand() *cobra.Command {
	var c copying
	cmd := &cobra.Command{
		Use:   "write ADDR FILE",
		Short: "Copy a file onto a disk",
		Long: `write copies FILE, or the standard input if that is -, onto a disk of the target at ADDR,
port 4420 unless it says another, from --offset on, and flushes it. What was there is
overwritten. Of the last block the rest stays as it is.`,
		Example: "  rnic nvme write 192.0.2.1 disk.img --offset 0",
		Args:    cli.ExactArgs("ADDR", "FILE"),
		PreRunE: func(cmd *cobra.Command, _ []string) error { return given(cmd, "offset") },
		RunE:    func(cmd *cobra.Command, args []string) error { return c.write(cmd, args[0], args[1]) },
	}
	c.addTo(cmd)
	c.addDisk(cmd)
	c.span.addTo(cmd, " to write; 0 for the whole file")
	c.lab.AddTo(cmd.Flags())
	return cmd
}

func (c *copying) write(cmd *cobra.Command, addr, name string) error {
	in, err := cli.OpenInput(cmd, name)
	if err != nil {
		return err
	}
	defer in.Close()
	if f, ok := in.(*os.File); ok && c.length == 0 {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			if c.length = uint64(info.Size()); c.length == 0 {
				return cli.Usagef("%s is empty", name)
			}
		}
	}
	if c.length == 0 {
		return cli.Usagef("--length is missing: %s does not say how long it is", name)
	}
	return c.measure(cmd, addr, true, "write", func(ctx context.Context, n *nvmeof.Namespace, p *cli.Progress) error {
		if err := c.check(n, false); err != nil {
			return err
		}
		err := c.each(ctx, p, "write", func(b []byte, off int64) error {
			if _, err := io.ReadFull(in, b); err != nil {
				return fmt.Errorf("%s ended before --length, or cannot be read: %w", name, err)
			}
			return writeSpan(n, b, off)
		})
		return errors.Join(err, n.Flush(ctx))
	})
}

// measure has do move the span of the disk, and says how long it took, if that is wanted.
func (c *copying) measure(
	cmd *cobra.Command, addr string, report bool, name string,
	do func(context.Context, *nvmeof.Namespace, *cli.Progress) error,
) error {
	finish, err := c.open(cli.Logger(cmd))
	if err != nil {
		return err
	}
	measure := func(ctx context.Context, p *cli.Progress) (m moved, err error) {
		err = c.disk(ctx, addr, func(n *nvmeof.Namespace) error {
			begin := time.Now()
			if err := do(ctx, n, p); err != nil {
				return err
			}
			m = moved{Namespace: n.ID(), Offset: c.offset, Octets: c.length, Seconds: time.Since(begin).Seconds()}
			m.GBps = rate(m.Octets, m.Seconds)
			return nil
		})
		return m, finish(err)
	}
	return cli.Measure(cmd, "nvme "+name, "octets", c.json, measure, func(w io.Writer, m moved) error {
		if !report {
			return nil
		}
		return cli.Line(w, m)
	})
}

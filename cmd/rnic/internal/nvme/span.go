package nvme

import (
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/ulp/nvmeof"
)

// What is moved at once: a window, a piece of it in each of so many calls.
const (
	window = 8 << 20
	piece  = 1 << 20
)

// span is a part of a disk, in octets.
type span struct{ offset, length uint64 }

// addTo adds the flags; whole is what --length is without.
func (s *span) addTo(cmd *cobra.Command, whole string) {
	f := cmd.Flags()
	f.Var(cli.SizeRange(&s.offset, 0, math.MaxInt64), "offset", "`octets` from the beginning of the disk, whole blocks, such as 1M")
	f.Var(cli.SizeRange(&s.length, 0, math.MaxInt64), "length", "`octets`"+whole)
}

// check refuses a span that is not the disk's, or does not begin with a block; with blocks it ends with one, too.
func (s *span) check(n *nvmeof.Namespace, blocks bool) error {
	block, size := uint64(n.BlockSize()), uint64(n.Size())
	switch {
	case s.offset%block != 0:
		return cli.Usagef("--offset %d: want a multiple of the block, %d octets", s.offset, block)
	case blocks && s.length%block != 0:
		return cli.Usagef("--length %d: want a multiple of the block, %d octets", s.length, block)
	case s.offset > size || s.length > size-s.offset:
		return cli.Usagef("%d octets from %d on: namespace %d has %d", s.length, s.offset, n.ID(), size)
	}
	return nil
}

// each calls do with each window of the span in turn, of buf, and shows how far it is.
func (s *span) each(ctx context.Context, p *cli.Progress, what string, do func(b []byte, off int64) error) error {
	buf := make([]byte, min(s.length, window))
	for done := uint64(0); done < s.length; {
		if err := ctx.Err(); err != nil {
			return err
		}
		b := buf[:min(s.length-done, window)]
		if err := do(b, int64(s.offset+done)); err != nil {
			return err
		}
		done += uint64(len(b))
		p.Show(what, done, s.length)
	}
	return nil
}

// together moves a window, its pieces side by side.
func together(b []byte, off int64, move func([]byte, int64) (int, error)) error {
	failed := make([]error, (len(b)+piece-1)/piece)
	var all sync.WaitGroup
	for i := range failed {
		all.Go(func() {
			at := i * piece
			_, failed[i] = move(b[at:min(at+piece, len(b))], off+int64(at))
		})
	}
	all.Wait()
	for _, err := range failed { // one is enough to know
		if err != nil {
			return err
		}
	}
	return nil
}

// readSpan reads len(b) octets, of which the last block may be a part.
func readSpan(n *nvmeof.Namespace, b []byte, off int64) error {
	whole := len(b) / n.BlockSize() * n.BlockSize()
	if err := together(b[:whole], off, n.ReadAt); err != nil || whole == len(b) {
		return err
	}
	last := make([]byte, n.BlockSize())
	_, err := n.ReadAt(last, off+int64(whole))
	copy(b[whole:], last)
	return err
}

// writeSpan writes b; of a last block that it has a part of the rest stays.
func writeSpan(n *nvmeof.Namespace, b []byte, off int64) error {
	whole := len(b) / n.BlockSize() * n.BlockSize()
	if err := together(b[:whole], off, n.WriteAt); err != nil || whole == len(b) {
		return err
	}
	last := make([]byte, n.BlockSize())
	if _, err := n.ReadAt(last, off+int64(whole)); err != nil {
		return err
	}
	copy(last, b[whole:])
	_, err := n.WriteAt(last, off+int64(whole))
	return err
}

// given refuses a command line without one of the flags, which name what is overwritten.
func given(cmd *cobra.Command, flags ...string) error {
	for _, name := range flags {
		if !cmd.Flags().Changed(name) {
			return cli.Usagef("--%s is missing: what is there is overwritten, so say where", name)
		}
	}
	return nil
}

// moved is what read and write print.
type moved struct {
	Namespace uint32  `json:"namespace"`
	Offset    uint64  `json:"offset"`
	Octets    uint64  `json:"octets"`
	Seconds   float64 `json:"seconds"`
	GBps      float64 `json:"gbps"`
}

func rate(octets uint64, seconds float64) float64 { return float64(octets) / max(seconds, 1e-9) / 1e9 }

func (m moved) String() string {
	return fmt.Sprintf("%s octets at %s of namespace %d in %.2f s, %.3f GB/s",
		cli.Grouped(m.Octets), cli.Grouped(m.Offset), m.Namespace, m.Seconds, m.GBps)
}

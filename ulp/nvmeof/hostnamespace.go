package nvmeof

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// ErrAlignment is in the error of a ReadAt or WriteAt that is not of whole blocks. Nothing has been sent then.
var ErrAlignment = errors.New("not of whole blocks")

// maxListed bounds how many namespaces a target may list.
const maxListed = 1 << 16

// Namespace is a disk of a target. All methods may be called from any goroutine: as many commands are on their way at
// once as the Host's queues have places, and others wait for one.
type Namespace struct {
	host  *Host
	nsid  uint32
	info  namespaceInfo
	piece int // octets of a command at most: whole blocks
}

// Namespaces are those that the controller has, in the order of their identifiers. Errors: a *CommandError, that of a
// Host that has ended, the end of ctx.
func (h *Host) Namespaces(ctx context.Context) ([]*Namespace, error) {
	nsids, err := h.active(ctx)
	if err != nil {
		return nil, fmt.Errorf("nvmeof: listing namespaces: %w", err)
	}
	var all []*Namespace
	for _, nsid := range nsids {
		n, err := h.Namespace(ctx, nsid)
		if err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	return all, nil
}

func (h *Host) active(ctx context.Context) (nsids []uint32, err error) {
	for after, full := uint32(0), true; full; after = nsids[len(nsids)-1] {
		page, err := h.identify(ctx, idActiveList, after)
		if err != nil {
			return nil, err
		}
		var more []uint32
		if more, full, err = parseActive(page, after); err != nil {
			return nil, err
		}
		nsids = append(nsids, more...)
		switch {
		case len(nsids) > maxListed:
			return nil, fmt.Errorf("it lists more than %d", maxListed)
		case len(nsids) == 0:
			return nil, nil
		}
	}
	return nsids, nil
}

// Namespace is the one with that identifier, 1 or more. Errors: as Namespaces, and what is wrong with what the target
// says of it: blocks with metadata, of 512 octets to 1 MiB not.
func (h *Host) Namespace(ctx context.Context, nsid uint32) (*Namespace, error) {
	page, err := h.identify(ctx, idNS, nsid)
	if err == nil {
		n := &Namespace{host: h, nsid: nsid}
		if n.info, err = parseNamespace(page); err == nil {
			n.piece = h.info.MaxTransfer / n.info.block * n.info.block
		}
		if err == nil && n.piece == 0 {
			err = fmt.Errorf("its blocks have %d octets, its controller takes %d in a command", n.info.block, h.info.MaxTransfer)
		}
		if err == nil {
			return n, nil
		}
	}
	return nil, fmt.Errorf("nvmeof: namespace %d: %w", nsid, err)
}

// ID is the identifier in its subsystem.
func (n *Namespace) ID() uint32 { return n.nsid }

// Size is how many octets it had when Namespace asked, a multiple of BlockSize.
func (n *Namespace) Size() int64 { return n.info.size }

// BlockSize is that of its logical blocks, in octets.
func (n *Namespace) BlockSize() int { return n.info.block }

// NGUID is its identifier that no other namespace has; zero if the target gives none.
func (n *Namespace) NGUID() [16]byte { return n.info.guid }

// ReadAt reads len(p) octets from off, both multiples of BlockSize, as of an io.ReaderAt: fewer, and io.EOF, at the
// end. The target reaches p, and no memory beside it, until ReadAt returns. What is not of whole blocks is
// ErrAlignment. Other errors: a *CommandError, that of a Host that has ended.
func (n *Namespace) ReadAt(p []byte, off int64) (int, error) {
	if err := n.check("reading", len(p), off); err != nil {
		return 0, err
	}
	whole := p
	p = p[:max(min(int64(len(p)), n.info.size-off), 0)]
	done, err := n.each(cmdRead, "Read", p, off)
	if err == nil && done < len(whole) {
		err = io.EOF
	}
	return done, err
}

// WriteAt writes p to off, as of an io.WriterAt; len(p) and off are multiples of BlockSize. What goes beyond the end is
// LBARange to errors.Is, and nothing of it has been written. What has been written survives the target after a Flush.
// The target reaches p, and no memory beside it, until WriteAt returns. Errors: as ReadAt.
func (n *Namespace) WriteAt(p []byte, off int64) (int, error) {
	if err := n.check("writing", len(p), off); err != nil {
		return 0, err
	}
	if off > n.info.size || int64(len(p)) > n.info.size-off {
		return 0, fmt.Errorf("nvmeof: writing %d octets to %d of namespace %d, which has %d: nothing was sent: %w",
			len(p), off, n.nsid, n.info.size, LBARange)
	}
	return n.each(cmdWrite, "Write", p, off)
}

// Flush returns when all that had been written before it was called survives the target. Errors: as ReadAt, and the end
// of ctx.
func (n *Namespace) Flush(ctx context.Context) error {
	_, err := n.host.do(ctx, hostCall{queue: n.host.ready, command: newCommand(cmdFlush, n.nsid), name: "Flush"})
	if err != nil {
		return fmt.Errorf("nvmeof: flushing namespace %d: %w", n.nsid, err)
	}
	return nil
}

// check refuses what is not of whole blocks.
func (n *Namespace) check(doing string, octets int, off int64) error {
	block := int64(n.info.block)
	if off >= 0 && off%block == 0 && int64(octets)%block == 0 {
		return nil
	}
	return fmt.Errorf("nvmeof: %s %d octets at %d of namespace %d: want multiples of %d from 0 on: %w",
		doing, octets, off, n.nsid, block, ErrAlignment)
}

// each moves p, a command after another, and says how many octets the target has answered for.
func (n *Namespace) each(opcode byte, name string, p []byte, off int64) (done int, err error) {
	for done < len(p) {
		piece := p[done:][:min(len(p)-done, n.piece)]
		at := off + int64(done)
		c := newCommand(opcode, n.nsid).onBlocks(uint64(at)/uint64(n.info.block), len(piece)/n.info.block)
		_, err := n.host.do(context.Background(), hostCall{
			queue: n.host.ready, command: c, name: name, data: piece, fetch: opcode == cmdRead,
		})
		if err != nil {
			return done, fmt.Errorf("nvmeof: %s of %d octets at %d: %w", name, len(piece), at, err)
		}
		done += len(piece)
	}
	return done, nil
}

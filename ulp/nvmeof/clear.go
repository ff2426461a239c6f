package nvmeof

import (
	"cmp"
	"slices"
)

// What a host may clear with one command, as Identify says for the NVM command set. A command of 64 octets moves no
// data for it: without bounds its ranges would keep the disk busy for minutes.
const (
	clearRanges = 255                  // dmrl; Linux without it sends 256, which is taken
	clearBlocks = 64 << 20 / blockSize // dmrsl and dmsl, of a range and of a command
	clearPiece  = 1 << 20              // octets at a time: other commands run between
)

// span is a part of a disk, in octets.
type span struct{ off, n int64 }

// merged sorts spans, and joins those that meet or overlap.
func merged(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.off, b.off) })
	out := spans[:0]
	for _, s := range spans {
		if k := len(out) - 1; k >= 0 && s.off <= out[k].off+out[k].n {
			out[k].n = max(out[k].n, s.off+s.n-out[k].off)
		} else {
			out = append(out, s)
		}
	}
	return out
}

// clear makes spans of d zero. A controller clears for one command at a time, and all take turns for each piece, so
// that clearing takes one processor, and one thread, from reads and writes. It ends when the queue does.
func (r *request) clear(c *controller, d Disk, spans []span, deallocate bool) Status {
	if c.clearing.Acquire(r.q.gone, 1) != nil {
		return Aborted
	}
	defer c.clearing.Release(1)
	for _, s := range spans {
		for s.n > 0 {
			if r.q.gone.Err() != nil || c.target.clearing.Acquire(r.q.gone, 1) != nil {
				return Aborted
			}
			n := min(s.n, clearPiece)
			err := d.Zero(s.off, n, deallocate)
			c.target.clearing.Release(1)
			if err != nil {
				return r.fault("clearing", err)
			}
			s.off, s.n = s.off+n, s.n-n
		}
	}
	return Success
}

// manage is Dataset Management. All ranges are checked before the first is changed; Linux sends a page whatever their
// number.
func (r *request) manage(c *controller, d Disk) Status {
	count := int(r.cmd[40]) + 1
	if int(r.sgl.length) < count*dsmRange || r.sgl.length > identifySize {
		return SGLInvalidLength | DNR
	}
	b, status := r.fetch(int(r.sgl.length))
	if status != Success {
		return status
	}
	if r.cmd.dw(11)&dsmAD == 0 {
		return Success // the rest is advice
	}
	var blocks uint64
	spans := make([]span, 0, count)
	for ; len(spans) < count; b = b[dsmRange:] {
		n := uint64(le.Uint32(b[4:]))
		off, octets, status := extent(d, le.Uint64(b[8:]), n)
		if status != Success {
			return status
		}
		blocks += n
		spans = append(spans, span{off, octets})
	}
	if blocks > clearBlocks {
		return LimitExceeded | DNR
	}
	r.repost() // the ranges are here: no receive waits for the disk
	return r.clear(c, d, merged(spans), true)
}

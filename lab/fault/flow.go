package fault

import (
	"slices"
	"time"

	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/lab/internal/interpose"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/wr"
)

// groupWait is how long Coalesce waits for its segments, if its rule does not say.
const groupWait = 20 * time.Millisecond

// flow is one direction of a stream. Whole FPDUs go in, and are made anew: markers are where they belong whatever
// is dropped. It is used by one goroutine at a time.
type flow struct {
	*interpose.Frames
	st    *faultyConn
	dir   Direction
	rules []*counter

	preamble int    // octets that come first and are no FPDUs
	within   bool   // a message has begun
	pos      uint64 // octets that have gone out, of the FPDU stream
	grouped  int    // more segments that go with what went last
	wait     time.Duration
	out      []interpose.Piece
}

// feed takes octets that have come, and returns what to deliver; b is not kept.
func (f *flow) feed(b []byte) []interpose.Piece {
	f.out = nil
	if n := min(f.preamble, len(b)); n > 0 {
		f.preamble -= n
		f.pass(b[:n])
		b = b[n:]
	}
	f.Feed(b)
	return f.out
}

// live are the rules, unless another plan has come.
func (f *flow) live() []*counter {
	if !f.st.live() {
		return nil
	}
	return f.rules
}

// pass delivers octets that no rule strikes.
func (f *flow) pass(b []byte) { f.out = append(f.out, interpose.Piece{Octets: slices.Clone(b)}) }

// effect is what the rules make of one FPDU.
type effect struct {
	stall, delay time.Duration
	end          interpose.End
	drop, double bool
	split        int
	terminate    []uint16
}

// fpdu takes one FPDU, and puts what becomes of it in out.
func (f *flow) fpdu(u mpa.FPDU) {
	ulpdu := slices.Clone(u.ULPDU)
	seg, code := ddp.Parse(ulpdu)
	op, first := AnyOp, !f.within
	if code == ddp.CodeOK {
		op = opOfSegment[rdmap.OpcodeOf(seg.RsvdULP())]
		f.within = !seg.Last()
	}
	wrong := f.Wrong(u) // and it stays so
	var e effect
	var behind []int // bits to flip that the CRC does not know of
	for _, c := range f.live() {
		counts := c.When == Segment || c.When == Message && first
		if !counts || c.Op != AnyOp && c.Op != op || !c.hit() {
			continue
		}
		if c.What == InvalidateSTag {
			if stag, ok := f.named(seg, code); ok {
				f.st.in.invalidates(f.st.strike(c, f.dir, f.pos), wr.STag(stag))
			}
			continue
		}
		f.st.report(c, f.dir, f.pos)
		if c.What != Flip {
			f.take(&e, c)
		} else if bit := bitOf(c, ulpdu, seg, code); c.Behind {
			behind = append(behind, bit)
		} else {
			flip(ulpdu, bit)
		}
	}
	for _, code := range e.terminate {
		h := rdmap.TerminateHeader{Code: rdmap.TermCode(code)}
		t := ddp.AppendUntagged(nil, true, rdmap.Control(rdmap.Terminate), 0, ddp.QNTerminate, 1, 0)
		f.deliver(f.Append(h.Append(t), nil, 0), effect{})
	}
	if e.drop {
		f.deliver(nil, effect{stall: e.stall, end: e.end})
		return
	}
	carried := slices.Clone(ulpdu)
	for _, bit := range behind {
		flip(carried, bit)
	}
	f.deliver(f.Append(ulpdu, carried, wrong), e)
	if e.double {
		f.deliver(f.Append(ulpdu, carried, wrong), effect{})
	}
}

// take adds what c does.
func (f *flow) take(e *effect, c *counter) {
	switch c.What {
	case Cut, Reset, HalfClose:
		if e.end == interpose.Open {
			e.end = ends[c.What]
		}
	case Stall:
		e.stall += c.For
	case Delay:
		e.delay = max(e.delay, c.For)
	case Split:
		e.split = c.N
	case Coalesce:
		f.grouped = max(f.grouped, c.N)
		if f.wait = c.For; f.wait == 0 {
			f.wait = groupWait
		}
	case Drop:
		e.drop = true
	case Double:
		e.double = true
	case Terminate:
		e.terminate = append(e.terminate, c.Code)
	default:
	}
}

// deliver puts an FPDU in out, as e has it, cut where rules of octets strike.
func (f *flow) deliver(b []byte, e effect) {
	start := len(f.out)
	if e.end != interpose.Open {
		f.out = append(f.out, interpose.Piece{Stall: e.stall, End: e.end})
		return
	}
	if e.split > 0 && e.split < len(b) {
		f.out = append(f.out, interpose.Piece{Octets: b[:e.split]}, interpose.Piece{Octets: b[e.split:]})
	} else {
		f.out = append(f.out, interpose.Piece{Octets: b})
	}
	f.out[start].Stall, f.out[start].Delay = e.stall, e.delay
	if f.grouped > 0 {
		f.group(start)
	}
	pos := f.pos
	f.pos += uint64(len(b))
	for _, c := range f.live() {
		if c.When == Octet {
			f.octets(c, start, pos, uint64(len(b)))
		}
	}
}

// group makes the pieces from start on part of a group.
func (f *flow) group(start int) {
	f.grouped--
	for i := start; i < len(f.out); i++ {
		p := &f.out[i]
		if p.Group = interpose.Together; f.grouped == 0 && i == len(f.out)-1 {
			p.Group = interpose.LastOf
		}
		p.Delay = max(p.Delay, f.wait)
	}
}

// octets has c strike in the n octets behind pos, which the pieces from start on hold.
func (f *flow) octets(c *counter, start int, pos, n uint64) {
	for from := uint64(0); from < n; {
		off, ok := c.within(pos, n, from)
		if !ok {
			return
		}
		f.st.report(c, f.dir, pos+off)
		f.at(c, start, int(off))
		from = off + 1
	}
}

// at has c strike behind off octets of the pieces from i on: they are cut there.
func (f *flow) at(c *counter, i, off int) {
	for i < len(f.out) && (off > len(f.out[i].Octets) || off == len(f.out[i].Octets) && off > 0) {
		off -= len(f.out[i].Octets)
		i++
	}
	if i == len(f.out) {
		return // what was there has been cut off
	}
	p := f.out[i]
	if off > 0 {
		behind := interpose.Piece{Octets: p.Octets[off:], Group: p.Group, End: p.End}
		f.out[i].Octets, f.out[i].End = p.Octets[:off], interpose.Open
		if p.Group == interpose.LastOf {
			f.out[i].Group = interpose.Together
		}
		i++
		f.out = slices.Insert(f.out, i, behind)
	}
	switch c.What {
	case Cut, Reset, HalfClose:
		f.out = append(f.out[:i], interpose.Piece{End: ends[c.What]})
	case Stall:
		f.out[i].Stall += c.For
	case Delay:
		f.out[i].Delay = max(f.out[i].Delay, c.For)
	case Flip:
		bit := c.N
		if bit < 0 {
			bit = c.random.IntN(8)
		}
		flip(f.out[i].Octets, bit%8)
	default: // Split
	}
}

// named is the STag of this side that a segment names.
func (f *flow) named(seg ddp.Segment, code ddp.Code) (uint32, bool) {
	if code != ddp.CodeOK {
		return 0, false
	}
	if seg.Tagged() {
		return seg.STag(), f.dir == In
	}
	if rdmap.OpcodeOf(seg.RsvdULP()) == rdmap.ReadRequest {
		h, ok := rdmap.ParseReadRequest(seg.Payload())
		if f.dir == In {
			return h.SourceSTag, ok
		}
		return h.SinkSTag, ok
	}
	return 0, false
}

// bitOf is the bit of ulpdu that c flips: one of the payload, or of the header if there is none.
func bitOf(c *counter, ulpdu []byte, seg ddp.Segment, code ddp.Code) int {
	from := 0
	if code == ddp.CodeOK && seg.Size() > 0 {
		from = len(ulpdu) - seg.Size()
	}
	bits := 8 * (len(ulpdu) - from)
	if bits == 0 {
		return 0
	}
	bit := c.N
	if bit < 0 {
		bit = c.random.IntN(bits)
	}
	return 8*from + bit%bits
}

func flip(b []byte, bit int) {
	if bit/8 < len(b) {
		b[bit/8] ^= 1 << (bit % 8)
	}
}

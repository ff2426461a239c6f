package dissect

import (
	"math"
	"slices"

	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/rdmap"
)

// maxSearch is how many octets behind a gap are kept to find an FPDU in: that of the longest, twice.
const maxSearch = 128 << 10

// gap takes note that octets are missing: the next ones come n behind. The FPDU stream is looked for again.
func (d *direction) gap(n uint64) {
	switch d.phase {
	case phaseFull, phaseGap:
	default:
		d.phase = phaseOff // where the FPDUs would start is not known
		d.buf = nil
		if d.report != nil {
			d.report.Gaps = append(d.report.Gaps, Gap{Missing: n})
		}
		return
	}
	skipped := uint64(0)
	if d.phase == phaseFull {
		skipped = uint64(d.deframer.Buffered())
		d.at = d.deframer.Position() + uint64(d.deframer.Buffered())
		d.giveBack()
	} else {
		skipped = uint64(len(d.buf))
		d.at += skipped
	}
	d.at += n
	d.phase, d.buf, d.hunt = phaseGap, nil, hunt{}
	d.state.distrust()
	d.peer.state.unsure = true
	d.report.Gaps = append(d.report.Gaps, Gap{FPDU: d.report.FPDUs, Missing: n, Skipped: skipped})
}

// hunt is how far the search behind a gap has come. Each offset is judged once, or twice if the FPDU that may begin there has not come
// whole, however the octets are cut into segments.
type hunt struct {
	looked uint64 // position that no offset before it is to be looked at for the first time
	maybe  []candidate
	due    uint64 // of the first of maybe that is to be judged again
}

// candidate is where an FPDU may begin that has not come whole.
type candidate struct{ pos, due uint64 }

// search looks for an FPDU in the octets behind a gap, of which the first is at d.at. FPDUs begin at multiples of four octets
// (RFC 5044 4.1).
func (d *direction) search(b []byte) {
	d.buf = append(d.buf, b...)
	if odd := int(-d.at & 3); odd > 0 {
		if odd > len(d.buf) {
			return
		}
		d.pass(odd)
	}
	if pos, ok := d.find(); ok {
		d.pass(int(pos - d.at))
		found := d.buf
		d.report.Gaps[len(d.report.Gaps)-1].Found = true
		d.buf, d.phase, d.hunt = nil, phaseFull, hunt{}
		d.deframer = mpa.NewDeframer(d.crc, d.markers)
		d.deframer.Resume(d.at)
		d.full(found)
		return
	}
	h := &d.hunt
	first := h.looked
	if len(h.maybe) > 0 {
		first = h.maybe[0].pos
	}
	if n := len(d.buf); n-int(first-d.at) > maxSearch {
		first = d.at + uint64((n-maxSearch/2)&^3)
		h.maybe = slices.DeleteFunc(h.maybe, func(c candidate) bool { return c.pos < first })
	}
	d.pass(int(first - d.at))
}

// pass lets n octets of d.buf go, which belong to no FPDU.
func (d *direction) pass(n int) {
	d.buf, d.at = d.buf[n:], d.at+uint64(n)
	d.report.Gaps[len(d.report.Gaps)-1].Skipped += uint64(n)
}

// find is the position of the first good FPDU in d.buf, of those that can be judged.
func (d *direction) find() (pos uint64, found bool) {
	h, end := &d.hunt, d.at+uint64(len(d.buf))
	if len(h.maybe) > 0 && end >= h.due {
		again := h.maybe
		h.maybe, h.due = h.maybe[:0], math.MaxUint64
		for _, c := range again {
			if c.due <= end {
				c, found = d.judge(c.pos)
				if found {
					return c.pos, true
				}
			}
			h.keep(c)
		}
	}
	for h.looked = max(h.looked, d.at); h.looked+8 <= end; h.looked += 4 {
		c, good := d.judge(h.looked)
		if good {
			return c.pos, true
		}
		h.keep(c)
	}
	return 0, false
}

// keep keeps c for later, if it is still one.
func (h *hunt) keep(c candidate) {
	if c.due == 0 {
		return
	}
	if len(h.maybe) == 0 {
		h.due = c.due
	}
	h.maybe, h.due = append(h.maybe, c), min(h.due, c.due)
}

// judge reports whether a good FPDU begins at a position, of which 8 octets are there: its headers are such, and its CRC is right;
// without CRC another one, or the end of what is there, is behind it. If that takes more octets, it says up to which position.
func (d *direction) judge(pos uint64) (c candidate, good bool) {
	d.c.t.judged++
	c.pos = pos
	b := d.buf[pos-d.at:]
	n, ok := d.looksRight(b, pos)
	if !ok {
		return c, false
	}
	if least := n + 2 + 4; len(b) < least { // what comes on top is judged when that is there
		c.due = pos + uint64(least)
		return c, false
	}
	most := n + 2 + 3 + 4 // with pad
	most += 4 * (most/508 + 2)
	try := mpa.NewDeframer(d.crc, d.markers)
	try.Resume(pos)
	try.SetBuffer(d.c.t.trial())
	try.Feed(b[:min(len(b), most)])
	f, ok, err := try.NextRaw()
	if err == nil && !ok {
		c.due = pos + uint64(len(b)) + 1
		return c, false
	}
	if err != nil || !f.MarkersOK || !plausible(f.ULPDU) {
		return c, false
	}
	if d.crc {
		return c, f.CRC == f.Computed
	}
	rest := b[try.Position()-pos:]
	if _, ok = d.looksRight(rest, try.Position()); ok || len(rest) == 0 {
		return c, true
	}
	if len(rest) < 8 {
		c.due = try.Position() + 8
	}
	return c, false
}

// looksRight is a quick look at the octets at a position. It returns the length of the ULPDU.
func (d *direction) looksRight(b []byte, pos uint64) (n int, ok bool) {
	if d.markers && pos%512 == 0 {
		if len(b) < 4 || b[0]|b[1]|b[2]|b[3] != 0 {
			return 0, false
		}
		b = b[4:]
	}
	if len(b) < 4 {
		return 0, false
	}
	n = int(b[0])<<8 | int(b[1])
	return n, n >= 14 && n <= mpa.MaxULPDU && (d.markers || b[2]&0x3F&^0x03 == 0 && b[2]&3 == 1 && b[3]&0xF0 == 0x40)
}

// plausible reports whether a ULPDU is a segment as RFC 5041 and 5040 have it.
func plausible(ulpdu []byte) bool {
	s, code := ddp.Parse(ulpdu)
	if code != ddp.CodeOK || s.Header()[0]&0x3C != 0 {
		return false
	}
	_, bad := rdmap.CheckExtended(s)
	return bad == rdmap.CodeNone
}

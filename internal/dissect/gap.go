package dissect

import (
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
		d.stopDeframing()
	} else {
		skipped = uint64(len(d.buf))
		d.at += skipped
	}
	d.at += n
	d.phase, d.buf = phaseGap, nil
	d.state.distrust()
	d.peer.state.unsure = true
	d.report.Gaps = append(d.report.Gaps, Gap{FPDU: d.report.FPDUs, Missing: n, Skipped: skipped})
}

// stopDeframing gives the buffer back.
func (d *direction) stopDeframing() {
	if buf := d.deframer.Park(); buf != nil {
		d.c.t.giveBack(buf)
	}
}

// search looks for an FPDU in the octets behind a gap, of which the first is at d.at. FPDUs begin at multiples of four octets
// (RFC 5044 4.1).
func (d *direction) search(b []byte) {
	d.buf = append(d.buf, b...)
	g := &d.report.Gaps[len(d.report.Gaps)-1]
	drop := func(n int) {
		d.buf, d.at = d.buf[n:], d.at+uint64(n)
		g.Skipped += uint64(n)
	}
	if odd := int(-d.at & 3); odd > 0 {
		if odd > len(d.buf) {
			return
		}
		drop(odd)
	}
	first := -1 // where one may begin that is not whole yet
	for at := 0; at < len(d.buf); at += 4 {
		begins, short := d.begins(at)
		if !begins {
			if short && first < 0 {
				first = at
			}
			continue
		}
		drop(at)
		found := d.buf
		d.buf, d.phase, g.Found = nil, phaseFull, true
		d.deframer = mpa.NewDeframer(d.crc, d.markers)
		d.deframer.Resume(d.at)
		d.full(found)
		return
	}
	switch {
	case first < 0:
		drop(len(d.buf) &^ 3)
	case len(d.buf)-first > maxSearch:
		drop((len(d.buf) - maxSearch/2) &^ 3)
	default:
		drop(first)
	}
}

// begins reports whether a good FPDU begins at an offset of d.buf: its headers are such, and its CRC is right; without CRC
// another one, or the end of what is there, is behind it. short says that more octets may make it one.
func (d *direction) begins(at int) (good, short bool) {
	pos := d.at + uint64(at)
	if len(d.buf)-at < 8 {
		return false, true
	}
	if !d.looksRight(d.buf[at:], pos) {
		return false, false
	}
	try := mpa.NewDeframer(d.crc, d.markers)
	try.Resume(pos)
	try.SetBuffer(d.c.t.trial())
	try.Feed(d.buf[at:])
	f, ok, err := try.NextRaw()
	switch {
	case err == nil && !ok:
		return false, true
	case err != nil || !f.MarkersOK || !plausible(f.ULPDU):
		return false, false
	case d.crc:
		return f.CRC == f.Computed, false
	}
	end := at + int(try.Position()-pos)
	return end == len(d.buf) || d.looksRight(d.buf[end:], d.at+uint64(end)), len(d.buf)-end < 8
}

// looksRight is a quick look at the octets at a position.
func (d *direction) looksRight(b []byte, pos uint64) bool {
	if d.markers && pos%512 == 0 {
		if len(b) < 4 || b[0]|b[1]|b[2]|b[3] != 0 {
			return false
		}
		b = b[4:]
	}
	if len(b) < 4 {
		return false
	}
	n := int(b[0])<<8 | int(b[1])
	return n >= 14 && n <= mpa.MaxULPDU && (d.markers || b[2]&0x3F&^0x03 == 0 && b[2]&3 == 1 && b[3]&0xF0 == 0x40)
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

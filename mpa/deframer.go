package mpa

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

const (
	// MinBuffer is the smallest receive buffer of a Deframer, in octets. The
	// largest legal FPDU has 65288: a ULPDU of 64768, length, 2 pad, CRC and
	// 128 markers.
	MinBuffer = 64 << 10

	// RecommendedBuffer is a receive buffer that takes many FPDUs at a read.
	RecommendedBuffer = 256 << 10
)

// Deframer finds the ULPDUs in the octets received on one direction of a
// stream, by their lengths alone (R5044-5.2-M1). It does no I/O: the caller
// reads into Space, says how much with Advance, and takes ULPDUs with Next
// until there is none. The zero value expects neither CRC nor markers.
type Deframer struct {
	crc     bool
	markers bool
	buf     []byte
	r, w    int    // buf[r:w] is received and not yet delivered
	pos     uint64 // stream position of buf[r], markers included
	err     error  // *Error, sticky

	// Of an FPDU whose ULPDU the caller receives elsewhere, see Divert.
	diverted bool
	taken    int // octets of the FPDU taken out of buf
	away     int // octets of the ULPDU still to come
	tail     int // pad and CRC behind it
}

// NewDeframer returns a Deframer at the start of Full Operation. With crc it
// checks CRCs; with markers it expects those that this side's startup frame
// asked for. It has no buffer yet.
func NewDeframer(crc, markers bool) Deframer { return Deframer{crc: crc, markers: markers} }

// SetBuffer makes b the receive buffer; the Deframer owns it until TakeBuffer.
// Octets still in an earlier buffer move over. It reports false, and changes
// nothing, if b is shorter than MinBuffer or than what is buffered.
func (d *Deframer) SetBuffer(b []byte) bool {
	if len(b) < MinBuffer || len(b) < d.w-d.r {
		return false
	}
	d.r, d.w, d.buf = 0, copy(b, d.buf[d.r:d.w]), b
	return true
}

// TakeBuffer gives the receive buffer back, if nothing is buffered or an error
// ended the stream, so that an idle stream holds none. Else it returns nil.
func (d *Deframer) TakeBuffer() []byte {
	if d.r < d.w && d.err == nil {
		return nil
	}
	b := d.buf
	d.buf, d.r, d.w = nil, 0, 0
	return b
}

// Park gives the receive buffer back in any case. What is buffered moves to memory of its own,
// no more than it takes; SetBuffer comes before the next Space. It ends the life of the
// ULPDU that Next returned last.
func (d *Deframer) Park() []byte {
	b := d.buf
	d.buf = bytes.Clone(b[d.r:d.w])
	d.r, d.w = 0, len(d.buf)
	return b
}

// Buffered returns how many received octets have not been delivered yet.
func (d *Deframer) Buffered() int { return d.w - d.r + d.taken }

// Position returns how many octets of the stream have been delivered, FPDU
// framing and markers included: where the next FPDU starts.
func (d *Deframer) Position() uint64 { return d.pos }

// Resume goes on at stream position pos, where an FPDU begins: that of a stream that is
// taken up within Full Operation. Nothing may be buffered.
func (d *Deframer) Resume(pos uint64) { d.pos = pos }

// Space returns where to put the octets received next. It ends the life of the
// ULPDU that Next returned last. It is never empty once Next has reported that
// it needs more, unless there is no buffer. After an error it may be read into
// still, to drain the connection, but what is put there is dropped.
func (d *Deframer) Space() []byte {
	if d.r == d.w || d.err != nil {
		d.r, d.w = 0, 0
	} else if d.cramped() {
		d.r, d.w = 0, copy(d.buf, d.buf[d.r:d.w])
	}
	return d.buf[d.w:]
}

// cramped says whether to move what is buffered to the front. It must move if
// the FPDU begun would not fit. Otherwise it moves to gain a worthwhile read,
// but never more octets than have been delivered since the last move, so that
// the copying stays below one octet for each received.
func (d *Deframer) cramped() bool {
	if d.r == 0 {
		return false
	}
	tail, held := len(d.buf)-d.w, d.w-d.r
	return d.measure().size > len(d.buf)-d.r || tail < len(d.buf)/4 && held <= d.r
}

// Advance says that n octets have been put at the start of Space, or, of a
// diverted ULPDU, first where the caller receives it. An n outside
// 0..Diverted()+len(Space()) counts as the nearer bound.
func (d *Deframer) Advance(n int) {
	if k := min(max(n, 0), d.away); k > 0 {
		d.away -= k
		d.taken += k
		n -= k
	}
	if d.err == nil {
		d.w += min(max(n, 0), len(d.buf)-d.w)
	}
}

// Feed copies octets of b into the buffer and returns how many it took: fewer
// than len(b) if the buffer is full, in which case Next makes room.
func (d *Deframer) Feed(b []byte) int {
	n := copy(d.Space(), b)
	d.Advance(n)
	return n
}

// Next returns the next ULPDU. It lies in the receive buffer and is valid until
// the next call of a method other than Buffered and Position. ok is false if
// more octets are needed. The error is an *Error with CodeCRC or CodeFPDU;
// nothing of a bad FPDU is handed up (R5044-6-M1) and every later call fails
// likewise (R5044-8-M3). The caller closes the connection (R5044-8-M4).
//
// The end of a diverted ULPDU is reported with ok, and ulpdu nil.
func (d *Deframer) Next() (ulpdu []byte, ok bool, err error) {
	if d.diverted {
		return nil, d.rejoin(), d.err
	}
	l, ok := d.whole()
	if !ok {
		return nil, false, d.err
	}
	raw := d.buf[d.r : d.r+l.size]
	if d.crc && checksum(raw[:l.size-crcLen]) != wireCRC(raw) { // R5044-4.4-M11
		d.fail(CodeCRC, "stream position %d, ULPDU of %d octets", d.pos, l.ulpdu)
		return nil, false, d.err
	}
	if d.markers && !l.markersOK(raw) {
		d.fail(CodeFPDU, "a marker of the FPDU at stream position %d does not point at its length", d.pos)
		return nil, false, d.err
	}
	return d.deliver(l), true, nil
}

// Begun returns what has come of the next ULPDU, which is not whole yet, and how
// many octets it will have. There is none to be had if the length has not come, or
// with CRC or markers: what is not whole has not been checked then.
func (d *Deframer) Begun() (part []byte, size int) {
	if d.crc || d.markers || d.err != nil || d.diverted {
		return nil, 0
	}
	l, whole := d.whole()
	if whole || l.ulpdu < 0 || d.err != nil {
		return nil, 0
	}
	part = d.buf[d.r+lengthLen : d.w]
	return part[:min(len(part), l.ulpdu)], l.ulpdu
}

// Divert says that the caller has taken what Begun returned, and receives the rest
// of that ULPDU elsewhere: the next Diverted octets of the stream. Those behind
// them go to Space.
func (d *Deframer) Divert() {
	l := d.measure()
	d.diverted, d.taken = true, d.w-d.r
	d.away = max(lengthLen+l.ulpdu-d.taken, 0)
	d.tail = l.size - max(lengthLen+l.ulpdu, d.taken)
	d.r, d.w = 0, 0
}

// Diverted is how many octets of the stream come before those for Space.
func (d *Deframer) Diverted() int { return d.away }

// rejoin passes over the end of a diverted FPDU, if it is here.
func (d *Deframer) rejoin() bool {
	if d.away > 0 || d.w-d.r < d.tail {
		return false
	}
	d.r += d.tail
	d.pos += uint64(d.taken + d.tail)
	d.diverted, d.taken, d.tail = false, 0, 0
	return true
}

// FPDU is a received FPDU with the verdicts on it, for a dissector.
type FPDU struct {
	ULPDU     []byte // as Next returns it
	CRC       uint32 // the CRC field's value
	Computed  uint32 // the CRC32C of what the field covers
	MarkersOK bool   // every marker points at the length; true without markers
}

// NextRaw is Next for a dissector: it computes the CRC in any case and delivers
// an FPDU whose CRC or markers are wrong. Only a length above MaxULPDU fails.
func (d *Deframer) NextRaw() (fpdu FPDU, ok bool, err error) {
	l, ok := d.whole()
	if !ok {
		return FPDU{}, false, d.err
	}
	raw := d.buf[d.r : d.r+l.size]
	fpdu = FPDU{
		CRC:       wireCRC(raw),
		Computed:  checksum(raw[:l.size-crcLen]),
		MarkersOK: !d.markers || l.markersOK(raw),
	}
	fpdu.ULPDU = d.deliver(l)
	return fpdu, true, nil
}

// layout says where the parts of an FPDU lie, from its first octet, which is
// that of its leading marker if there is one.
type layout struct {
	ulpdu  int // ULPDU_Length; -1 if not received yet
	length int // offset of ULPDU_Length
	marker int // offset of the first marker; those after it stand every markerPeriod
	size   int // octets of the FPDU, or as many as it takes to see its length
}

// measure lays out the FPDU that starts at r.
func (d *Deframer) measure() layout {
	l := layout{ulpdu: -1, marker: MinBuffer} // past the end of any FPDU
	phase := uint16(d.pos % markerPeriod)
	if d.markers && phase == 0 {
		l.length = markerLen
	}
	l.size = l.length + lengthLen
	if d.w-d.r < l.size {
		return l
	}
	l.ulpdu = int(binary.BigEndian.Uint16(d.buf[d.r+l.length:]))
	l.size = bodySize(l.ulpdu)
	if d.markers {
		l.marker, l.size = withMarkers(phase, l.size)
	}
	return l
}

// whole returns the layout of the next FPDU if all its octets are here. A
// length above MaxULPDU is an error at once, as no sender may use it (RFC 5044
// 3) and the buffer need not hold it.
func (d *Deframer) whole() (layout, bool) {
	if d.err != nil {
		return layout{}, false
	}
	l := d.measure()
	if l.ulpdu > MaxULPDU {
		d.fail(CodeFPDU, "ULPDU_Length %d at stream position %d is above %d", l.ulpdu, d.pos, MaxULPDU)
		return l, false
	}
	return l, l.ulpdu >= 0 && d.w-d.r >= l.size
}

func (d *Deframer) fail(c Code, format string, args ...any) {
	d.err = &Error{Code: c, Detail: fmt.Sprintf(format, args...)}
}

// markersOK compares each FPDUPTR, low two bits aside (R5044-4.2-M4), with the
// distance from the length. The reserved half is not looked at.
func (l *layout) markersOK(raw []byte) bool {
	for at := l.marker; at < l.size; at += markerPeriod {
		ptr := int(binary.BigEndian.Uint16(raw[at+2:]) &^ 3)
		if ptr != max(at-l.length, 0) {
			return false
		}
	}
	return true
}

// deliver passes over the FPDU and returns its ULPDU, closed up over markers.
func (d *Deframer) deliver(l layout) []byte {
	raw := d.buf[d.r : d.r+l.size]
	d.r += l.size
	d.pos += uint64(l.size)
	start := l.length + lengthLen
	ulpdu := raw[start:]
	// to is the first gap in the ULPDU: where the first marker behind the
	// length field stands.
	to := l.marker - start
	if to < 0 {
		to += markerPeriod
	}
	for from := to + markerLen; to < l.ulpdu; from += markerPeriod {
		n := min(markerPeriod-markerLen, l.ulpdu-to)
		to += copy(ulpdu[to:to+n], ulpdu[from:])
	}
	return ulpdu[:l.ulpdu:l.ulpdu]
}

package mpa

import (
	"encoding/binary"

	"github.com/softrnic/softrnic/internal/crc32c"
)

const (
	lengthLen    = 2   // ULPDU_Length
	markerLen    = 4   // a marker
	markerPeriod = 512 // stream octets from one marker's start to the next's (RFC 5044 4.3)
)

// Framer makes the FPDUs of one direction of a stream. It does no I/O and
// allocates nothing but what its destination lacks in room. The zero value
// makes FPDUs without CRC and markers; copies go their own ways.
//
// An FPDU (RFC 5044 4.1), without markers:
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-------------------------------+-------------------------------+
//	|         ULPDU_Length          |                               |
//	+-------------------------------+                               +
//	|                             ULPDU                             |
//	+                                               +---------------+
//	|                                               | PAD, 0-3 zeros|
//	+-----------------------------------------------+---------------+
//	|                    CRC32C (little-endian)                     |
//	+---------------------------------------------------------------+
//
// A marker (RFC 5044 4.2) stands at every 512th octet of the stream, the first
// before the first FPDU:
//
//	+-------------------------------+-------------------------------+
//	|               0               |            FPDUPTR            |
//	+-------------------------------+-------------------------------+
//
// FPDUPTR counts the stream octets from ULPDU_Length to the marker. It is 0 in
// a marker between two FPDUs, which belongs to the later one.
type Framer struct {
	crc     bool
	markers bool
	phase   uint16 // stream position of the next octet modulo markerPeriod; 0 without markers
}

// NewFramer returns a Framer at the start of Full Operation. With crc it fills
// the CRC fields, else they are zero; with markers it inserts them.
func NewFramer(crc, markers bool) Framer { return Framer{crc: crc, markers: markers} }

// Resume goes on at stream position pos, where an FPDU begins: that of a stream that is
// taken up within Full Operation.
func (f *Framer) Resume(pos uint64) {
	if f.markers {
		f.phase = uint16(pos % markerPeriod)
	}
}

// Gather reports whether FPDUs may be sent without copying the payload: as
// AppendHead's octets, the payload, and AppendTail's. A CRC rules that out, as
// the payload could change between its computation and the send.
func (f *Framer) Gather() bool { return !f.crc && !f.markers }

// Size returns how many octets the next FPDU takes, markers included, if its
// ULPDU has ulpduLen octets. It is 0 if ulpduLen is not within 0..MaxULPDU.
func (f *Framer) Size(ulpduLen int) int {
	if ulpduLen < 0 || ulpduLen > MaxULPDU {
		return 0
	}
	n := bodySize(ulpduLen)
	if f.markers {
		_, n = withMarkers(f.phase, n)
	}
	return n
}

// AppendFPDU appends the FPDU whose ULPDU is header and then the pieces of
// payload. The CRC is computed over the octets as appended: a source that
// changes meanwhile cannot make it wrong. A ULPDU longer than MaxULPDU is
// refused (R5044-3-M4): dst comes back as it was.
func (f *Framer) AppendFPDU(dst, header []byte, payload ...[]byte) []byte {
	n := len(header)
	for _, p := range payload {
		n += len(p)
	}
	if n > MaxULPDU {
		return dst
	}
	if f.markers {
		return f.appendMarked(dst, n, header, payload)
	}
	start := len(dst)
	dst = binary.BigEndian.AppendUint16(dst, uint16(n))
	dst = append(dst, header...)
	for _, p := range payload {
		dst = append(dst, p...)
	}
	dst = append(dst, zeros[:padLen(n)]...)
	return f.appendCRC(dst, start)
}

// Plain reports whether FPDUs have no markers in them: they may be made piece by
// piece, of AppendHead's octets, the payload, and Finish's.
func (f *Framer) Plain() bool { return !f.markers }

// Finish appends what follows the payload of an FPDU that begins at start in dst: pad
// and CRC field. It is for Framers whose Plain is true.
func (f *Framer) Finish(dst []byte, start int) []byte {
	dst = append(dst, zeros[:padLen(len(dst)-start-lengthLen)]...)
	return f.appendCRC(dst, start)
}

// CRC reports whether CRCs are made: FinishSummed is for such Framers.
func (f *Framer) CRC() bool { return f.crc }

// FinishSummed is Finish with a CRC, for callers that have that of dst[start:], crc, already: of what is
// there, and not of where it was copied from.
func (f *Framer) FinishSummed(dst []byte, start int, crc uint32) []byte {
	pad := len(dst)
	dst = append(dst, zeros[:padLen(pad-start-lengthLen)]...)
	return appendCRC(dst, crc32c.Update(crc, dst[pad:]))
}

// AppendHead appends what precedes the payload of an FPDU that is made in
// pieces: ULPDU_Length and header. It is for Framers whose Plain is true. A
// negative payloadLen, or a ULPDU longer than MaxULPDU, is refused: dst comes
// back as it was.
func (f *Framer) AppendHead(dst, header []byte, payloadLen int) []byte {
	if payloadLen < 0 || payloadLen > MaxULPDU || len(header)+payloadLen > MaxULPDU {
		return dst
	}
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(header)+payloadLen))
	return append(dst, header...)
}

// AppendLength is AppendHead up to the header, for callers that make that in place.
// ulpduLen, at most MaxULPDU, counts header and payload.
func (f *Framer) AppendLength(dst []byte, ulpduLen int) []byte {
	return binary.BigEndian.AppendUint16(dst, uint16(ulpduLen))
}

// AppendTail appends what follows the payload of an FPDU that is sent gathered:
// pad and a zero CRC field, 4 to 7 zeros in all. ulpduLen counts header
// and payload.
func AppendTail(dst []byte, ulpduLen int) []byte {
	return append(dst, zeros[:padLen(ulpduLen)+crcLen]...)
}

var zeros [8]byte

// padLen returns the octets of pad behind a ULPDU of n octets, 0..3.
func padLen(n int) int { return -(lengthLen + n) & 3 }

// bodySize returns the size of an FPDU without its markers.
func bodySize(n int) int { return lengthLen + n + padLen(n) + crcLen }

// withMarkers says where the first marker of an FPDU of body octets stands,
// relative to its first octet at phase, and how large the FPDU is with all its
// markers. A marker due right behind the CRC is the next FPDU's (RFC 5044 4.3).
func withMarkers(phase uint16, body int) (first, size int) {
	first = -int(phase) & (markerPeriod - 1)
	if body <= first {
		return first, body
	}
	const between = markerPeriod - markerLen
	return first, body + markerLen*((body-first+between-1)/between)
}

func (f *Framer) appendCRC(dst []byte, start int) []byte {
	if !f.crc {
		return append(dst, zeros[:crcLen]...) // R5044-4.4-M8: the field is there all the same
	}
	return appendCRC(dst, checksum(dst[start:]))
}

// appendMarked is AppendFPDU with markers. start is also where the CRC begins:
// a marker ahead of the length field is covered (R5044-4.3-M5).
func (f *Framer) appendMarked(dst []byte, n int, header []byte, payload [][]byte) []byte {
	start := len(dst)
	first, size := withMarkers(f.phase, bodySize(n))
	w := marked{dst: dst, next: start + first, length: start}
	if first == 0 {
		w.length += markerLen
	}
	w.put([]byte{byte(n >> 8), byte(n)})
	w.put(header)
	for _, p := range payload {
		w.put(p)
	}
	w.put(zeros[:padLen(n)])
	w.markIfDue() // one between pad and CRC is under this CRC (RFC 5044 4.4)
	f.phase = uint16(int(f.phase)+size) % markerPeriod
	return f.appendCRC(w.dst, start)
}

// marked appends octets and, wherever one is due before the next octet, a marker.
type marked struct {
	dst    []byte
	next   int // index in dst of the next marker
	length int // index in dst of ULPDU_Length
}

func (w *marked) put(b []byte) {
	for len(b) > 0 {
		w.markIfDue()
		n := min(len(b), w.next-len(w.dst))
		w.dst = append(w.dst, b[:n]...)
		b = b[n:]
	}
}

func (w *marked) markIfDue() {
	if len(w.dst) != w.next {
		return
	}
	ptr := max(len(w.dst)-w.length, 0) // R5044-4.3-M3, M10
	w.dst = append(w.dst, 0, 0, byte(ptr>>8), byte(ptr))
	w.next += markerPeriod
}

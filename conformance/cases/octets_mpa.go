package cases

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// The octets of MPA: startup frames and FPDUs, made and read here and not by the
// code under test.

// The frames of the startup, octet by octet (RFC 5044 7.1.1; RFC 6581 6, 9):
//
//	key, 16  M C R S 0000  Rev  PD_Length, 2  A B IRD, 2  C D ORD, 2  private data
const (
	requestKey = "MPA ID Req Frame"
	replyKey   = "MPA ID Rep Frame"

	frameM = 0x80 // markers, in octet 16
	frameC = 0x40 // CRC
	frameR = 0x20 // reject
	frameS = 0x10 // enhanced

	flagA, flagB = 0x8000, 0x4000 // of the enhanced word's first half
	flagC, flagD = 0x8000, 0x4000 // of its second
	depthBits    = 0x3FFF
	unsaid       = 0x3FFF // a depth that is not negotiated
)

// requestFrame and replyFrame are startup frames, of what PD_Length counts, and startupFrame is one
// with everything free.
func requestFrame(flags, rev byte, rest []byte) []byte { return aFrame(requestKey, flags, rev, rest) }
func replyFrame(flags, rev byte, rest []byte) []byte   { return aFrame(replyKey, flags, rev, rest) }

func aFrame(key string, flags, rev byte, rest []byte) []byte {
	return startupFrame(key, flags, rev, len(rest), rest)
}

func startupFrame(key string, flags, rev byte, length int, rest []byte) []byte {
	return append(append([]byte(key), flags, rev, byte(length>>8), byte(length)), rest...)
}

// aWord is the enhanced word, with private data behind it.
func aWord(first, second uint16, private string) []byte {
	b := binary.BigEndian.AppendUint16(nil, first)
	return append(binary.BigEndian.AppendUint16(b, second), private...)
}

// kinds are the flags of a set of ready-to-receive frames: 1 Send, 2 Write, 4 Read.
func kinds(set int) (first, second uint16) {
	for i, f := range []struct{ first, second uint16 }{{flagB, 0}, {0, flagC}, {0, flagD}} {
		if set>>i&1 != 0 {
			first, second = first|f.first, second|f.second
		}
	}
	return first, second
}

// mpaLane is one direction of a stream of FPDUs.
type mpaLane struct {
	markers, crc bool
	at           int // octets so far, from the first of the FPDU stream on
}

// twist is how an FPDU differs from a good one. What a marker holds and the pad are
// under the CRC all the same, unless blind is set: that is over what would be good.
type twist struct {
	pad      byte // each octet of it
	reserved uint16
	pointer  func(ptr uint16) uint16
	blind    bool
	crc      func(good uint32) uint32 // of the field; nil for what is right
	longer   int                      // than the ULPDU, by the length field
}

var castagnoli = crc32.MakeTable(0x82F63B78) // RFC 5044 4.4: as for iSCSI digests

// fpdu makes the next FPDU.
func (l *mpaLane) fpdu(ulpdu []byte) []byte { return l.twisted(ulpdu, twist{}) }

// twisted makes the next FPDU, other than it should be.
func (l *mpaLane) twisted(ulpdu []byte, x twist) []byte {
	if x.blind {
		copied := *l
		good := copied.fpdu(ulpdu)
		field := binary.LittleEndian.Uint32(good[len(good)-4:])
		x.blind, x.crc = false, func(uint32) uint32 { return field }
	}
	var b []byte
	length := -1 // where the length field is
	due := func() {
		if !l.markers || (l.at+len(b))%512 != 0 {
			return
		}
		ptr := either(length >= 0, uint16(len(b)-length), uint16(0))
		if x.pointer != nil {
			ptr = x.pointer(ptr)
		}
		b = binary.BigEndian.AppendUint16(b, x.reserved)
		b = binary.BigEndian.AppendUint16(b, ptr)
	}
	due()
	length = len(b)
	b = binary.BigEndian.AppendUint16(b, uint16(len(ulpdu)+x.longer))
	for rest := ulpdu; len(rest) > 0; {
		due()
		n := len(rest)
		if l.markers {
			n = min(n, 512-(l.at+len(b))%512)
		}
		b, rest = append(b, rest[:n]...), rest[n:]
	}
	for n := 2 + len(ulpdu); n%4 != 0; n++ {
		due()
		b = append(b, x.pad)
	}
	due()
	sum := crc32.Checksum(b, castagnoli)
	switch {
	case x.crc != nil:
		sum = x.crc(sum)
	case !l.crc:
		sum = 0
	}
	b = binary.LittleEndian.AppendUint32(b, sum)
	l.at += len(b)
	return b
}

// mpaMarker is a marker that came, and where in the stream.
type mpaMarker struct {
	at            int
	reserved, ptr uint16
}

// mpaFPDU is an FPDU that came.
type mpaFPDU struct {
	at     int    // in the stream, its first octet, which may be a marker's
	length int    // in the stream, its length field
	octets []byte // all
	ulpdu  []byte
	pad    []byte
	crc    uint32 // the field
	sum    uint32 // what it should be
	marks  []mpaMarker
}

// parse takes the next FPDU from the octets b that begin with it, if it is whole. What
// is wrong with it is for fault to say.
func (l *mpaLane) parse(b []byte) (f mpaFPDU, whole bool) {
	f = mpaFPDU{at: l.at}
	at, short := 0, false
	get := func(n int) []byte {
		if short = short || len(b)-at < n; short {
			return make([]byte, n)
		}
		at += n
		return b[at-n : at : at]
	}
	due := func() {
		if l.markers && (l.at+at)%512 == 0 {
			m := mpaMarker{at: l.at + at}
			o := get(4)
			m.reserved, m.ptr = binary.BigEndian.Uint16(o), binary.BigEndian.Uint16(o[2:])
			f.marks = append(f.marks, m)
		}
	}
	due()
	f.length = l.at + at
	n := int(binary.BigEndian.Uint16(get(2)))
	padded := n + -(2+n)&3
	var body []byte
	if !l.markers {
		body = get(padded)
	}
	for len(body) < padded && !short {
		due()
		body = append(body, get(min(padded-len(body), 512-(l.at+at)%512))...)
	}
	due()
	f.sum = crc32.Checksum(b[:at], castagnoli)
	f.crc = binary.LittleEndian.Uint32(get(4))
	if short {
		return f, false
	}
	f.octets, f.ulpdu, f.pad = b[:at:at], body[:n:n], body[n:]
	l.at += at
	return f, true
}

// fault says what is wrong with an FPDU: its markers have to point at its length field,
// its pad has to be of zeros, and its CRC right if it has one.
func (f mpaFPDU) fault(crc bool) error {
	for _, m := range f.marks {
		if want := uint16(max(m.at-f.length, 0)); m.reserved != 0 || m.ptr != want {
			return fmt.Errorf("the marker at %d is %04x %04x, FPDUPTR has to be %04x: the length is at %d",
				m.at, m.reserved, m.ptr, want, f.length)
		}
	}
	for _, o := range f.pad {
		if o != 0 {
			return fmt.Errorf("the pad of a ULPDU of %d octets is % x", len(f.ulpdu), f.pad)
		}
	}
	if crc && f.sum != f.crc {
		return fmt.Errorf("the CRC of an FPDU of %d octets is %08x, not %08x", len(f.octets), f.crc, f.sum)
	}
	return nil
}

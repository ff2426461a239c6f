package cases

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"time"
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

// startup is a good Request or Reply frame of MPA (RFC 5044 7.1.1, RFC 6581 9): see
// aFrame. What a good frame cannot say is made as octets.
type startup struct {
	Reply    bool  // else a Request
	Markers  bool  // M
	CRC      bool  // C
	Reject   bool  // R
	Rev      uint8 // protocol revision
	Enhanced bool  // S: there is the word of IRD and ORD
	// IRD and ORD are the word's depths, P2P its A, and RTR its B (1), C (2) and D (4).
	IRD, ORD uint16
	P2P      bool
	RTR      uint8
	// PrivateData is what stands behind the word.
	PrivateData []byte
}

// octets are those of the frame.
func (s startup) octets() []byte {
	key, flags := requestKey, byte(0)
	if s.Reply {
		key = replyKey
	}
	for bit, set := range map[byte]bool{frameM: s.Markers, frameC: s.CRC, frameR: s.Reject, frameS: s.Enhanced} {
		if set {
			flags |= bit
		}
	}
	rest := s.PrivateData
	if s.Enhanced {
		first, second := kinds(int(s.RTR))
		if s.P2P {
			first |= flagA
		}
		rest = aWord(first|s.IRD, second|s.ORD, string(s.PrivateData))
	}
	return aFrame(key, flags, s.Rev, rest)
}

// parseStartup reads a whole frame.
func parseStartup(b []byte) (startup, error) {
	key, flags, rest := string(b[:16]), b[16], b[20:]
	s := startup{
		Reply: key == replyKey, Markers: flags&frameM != 0, CRC: flags&frameC != 0,
		Reject: flags&frameR != 0, Enhanced: flags&frameS != 0, Rev: b[17],
	}
	switch {
	case key != requestKey && key != replyKey:
		return s, fmt.Errorf("a startup frame with the key %q", key)
	case s.Enhanced && len(rest) < 4:
		return s, fmt.Errorf("an enhanced startup frame with %d octets behind PD_Length", len(rest))
	case s.Enhanced:
		first, second := binary.BigEndian.Uint16(rest), binary.BigEndian.Uint16(rest[2:])
		s.IRD, s.ORD, s.P2P = first&depthBits, second&depthBits, first&flagA != 0
		for set := range uint8(8) {
			if b, cd := kinds(int(set)); first&flagB == b && second&(flagC|flagD) == cd {
				s.RTR = set
			}
		}
		rest = rest[4:]
	}
	s.PrivateData = rest
	return s, nil
}

// readStartup reads one frame and no octet more. Errors: for what is no frame, io.EOF,
// io.ErrUnexpectedEOF, or the connection's.
func readStartup(c net.Conn) (startup, error) {
	_ = c.SetReadDeadline(time.Now().Add(30 * time.Second))
	head := make([]byte, 20)
	if _, err := io.ReadFull(c, head); err != nil {
		return startup{}, err
	}
	rest := make([]byte, binary.BigEndian.Uint16(head[18:]))
	if _, err := io.ReadFull(c, rest); err != nil {
		return startup{}, err
	}
	return parseStartup(append(head, rest...))
}

// replyTo is the Reply that grants what a Request asks for.
func replyTo(req startup) startup {
	return startup{Reply: true, CRC: true, Rev: req.Rev, Enhanced: req.Enhanced, IRD: req.ORD, ORD: req.IRD}
}

package mpa

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

const (
	// MaxPrivateData bounds the ULP's private data in a startup frame, in octets
	// (RFC 5044 7.1.1).
	MaxPrivateData = 512
	// MaxEnhancedPrivateData does in an enhanced one, whose word takes 4 of
	// them (RFC 6581 9).
	MaxEnhancedPrivateData = MaxPrivateData - enhancedLen

	// NotNegotiated in place of an IRD or ORD leaves that depth to the ULPs
	// (RFC 6581 9.1). Smaller values are depths.
	NotNegotiated = 0x3FFF

	// MaxRev is the highest protocol revision this package speaks: 1 is
	// RFC 5044, 2 adds RFC 6581. Revision 0 is not spoken.
	MaxRev = 2

	keyLen         = 16
	startupHeadLen = keyLen + 4
	enhancedLen    = 4

	requestKey = "MPA ID Req Frame"
	replyKey   = "MPA ID Rep Frame"
)

// Octet 16 of a startup frame.
const (
	flagMarkers  = 0x80
	flagCRC      = 0x40
	flagReject   = 0x20
	flagEnhanced = 0x10
)

// The flags A to D of the enhanced word.
const (
	wordP2P   = 1 << 31
	wordSend  = 1 << 30
	wordWrite = 1 << 15
	wordRead  = 1 << 14
	irdShift  = 16 // ORD stands at 0
)

// RTR is a set of ready-to-receive messages, one of which the Initiator sends
// first in peer-to-peer mode (RFC 6581 9.2). All are empty messages.
type RTR uint8

// The RTR messages. RTRSend consumes a Receive at the Responder.
const (
	RTRSend RTR = 1 << iota
	RTRWrite
	RTRRead

	rtrAll = RTRSend | RTRWrite | RTRRead
)

func (r RTR) String() string {
	var names []string
	for i, name := range [...]string{"Send", "Write", "Read"} {
		if r&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, "|")
}

// Startup is a Request or Reply frame (RFC 5044 7.1.1, RFC 6581 9):
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---------------------------------------------------------------+
//	|                                                               |
//	+        Key, 16 octets: "MPA ID Req Frame" in a Request,       +
//	|        "MPA ID Rep Frame" in a Reply                          |
//	+-+-+-+-+-------+---------------+-------------------------------+
//	|M|C|R|S|  Res  |      Rev      |           PD_Length           |
//	+-+-+-+-+-------+---------------+-+-+---------------------------+
//	|A|B|            IRD            |C|D|            ORD            | if S
//	+-+-+---------------------------+-+-+---------------------------+
//	|                      Private Data                             |
//	+---------------------------------------------------------------+
//
// PD_Length counts the enhanced word and Private Data, 0..512.
type Startup struct {
	Reply    bool  // else a Request
	Markers  bool  // M: the sender wants markers in what it receives
	CRC      bool  // C: the sender wants CRCs, both ways
	Reject   bool  // R, in a Reply only: the connection is refused
	Rev      uint8 // protocol revision
	Enhanced bool  // S: the enhanced word is there; needs Rev >= 2

	// The fields of the enhanced word; zero without it.
	IRD, ORD uint16 // the sender's depths, 0..0x3FFE or NotNegotiated
	P2P      bool   // A: peer-to-peer, else client-server
	RTR      RTR    // B, C, D: the sender's RTR messages; none without P2P

	PrivateData []byte // the ULP's octets, without the enhanced word
}

// ErrShort is ParseStartup's answer to the beginning of a frame.
var ErrShort = errors.New("mpa: startup frame is incomplete: more octets are needed")

// Append appends s as a frame. It fails, with dst as it was, if PrivateData is
// too long, IRD or ORD exceeds 14 bits, or S is set below revision 2.
func (s *Startup) Append(dst []byte) ([]byte, error) {
	limit, length := MaxPrivateData, len(s.PrivateData)
	if s.Enhanced {
		limit, length = MaxEnhancedPrivateData, length+enhancedLen
	}
	switch {
	case len(s.PrivateData) > limit:
		return dst, fmt.Errorf("mpa: private data of %d octets: the limit is %d", len(s.PrivateData), limit)
	case s.Enhanced && s.Rev < 2: // R6581-6-M3
		return dst, fmt.Errorf("mpa: an enhanced startup frame needs revision 2, not %d", s.Rev)
	case s.Enhanced && (s.IRD > NotNegotiated || s.ORD > NotNegotiated):
		return dst, fmt.Errorf("mpa: IRD %d or ORD %d exceeds 14 bits", s.IRD, s.ORD)
	}
	key, flags := requestKey, byte(0)
	if s.Reply {
		key = replyKey
		flags |= bit(s.Reject, flagReject) // a Request has R 0
	}
	flags |= bit(s.Markers, flagMarkers) | bit(s.CRC, flagCRC) | bit(s.Enhanced, flagEnhanced)
	dst = append(dst, key...)
	dst = append(dst, flags, s.Rev)
	dst = binary.BigEndian.AppendUint16(dst, uint16(length))
	if s.Enhanced {
		dst = binary.BigEndian.AppendUint32(dst, s.word())
	}
	return append(dst, s.PrivateData...), nil
}

func bit(set bool, mask byte) byte {
	if set {
		return mask
	}
	return 0
}

// ParseStartup reads the frame b begins with. It returns the frame, whose
// PrivateData lies in b, and its size. If b holds only a frame's beginning, it
// returns ErrShort and the octets b must have before it is worth trying again.
// Anything else is an *Error with CodeStartup, as soon as it shows.
//
// It does not judge Rev: below 2, S is one of the reserved bits, which are not
// looked at (R5044-7.1.1-M13).
func ParseStartup(b []byte) (Startup, int, error) {
	key := string(b[:min(len(b), keyLen)])
	if !strings.HasPrefix(requestKey, key) && !strings.HasPrefix(replyKey, key) {
		return Startup{}, 0, unknownKey(b)
	}
	if len(b) < startupHeadLen {
		return Startup{}, startupHeadLen, ErrShort
	}
	flags := b[16]
	s := Startup{
		Reply:   key == replyKey,
		Markers: flags&flagMarkers != 0,
		CRC:     flags&flagCRC != 0,
		Rev:     b[17],
	}
	s.Reject = s.Reply && flags&flagReject != 0
	s.Enhanced = s.Rev >= 2 && flags&flagEnhanced != 0
	length := int(binary.BigEndian.Uint16(b[18:]))
	switch {
	case length > MaxPrivateData: // R5044-7.1.1-M18
		return Startup{}, 0, malformed("PD_Length is %d, the limit is %d", length, MaxPrivateData)
	case s.Enhanced && length < enhancedLen:
		return Startup{}, 0, malformed("PD_Length is %d, too short for the enhanced word", length)
	case len(b) < startupHeadLen+length:
		return Startup{}, startupHeadLen + length, ErrShort
	}
	s.PrivateData = b[startupHeadLen : startupHeadLen+length : startupHeadLen+length]
	if s.Enhanced {
		s.setWord(binary.BigEndian.Uint32(s.PrivateData))
		s.PrivateData = s.PrivateData[enhancedLen:]
	}
	return s, startupHeadLen + length, nil
}

func malformed(format string, args ...any) *Error {
	return &Error{Code: CodeStartup, Detail: fmt.Sprintf(format, args...)}
}

// rtrFlags pairs the RTR messages with their flags in the enhanced word.
var rtrFlags = [...]struct {
	rtr  RTR
	flag uint32
}{{RTRSend, wordSend}, {RTRWrite, wordWrite}, {RTRRead, wordRead}}

func (s *Startup) word() uint32 {
	w := uint32(s.IRD)<<irdShift | uint32(s.ORD)
	if !s.P2P {
		return w // R6581-9.2-M12: no RTR messages either
	}
	for _, f := range rtrFlags {
		if s.RTR&f.rtr != 0 {
			w |= f.flag
		}
	}
	return w | wordP2P
}

func (s *Startup) setWord(w uint32) {
	s.IRD = uint16(w >> irdShift & NotNegotiated)
	s.ORD = uint16(w & NotNegotiated)
	s.P2P = w&wordP2P != 0
	if !s.P2P {
		return // R6581-9.2-M13
	}
	for _, f := range rtrFlags {
		if w&f.flag != 0 {
			s.RTR |= f.rtr
		}
	}
}

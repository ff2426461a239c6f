package segment

import (
	"bytes"
	"encoding/binary"
	"strings"
)

// Options is the set of options of a CE header (3.3).
type Options uint8

// The options.
const (
	// OptionCRC offers, or agrees to, a CRC on each segment (3.6).
	OptionCRC Options = 1 << iota
	// OptionUrgent allows the other end to mark the start of segments as urgent
	// data (3.7, VT-3.7-O1). Nobody has to, and this implementation never does.
	OptionUrgent
)

// Option types on the wire, and the length of an option without data.
const (
	optEnd    = 0
	optCRC    = 1
	optUrgent = 2
	optHeader = 4
)

func (o Options) String() string {
	var parts []string
	if o&OptionCRC != 0 {
		parts = append(parts, "CRC")
	}
	if o&OptionUrgent != 0 {
		parts = append(parts, "Urgent")
	}
	return strings.Join(parts, "|")
}

// appendOptions appends the option list, with its explicit end (VT-3.3-M7).
func appendOptions(dst []byte, o Options) []byte {
	if o&OptionCRC != 0 {
		dst = append(dst, 0, optCRC, 0, optHeader)
	}
	if o&OptionUrgent != 0 {
		dst = append(dst, 0, optUrgent, 0, optHeader)
	}
	return append(dst, 0, optEnd)
}

// mostDamaged bounds the option lists, in octets, that lostCRC looks at.
const mostDamaged = 64

// lostCRC reports whether the segment b, in whose option list, at b[at:], is no CRC
// option, had one before a single bit was damaged: with that bit put back it ends in its
// own CRC. Nothing else would notice, as what is behind the list counts as padding.
func lostCRC(b []byte, at int) bool {
	if n := len(b) - at; n < optHeader+Trailer || n > mostDamaged {
		return false
	}
	b = bytes.Clone(b)
	body := len(b) - Trailer
	for i := 8 * at; i < 8*body; i++ {
		b[i/8] ^= 1 << (i % 8)
		o, fault := parseOptions(b[at:])
		if fault == FaultNone && o&OptionCRC != 0 && CRC(0).Add(b[:body]).Matches(b[body:]) {
			return true
		}
		b[i/8] ^= 1 << (i % 8)
	}
	return false
}

// parseOptions reads the option list in b, which goes to the end of the segment:
// its last four octets are the trailer if the CRC option is in the list. What
// follows the end of the list is padding.
func parseOptions(b []byte) (Options, ParseFault) {
	var o Options
	limit := len(b)
	for at := 0; ; {
		if at == limit && o&OptionCRC == 0 { // the segment's end ends the list
			return o, FaultNone
		}
		if limit-at < 2 {
			return o, FaultOption
		}
		typ := binary.BigEndian.Uint16(b[at:])
		if typ == optEnd {
			return o, FaultNone
		}
		if limit-at < optHeader {
			return o, FaultOption
		}
		n := int(binary.BigEndian.Uint16(b[at+2:]))
		if n < optHeader || n > limit-at {
			return o, FaultOption
		}
		switch typ { // VT-3.3-M5: others are ignored
		case optCRC:
			if n != optHeader {
				return o, FaultOption
			}
			o |= OptionCRC
			limit = len(b) - Trailer // VT-3.3-M6
		case optUrgent:
			o |= OptionUrgent
		}
		at += n
	}
}

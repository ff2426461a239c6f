package ddp

import "encoding/binary"

// Segment is a view of one received DDP segment, that is, of one ULPDU. It
// borrows the octets given to [Parse] and is valid as long as they are.
//
// Tagged (RFC 5041 4.2), payload follows at 14:
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	                                +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	                                |T|L| Rsvd  |DV |   RsvdULP     |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                             STag                              |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                              TO                               |
//	+                                                               +
//	|                                                               |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//
// Untagged (RFC 5041 4.3), payload follows at 18:
//
//	                                +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	                                |T|L| Rsvd  |DV | RsvdULP[0:7]  |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                         RsvdULP[8:39]                         |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                              QN                               |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                              MSN                              |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                              MO                               |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//
// Only Parse makes a usable Segment. STag and TO mean something in tagged
// segments only, RsvdULP32, QN, MSN and MO in untagged ones only.
type Segment struct {
	b    []byte
	away int // payload octets behind b, which are not here
}

// Parse makes a view of a ULPDU. The code is CodeOK, CodeShort if the ULPDU
// cannot hold the header it announces (the Segment is then empty and must not
// be used), or CodeTaggedVersion or CodeUntaggedVersion if DV is not 1. After
// a version error the Segment can still be read, as the Terminate message
// reports its header (RFC 5040 4.8 figure 10). Reserved bits are not looked at
// (RFC 5041 4.1).
func Parse(ulpdu []byte) (Segment, Code) {
	if len(ulpdu) < TaggedHeader {
		return Segment{}, CodeShort
	}
	if ulpdu[0]&flagTagged == 0 && len(ulpdu) < UntaggedHeader {
		return Segment{}, CodeShort
	}
	s := Segment{b: ulpdu}
	if ulpdu[0]&maskVersion != version { // R5041-4.1-M9
		if s.Tagged() {
			return s, CodeTaggedVersion
		}
		return s, CodeUntaggedVersion
	}
	return s, CodeOK
}

// Tagged reports whether the segment names its buffer by STag.
func (s Segment) Tagged() bool { return s.b[0]&flagTagged != 0 }

// Last reports whether the segment ends its message.
func (s Segment) Last() bool { return s.b[0]&flagLast != 0 }

// Version is DV, 0 to 3; 1 unless Parse complained.
func (s Segment) Version() uint8 { return s.b[0] & maskVersion }

// RsvdULP is the octet DDP carries for its user: RDMAP's control octet.
func (s Segment) RsvdULP() byte { return s.b[1] }

// STag is the steering tag of a tagged segment.
func (s Segment) STag() uint32 { return binary.BigEndian.Uint32(s.b[2:]) }

// TO is the tagged offset, in octets, of the payload's first octet.
func (s Segment) TO() uint64 { return binary.BigEndian.Uint64(s.b[6:]) }

// RsvdULP32 is the other four octets an untagged segment carries for DDP's
// user: RDMAP's Invalidate STag.
func (s Segment) RsvdULP32() uint32 { return binary.BigEndian.Uint32(s.b[2:]) }

// QN is the queue number of an untagged segment.
func (s Segment) QN() uint32 { return binary.BigEndian.Uint32(s.b[6:]) }

// MSN is the message sequence number of an untagged segment.
func (s Segment) MSN() uint32 { return binary.BigEndian.Uint32(s.b[10:]) }

// MO is the message offset, in octets, of an untagged segment's first payload
// octet.
func (s Segment) MO() uint32 { return binary.BigEndian.Uint32(s.b[14:]) }

// Header is the segment's header, 14 or 18 octets.
func (s Segment) Header() []byte { return s.b[:s.headerLen()] }

// Payload is what follows the header, maybe nothing.
func (s Segment) Payload() []byte { return s.b[s.headerLen():] }

// Size is the length of the payload in octets, wherever it is.
func (s Segment) Size() int { return len(s.b) + s.away - s.headerLen() }

// Of is a segment of a ULPDU that has size octets, of which the first ones are
// here: the header and maybe some of the payload.
func (s Segment) Of(size int) Segment { return Segment{s.b, size - len(s.b)} }

// Head is a copy of the segment that has at most n octets of its payload. That of an empty Segment is empty.
func (s Segment) Head(n int) Segment {
	if len(s.b) == 0 {
		return Segment{}
	}
	kept := min(len(s.b), s.headerLen()+n)
	return Segment{append([]byte(nil), s.b[:kept]...), s.away + len(s.b) - kept}
}

// Placed is the segment with n octets of payload of which the receiver has put
// each where it belongs; Payload is then empty.
func (s Segment) Placed(n int) Segment { return Segment{s.Header(), n} }

// IsPlaced reports whether Placed made it.
func (s Segment) IsPlaced() bool { return s.away > 0 }

// Len is the length of header and payload in octets: the ULPDU's length.
func (s Segment) Len() int { return len(s.b) + s.away }

func (s Segment) headerLen() int {
	if s.b[0]&flagTagged != 0 {
		return TaggedHeader
	}
	return UntaggedHeader
}

package ddp

import "encoding/binary"

// AppendTagged appends a tagged header (RFC 5041 4.2) with DV 1 and reserved
// bits zero. to is the tagged offset of this segment's payload, not of the
// message's (R5041-5.2-M8).
func AppendTagged(dst []byte, last bool, rsvd byte, stag uint32, to uint64) []byte {
	dst = append(dst, control(flagTagged, last), rsvd)
	dst = binary.BigEndian.AppendUint32(dst, stag)
	return binary.BigEndian.AppendUint64(dst, to)
}

// AppendUntagged appends an untagged header (RFC 5041 4.3) with DV 1 and
// reserved bits zero. mo counts octets from the message's start.
func AppendUntagged(dst []byte, last bool, rsvd byte, rsvd32, qn, msn, mo uint32) []byte {
	dst = append(dst, control(0, last), rsvd)
	dst = binary.BigEndian.AppendUint32(dst, rsvd32)
	dst = binary.BigEndian.AppendUint32(dst, qn)
	dst = binary.BigEndian.AppendUint32(dst, msn)
	return binary.BigEndian.AppendUint32(dst, mo)
}

func control(flags byte, last bool) byte {
	if last {
		flags |= flagLast
	}
	return flags | version
}

// Cut says how many payload octets the next segment takes when a message has
// remaining octets left, a segment may have mulpdu octets, and its header takes
// header of them (RFC 5041 5.2). Every segment but the last is as full as it
// may be. An empty message is one empty last segment (R5041-5.2-M9).
//
// A mulpdu that leaves no room for payload is the caller's mistake, as MPA
// never offers less than 128. Segments then carry one octet, so that the
// message still ends.
func Cut(remaining uint64, mulpdu, header int) (n int, last bool) {
	room := max(mulpdu-header, 1)
	if remaining <= uint64(room) {
		return int(remaining), true
	}
	return room, false
}

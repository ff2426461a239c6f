package report

import (
	"encoding/binary"
	"fmt"

	"github.com/softrnic/softrnic/vitcp/segment"
)

const layerVI = "VI"

// beginsVI reports whether octets begin as a ConnectRequest does: version 1, type 5, and
// a length below 256, which nothing else of iWARP has there.
func beginsVI(b []byte) bool {
	return len(b) >= 4 && b[0] == 1 && b[1]&0x1F == byte(segment.ConnectRequest) && b[2] == 0
}

// cutVI cuts a stream of VI/TCP into segments, and reports false if it is none. Each half
// begins with a segment of establishment, and both together decide about CRCs.
func (s *stream) cutVI() bool {
	s.vi = beginsVI(s.sent.octets) || beginsVI(s.received.octets)
	if !s.vi {
		return false
	}
	crc := offersCRC(s.sent.octets) && offersCRC(s.received.octets)
	s.sent.cutSegments(crc)
	s.received.cutSegments(crc)
	return true
}

// viSegment is the segment that octets begin with; n is zero if there is none.
func viSegment(b []byte, crc bool) (s segment.Segment, n int, complaint string) {
	if len(b) < segment.SegmentHeader || b[0] != 1 {
		return s, 0, "no VI segment"
	}
	n = int(binary.BigEndian.Uint16(b[2:]))
	switch {
	case n < segment.SegmentHeader:
		return s, 0, "no VI segment"
	case n > len(b):
		return s, 0, "incomplete"
	}
	s, fault := segment.Parse(b[:n], crc)
	if fault != segment.FaultNone {
		complaint = fault.Error()
	}
	return s, n, complaint
}

func offersCRC(b []byte) bool {
	s, n, complaint := viSegment(b, false)
	if n == 0 || complaint != "" {
		return false
	}
	ce := s.CE()
	return ce.Options&segment.OptionCRC != 0
}

// cutSegments makes the pieces of a half.
func (h *half) cutSegments(crc bool) {
	for at := 0; at < len(h.octets); {
		s, n, complaint := viSegment(h.octets[at:], crc)
		if n == 0 {
			h.cutRest(at, "octets outside of VI segments")
			h.pieces[len(h.pieces)-1].Complaint = complaint
			return
		}
		b := h.octets[at : at+n]
		at += n
		e := Entry{
			Kind: KindSegment, Number: len(h.pieces) + 1, Title: s.String(), Complaint: complaint,
			Octets: b, Fields: segmentFields(b, &s),
		}
		h.pieces = append(h.pieces, piece{Entry: e, end: at})
	}
}

// segmentFields are those of a VI segment (VI/TCP draft 3.2 to 3.5).
func segmentFields(b []byte, s *segment.Segment) []Field {
	trailer := 0
	if s.HasTrailer() {
		trailer = segment.Trailer
	}
	c := &cutter{b: b[:len(b)-trailer]}
	c.number(1, layerVI, "Version = %d")
	c.cut(1, layerVI, "%v %v", s.Type, s.Flags)
	c.number(2, layerVI, "Segment Length = %d")
	c.number(4, layerVI, "Data Offset = %d")
	c.number(4, layerVI, "Immediate Data = 0x%x")
	c.number(4, layerVI, "Message Number = %d")
	c.number(4, layerVI, "Message ACK = %d")
	c.number(2, layerVI, "Rx Descriptors Posted = %d")
	c.cut(2, layerVI, "Remote Error Code: %v", s.Code)
	switch {
	case s.Type.HasRDMA():
		c.number(8, layerVI, "RDMA Address = 0x%x")
		c.number(4, layerVI, "Memory Handle = 0x%x")
		c.number(4, layerVI, "RDMA Length = %d")
	case s.Type.HeaderLen() > segment.SegmentHeader:
		ce := s.CE()
		c.cut(2, layerVI, "Attributes: %v", ce.Attributes)
		c.number(2, layerVI, "Calling Discriminator Length = %d")
		c.number(4, layerVI, "MTU Size = %d")
		c.cut(segment.MaxDiscriminator, layerVI, "Calling Discriminator %v", ce.Calling)
		c.number(2, layerVI, "RDMA Read Window = %d")
		c.number(2, layerVI, "Called Discriminator Length = %d")
		c.cut(segment.MaxDiscriminator, layerVI, "Called Discriminator %v", ce.Called)
		c.cut(len(c.b), layerVI, "%s", "Options: "+ce.Options.String())
	}
	c.cut(len(c.b), "", "payload, %s", octetsText(len(c.b)))
	c.b = b[len(b)-trailer:]
	c.cut(trailer, layerVI, "%s", fmt.Sprintf("CRC = % x", c.b))
	return c.fields
}

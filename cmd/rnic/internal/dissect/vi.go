package dissect

import (
	"encoding/binary"
	"fmt"

	vi "github.com/softrnic/softrnic/internal/vitcp/segment"
)

const layerVI = "VI"

// beginsVI reports whether octets begin as a ConnectRequest does: version 1, type 5, and
// a length below 256, which nothing else of iWARP has there.
func beginsVI(b []byte) bool {
	return len(b) >= 4 && b[0] == 1 && b[1]&0x1F == byte(vi.ConnectRequest) && b[2] == 0
}

// cutVI cuts a stream of VI/TCP into segments, and reports false if it is none. Each half
// begins with a segment of establishment, and both together decide about CRCs.
func (s *Recording) cutVI() bool {
	a, b := &s.Halves[0], &s.Halves[1]
	s.VI = beginsVI(a.octets) || beginsVI(b.octets)
	if !s.VI {
		return false
	}
	crc := offersCRC(a.octets) && offersCRC(b.octets)
	a.cutSegments(crc)
	b.cutSegments(crc)
	return true
}

// viSegment is the segment that octets begin with; n is zero if there is none.
func viSegment(b []byte, crc bool) (s vi.Segment, n int, complaint string) {
	if len(b) < vi.SegmentHeader || b[0] != 1 {
		return s, 0, "no VI segment"
	}
	n = int(binary.BigEndian.Uint16(b[2:]))
	switch {
	case n < vi.SegmentHeader:
		return s, 0, "no VI segment"
	case n > len(b):
		return s, 0, "incomplete"
	}
	s, fault := vi.Parse(b[:n], crc)
	if fault != vi.FaultNone {
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
	return ce.Options&vi.OptionCRC != 0
}

// cutSegments makes the pieces of a half.
func (h *Half) cutSegments(crc bool) {
	for at := 0; at < len(h.octets); {
		s, n, complaint := viSegment(h.octets[at:], crc)
		if n == 0 {
			h.cutRest(at, "octets outside of VI segments")
			h.Pieces[len(h.Pieces)-1].Complaint = complaint
			return
		}
		b := h.octets[at : at+n]
		at += n
		h.Pieces = append(h.Pieces, Piece{
			Kind: KindSegment, Number: len(h.Pieces) + 1, Title: s.String(), Complaint: complaint,
			Octets: b, Parts: segmentParts(b, &s),
		})
	}
}

// segmentParts are those of a VI segment (VI/TCP draft 3.2 to 3.5).
func segmentParts(b []byte, s *vi.Segment) []Part {
	trailer := 0
	if s.HasTrailer() {
		trailer = vi.Trailer
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
	case s.Type.HeaderLen() > vi.SegmentHeader:
		ce := s.CE()
		c.cut(2, layerVI, "Attributes: %v", ce.Attributes)
		c.number(2, layerVI, "Calling Discriminator Length = %d")
		c.number(4, layerVI, "MTU Size = %d")
		c.cut(vi.MaxDiscriminator, layerVI, "Calling Discriminator %v", ce.Calling)
		c.number(2, layerVI, "RDMA Read Window = %d")
		c.number(2, layerVI, "Called Discriminator Length = %d")
		c.cut(vi.MaxDiscriminator, layerVI, "Called Discriminator %v", ce.Called)
		c.cut(len(c.b), layerVI, "%s", "Options: "+ce.Options.String())
	}
	c.cut(len(c.b), "", "payload, %s", OctetsText(len(c.b)))
	c.b = b[len(b)-trailer:]
	c.cut(trailer, layerVI, "%s", fmt.Sprintf("CRC = % x", c.b))
	return c.parts
}

package rdmap

import "encoding/binary"

// ReadRequestSize is the octets of a Read Request header (RFC 5040 4.4).
const ReadRequestSize = 28

// ReadRequestHeader says what to read and where the answer goes (RFC 5040 4.4
// figure 6). It follows the untagged DDP header.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                       Data Sink STag                          |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                                                               |
//	+                  Data Sink Tagged Offset                      +
//	|                                                               |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                   RDMA Read Message Size                      |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                      Data Source STag                         |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                                                               |
//	+                 Data Source Tagged Offset                     +
//	|                                                               |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type ReadRequestHeader struct {
	SinkSTag   uint32 // memory of the requester; the responder echoes it
	SinkTO     uint64
	Size       uint32 // octets, 0 to 2^32-1
	SourceSTag uint32 // memory of the responder
	SourceTO   uint64
}

// Append appends the header's 28 octets.
func (h ReadRequestHeader) Append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, h.SinkSTag)
	dst = binary.BigEndian.AppendUint64(dst, h.SinkTO)
	dst = binary.BigEndian.AppendUint32(dst, h.Size)
	dst = binary.BigEndian.AppendUint32(dst, h.SourceSTag)
	return binary.BigEndian.AppendUint64(dst, h.SourceTO)
}

// ParseReadRequest reads a header. It reports false unless b is exactly 28
// octets.
func ParseReadRequest(b []byte) (ReadRequestHeader, bool) {
	if len(b) != ReadRequestSize {
		return ReadRequestHeader{}, false
	}
	return ReadRequestHeader{
		SinkSTag:   binary.BigEndian.Uint32(b),
		SinkTO:     binary.BigEndian.Uint64(b[4:]),
		Size:       binary.BigEndian.Uint32(b[12:]),
		SourceSTag: binary.BigEndian.Uint32(b[16:]),
		SourceTO:   binary.BigEndian.Uint64(b[20:]),
	}, true
}

// Advanced is the header as a Terminate reports it after n octets of the
// answer were sent: both offsets moved on, the size what is left (RFC 5040
// 4.8). An n beyond Size counts as Size.
func (h ReadRequestHeader) Advanced(n uint32) ReadRequestHeader {
	n = min(n, h.Size)
	h.SinkTO += uint64(n)
	h.SourceTO += uint64(n)
	h.Size -= n
	return h
}

package rdmap

import "encoding/binary"

// Sizes in octets of the RFC 7306 messages' RDMAP headers. Section 4 of that
// document says 32 for the Atomic Response; its figure 6 has 12, which is right.
const (
	ImmediateSize      = 8
	AtomicRequestSize  = 52
	AtomicResponseSize = 12
)

// AtomicOpcode is the operation of an Atomic Request (RFC 7306 5.2.1 figure 5).
type AtomicOpcode uint8

// The operations. Value 1 is reserved.
const (
	FetchAdd AtomicOpcode = 0
	CmpSwap  AtomicOpcode = 2
)

// AppendImmediate appends the eight octets of Immediate Data (RFC 7306 6.1).
// A 32-bit value of a program goes into the low half.
func AppendImmediate(dst []byte, data uint64) []byte {
	return binary.BigEndian.AppendUint64(dst, data)
}

// ParseImmediate reads Immediate Data. It reports false unless b is exactly 8
// octets (R7306-6.3-M8).
func ParseImmediate(b []byte) (uint64, bool) {
	if len(b) != ImmediateSize {
		return 0, false
	}
	return binary.BigEndian.Uint64(b), true
}

// AtomicRequestHeader asks for a read-modify-write of eight octets (RFC 7306
// 5.2.1).
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                      Reserved                         |AOpCode|
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                     Request Identifier                        |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                        Remote STag                            |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|               Remote Tagged Offset, 8 octets                  |
//	|               Add or Swap Data, 8 octets                      |
//	|               Add or Swap Mask, 8 octets                      |
//	|               Compare Data, 8 octets                          |
//	|               Compare Mask, 8 octets                          |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type AtomicRequestHeader struct {
	Op          AtomicOpcode // 0 to 15
	RequestID   uint32       // echoed in the response
	STag        uint32
	TO          uint64 // of a buffer aligned to 8 octets
	Data        uint64 // to add, or to swap in
	Mask        uint64
	Compare     uint64 // CmpSwap only
	CompareMask uint64 // CmpSwap only; FetchAdd sends all ones
}

// Append appends the header's 52 octets.
func (h AtomicRequestHeader) Append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(h.Op&0xF))
	dst = binary.BigEndian.AppendUint32(dst, h.RequestID)
	dst = binary.BigEndian.AppendUint32(dst, h.STag)
	dst = binary.BigEndian.AppendUint64(dst, h.TO)
	dst = binary.BigEndian.AppendUint64(dst, h.Data)
	dst = binary.BigEndian.AppendUint64(dst, h.Mask)
	dst = binary.BigEndian.AppendUint64(dst, h.Compare)
	return binary.BigEndian.AppendUint64(dst, h.CompareMask)
}

// ParseAtomicRequest reads a header, reserved bits ignored. It reports false
// unless b is exactly 52 octets.
func ParseAtomicRequest(b []byte) (AtomicRequestHeader, bool) {
	if len(b) != AtomicRequestSize {
		return AtomicRequestHeader{}, false
	}
	return AtomicRequestHeader{
		Op:          AtomicOpcode(b[3] & 0xF),
		RequestID:   binary.BigEndian.Uint32(b[4:]),
		STag:        binary.BigEndian.Uint32(b[8:]),
		TO:          binary.BigEndian.Uint64(b[12:]),
		Data:        binary.BigEndian.Uint64(b[20:]),
		Mask:        binary.BigEndian.Uint64(b[28:]),
		Compare:     binary.BigEndian.Uint64(b[36:]),
		CompareMask: binary.BigEndian.Uint64(b[44:]),
	}, true
}

// AtomicResponseHeader answers an Atomic Request (RFC 7306 5.2.2 figure 6).
//
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                 Original Request Identifier                   |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|            Original Remote Data Value, 8 octets               |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type AtomicResponseHeader struct {
	RequestID uint32
	Value     uint64 // as it was before the operation
}

// Append appends the header's 12 octets.
func (h AtomicResponseHeader) Append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, h.RequestID)
	return binary.BigEndian.AppendUint64(dst, h.Value)
}

// ParseAtomicResponse reads a header. It reports false unless b is exactly 12
// octets.
func ParseAtomicResponse(b []byte) (AtomicResponseHeader, bool) {
	if len(b) != AtomicResponseSize {
		return AtomicResponseHeader{}, false
	}
	return AtomicResponseHeader{
		RequestID: binary.BigEndian.Uint32(b),
		Value:     binary.BigEndian.Uint64(b[4:]),
	}, true
}

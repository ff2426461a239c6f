package segment

import (
	"encoding/binary"
	"fmt"
)

// Lengths in octets.
const (
	// SegmentHeader is the length of the VI Segment Header (3.2).
	SegmentHeader = 24
	// RDMAHeader is the length of the RDMA Header (3.4).
	RDMAHeader = 16
	// CEHeader is the length of the connection establishment header without its
	// options (3.3).
	CEHeader = 140
	// Trailer is the length of the trailer, the CRC (3.5).
	Trailer = 4
	// MaxSegment is the longest segment, headers and trailer included.
	MaxSegment = 1<<16 - 1
)

// version is the one version of the protocol (VT-3.2-S1).
const version = 1

// Header is the VI Segment Header (3.2):
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---------------+-+-+-+---------+-------------------------------+
//	|  Version = 1  |E|I|X|  Type   |        Segment Length         |
//	+---------------+-+-+-+---------+-------------------------------+
//	|                          Data Offset                          |
//	+---------------------------------------------------------------+
//	|                        Immediate Data                         |
//	+---------------------------------------------------------------+
//	|                        Message Number                         |
//	+---------------------------------------------------------------+
//	|                          Message ACK                          |
//	+-------------------------------+-------------------------------+
//	|     Rx Descriptors Posted     |       Remote Error Code       |
//	+-------------------------------+-------------------------------+
//
// E is EndOfMessage, I is ImmediateValid, X is TransmitError.
type Header struct {
	Type  Type
	Flags Flags
	// Length is that of the whole segment in octets, trailer included. Section
	// 3.2 says so, and says that the next segment starts that far on; a third
	// sentence, that the total exceeds it by the trailer, cannot hold as well.
	Length uint16
	// Offset is how many octets of payload the message's earlier segments had.
	Offset uint32
	// Immediate is the immediate data, zero if there is none (VT-3.2-M6).
	Immediate uint32
	// Number is the message's number; a Read Response's is its request's, a
	// NOP's that of the last message sent (VT-3.2-M11).
	Number uint32
	// Ack is the last message received, or the one in error; valid at Reliable
	// Reception only (VT-3.2-M12, VT-3.2-M13).
	Ack uint32
	// RxPosted is how many receives have been posted, modulo 2^16.
	RxPosted uint16
	// Code tells what was wrong with the message that Ack names.
	Code ErrorCode
}

// SetLength sets Length for a segment with that many octets of payload, or of
// options. It panics if they do not fit, see Type.MaxPayload.
func (h *Header) SetLength(payload int, crc bool) {
	n := h.Type.HeaderLen() + payload + trailerLen(crc)
	if n < SegmentHeader || n > MaxSegment {
		panic(fmt.Sprintf("vitcp: a %v cannot carry %d octets", h.Type, payload))
	}
	h.Length = uint16(n)
}

// PayloadLen is how many octets of payload Length leaves, in a type that has some.
func (h *Header) PayloadLen(crc bool) int {
	return int(h.Length) - h.Type.HeaderLen() - trailerLen(crc)
}

// Append appends the 24 octets of h to dst.
func (h *Header) Append(dst []byte) []byte {
	dst = append(dst, version, byte(h.Type)&typeMask|byte(h.Flags)&^typeMask)
	dst = binary.BigEndian.AppendUint16(dst, h.Length)
	dst = binary.BigEndian.AppendUint32(dst, h.Offset)
	dst = binary.BigEndian.AppendUint32(dst, h.Immediate)
	dst = binary.BigEndian.AppendUint32(dst, h.Number)
	dst = binary.BigEndian.AppendUint32(dst, h.Ack)
	dst = binary.BigEndian.AppendUint16(dst, h.RxPosted)
	return binary.BigEndian.AppendUint16(dst, uint16(h.Code))
}

// decode reads the 24 octets at the start of b, whatever their version.
func (h *Header) decode(b []byte) {
	_ = b[SegmentHeader-1]
	*h = Header{
		Type:      Type(b[1] & typeMask),
		Flags:     Flags(b[1] &^ typeMask),
		Length:    binary.BigEndian.Uint16(b[2:]),
		Offset:    binary.BigEndian.Uint32(b[4:]),
		Immediate: binary.BigEndian.Uint32(b[8:]),
		Number:    binary.BigEndian.Uint32(b[12:]),
		Ack:       binary.BigEndian.Uint32(b[16:]),
		RxPosted:  binary.BigEndian.Uint16(b[20:]),
		Code:      ErrorCode(binary.BigEndian.Uint16(b[22:])),
	}
}

// Last reports whether the segment ends its message.
func (h *Header) Last() bool { return h.Flags&EndOfMessage != 0 }

// Failed reports whether the sender met an error: then the whole message is in
// error (VT-3.2-M3).
func (h *Header) Failed() bool { return h.Flags&TransmitError != 0 }

// ImmediateData is the message's immediate data, and whether it has any. The
// flag and the field mean nothing in types that do not support it (VT-3.2-M2,
// VT-3.2-M8).
func (h *Header) ImmediateData() (uint32, bool) {
	if !h.Type.HasImmediate() || h.Flags&ImmediateValid == 0 {
		return 0, false
	}
	return h.Immediate, true
}

// ConsumesReceive reports whether the message uses up one of the peer's
// receives: a Send, or an RDMA Write with immediate data (3.3).
func (h *Header) ConsumesReceive() bool {
	return h.Type == Send || h.Type == RDMAWrite && h.Flags&ImmediateValid != 0
}

// String is one line for a dump, such as
//
//	Send #291 +1280 Eom IdV=0x2a len 1304 ack 7 rx 16
func (h *Header) String() string {
	s := fmt.Sprintf("%v #%d", h.Type, h.Number)
	if h.Type.HasPayload() {
		s += fmt.Sprintf(" +%d", h.Offset)
	}
	if f := h.Flags &^ ImmediateValid; f != 0 {
		s += " " + f.String()
	}
	if h.Flags&ImmediateValid != 0 {
		s += fmt.Sprintf(" IdV=%#x", h.Immediate)
	}
	s += fmt.Sprintf(" len %d ack %d rx %d", h.Length, h.Ack, h.RxPosted)
	if h.Code != 0 {
		s += " error " + h.Code.String()
	}
	return s
}

package cases

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// The octets of VI segments, built and read here and not by the code under test.

// The types of the VI/TCP draft, 3.2.
const (
	viSend = iota
	viWrite
	viReadRequest
	viReadResponse
	viNOP
	viRequest
	viAccept
	viReject
	viNoMatch
)

// The flags beside them.
const (
	viLast      = 0x80 // End of Message
	viImmediate = 0x40 // Immediate Data Valid
	viError     = 0x20 // Transmit Error
)

// The VI error types, bits of Remote Error Code.
const (
	viProtectionCode = 0x1
	viDescriptorCode = 0x2
	viTransportCode  = 0x4
)

// The attributes of a CE header (3.3). The levels are bits 0 to 2.
const (
	viUnreliable = 1 << iota
	viDelivery
	viReception
	viWriteEnable
	viReadEnable
	viFlowControl
	viPeerToPeer
)

const (
	viHeaderLen = 24
	viRDMALen   = 16
	viCELen     = 140
)

// viOptions are lists of options: what a segment without any has, and with the CRC's.
var (
	viEndOfOptions = []byte{0, 0}
	viCRCOption    = []byte{0, 1, 0, 4, 0, 0}
)

// viSegment is a VI segment (3.1).
type viSegment struct {
	kind, flags                    byte
	offset, immediate, number, ack uint32
	posted, code                   uint16
	rdma                           viRDMA // of kinds that have one
	ce                             viCE   // of kinds that have one
	payload                        []byte

	version byte   // 0 is 1
	length  uint16 // 0 is the right one
	bare    bool   // without the header that the kind has behind the first
}

// viRDMA is an RDMA header (3.4).
type viRDMA struct {
	address        uint64
	handle, length uint32
}

// viCE is a CE header (3.3).
type viCE struct {
	attributes, window uint16
	mtu                uint32
	calling, called    string
	options            []byte
	// lengths are those of the discriminators, if they are not to be right.
	lengths [2]uint16
}

func (s *viSegment) last() bool    { return s.flags&viLast != 0 }
func (s *viSegment) hasRDMA() bool { return s.kind == viWrite || s.kind == viReadRequest }
func (s *viSegment) hasCE() bool   { return s.kind == viRequest || s.kind == viAccept }

func (s *viSegment) String() string {
	names := [...]string{"Send", "RdmaWrite", "RdmaReadRequest", "RdmaReadResponse", "NOP", "ConnectRequest", "ConnectAccept", "ConnectReject", "ConnectNoMatch"}
	name := fmt.Sprintf("type %d", s.kind)
	if int(s.kind) < len(names) {
		name = names[s.kind]
	}
	return fmt.Sprintf("%s flags %02x number %#x offset %d immediate %#x ack %#x posted %d code %#x rdma %+v payload %d octets",
		name, s.flags, s.number, s.offset, s.immediate, s.ack, s.posted, s.code, s.rdma, len(s.payload))
}

// octets are the segment's; crc is whether it has a trailer.
func (s *viSegment) octets(crc bool) []byte {
	be := binary.BigEndian
	b := []byte{max(s.version, 1), s.kind | s.flags, 0, 0}
	b = be.AppendUint32(b, s.offset)
	b = be.AppendUint32(b, s.immediate)
	b = be.AppendUint32(b, s.number)
	b = be.AppendUint32(b, s.ack)
	b = be.AppendUint16(b, s.posted)
	b = be.AppendUint16(b, s.code)
	switch {
	case s.bare:
	case s.hasRDMA():
		b = be.AppendUint64(b, s.rdma.address)
		b = be.AppendUint32(b, s.rdma.handle)
		b = be.AppendUint32(b, s.rdma.length)
	case s.hasCE():
		b = append(b, s.ce.octets()...)
	}
	b = append(b, s.payload...)
	length := s.length
	if length == 0 {
		length = uint16(len(b))
		if crc {
			length += 4
		}
	}
	be.PutUint16(b[2:], length)
	if crc {
		b = append(b, viCRC(b)...)
	}
	return b
}

func (c *viCE) octets() []byte {
	be := binary.BigEndian
	lengths := c.lengths
	if lengths == [2]uint16{} {
		lengths = [2]uint16{uint16(len(c.calling)), uint16(len(c.called))}
	}
	field := func(b []byte, name string) []byte {
		var f [64]byte
		copy(f[:], name)
		return append(b, f[:]...)
	}
	b := be.AppendUint16(nil, c.attributes)
	b = be.AppendUint16(b, lengths[0])
	b = be.AppendUint32(b, c.mtu)
	b = field(b, c.calling)
	b = be.AppendUint16(b, c.window)
	b = be.AppendUint16(b, lengths[1])
	b = field(b, c.called)
	return append(b, c.options...)
}

// hasCRCOption reports whether options have the CRC option, which announces a trailer.
func hasCRCOption(options []byte) bool { return bytes.HasPrefix(options, viCRCOption[:4]) }

// readVI reads a segment out of all of its octets. crc is what the connection has; a
// segment of establishment says itself.
func readVI(b []byte, crc bool) (viSegment, error) {
	if b[0] != 1 {
		return viSegment{}, fmt.Errorf("version %d", b[0])
	}
	be := binary.BigEndian
	s := &viSegment{
		kind: b[1] & 0x1F, flags: b[1] &^ 0x1F, offset: be.Uint32(b[4:]), immediate: be.Uint32(b[8:]),
		number: be.Uint32(b[12:]), ack: be.Uint32(b[16:]), posted: be.Uint16(b[20:]), code: be.Uint16(b[22:]),
	}
	err := s.readBody(b, crc)
	return *s, err
}

// readBody reads what is behind the segment header.
func (s *viSegment) readBody(b []byte, crc bool) error {
	be := binary.BigEndian
	body := b[viHeaderLen:]
	switch {
	case s.hasCE():
		if len(body) < viCELen {
			return fmt.Errorf("%v without a whole CE header: %d octets", s, len(b))
		}
		s.ce = readCE(body)
		body = nil
		crc = hasCRCOption(s.ce.options)
		if crc {
			s.ce.options = s.ce.options[:len(s.ce.options)-4]
		}
	case s.kind == viReject || s.kind == viNoMatch:
		crc = len(body) == 4 // 3.6
	}
	if crc {
		n := len(b) - 4
		if n < viHeaderLen || !bytes.Equal(b[n:], viCRC(b[:n])) {
			return fmt.Errorf("%v with a wrong CRC, or without one", s)
		}
		body = body[:max(0, len(body)-4)]
	}
	if s.hasRDMA() {
		if len(body) < viRDMALen {
			return fmt.Errorf("%v without an RDMA header: %d octets", s, len(b))
		}
		s.rdma = viRDMA{be.Uint64(body), be.Uint32(body[8:]), be.Uint32(body[12:])}
		body = body[viRDMALen:]
	}
	s.payload = append([]byte(nil), body...)
	return nil
}

func readCE(b []byte) viCE {
	be := binary.BigEndian
	c := viCE{attributes: be.Uint16(b), mtu: be.Uint32(b[4:]), window: be.Uint16(b[72:])}
	c.calling = string(b[8:72][:min(64, be.Uint16(b[2:]))])
	c.called = string(b[76:140][:min(64, be.Uint16(b[74:]))])
	c.options = append([]byte(nil), b[viCELen:]...)
	return c
}

// viCRC is the trailer of a segment, bit by bit: steps a to e of 3.6, with the bits of
// an octet in Ethernet's order.
func viCRC(b []byte) []byte {
	r := ^uint32(0)
	for _, v := range b {
		for i := range 8 {
			out := r>>31 ^ uint32(v)>>i&1
			r <<= 1
			if out != 0 {
				r ^= 0xDB710641
			}
		}
	}
	r = ^r
	trailer := make([]byte, 4)
	for i := range 32 {
		trailer[i/8] |= byte(r>>(31-i)&1) << (i % 8)
	}
	return trailer
}

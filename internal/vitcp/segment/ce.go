package segment

import (
	"encoding/binary"
	"fmt"
)

// MaxDiscriminator is the longest discriminator in octets (3.3).
const MaxDiscriminator = 64

// Discriminator tells the VIs of one network address apart: any octets, at most
// 64. The empty one is one of them.
type Discriminator string

func (d Discriminator) String() string { return fmt.Sprintf("%q", string(d)) }

// CE is the connection establishment header of a ConnectRequest or
// ConnectAccept (3.3), offsets in octets from the header's start:
//
//	  0  Calling Attributes, 16 bits       2  Calling Discriminator Length, 16 bits
//	  4  MTU Size, 32 bits
//	  8  Calling Discriminator, 64 octets
//	 72  Calling RDMA Read Window, 16 bits 74  Called Discriminator Length, 16 bits
//	 76  Called Discriminator, 64 octets
//	140  Options
type CE struct {
	// Attributes are those of the end that sends the header, also in an Accept:
	// each end states its own (3.3).
	Attributes Attributes
	// MTU is the most payload of one message, in octets, headers not counted:
	// it negotiates the VI attribute MaxTransferSize (2.2.1), and has 32 bits
	// where a segment's length has 16. The Request proposes, the Accept states
	// the lesser of the two ends' (VT-3.3-M4).
	MTU uint32
	// ReadWindow is how many RDMA Reads may be outstanding (2.2.2.2.6).
	ReadWindow uint16
	// Calling is the discriminator of the end that called, Called that of the
	// end it called, in both segments.
	Calling, Called Discriminator
	Options         Options
}

// Offsets of CE's fields.
const (
	ceMTU        = 4
	ceCalling    = 8
	ceReadWindow = ceCalling + MaxDiscriminator
	ceCalled     = ceReadWindow + 4
)

// Append appends a ConnectRequest or ConnectAccept: the header h, whose Length
// and EndOfMessage it sets, c, and the trailer that the CRC option asks for
// (VT-3.6-M2). It panics if a discriminator is longer than 64 octets.
func (c *CE) Append(dst []byte, h Header) []byte {
	var opts [16]byte
	options := appendOptions(opts[:0], c.Options)
	crc := c.Options&OptionCRC != 0
	h.Flags |= EndOfMessage // VT-3.2-M4
	h.SetLength(len(options), crc)
	start := len(dst)
	dst = h.Append(dst)
	dst = binary.BigEndian.AppendUint16(dst, uint16(c.Attributes))
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(c.Calling)))
	dst = binary.BigEndian.AppendUint32(dst, c.MTU)
	dst = c.Calling.append(dst)
	dst = binary.BigEndian.AppendUint16(dst, c.ReadWindow)
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(c.Called)))
	dst = c.Called.append(dst)
	dst = append(dst, options...)
	if crc {
		dst = AppendCRC(dst, start)
	}
	return dst
}

// append appends the 64 octets of a discriminator's field.
func (d Discriminator) append(dst []byte) []byte {
	var field [MaxDiscriminator]byte
	if copy(field[:], d) != len(d) {
		panic(fmt.Sprintf("vitcp: a discriminator of %d octets", len(d)))
	}
	return append(dst, field[:]...)
}

// parseCE reads a CE header with its options, which ends the segment but for
// the trailer that the CRC option announces. On FaultDiscriminator and
// FaultNone the options are right.
func parseCE(b []byte) (CE, ParseFault) {
	if len(b) < CEHeader {
		return CE{}, FaultLength
	}
	c := CE{
		Attributes: Attributes(binary.BigEndian.Uint16(b)),
		MTU:        binary.BigEndian.Uint32(b[ceMTU:]),
		ReadWindow: binary.BigEndian.Uint16(b[ceReadWindow:]),
	}
	var fault ParseFault
	if c.Options, fault = parseOptions(b[CEHeader:]); fault != FaultNone {
		return c, fault
	}
	calling, called := binary.BigEndian.Uint16(b[2:]), binary.BigEndian.Uint16(b[ceReadWindow+2:])
	if calling > MaxDiscriminator || called > MaxDiscriminator {
		return c, FaultDiscriminator
	}
	c.Calling = Discriminator(b[ceCalling:][:calling])
	c.Called = Discriminator(b[ceCalled:][:called])
	return c, FaultNone
}

func (c *CE) String() string {
	s := fmt.Sprintf("%v mtu %d window %d calling %v called %v", c.Attributes, c.MTU, c.ReadWindow, c.Calling, c.Called)
	if c.Options != 0 {
		s += " options " + c.Options.String()
	}
	return s
}

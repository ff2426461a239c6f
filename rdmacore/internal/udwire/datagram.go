// Package udwire is the wire of unreliable datagrams between softrnics: what a UDP datagram has that carries one message of
// a UD queue pair. No standard has such a thing for iWARP; docs/decisions/0019-ud-as-udp.md says what was chosen.
//
//	octets  0 to  3  magic, "SRUD"
//	        4        version, 1
//	        5        flags: 1 there is an immediate, 2 solicited
//	        6 to  7  length of the payload, at most 4,096
//	        8 to 11  destination queue pair number
//	       12 to 15  source queue pair number
//	       16 to 19  Q_Key
//	       20 to 23  immediate
//	       24 on     payload
//	        last 4   CRC32C of all before
//
// All numbers are in network order. Queue pair numbers are UDP port << 8 | index.
package udwire

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"net/netip"
)

const (
	// MTU is the longest payload, in octets.
	MTU = 4096
	// MaxDatagram is the longest datagram, in octets.
	MaxDatagram = headerSize + MTU + crcSize
	// GRHSize is what a receive has before the payload, in octets.
	GRHSize = 40

	headerSize    = 24
	crcSize       = 4
	magic         = 0x53525544
	version       = 1
	flagImmediate = 1
	flagSolicited = 2
)

// Datagram is one message.
type Datagram struct {
	Dest, Source, QKey      uint32
	Immediate               uint32
	HasImmediate, Solicited bool
	Payload                 []byte // at most MTU octets
}

// What Decode refuses.
var (
	ErrFormat  = errors.New("ud: not a datagram of this version")
	ErrLength  = errors.New("ud: the length does not fit the datagram")
	ErrCRC     = errors.New("ud: the CRC does not fit the datagram")
	ErrNumbers = errors.New("ud: a queue pair number is out of range")
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Append appends the datagram to b. The payload has to fit.
func (d *Datagram) Append(b []byte) []byte {
	at := len(b)
	flags := byte(0)
	if d.HasImmediate {
		flags |= flagImmediate
	}
	if d.Solicited {
		flags |= flagSolicited
	}
	b = binary.BigEndian.AppendUint32(b, magic)
	b = append(b, version, flags)
	b = binary.BigEndian.AppendUint16(b, uint16(len(d.Payload)))
	for _, n := range [...]uint32{d.Dest, d.Source, d.QKey, d.Immediate} {
		b = binary.BigEndian.AppendUint32(b, n)
	}
	b = append(b, d.Payload...)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b[at:], castagnoli))
}

// Decode takes a datagram apart; the payload is a part of b. Errors: those above.
func Decode(b []byte) (d Datagram, err error) {
	if len(b) < headerSize+crcSize || binary.BigEndian.Uint32(b) != magic || b[4] != version || b[5]&^(flagImmediate|flagSolicited) != 0 {
		return d, ErrFormat
	}
	n := int(binary.BigEndian.Uint16(b[6:]))
	if n > MTU || len(b) != headerSize+n+crcSize {
		return d, ErrLength
	}
	if crc32.Checksum(b[:headerSize+n], castagnoli) != binary.BigEndian.Uint32(b[headerSize+n:]) {
		return d, ErrCRC
	}
	d = Datagram{
		Dest: binary.BigEndian.Uint32(b[8:]), Source: binary.BigEndian.Uint32(b[12:]), QKey: binary.BigEndian.Uint32(b[16:]),
		Immediate: binary.BigEndian.Uint32(b[20:]), HasImmediate: b[5]&flagImmediate != 0, Solicited: b[5]&flagSolicited != 0,
		Payload: b[headerSize : headerSize+n],
	}
	if d.Dest>>24 != 0 || d.Source>>24 != 0 || Port(d.Source) == 0 {
		return Datagram{}, ErrNumbers
	}
	return d, nil
}

// Port is the UDP port of a queue pair number.
func Port(qpn uint32) uint16 { return uint16(qpn >> 8) }

// PutGRH writes what stands before the payload of a receive to the first GRHSize octets of b: a Global
// Route Header (IBA 8.3) whose GIDs are the addresses, for n octets of payload. Its next header is UDP, as with RoCE v2, which is the type
// of the device's GID: ibv_create_ah_from_wc looks for a GID of the type that the next header means.
func PutGRH(b []byte, source, dest netip.Addr, n int) {
	const ipVersion, nextHeader, hops = 6, 17, 64
	binary.BigEndian.PutUint32(b, ipVersion<<28)
	binary.BigEndian.PutUint16(b[4:], uint16(n))
	b[6], b[7] = nextHeader, hops
	s, d := source.As16(), dest.As16()
	copy(b[8:], s[:])
	copy(b[24:GRHSize], d[:])
}

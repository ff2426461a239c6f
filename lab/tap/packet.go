package tap

import (
	"encoding/binary"
	"net/netip"
	"time"
)

// The blocks are written by hand, not by gopacket's pcapgo: with it and its layers the engine that each C program loads would
// be a quarter larger (9.5 to 11.8 MB) and have five foreign packages more, in place of some sixty lines.

// Block types and options of pcapng (draft-ietf-opsawg-pcapng, 4), all in little-endian.
const (
	blockSection    = 0x0A0D0D0A
	blockInterface  = 1
	blockStatistics = 5
	blockPacket     = 6

	optComment    = 1
	optUserAppl   = 4
	optName       = 2
	optResolution = 9
	optDropped    = 5

	linkRaw = 101 // the packet begins with its IP header
)

var le = binary.LittleEndian

// block makes a block of a body that is a multiple of four octets long.
func block(kind uint32, body []byte) []byte {
	n := uint32(len(body) + 12)
	b := le.AppendUint32(le.AppendUint32(make([]byte, 0, n), kind), n)
	return le.AppendUint32(append(b, body...), n)
}

func option(b []byte, code uint16, value string) []byte {
	b = le.AppendUint16(le.AppendUint16(b, code), uint16(len(value)))
	return pad(append(b, value...))
}

func pad(b []byte) []byte {
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

// header begins a capture: a section, and one interface.
func header(payload bool) []byte {
	comment := "Payload, private, immediate and atomic data are zeros; CRCs are computed anew."
	if payload {
		comment = "Payload, private, immediate and atomic data are as they were."
	}
	s := le.AppendUint32(nil, 0x1A2B3C4D)
	s = le.AppendUint16(le.AppendUint16(s, 1), 0)
	s = le.AppendUint64(s, ^uint64(0)) // of unknown length
	s = option(s, optComment, comment)
	s = option(s, optUserAppl, "softrnic")
	s = le.AppendUint32(s, 0)
	i := le.AppendUint16(le.AppendUint16(nil, linkRaw), 0)
	i = le.AppendUint32(i, 0) // no snap length
	i = option(i, optName, "softrnic")
	i = option(i, optResolution, "\x09") // nanoseconds
	i = le.AppendUint32(i, 0)
	return append(block(blockSection, s), block(blockInterface, i)...)
}

// statistics says how many records are missing.
func statistics(at time.Time, lost uint64) []byte {
	b := le.AppendUint32(nil, 0)
	b = stamp(b, at)
	b = option(b, optDropped, string(le.AppendUint64(nil, lost)))
	return block(blockStatistics, le.AppendUint32(b, 0))
}

func stamp(b []byte, at time.Time) []byte {
	ns := uint64(at.UnixNano())
	return le.AppendUint32(le.AppendUint32(b, uint32(ns>>32)), uint32(ns))
}

// flags of TCP.
const (
	fin = 1 << iota
	syn
	rst
	psh
	ack
)

// maxSegment is how many octets of a stream a packet holds: an IPv4 packet has 65,535.
const maxSegment = 65535 - 40

// packet makes the block of one TCP segment.
func packet(at time.Time, src, dst netip.AddrPort, seq, acked uint32, flags byte, payload []byte) []byte {
	p := ip(src.Addr(), dst.Addr(), 20+len(payload))
	from := len(p)
	p = binary.BigEndian.AppendUint16(p, src.Port())
	p = binary.BigEndian.AppendUint16(p, dst.Port())
	p = binary.BigEndian.AppendUint32(p, seq)
	p = binary.BigEndian.AppendUint32(p, acked)
	p = append(p, 5<<4, flags, 0xFF, 0xFF, 0, 0, 0, 0)
	p = append(p, payload...)
	pseudo := append(src.Addr().AsSlice(), dst.Addr().AsSlice()...)
	sum := checksum(checksum(uint32(6+20+len(payload)), pseudo), p[from:])
	binary.BigEndian.PutUint16(p[from+16:], fold(sum))
	b := stamp(le.AppendUint32(nil, 0), at)
	b = le.AppendUint32(le.AppendUint32(b, uint32(len(p))), uint32(len(p)))
	return block(blockPacket, pad(append(b, p...)))
}

// ip makes the IP header of n octets of TCP.
func ip(src, dst netip.Addr, n int) []byte {
	if src.Is4() {
		b := []byte{0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 6, 0, 0}
		binary.BigEndian.PutUint16(b[2:], uint16(20+n))
		b = append(append(b, src.AsSlice()...), dst.AsSlice()...)
		binary.BigEndian.PutUint16(b[10:], fold(checksum(0, b)))
		return b
	}
	b := []byte{0x60, 0, 0, 0, 0, 0, 6, 64}
	binary.BigEndian.PutUint16(b[4:], uint16(n))
	return append(append(b, src.AsSlice()...), dst.AsSlice()...)
}

// checksum adds b to a sum of RFC 1071; its length is even but at the end.
func checksum(sum uint32, b []byte) uint32 {
	for ; len(b) > 1; b = b[2:] {
		sum += uint32(b[0])<<8 | uint32(b[1])
		sum = sum>>16 + sum&0xFFFF
	}
	if len(b) == 1 {
		sum += uint32(b[0]) << 8
	}
	return sum
}

func fold(sum uint32) uint16 {
	sum = sum>>16 + sum&0xFFFF
	return ^uint16(sum>>16 + sum)
}

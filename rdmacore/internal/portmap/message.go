//go:build linux && (amd64 || arm64)

package portmap

import (
	"encoding/binary"
	"fmt"
	"net/netip"
)

// A message of the iWARP port mapper, as rdma-core's iwpmd sends it to UDP port 3935, 48 octets, big endian:
//
//	 0  version (2 bits), kind (2 bits), IP version (4 bits)
//	 1  time, 0
//	 2  of a request: the connecting peer's TCP port
//	 4  the accepting peer's port: the number asked for, in an Accept the TCP port
//	 6  the connecting peer's port
//	 8  handle, which answers repeat
//	16  the connecting peer's address, 16 octets, IPv4 in the first four
//	32  the accepting peer's
//	48  of a request alone: where the connecting peer's TCP connection comes from
const (
	messageSize = 48
	requestSize = messageSize + 16
)

// Port is where a port mapper takes requests, a UDP port.
const Port = 3935

// kind is what a message is.
type kind uint8

const (
	kindRequest kind = iota
	kindAccept
	kindAck
	kindReject
)

// message is one, decoded.
type message struct {
	kind      kind
	handle    uint64
	accepting netip.AddrPort
	// connecting is where the program's side connects from.
	connecting netip.AddrPort
}

// append encodes it, with both addresses of one family; the connecting peer has no mapping of its own.
func (m message) append(b []byte) []byte {
	version, n := byte(4), messageSize
	if m.accepting.Addr().Is6() {
		version = 6
	}
	if m.kind == kindRequest {
		n = requestSize
	}
	start := len(b)
	b = append(b, make([]byte, n)...)
	p := b[start:]
	p[0] = byte(m.kind)<<4 | version
	binary.BigEndian.PutUint16(p[4:], m.accepting.Port())
	binary.BigEndian.PutUint16(p[6:], m.connecting.Port())
	binary.BigEndian.PutUint64(p[8:], m.handle)
	copy(p[16:32], m.connecting.Addr().AsSlice())
	copy(p[32:48], m.accepting.Addr().AsSlice())
	if m.kind == kindRequest {
		binary.BigEndian.PutUint16(p[2:], m.connecting.Port())
		copy(p[48:], m.connecting.Addr().AsSlice())
	}
	return b
}

// decode reads one. Its addresses have no zone: a message has none.
func decode(p []byte) (message, error) {
	if len(p) < messageSize {
		return message{}, fmt.Errorf("a message of %d octets for %d", len(p), messageSize)
	}
	if v := p[0] >> 6; v != 0 {
		return message{}, fmt.Errorf("version %d of the port mapper's protocol, which is known up to 0", v)
	}
	m := message{kind: kind(p[0] >> 4 & 3), handle: binary.BigEndian.Uint64(p[8:])}
	if m.kind == kindRequest && len(p) < requestSize {
		return message{}, fmt.Errorf("a request of %d octets for %d", len(p), requestSize)
	}
	n := 16
	switch v := p[0] & 15; v {
	case 4:
		n = 4
	case 6:
	default:
		return message{}, fmt.Errorf("addresses of IP version %d", v)
	}
	connecting, _ := netip.AddrFromSlice(p[16 : 16+n])
	accepting, _ := netip.AddrFromSlice(p[32 : 32+n])
	m.connecting = netip.AddrPortFrom(connecting, binary.BigEndian.Uint16(p[6:]))
	m.accepting = netip.AddrPortFrom(accepting, binary.BigEndian.Uint16(p[4:]))
	return m, nil
}

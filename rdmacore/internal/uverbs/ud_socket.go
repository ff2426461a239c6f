//go:build linux && (amd64 || arm64)

package uverbs

import (
	"encoding/binary"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/rdmacore/internal/udwire"
)

const (
	// portTries is how often a TCP port is sought whose UDP port is free too.
	portTries = 16
	// socketBuffer is what a UDP socket is asked to hold, in octets: the system may give it less.
	socketBuffer = 4 << 20
)

// listenUDP binds the UDP port that has the number of a listener, on the device's address alone. Errors: of listening.
func (d *Device) listenUDP(port uint16) (*net.UDPConn, error) {
	c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(d.config.Addr, port)))
	if err != nil {
		return nil, err
	}
	if raw, err := c.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			if unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, socketBuffer) != nil { // root's alone
				_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, socketBuffer)
			}
		})
	}
	d.OwnSocket(c)
	return c, nil
}

// serveUDP gives datagrams to the queue pairs of a port, until the socket is closed. Nothing is ever answered.
func (d *Device) serveUDP(p *handPort) {
	buf := make([]byte, udwire.MaxDatagram+1)
	for {
		n, from, err := p.datagrams.ReadFromUDPAddrPort(buf)
		if n == 0 && err != nil {
			return
		}
		if d.Down() {
			continue
		}
		g, wrong := udwire.Decode(buf[:n])
		if err != nil || wrong != nil || udwire.Port(g.Dest) != p.number || udwire.Port(g.Source) != from.Port() {
			continue
		}
		if q := d.QP(g.Dest); q != nil && q.ud != nil {
			q.arrive(g, plain(from.Addr()))
		}
	}
}

// socketOf is the socket of a UD queue pair's port.
func (d *Device) socketOf(q *QP) *net.UDPConn {
	h := &d.hand
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ports[udwire.Port(q.qpn)].datagrams
}

// isUD reports whether a queue pair carries datagrams.
func isUD(c *uabi.QPConfig) bool { return c.QPType == uabi.QPTUD }

// immediateOf and putImmediate are the 32 bits of an immediate, in network order in C programs.
func immediateOf(ex [4]byte) uint32          { return binary.BigEndian.Uint32(ex[:]) }
func putImmediate(ex *[4]byte, value uint32) { binary.BigEndian.PutUint32(ex[:], value) }

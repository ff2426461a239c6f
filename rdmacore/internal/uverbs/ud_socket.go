//go:build linux && (amd64 || arm64)

package uverbs

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"syscall"

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

// listenUDP binds the UDP port that has the number of a listener, on one of the device's addresses. Errors: of listening.
func (d *Device) listenUDP(a netip.Addr, port uint16) (*net.UDPConn, error) {
	c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(a, port)))
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

// udpConns are those of a port, by which of the device's addresses they are at: none is at one that the interface has lost.
type udpConns map[int]*net.UDPConn

// listenUDPs is listenUDP at each of the device's addresses.
func (d *Device) listenUDPs(port uint16) (udpConns, error) {
	all := udpConns{}
	for i, a := range d.addrs {
		c, err := d.listenUDP(a, port)
		switch {
		case err == nil:
			all[i] = c
		case i == 0 || !errors.Is(err, syscall.EADDRNOTAVAIL):
			all.close()
			return nil, err
		}
	}
	return all, nil
}

func (all udpConns) close() {
	for _, c := range all {
		_ = c.Close()
	}
}

// serveUDP gives datagrams that came to one of the device's addresses to the queue pairs of a port, until the socket is closed. Nothing
// is ever answered.
func (d *Device) serveUDP(p *handPort, c *net.UDPConn, at netip.Addr) {
	buf := make([]byte, udwire.MaxDatagram+1)
	for {
		n, from, err := c.ReadFromUDPAddrPort(buf)
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
			q.arrive(g, path{plain(from.Addr()), at})
		}
	}
}

// sendersOf are the sockets of a UD queue pair's port.
func (d *Device) sendersOf(q *QP) map[int]sender {
	h := &d.hand
	h.mu.Lock()
	defer h.mu.Unlock()
	all := map[int]sender{}
	for i, c := range h.ports[udwire.Port(q.qpn)].datagrams {
		all[i] = c
	}
	return all
}

// isUD reports whether a queue pair carries datagrams.
func isUD(c *uabi.QPConfig) bool { return c.QPType == uabi.QPTUD }

// immediateOf and putImmediate are the 32 bits of an immediate, in network order in C programs.
func immediateOf(ex [4]byte) uint32          { return binary.BigEndian.Uint32(ex[:]) }
func putImmediate(ex *[4]byte, value uint32) { binary.BigEndian.PutUint32(ex[:], value) }

//go:build linux && (amd64 || arm64)

package uverbs

import (
	"net"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/verbs"
)

// toItself brings a queue pair up whose peer is itself. Its stream is a TCP connection with one end, which TCP
// can have (RFC 9293 3.5, simultaneous open): what is sent there is received there. There is nobody to agree with about RDMA Reads: it
// grants itself what it would offer, with the place for placed Writes.
func (l *link) toItself() (<-chan struct{}, error) {
	a, err := l.qp.qp.Query()
	if err != nil {
		return nil, err
	}
	reads, placed := -1, a.PlacedWrites
	if placed {
		reads = min(a.IRD, a.ORD) + 1
	}
	nc, err := l.dev.oneEnded(l.me)
	if err != nil {
		return nil, err
	}
	return l.begin(&verbs.StreamConfig{
		Conn: nc, Role: mpa.Initiator, CRC: l.dev.config.CRC, Enhanced: placed, IRD: reads, ORD: reads, PeerIRD: reads, PeerORD: reads,
	})
}

// toNobody brings an unreliable queue pair up that nobody has answered: its peer goes at once.
func (l *link) toNobody() (<-chan struct{}, error) {
	nc, peer := net.Pipe()
	defer peer.Close()
	return l.begin(&verbs.StreamConfig{Conn: nc, Role: mpa.Initiator, PeerIRD: -1, PeerORD: -1})
}

// begin brings the queue pair up on a stream without startup, whose end done tells of.
func (l *link) begin(stream *verbs.StreamConfig) (done <-chan struct{}, err error) {
	on := true
	if err = l.qp.qp.Modify(verbs.ModifyQP{Next: verbs.StateRTS, Extensions: &on, Stream: stream}); err != nil {
		_ = stream.Conn.Close()
		return nil, err
	}
	s := l.qp.qp.LLPStream()
	l.closes(func() { _ = s.Close() })
	return s.Done(), nil
}

// oneEnded connects a socket of an address of the device to itself.
func (d *Device) oneEnded(a netip.Addr) (net.Conn, error) {
	var family int
	var sa unix.Sockaddr
	if a.Is4() {
		family, sa = unix.AF_INET, &unix.SockaddrInet4{Addr: a.As4()}
	} else {
		zone := 0
		if i, err := net.InterfaceByName(a.Zone()); err == nil {
			zone = i.Index
		}
		family, sa = unix.AF_INET6, &unix.SockaddrInet6{Addr: a.As16(), ZoneId: uint32(zone)}
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), netip.AddrPortFrom(a, 0).String())
	defer f.Close()
	if err := unix.Bind(fd, sa); err != nil {
		return nil, err
	}
	if sa, err = unix.Getsockname(fd); err != nil {
		return nil, err
	}
	if err := unix.Connect(fd, sa); err != nil {
		return nil, err
	}
	nc, err := net.FileConn(f)
	if err == nil {
		d.OwnSocket(nc)
	}
	return nc, err
}

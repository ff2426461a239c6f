//go:build linux && (amd64 || arm64)

package ucma

import (
	"encoding/binary"
	"net"
	"net/netip"
	"strconv"
	"syscall"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
)

// sockaddr is the reverse of SockaddrIn6.AddrPort; an address that is none gives zeros.
func sockaddr(a netip.AddrPort) (s uabi.SockaddrIn6) {
	if !a.IsValid() {
		return s
	}
	binary.BigEndian.PutUint16(s.Port[:], a.Port())
	if a.Addr().Is4() {
		s.Family, s.FlowInfo = syscall.AF_INET, a.Addr().As4()
		return s
	}
	s.Family, s.Addr, s.ScopeID = syscall.AF_INET6, a.Addr().As16(), scope(a.Addr())
	return s
}

// scope is the number of a zone; 0 for none.
func scope(a netip.Addr) uint32 {
	if a.Zone() == "" {
		return 0
	}
	if n, err := strconv.ParseUint(a.Zone(), 10, 32); err == nil {
		return uint32(n)
	}
	if i, err := net.InterfaceByName(a.Zone()); err == nil {
		return uint32(i.Index)
	}
	return 0
}

// sockaddrLen is the length of the kind of address that s is; 0 if it is no IP address.
func sockaddrLen(s *uabi.SockaddrIn6) int {
	switch s.Family {
	case syscall.AF_INET:
		return uabi.SockaddrIn4Len
	case syscall.AF_INET6:
		return uabi.SockaddrIn6Len
	}
	return 0
}

// tcpAddr is a TCP address, in the family of like: what a socket for both families says of an IPv4 peer is
// the IPv4-mapped address.
func tcpAddr(a net.Addr, like netip.AddrPort) netip.AddrPort {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	p := t.AddrPort()
	switch x := p.Addr().Unmap(); {
	case !like.Addr().Is6(), !x.Is4():
		return netip.AddrPortFrom(x, p.Port())
	default:
		return netip.AddrPortFrom(netip.AddrFrom16(x.As16()), p.Port())
	}
}

// gid is an address as a GID.
func gid(a netip.Addr) (g uabi.GID) {
	if a.IsValid() {
		g = a.As16()
	}
	return g
}

// wildcard reports whether an address is missing or stands for all of its family.
func wildcard(a netip.AddrPort) bool { return !a.IsValid() || a.Addr().IsUnspecified() }

package vipl

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
)

// MaxDiscriminator is the longest endpoint discriminator, in octets (VI/TCP 3.3).
const MaxDiscriminator = 64

// NetAddress is a VIP_NET_ADDRESS (VI Architecture 9.10.8): a host, and an endpoint
// there. The lengths of the appendix are those of the slices.
//
// The host address of VI/TCP is an IP address, 4 or 16 octets (VI/TCP 2.2.2.2.1), and
// the port is vitcp.DefaultPort. Another port is appended to it as two octets, most
// significant first, for 6 or 18 (extension).
type NetAddress struct {
	HostAddress []byte
	// Discriminator tells the endpoints of a host apart: 0 to 64 octets.
	Discriminator []byte
}

// NewNetAddress is the address of an endpoint. Port 0 is vitcp.DefaultPort; the port of a
// local address may be left out in any case.
func NewNetAddress(host netip.AddrPort, discriminator []byte) *NetAddress {
	b := host.Addr().Unmap().AsSlice()
	if p := host.Port(); p != 0 {
		b = binary.BigEndian.AppendUint16(b, p)
	}
	return &NetAddress{HostAddress: b, Discriminator: bytes.Clone(discriminator)}
}

// AddrPort is the host's address. The port is zero if HostAddress has none.
// Errors: ErrInvalidParameter.
func (a *NetAddress) AddrPort() (netip.AddrPort, error) {
	host, port := a.HostAddress, uint16(0)
	switch len(host) {
	case 4, 16:
	case 6, 18:
		at := len(host) - 2
		host, port = host[:at], binary.BigEndian.Uint16(host[at:])
	default:
		return netip.AddrPort{}, invalid("a host address has 4 or 16 octets, and 2 more with a port, not %d", len(host))
	}
	ip, _ := netip.AddrFromSlice(host)
	return netip.AddrPortFrom(ip.Unmap(), port), nil
}

// check is AddrPort for an address that a program gave.
func (a *NetAddress) check() (netip.AddrPort, error) {
	if a == nil {
		return netip.AddrPort{}, invalid("no address")
	}
	if err := a.fits(); err != nil {
		return netip.AddrPort{}, err
	}
	return a.AddrPort()
}

// fits checks the discriminator.
func (a *NetAddress) fits() error {
	if n := len(a.Discriminator); n > MaxDiscriminator {
		return invalid("a discriminator has %d octets at most, not %d", MaxDiscriminator, n)
	}
	return nil
}

func (a *NetAddress) String() string {
	host, err := a.AddrPort()
	switch {
	case err != nil:
		return fmt.Sprintf("%x/%q", a.HostAddress, a.Discriminator)
	case host.Port() == 0:
		return fmt.Sprintf("%v/%q", host.Addr(), a.Discriminator)
	}
	return fmt.Sprintf("%v/%q", host, a.Discriminator)
}

package rdmacore

import (
	"fmt"
	"net"
	"net/netip"
)

// Address is an address of this host, and the network interface that has it.
type Address struct {
	Addr      netip.Addr
	Interface string
}

// HostAddress is the address of a device: the one that is asked for, or else, if that is invalid, the first global one of
// IPv4, then of IPv6, then loopback. It fails if this host does not have the one, or any.
func HostAddress(asked netip.Addr) (Address, error) {
	list, err := addresses()
	if err != nil {
		return Address{}, fmt.Errorf("listing this host's addresses: %w", err)
	}
	return choose(asked, list)
}

// addresses are those of the interfaces that are up, in the system's order.
func addresses() ([]Address, error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	var list []Address
	for _, i := range interfaces {
		if i.Flags&net.FlagUp == 0 {
			continue
		}
		nets, err := i.Addrs()
		if err != nil {
			return nil, err
		}
		for _, n := range nets {
			if prefix, err := netip.ParsePrefix(n.String()); err == nil {
				list = append(list, Address{prefix.Addr().Unmap(), i.Name})
			}
		}
	}
	return list, nil
}

// choose is HostAddress for a host that has the addresses of list.
func choose(asked netip.Addr, list []Address) (Address, error) {
	if asked.IsValid() {
		for _, a := range list {
			// Each address of 127.0.0.0/8 is this host's.
			if a.Addr == asked || asked.Is4() && asked.IsLoopback() && a.Addr.Is4() && a.Addr.IsLoopback() {
				return Address{asked, a.Interface}, nil
			}
		}
		return Address{}, fmt.Errorf("%s is no address of this host; `ip addr` lists them", asked)
	}
	for _, want := range []func(netip.Addr) bool{
		func(a netip.Addr) bool { return a.Is4() && a.IsGlobalUnicast() },
		func(a netip.Addr) bool { return a.IsGlobalUnicast() },
		func(a netip.Addr) bool { return a.IsLoopback() },
	} {
		for _, a := range list {
			if want(a.Addr) {
				return a, nil
			}
		}
	}
	return Address{}, fmt.Errorf("this host has no address, not even loopback; `ip link set lo up` gives it one")
}

package run

import (
	"fmt"
	"net"
	"net/netip"
)

// address is an address of this host, and the interface that has it.
type address struct {
	addr netip.Addr
	name string
}

// addresses are those of the interfaces that are up, in the system's order.
func addresses() ([]address, error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	var list []address
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
				list = append(list, address{prefix.Addr().Unmap(), i.Name})
			}
		}
	}
	return list, nil
}

// choose is the address of the device: the one that is asked for, or else the first global one of IPv4, then of
// IPv6, then loopback.
func choose(asked netip.Addr, list []address) (address, error) {
	if asked.IsValid() {
		for _, a := range list {
			// Each address of 127.0.0.0/8 is this host's.
			if a.addr == asked || asked.Is4() && asked.IsLoopback() && a.addr.Is4() && a.addr.IsLoopback() {
				return address{asked, a.name}, nil
			}
		}
		return address{}, fmt.Errorf("--addr %s is no address of this host; `ip addr` lists them", asked)
	}
	for _, want := range []func(netip.Addr) bool{
		func(a netip.Addr) bool { return a.Is4() && a.IsGlobalUnicast() },
		func(a netip.Addr) bool { return a.IsGlobalUnicast() },
		func(a netip.Addr) bool { return a.IsLoopback() },
	} {
		for _, a := range list {
			if want(a.addr) {
				return a, nil
			}
		}
	}
	return address{}, fmt.Errorf("this host has no address, not even loopback; `ip link set lo up` gives it one")
}

package nvmeof

import (
	"net"
	"net/netip"
)

// place gives a connection from a host its place. A host has as many as are left free at most, as in the backlog of
// cm.ListenConfig: one alone has half, and there is one for the next.
func (t *Target) place(host netip.Prefix) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.hosts[host] >= t.config.Connections-t.queues {
		return false
	}
	t.queues++
	t.hosts[host]++
	return true
}

func (t *Target) leave(host netip.Prefix) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.queues--
	if t.hosts[host]--; t.hosts[host] == 0 {
		delete(t.hosts, host)
	}
}

// hostOf is the IPv4 address, or the IPv6 /64, that a connection comes from: a host has all the addresses of its /64.
func hostOf(remote net.Addr) netip.Prefix {
	at, err := netip.ParseAddrPort(remote.String())
	if err != nil {
		return netip.Prefix{}
	}
	ip, bits := at.Addr().Unmap().WithZone(""), 64
	if ip.Is4() {
		bits = 32
	}
	p, _ := ip.Prefix(bits) // of an address of that length
	return p
}

package layout

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// The networks of a fabric: 10.64.0.0/16 and up for switches, 10.128.0.0/29 and up for the pairs of a mesh. Without
// network namespaces the same below 127.
const (
	firstNet, lastNet = 64, 127
	perOctet          = 250 // hosts 1 to 250 of each third octet: none ends in .0 or .255, and tools find .0.1 free for a gateway
)

// number gives each NIC its address. Switches that trunks join are one network; the second NIC of a host there is in a
// second one, so that a route leads to each by its own.
func (f *Fabric) number() error {
	segments := f.segments()
	type network struct{ segment, nth int }
	nets := map[network]int{}
	pairs := 0
	for i := range f.Switches {
		if strings.Contains(f.Switches[i], "-") {
			nets[network{i, 0}] = pairs
			pairs++
		}
	}
	rails := 0
	for h := range f.Hosts {
		nth := map[int]int{}
		for n := range f.Hosts[h].NICs {
			nic := &f.Hosts[h].NICs[n]
			k := network{segments[nic.Switch], nth[segments[nic.Switch]]}
			nth[k.segment]++
			pair := strings.Contains(f.Switches[nic.Switch], "-")
			if _, ok := nets[k]; !ok {
				nets[k] = rails
				rails++
			}
			if pair {
				nic.Addr = f.pairAddress(nets[k], h, nic.Switch)
				continue
			}
			if firstNet+nets[k] > lastNet {
				return fmt.Errorf("a fabric has %d networks of switches at most: join some by trunks", lastNet-firstNet+1)
			}
			nic.Addr = netip.PrefixFrom(f.address(byte(firstNet+nets[k]), byte(1+h/perOctet), byte(1+h%perOctet)), 16)
		}
	}
	return nil
}

func (f *Fabric) address(b, c, d byte) netip.Addr {
	a := byte(10)
	if f.loopback {
		a = 127
	}
	return netip.AddrFrom4([4]byte{a, b, c, d})
}

// pairAddress is that of a host in the network of a pair: .2 of the first, .3 of the second, since .1 is other tools'
// gateway.
func (f *Fabric) pairAddress(pair, host, sw int) netip.Prefix {
	first, _, _ := strings.Cut(f.Switches[sw], "-")
	last := 3
	if f.Hosts[host].Name == first {
		last = 2
	}
	at := pair*8 + last
	return netip.PrefixFrom(f.address(byte(128+at>>16), byte(at>>8), byte(at)), 29)
}

// OnLoopback has the hosts be addresses of this host alone.
func (f *Fabric) OnLoopback() error {
	f.loopback = true
	return f.number()
}

// Etc is what /etc/hosts of a host says: each host by its name, at the address that this one reaches it by, and each NIC
// as h1-nic0.
func (f *Fabric) Etc(host int) string {
	var b strings.Builder
	b.WriteString("127.0.0.1 localhost\n::1 localhost ip6-localhost\n")
	near := map[netip.Prefix]bool{}
	for _, n := range f.Hosts[host].NICs {
		near[n.Addr.Masked()] = true
	}
	for _, h := range f.Hosts {
		by := max(slices.IndexFunc(h.NICs, func(n NIC) bool { return near[n.Addr.Masked()] }), 0)
		for i, n := range h.NICs {
			name := h.Name + "-" + n.Name
			if i == by {
				name = h.Name + " " + name
			}
			fmt.Fprintf(&b, "%s %s\n", n.Addr.Addr(), name)
		}
	}
	return b.String()
}

package vipl

import (
	"context"
	"net"
	"net/netip"
	"time"

	"github.com/softrnic/softrnic/internal/vitcp"
)

// lookupTimeout bounds how long OpenNic may look for what a name stands for.
const lookupTimeout = 10 * time.Second

// device finds the address that a device name means. explicit tells that it has a port.
func device(name string) (host netip.AddrPort, explicit bool, err error) {
	bare, service, err := net.SplitHostPort(name)
	if explicit = err == nil; !explicit {
		bare = name
	}
	var port int
	if explicit {
		if port, err = net.DefaultResolver.LookupPort(context.Background(), "tcp", service); err != nil {
			return host, true, invalid("%q: %v", name, err)
		}
	}
	addr, err := deviceAddr(bare, explicit)
	return netip.AddrPortFrom(addr, uint16(port)), explicit, err
}

// deviceAddr is device without a port.
func deviceAddr(name string, explicit bool) (netip.Addr, error) {
	if name == "" && explicit {
		return netip.IPv6Unspecified(), nil
	}
	if a, err := netip.ParseAddr(name); err == nil {
		return a.Unmap(), nil
	}
	if nif, err := net.InterfaceByName(name); err == nil {
		return interfaceAddr(nif)
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
	defer cancel()
	all, err := lookup(ctx, name)
	if err != nil {
		return netip.Addr{}, invalid("%q is neither an address nor an interface nor a host: %v", name, err)
	}
	for _, a := range all {
		if local(a) {
			return a, nil
		}
	}
	return netip.Addr{}, invalid("%q is another host: it has %v", name, all)
}

// interfaceAddr is the first address of an interface.
func interfaceAddr(nif *net.Interface) (netip.Addr, error) {
	addrs, err := nif.Addrs()
	if err != nil {
		return netip.Addr{}, resource("addresses of %s: %v", nif.Name, err)
	}
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			return p.Addr().Unmap(), nil
		}
	}
	return netip.Addr{}, invalid("interface %s has no address", nif.Name)
}

// local reports an address of this host.
func local(a netip.Addr) bool {
	addrs, _ := net.InterfaceAddrs()
	for _, own := range addrs {
		if p, err := netip.ParsePrefix(own.String()); err == nil && p.Addr().Unmap() == a.WithZone("") {
			return true
		}
	}
	return a.IsLoopback()
}

// lookup is the addresses of a host.
func lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	all, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	for i := range all {
		all[i] = all[i].Unmap()
	}
	return all, err
}

// ResolveNetAddress (extension) is the addresses of an endpoint on a host, by its name or its
// address, with a port behind it or without: "server", "server:22089", "192.0.2.1", "[::1]:7".
// A name may stand for several; they are in the order in which they should be tried, and
// ErrRefused is a reason to try the next. Errors: ErrInvalidParameter (no such host or port, a
// discriminator that is too long).
func ResolveNetAddress(ctx context.Context, host string, discriminator []byte) ([]*NetAddress, error) {
	name, service, err := net.SplitHostPort(host)
	port := 0
	if err != nil {
		name = bareHost(host)
	} else if port, err = net.DefaultResolver.LookupPort(ctx, "tcp", service); err != nil || port == 0 {
		return nil, invalid("%q: %q is no port to connect to", host, service)
	}
	if port == vitcp.DefaultPort { // which goes without saying
		port = 0
	}
	all, err := lookup(ctx, name)
	if err != nil {
		return nil, invalid("%q: %v", host, err)
	}
	list := make([]*NetAddress, len(all))
	for i, a := range all {
		list[i] = NewNetAddress(netip.AddrPortFrom(a, uint16(port)), discriminator)
		if err := list[i].fits(); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// bareHost is a host without the brackets that an IPv6 address may come in.
func bareHost(host string) string {
	if n := len(host); n > 2 && host[0] == '[' && host[n-1] == ']' {
		return host[1 : n-1]
	}
	return host
}

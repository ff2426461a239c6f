//go:build linux && (amd64 || arm64)

package ucma

import (
	"errors"
	"net/netip"
	"syscall"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
)

// bindIP binds an id to an address, and reserves its port: EADDRINUSE is told here, not by LISTEN.
func bindIP(c *call, q *uabi.BindIP) error { return c.bind(q.ID, &q.Addr) }

// bind is bindIP in the form that AF_IB has as well: an iWARP device has no such addresses.
func bind(c *call, q *uabi.CMBindAddr) error {
	if q.Reserved != 0 || q.AddrSize == 0 {
		return refuse(syscall.EINVAL, "an address of %d octets", q.AddrSize)
	}
	if n := sockaddrLen(&q.Addr.SockaddrIn6); n != 0 && n != int(q.AddrSize) {
		return refuse(syscall.EINVAL, "an address of %d octets that has %d", q.AddrSize, n)
	}
	return c.bind(q.ID, &q.Addr.SockaddrIn6)
}

func (c *call) bind(num uint32, s *uabi.SockaddrIn6) error {
	return c.with(num, func(i *id) error {
		a, ok := s.AddrPort()
		if !ok {
			return refuse(syscall.EAFNOSUPPORT, "address family %d: this device has IPv4 and IPv6", s.Family)
		}
		return i.bindOwn(a)
	})
}

// bind takes an idle id to bound; dev.mu is held.
func (i *id) bind(a netip.AddrPort) error {
	if err := i.in(idle); err != nil {
		return err
	}
	if i.options.datagrams {
		var err error
		if a, err = i.dev.datagramsAt(a); err != nil {
			return err
		}
	}
	if err := i.acquire(a); err != nil {
		return err
	}
	p, err := reserve(a, i.options)
	return i.reserved(p, a, err)
}

// reserved takes the id to bound with a port reserved at a, or refuses with err; dev.mu is held.
func (i *id) reserved(p *port, a netip.AddrPort, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) && a.Port() == 0 { // cma_alloc_any_port of Linux
		const what = "no local port is left at %v: close some connections, or widen the range " +
			"(sysctl net.ipv4.ip_local_port_range)"
		i.dev.dev.Report("ports", what, a.Addr())
		return refuse(syscall.EADDRNOTAVAIL, what, a.Addr())
	}
	if err != nil {
		return refuse(errnoOf(err), "bind to %v: %v", a, err)
	}
	i.dev.dev.Own(p.fd)
	i.port, i.src, i.state = p, p.addr, bound
	return nil
}

func resolveIP(c *call, q *uabi.ResolveIP) error { return c.resolve(q.ID, &q.Src, &q.Dst) }

func resolveAddr(c *call, q *uabi.ResolveAddr) error {
	if q.Reserved != 0 || int(q.DstSize) != sockaddrLen(&q.Dst.SockaddrIn6) || q.DstSize == 0 ||
		q.SrcSize != 0 && int(q.SrcSize) != sockaddrLen(&q.Src.SockaddrIn6) {
		return refuse(syscall.EINVAL, "addresses of %d and %d octets", q.SrcSize, q.DstSize)
	}
	if q.SrcSize == 0 {
		q.Src = uabi.SockaddrStorage{}
	}
	return c.resolve(q.ID, &q.Src.SockaddrIn6, &q.Dst.SockaddrIn6)
}

// resolve finds the source address for a destination, and reserves a port of it unless the id is bound.
func (c *call) resolve(num uint32, src, dst *uabi.SockaddrIn6) error {
	d, ok := dst.AddrPort()
	if !ok {
		return refuse(syscall.EINVAL, "address family %d: this device has IPv4 and IPv6", dst.Family)
	}
	return c.with(num, func(i *id) error {
		if err := i.in(idle, bound); err != nil {
			return err
		}
		if i.options.datagrams {
			d = i.dev.here(d)
		}
		s := i.src
		if i.state == idle {
			s, _ = src.AddrPort() // AF_UNSPEC, or none: whatever leads there
		}
		if s.IsValid() && s.Addr().Is4() != d.Addr().Is4() {
			return refuse(syscall.EINVAL, "a source %v of another family than %v", s.Addr(), d.Addr())
		}
		if wildcard(s) {
			a, err := i.sourceFor(d.Addr())
			if err != nil {
				return refuse(errnoOf(err), "no route to %v: %v", d.Addr(), err)
			}
			s = netip.AddrPortFrom(a, s.Port())
			if i.dev.at(a) == nil {
				err := i.dev.noDevice(a)
				i.dev.dev.Report("route", "%v: the way there begins at another network interface than the devices': %v", d.Addr(), err)
				return err
			}
		}
		if i.state == idle {
			if err := i.bind(s); err != nil {
				return err
			}
			s = i.src
		}
		if err := i.acquire(s); err != nil {
			return err
		}
		i.src, i.dst, i.state = s, d, addrResolved
		i.push(uabi.CMEventAddrResolved, 0, nil)
		return nil
	})
}

// resolveRoute has nothing to find out: IP routes what TCP and UDP send.
func resolveRoute(c *call, q *uabi.ResolveRoute) error {
	if q.TimeoutMS == 0 {
		return refuse(syscall.EINVAL, "timeout_ms is 0")
	}
	return c.with(q.ID, (*id).resolveRoute)
}

func (i *id) resolveRoute() error {
	if err := i.in(addrResolved); err != nil {
		return err
	}
	i.state = routeResolved
	i.push(uabi.CMEventRouteResolved, 0, nil)
	return nil
}

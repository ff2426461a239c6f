//go:build linux && (amd64 || arm64)

package ucma

import (
	"errors"
	"net/netip"
	"syscall"

	"github.com/softrnic/softrnic/rdmacore/internal/portmap"
)

// tries is how often a free TCP port is looked for whose number nobody has claimed.
const tries = 16

// bindOwn takes an idle id to bound, at a number of rdma_cm's own port space: a TCP program may have the same. Then the id has
// another TCP port, which peers find (package portmap). EADDRINUSE is told if another id has the number, here or in another
// process. dev.mu is held.
func (i *id) bindOwn(a netip.AddrPort) error {
	switch err := i.in(idle); {
	case err != nil:
		return err
	case i.options.datagrams:
		return i.bind(a)
	case a.Port() == 0:
		return i.bindAny(a)
	}
	if err := i.acquire(a); err != nil {
		return err
	}
	claim, err := i.claim(a)
	if errors.Is(err, syscall.EADDRINUSE) && !i.options.reuseAddr {
		return refuse(syscall.EADDRINUSE, "bind to %v: %v", a, err)
	}
	p, err := reserve(a, i.options)
	mapped := errors.Is(err, syscall.EADDRINUSE) && claim != nil && !i.options.reuseAddr
	if mapped {
		p, err = reserve(netip.AddrPortFrom(a.Addr(), 0), i.options)
	}
	if err = i.reserved(p, a, err); err != nil {
		claim.Close()
		return err
	}
	if i.src = a; mapped {
		i.dev.dev.Report("mapped "+a.String(), "TCP port %d of %v is taken: by RDMA that number is TCP port %d here, "+
			"which other softrnic programs find by themselves", a.Port(), a.Addr(), p.addr.Port())
	}
	i.serveClaim(claim)
	return nil
}

// bindAny binds to a port that neither TCP nor rdma_cm has.
func (i *id) bindAny(a netip.AddrPort) error {
	var passed []*port // kept until another is found
	defer func() {
		for _, p := range passed {
			p.close()
		}
	}()
	for {
		if err := i.bind(a); err != nil {
			return err
		}
		claim, err := i.claim(i.src)
		if !errors.Is(err, syscall.EADDRINUSE) || len(passed) == tries {
			i.serveClaim(claim)
			return nil
		}
		passed = append(passed, i.port)
		i.port, i.state = nil, idle
	}
}

// claim claims a number for the id: nil if it cannot be had.
func (i *id) claim(a netip.AddrPort) (*portmap.Claim, error) {
	return i.dev.space.Take(a, !i.options.afOnly)
}

// serveClaim gives the id a claim, which leads to its port; nil is none.
func (i *id) serveClaim(c *portmap.Claim) {
	if i.claimed = c; c != nil {
		c.Serve(i.port.addr.Port())
	}
}

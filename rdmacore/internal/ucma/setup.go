//go:build linux && (amd64 || arm64)

package ucma

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/rdmacore/internal/udwire"
)

// Ids of a port space for datagrams. Nothing is connected: CONNECT asks a listener for the number and the Q_Key of a queue
// pair, ACCEPT tells them, and REJECT tells that there is none. A Request is sent again until its Reply is there; a listener
// answers each of the Requests of one transaction with the same Reply, and nothing else at all.

// defaultQKey is that of all queue pairs for datagrams of rdma_cm (RDMA_UDP_QKEY of <rdma/rdma_cm.h>).
const defaultQKey = 0x01234567

// setupUnsupported is the status of Linux for a peer at which nobody listens (IBA 12.11.2.2).
const setupUnsupported = 1

// datagrams reports whether a command names an id for datagrams.
func (c *call) datagrams(num uint32) (yes bool) {
	_ = c.with(num, func(i *id) error {
		yes = i.options.datagrams
		return nil
	})
	return yes
}

// here is the device's address for one of the loopback that is not the device's: queue pairs for datagrams are at the device's
// addresses alone, and so is who listens for them.
func (d *Device) here(a netip.AddrPort) netip.AddrPort {
	if a.Addr().Unmap().IsLoopback() {
		n := d.at(a.Addr())
		if own := n.Config().Addr; !n.Has(a.Addr()) && !own.IsLoopback() {
			return netip.AddrPortFrom(own, a.Port())
		}
	}
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}

// datagramsAt is the address that an id for datagrams gets when its program binds it to a: of one that stands for all, that of the
// first device.
func (d *Device) datagramsAt(a netip.AddrPort) (netip.AddrPort, error) {
	own := d.config.Addr
	if n := d.at(a.Addr()); !wildcard(a) && n != nil {
		if n.Has(a.Addr()) {
			return a, nil
		}
		own = n.Config().Addr
	}
	if !wildcard(a) && d.here(a).Addr().WithZone("") != own.Unmap().WithZone("") {
		return a, refuse(syscall.EADDRNOTAVAIL, "%v: datagrams are at the device's addresses alone, such as %v", a.Addr(), own)
	}
	return netip.AddrPortFrom(own, a.Port()), nil
}

// sourceFor is the address that what is for dst comes from.
func (i *id) sourceFor(dst netip.Addr) (netip.Addr, error) {
	if !i.options.datagrams {
		return sourceFor(dst)
	}
	own := i.dev.config.Addr
	a, err := sourceFor(dst)
	if err != nil && len(i.dev.nics) > 1 {
		return a, err
	}
	if err == nil {
		n := i.dev.at(a)
		if n == nil {
			return a, i.dev.noDevice(a)
		}
		own = n.Config().Addr
		if n.Has(a) {
			own = a
		}
	}
	if dst.Is4() != own.Unmap().Is4() {
		return own, refuse(syscall.ENODEV, "%v: datagrams leave from %v", dst, own)
	}
	return own, nil
}

// socket makes the port, which is UDP's, a socket; with a peer it hears that one alone. It takes the port, also if it fails.
func (p *port) socket(peer netip.AddrPort) (*net.UDPConn, error) {
	defer p.close()
	if p.tos >= 0 {
		_ = setTOS(p.fd, p.tos) // a wish only
	}
	if peer.IsValid() {
		_, sa := socketAddr(peer)
		if err := unix.Connect(p.fd, sa); err != nil {
			return nil, err
		}
	}
	f := os.NewFile(uintptr(p.fd), "rdma_cm")
	p.fd = -1
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	return c.(*net.UDPConn), nil
}

// reachable is the peer's queue pair as an event states it.
func (i *id) reachable(s udwire.Setup) uabi.UDParam {
	p := uabi.UDParam{QPNum: s.QPN, QKey: s.QKey}
	p.AH.IsGlobal, p.AH.PortNum = 1, 1
	p.AH.GRH.DGID, p.AH.GRH.HopLimit = gid(i.dst.Addr()), 64
	p.AH.GRH.TrafficClass = uint8(max(i.options.tos, 0))
	if i.nic != nil {
		p.AH.GRH.SGIDIndex = uint8(i.nic.GIDOf(i.src.Addr()))
	}
	return p
}

// found tells what has come of a Request, with the events and statuses of Linux's cma_sidr_rep_handler.
func (i *id) found(s udwire.Setup, err error) {
	d := i.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		d.dev.Report("setup refused", "nothing listens for datagrams at %v: is a server started there, under `rnic run` and with this port?", i.dst)
		i.push(uabi.CMEventUnreachable, 0, func(e *event) { e.resp.Status = setupUnsupported })
	case err != nil:
		d.dev.Report("setup unreachable", "%v does not answer: is the address right, does a firewall drop UDP, does the program there accept?", i.dst)
		i.push(uabi.CMEventUnreachable, errnoOf(err), nil)
	case s.Status != 0:
		d.dev.Report("setup rejected", "the program at %v has rejected a request: what it prints may say why", i.dst)
		i.push(uabi.CMEventUnreachable, 0, func(e *event) {
			e.resp.Status = uint32(s.Status)
			e.datagrams(uabi.UDParam{}, s.Private)
		})
	default:
		i.push(uabi.CMEventEstablished, 0, func(e *event) { e.datagrams(i.reachable(s), s.Private) })
	}
}

//go:build linux && (amd64 || arm64)

package ucma

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"

	"github.com/softrnic/softrnic/rdmacore/internal/uverbs"
)

// at is the device that has an address; nil if none has. A device that is alone has all addresses of the host. Of several the first has
// those of the loopback that no other has, and the first on a network interface those of the interface: the system chooses them for
// connections.
func (d *Device) at(a netip.Addr) *uverbs.Device {
	if len(d.nics) == 1 {
		return d.nics[0]
	}
	for _, n := range d.nics {
		if n.Has(a) {
			return n
		}
	}
	if a.Unmap().IsLoopback() {
		return d.nics[0]
	}
	name := interfaceOf(a)
	for _, n := range d.nics {
		if name != "" && n.Config().Interface == name {
			return n
		}
	}
	return nil
}

// interfaceOf is the network interface that has an address; "" for none.
func interfaceOf(a netip.Addr) string {
	all, err := net.Interfaces()
	if err != nil {
		return ""
	}
	for _, i := range all {
		nets, _ := i.Addrs() // it may have gone
		for _, n := range nets {
			if p, err := netip.ParsePrefix(n.String()); err == nil && p.Addr().Unmap() == a.Unmap().WithZone("") {
				return i.Name
			}
		}
	}
	return ""
}

// noDevice refuses an address that no device has, as cma_acquire_dev_by_src_ip of Linux does. The user is not told: libfabric tries
// all addresses of the host.
func (d *Device) noDevice(a netip.Addr) error {
	const named = 4 // of many
	var have []string
	for i, n := range d.nics {
		if i == named {
			have = append(have, fmt.Sprintf("and %d more", len(d.nics)-named))
			break
		}
		c := n.Config()
		have = append(have, fmt.Sprintf("%s has %v", c.Name, c.Addr))
	}
	return refuse(syscall.ENODEV, "no device has %v: %s", a, strings.Join(have, ", "))
}

// acquire binds the id to the device that has an address; dev.mu is held. One that stands for all binds to none.
func (i *id) acquire(a netip.AddrPort) error {
	if wildcard(a) {
		return nil
	}
	n := i.dev.at(a.Addr())
	if n == nil {
		return i.dev.noDevice(a.Addr())
	}
	i.nic = n
	return nil
}

// roce reports whether the id is bound to a device that is presented as a RoCE adapter.
func (i *id) roce() bool { return i.nic != nil && i.nic.Config().RoCE }

// nic is the device that the id of a command is bound to.
func (c *call) nic(num uint32) (n *uverbs.Device, err error) {
	err = c.with(num, func(i *id) error {
		if n = i.nic; n == nil {
			return refuse(syscall.EINVAL, "id %d is at no device", num)
		}
		return nil
	})
	return n, err
}

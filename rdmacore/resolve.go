package rdmacore

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/softrnic/softrnic/rdmacore/internal/sysfs"
)

// Resolve is the settings with all devices and what each has: its addresses, its interface, its place on a bus. Without Devices there
// is one, softrnic0, which has Addr. Errors: an address, an interface or a PCI function that is not to be had, or is another's.
func (s Settings) Resolve() (Settings, error) {
	host, err := addresses()
	if err != nil {
		return s, fmt.Errorf("listing this host's addresses: %w", err)
	}
	if len(s.Devices) > 0 {
		s.Devices, err = resolve(s.Devices, host, func(function string) bool { return sysfs.HostHasBus("/", function) })
		return s, err
	}
	a, err := choose(s.Addr, host)
	s.Addr = a.Addr
	one := s.one()
	one.Interface = a.Interface
	s.Devices = []Device{one}
	return s, err
}

// one is the device of settings without Devices.
func (s Settings) one() Device {
	return Device{Name: sysfs.Device, Addr: s.Addr, RoCE: s.RoCE, NUMA: -1, Rate: sysfs.DefaultRate, MTU: 4096, Ports: 1}
}

// resolve is Resolve on a host that has some addresses, and the buses of which hasBus tells.
func resolve(asked []Device, host []Address, hasBus func(string) bool) ([]Device, error) {
	if len(asked) > sysfs.MaxDevices {
		return nil, fmt.Errorf("%d devices: there can be %d", len(asked), sysfs.MaxDevices)
	}
	list := slices.Clone(asked)
	names := map[string]bool{}
	for _, d := range list {
		if names[d.Name] {
			return nil, fmt.Errorf("there are two devices %s; give each its own name", d.Name)
		}
		names[d.Name] = true
	}
	if err := places(list, host); err != nil {
		return nil, err
	}
	return list, buses(list, hasBus)
}

// places gives each device its addresses: those that are asked for first, then those that are left.
func places(list []Device, host []Address) error {
	owner := map[netip.Addr]string{}
	claim := func(d *Device) error {
		for _, a := range d.Addrs() {
			if other := owner[a]; other != "" {
				return fmt.Errorf("devices %s and %s both have %s; give each its own address (on this host alone: 127.0.0.2, 127.0.0.3, ...)", other, d.Name, a)
			}
			owner[a] = d.Name
		}
		return nil
	}
	for i := range list {
		d := &list[i]
		if !d.Addr.IsValid() && d.Interface == "" {
			continue
		}
		if err := d.locate(host); err != nil {
			return fmt.Errorf("device %s: %w", d.Name, err)
		}
		if err := claim(d); err != nil {
			return err
		}
	}
	for i := range list {
		d := &list[i]
		if d.Addr.IsValid() {
			continue
		}
		a, err := choose(netip.Addr{}, slices.DeleteFunc(slices.Clone(host), func(a Address) bool { return owner[a.Addr] != "" }))
		if err != nil {
			return fmt.Errorf("device %s: no address of this host is left for it; name one: --device %s=ADDR (on this host alone: 127.0.0.2, 127.0.0.3, ...)", d.Name, d.Name)
		}
		d.Addr, d.Interface = a.Addr, a.Interface
		if err := claim(d); err != nil {
			return err
		}
	}
	return nil
}

// locate fills in the addresses that its interface has, or the interface that has its address.
func (d *Device) locate(host []Address) error {
	if d.Addr.IsValid() {
		for _, asked := range d.Addrs() {
			a, err := choose(asked.WithZone(""), host)
			if err != nil {
				return err
			}
			if asked == d.Addr && d.Interface == "" {
				d.Interface = a.Interface
			}
		}
		return nil
	}
	var own []netip.Addr
	for _, a := range host {
		if a.Interface == d.Interface {
			own = append(own, a.Addr)
		}
	}
	if len(own) == 0 {
		return fmt.Errorf("there is no network interface %s with an address; `ip addr` lists them", d.Interface)
	}
	rank := func(a netip.Addr) int { // as HostAddress prefers them, and those of a link last
		switch {
		case a.IsLinkLocalUnicast():
			return 2
		case a.Is6():
			return 1
		}
		return 0
	}
	slices.SortStableFunc(own, func(a, b netip.Addr) int { return cmp.Compare(rank(a), rank(b)) })
	for i, a := range own {
		if a.Is6() && a.IsLinkLocalUnicast() {
			own[i] = a.WithZone(d.Interface)
		}
	}
	d.Addr, d.GIDs = own[0], append(d.GIDs, own[1:]...)
	return nil
}

// buses gives each device a function of a bus that this host does not have.
func buses(list []Device, hasBus func(string) bool) error {
	owners := map[string]string{} // of a function
	for i := range list {
		d := &list[i]
		if d.PCI == "" {
			continue
		}
		if other := owners[d.PCI]; other != "" {
			return fmt.Errorf("devices %s and %s are both at PCI %s", other, d.Name, d.PCI)
		}
		if hasBus(d.PCI) {
			return fmt.Errorf("device %s: this host has the bus of PCI %s itself; choose another, or leave pci= out", d.Name, d.PCI)
		}
		owners[d.PCI] = d.Name
	}
	bus := 0xc0
	for i := range list {
		for d := &list[i]; d.PCI == ""; bus++ {
			if bus > 0xff {
				return fmt.Errorf("device %s: no bus is left for it; name one with pci=", d.Name)
			}
			if function := fmt.Sprintf("0000:%02x:00.0", bus); owners[function] == "" && !hasBus(function) {
				d.PCI, owners[function] = function, d.Name
			}
		}
	}
	return nil
}

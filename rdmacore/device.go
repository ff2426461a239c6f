package rdmacore

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/softrnic/softrnic/rdmacore/internal/sysfs"
)

// Device is a NIC that a program finds. What is zero is chosen by Settings.Resolve, but for NUMA, where -1 is none.
type Device struct {
	// Name is what libibverbs calls it: softrnic0, mlx5_0, rxe0.
	Name string
	// Addr is its address, one of this host's. Invalid: the best of Interface.
	Addr netip.Addr
	// GIDs are further addresses of it, behind Addr in the table of GIDs. IPv6 addresses of a link have a zone.
	GIDs []netip.Addr
	// Interface is the network interface that it is on. Given without an Addr the device has all its addresses.
	Interface string
	// RoCE presents a RoCE adapter; else an RNIC.
	RoCE bool
	// Rate is that of the port, in Gb/s.
	Rate int
	// NUMA is the node that the device is next to.
	NUMA int
	// PCI is the address of its function, such as 0000:3b:00.0; "" is none for a device that nobody has asked for.
	PCI string
	// MTU is the active one of its port, in octets.
	MTU int
	// Ports is how many it has: 1.
	Ports int
	// Limits: at most so many queue pairs, completion queues and memory regions; 0 is what the RNIC has.
	QPs, CQs, MRs int
}

// deviceName is what a name may be: it is a folder's, and programs put it into lists (mlx5_0:1,mlx5_1:1).
var deviceName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}$`)

// pciAddress is domain, bus, slot and function.
var pciAddress = regexp.MustCompile(`^[0-9a-f]{4}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]$`)

// DeviceWords is the form of a device as text, for people.
const DeviceWords = "NAME[=ADDR|=INTERFACE][,as=roce][,port-rate=100g][,numa=0][,pci=0000:3b:00.0][,mtu=4096][,ports=1]"

// ParseDevice reads a device: its name, and words with commas between. roce is what one is that does not say. Errors: which word is
// wrong, and what it may be.
func ParseDevice(text string, roce bool) (Device, error) {
	d := Device{RoCE: roce, NUMA: -1, Rate: sysfs.DefaultRate, MTU: 4096, Ports: 1}
	if strings.ContainsFunc(text, unicode.IsSpace) {
		return d, fmt.Errorf("%q has a blank in it; want %s", text, DeviceWords)
	}
	first, rest, more := strings.Cut(text, ",")
	name, place, placed := strings.Cut(first, "=")
	if d.Name = name; !deviceName.MatchString(name) {
		return d, fmt.Errorf("%q is no name of a device: want letters, digits, _, - and ., at most 63, as in %s", name, DeviceWords)
	}
	if placed {
		if err := d.place(place); err != nil {
			return d, fmt.Errorf("device %s: %w", name, err)
		}
	}
	if !more {
		return d, nil
	}
	for word := range strings.SplitSeq(rest, ",") {
		key, value, _ := strings.Cut(word, "=")
		set, known := deviceWords[key]
		if !known {
			return d, fmt.Errorf("device %s: there is no %q; want %s", name, word, DeviceWords)
		}
		if err := set(&d, value); err != nil {
			return d, fmt.Errorf("device %s: %s: %w", name, word, err)
		}
	}
	return d, nil
}

// place takes an address, or the name of an interface.
func (d *Device) place(text string) error {
	if a, err := netip.ParseAddr(text); err == nil {
		if a.IsUnspecified() || a.IsMulticast() {
			return fmt.Errorf("%s is no address of a host", text)
		}
		d.Addr = a.Unmap()
		return nil
	}
	return d.onInterface(text)
}

func (d *Device) onInterface(text string) error {
	if text == "" || strings.ContainsAny(text, "/ \t\n") || strings.Contains(text, ":") {
		return fmt.Errorf("%q is no address, such as 192.0.2.1, and no network interface", text)
	}
	d.Interface = text
	return nil
}

// deviceWords set what their names say.
var deviceWords = map[string]func(*Device, string) error{
	"as": func(d *Device, v string) error {
		if d.RoCE = v == "roce"; !d.RoCE && v != "iwarp" {
			return errors.New("want iwarp or roce")
		}
		return nil
	},
	"port-rate": func(d *Device, v string) (err error) {
		if d.Rate, err = strconv.Atoi(strings.TrimSuffix(strings.ToLower(v), "g")); err != nil || d.Rate == 0 {
			d.Rate = -1
		}
		_, err = sysfs.RateOf(d.Rate)
		return err
	},
	"numa": func(d *Device, v string) (err error) {
		if d.NUMA, err = strconv.Atoi(v); err != nil || d.NUMA < -1 || d.NUMA > 1023 {
			return errors.New("want the number of a NUMA node, or -1 for none")
		}
		return nil
	},
	"pci": func(d *Device, v string) error {
		if d.PCI = strings.ToLower(v); !pciAddress.MatchString(d.PCI) {
			return errors.New("want domain, bus, device and function, such as 0000:3b:00.0")
		}
		return nil
	},
	"mtu": func(d *Device, v string) (err error) {
		d.MTU, err = strconv.Atoi(v)
		if _, ok := sysfs.MTUOf(d.MTU); err != nil || !ok || d.MTU == 0 {
			return errors.New("want 256, 512, 1024, 2048 or 4096")
		}
		return nil
	},
	"ports": func(d *Device, v string) error {
		if d.Ports = 1; v != "1" {
			return errors.New("a device has 1 port; for a second port take a second --device")
		}
		return nil
	},
	"gid": func(d *Device, v string) error {
		a, err := netip.ParseAddr(v)
		if err != nil || a.IsUnspecified() || a.IsMulticast() {
			return errors.New("want an address of this host, such as 192.0.2.1 or 2001:db8::1")
		}
		d.GIDs = append(d.GIDs, a.Unmap())
		return nil
	},
	"netdev": func(d *Device, v string) error { return d.onInterface(v) },
	"qps":    func(d *Device, v string) error { return limit(&d.QPs, v) },
	"cqs":    func(d *Device, v string) error { return limit(&d.CQs, v) },
	"mrs":    func(d *Device, v string) error { return limit(&d.MRs, v) },
}

func limit(n *int, v string) (err error) {
	if *n, err = strconv.Atoi(v); err != nil || *n < 1 || *n > 1<<20 {
		return errors.New("want a number from 1 to 1048576")
	}
	return nil
}

// ParseDevices reads a file of devices, one a line; what is behind a # is a comment. Errors name the line.
func ParseDevices(text string, roce bool) (list []Device, err error) {
	n := 0
	for line := range strings.Lines(text) {
		n++
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		d, err := ParseDevice(line, roce)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		list = append(list, d)
	}
	return list, nil
}

// String is the form that ParseDevice reads.
func (d Device) String() string {
	var b strings.Builder
	b.WriteString(d.Name)
	if d.Addr.IsValid() {
		b.WriteString("=" + d.Addr.String())
	}
	word := func(on bool, key string, value any) {
		if on {
			fmt.Fprintf(&b, ",%s=%v", key, value)
		}
	}
	for _, g := range d.GIDs {
		word(true, "gid", g)
	}
	word(d.Interface != "", "netdev", d.Interface)
	as := "iwarp"
	if d.RoCE {
		as = "roce"
	}
	word(true, "as", as)
	word(d.Rate != 0, "port-rate", strconv.Itoa(d.Rate)+"g")
	word(true, "numa", d.NUMA)
	word(d.PCI != "", "pci", d.PCI)
	word(d.MTU != 0, "mtu", d.MTU)
	word(d.Ports != 0, "ports", d.Ports)
	word(d.QPs != 0, "qps", d.QPs)
	word(d.CQs != 0, "cqs", d.CQs)
	word(d.MRs != 0, "mrs", d.MRs)
	return b.String()
}

// Addrs are all addresses of the device, in the order of its GIDs.
func (d Device) Addrs() []netip.Addr { return slices.Concat([]netip.Addr{d.Addr}, d.GIDs) }

// GUID is its node GUID, in network order.
func (d Device) GUID() [8]byte { return sysfs.GUID(d.Addr) }

// RateText is the rate of its port as /sys has it.
func (d Device) RateText() string {
	r, _ := sysfs.RateOf(d.Rate) // ParseDevice has seen to it
	return r.Text()
}

// CPUs is the list of processors next to it, and whether this host has its NUMA node.
func (d Device) CPUs() (list string, there bool) { return sysfs.CPUsOf("/", d.NUMA) }

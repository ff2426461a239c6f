// Package sysfs writes the files in which rdma-core finds devices: what /sys has of an RDMA device, in a folder
// of their own that SYSFS_PATH leads libibverbs and librdmacm to. The files are those that rdma-core 44 to 65 read, and the
// names and texts are the kernel's (Documentation/ABI/stable/sysfs-class-infiniband).
//
//	sysfs.go   the files of a device, whatever it is plugged into
//	pci.go     those of a PCI function, for programs that look where a device is (hwloc, UCX, NCCL)
//	cpus.go    lists and masks of processors
//	rate.go    rates and MTUs
package sysfs

import (
	"fmt"
	"hash/fnv"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// Device is the name of the device of which nothing else is said.
const Device = "softrnic0"

// MaxDevices is how many devices there can be: Linux has as many numbers (IB_UVERBS_NUM_FIXED_MINOR).
const MaxDevices = 32

// modalias has libibverbs choose its provider hfi1verbs, none of whose queues is mapped if the device's abi_version is 1:
// it writes each verb as a command.
const modalias = "pci:v00008086d000024F0sv00008086sd00000000bc02sc08i00"

// Config says what the tree tells of a device.
type Config struct {
	Name   string       // as libibverbs calls it; "" stands for Device
	Number int          // of uverbsN
	GIDs   []netip.Addr // IPv4 addresses are mapped into IPv6
	GUID   [8]byte      // its node GUID, in network order: librdmacm finds the device by it
	RoCE   bool         // a RoCE adapter; else an RNIC
	// Interface is the network interface that has the addresses; "" for none.
	Interface string
	Rate      Rate
	// PCI is the address of its function, such as 0000:3b:00.0; "": it is not said to be one. NUMA is the node next to it, -1 for
	// none, whose processors, a list such as 0-3,8, are CPUs.
	PCI  string
	NUMA int
	CPUs string
}

// GUID is the node GUID of the device of an address, in network order: as an EUI-64 of softrnic's
// range whose last three octets come from the address.
func GUID(a netip.Addr) [8]byte {
	h := fnv.New32a()
	b := a.As16()
	_, _ = h.Write(b[:])
	n := h.Sum32()
	n ^= n >> 24
	if n&0xffffff == 0 { // programs take zeros for none
		n = 1
	}
	return [8]byte{0x52, 0x54, 0, 0xff, 0xfe, byte(n >> 16), byte(n >> 8), byte(n)}
}

// Where a device is in the tree.
func (c Config) name() string {
	if c.Name == "" {
		return Device
	}
	return c.Name
}

func (c Config) uverbs() string { return "uverbs" + strconv.Itoa(c.Number) }

// class is the folder of the device in class/infiniband, and char that of its character device; each is a link if it is a PCI function.
func (c Config) class() string { return "class/infiniband/" + c.name() }
func (c Config) char() string  { return "class/infiniband_verbs/" + c.uverbs() }

// ib is the folder with the files of the device, and verbs that of its character device.
func (c Config) ib() string {
	if c.PCI == "" {
		return c.class()
	}
	return c.function() + "/infiniband/" + c.name()
}

func (c Config) verbs() string {
	if c.PCI == "" {
		return c.char()
	}
	return c.function() + "/infiniband_verbs/" + c.uverbs()
}

// hardware is the folder of what the device is.
func (c Config) hardware() string {
	if c.PCI == "" {
		return c.class() + "/device"
	}
	return c.function()
}

// file is one of the tree, by its name below the folder.
type file struct{ name, text string }

// link is one of the tree, and where it leads.
type link struct{ name, to string }

func (c Config) links() []link {
	if c.PCI != "" {
		return c.functionLinks()
	}
	return []link{
		{c.hardware() + "/infiniband_verbs/" + c.uverbs(), "../../../../infiniband_verbs/" + c.uverbs()},
		{c.char() + "/device", "../../infiniband/" + c.name() + "/device"},
	}
}

// common are the files that are there once.
func common() []file {
	return []file{
		{"class/infiniband_verbs/abi_version", "6"},
		{"class/misc/rdma_cm/abi_version", "4"},
		{"class/misc/rdma_cm/dev", "10:58"},
	}
}

func (c Config) files() []file {
	node := "4: RNIC"
	if c.RoCE {
		node = "1: CA"
	}
	guid := groups(c.GUID[:])
	ib, verbs, hardware, port := c.ib()+"/", c.verbs()+"/", c.hardware()+"/", c.ib()+"/ports/1/"
	all := []file{
		{verbs + "ibdev", c.name()},
		{verbs + "abi_version", "1"},
		{verbs + "dev", fmt.Sprintf("231:%d", 192+c.Number)}, // as rdmacore/preload/files.c has it
		{hardware + "modalias", modalias},
		{hardware + "vendor", "0x8086"}, // those of the modalias
		{hardware + "device", "0x24f0"},
		{ib + "node_type", node},
		{ib + "node_guid", guid},
		{ib + "sys_image_guid", guid},
		{ib + "node_desc", "softrnic"},
		{ib + "fw_ver", "1.0.0"},
		{port + "state", "4: ACTIVE"},
		{port + "phys_state", "5: LinkUp"},
		{port + "link_layer", "Ethernet"},
		{port + "rate", c.Rate.text},
		{port + "lid", "0x0"},
		{port + "pkeys/0", "0xffff"},
	}
	for i, a := range c.GIDs {
		gid, at := a.As16(), strconv.Itoa(i)
		all = append(all,
			file{port + "gids/" + at, groups(gid[:])},
			file{port + "gid_attrs/types/" + at, "RoCE v2"},
			file{port + "gid_attrs/ndevs/" + at, c.Interface})
	}
	if c.PCI != "" {
		all = append(all, c.functionFiles()...)
		all = append(all, c.counterFiles()...)
	}
	return all
}

// Text is what a file of the tree of some devices has, by its name below the folder, a device's by that of class/infiniband; false
// if the tree has no such file.
func Text(devices []Config, name string) (string, bool) {
	for _, f := range common() {
		if f.name == name {
			return f.text + "\n", true
		}
	}
	for _, c := range devices {
		in := name
		if rest, ok := behind(c.class()+"/", name); ok {
			in = c.ib() + "/" + rest
		}
		for _, f := range c.files() {
			if f.name == in {
				return f.text + "\n", true
			}
		}
	}
	return "", false
}

func behind(prefix, s string) (string, bool) {
	if len(s) < len(prefix) || s[:len(prefix)] != prefix {
		return "", false
	}
	return s[len(prefix):], true
}

// Write makes the tree in dir, an empty folder. A device without an Interface has none. Links lead below bus/pci/devices to the
// functions of the host, which root has: "/", or one that a test has made.
func Write(dir, root string, devices []Config) error {
	all, links := common(), []link(nil)
	var folders []string
	for _, c := range devices {
		all = append(all, c.files()...)
		for _, l := range c.links() {
			if !slices.Contains(links, l) { // functions of one bus
				links = append(links, l)
			}
		}
		folders = append(folders, c.hardware()+"/net/"+c.Interface, c.hardware()+"/infiniband_verbs")
		if c.PCI != "" {
			folders = append(folders, c.bus()+"/pci_bus/"+c.busName())
		}
	}
	if len(devices) > 0 && devices[0].PCI != "" {
		links = append(links, hostFunctions(root)...)
	}
	for _, f := range all {
		if err := write(filepath.Join(dir, f.name), []byte(f.text+"\n")); err != nil {
			return err
		}
	}
	for _, c := range devices {
		if c.PCI == "" {
			continue
		}
		if err := write(filepath.Join(dir, c.function(), "config"), c.space()); err != nil {
			return err
		}
	}
	for _, f := range folders {
		if err := os.MkdirAll(filepath.Join(dir, f), 0o755); err != nil {
			return err
		}
	}
	for _, l := range links {
		name := filepath.Join(dir, l.name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.Symlink(l.to, name); err != nil {
			return err
		}
	}
	return nil
}

func write(name string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, text, 0o444)
}

// groups writes octets as four hexadecimal digits for each two, with colons between.
func groups(b []byte) string {
	var s string
	for i := 0; i < len(b); i += 2 {
		s += fmt.Sprintf(":%02x%02x", b[i], b[i+1])
	}
	return s[1:]
}

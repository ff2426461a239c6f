// Package sysfs writes the files in which rdma-core finds a device: what /sys has of an RDMA device, in a folder
// of their own that SYSFS_PATH leads libibverbs and librdmacm to. The files are those that rdma-core 44 to 64 read, and the
// names and texts are the kernel's (Documentation/ABI/stable/sysfs-class-infiniband).
package sysfs

import (
	"fmt"
	"hash/fnv"
	"net/netip"
	"os"
	"path/filepath"
)

// Device is the name of the device in the tree.
const Device = "softrnic0"

// modalias has libibverbs choose its provider hfi1verbs, none of whose queues is mapped if the device's abi_version is 1:
// it writes each verb as a command.
const modalias = "pci:v00008086d000024F0sv00008086sd00000000bc02sc08i00"

// Config says what the tree tells of the device.
type Config struct {
	Addr      netip.Addr // its GID, an IPv4 address mapped into IPv6
	GUID      [8]byte    // its node GUID, in network order: librdmacm finds the device by it
	RoCE      bool       // a RoCE adapter; else an RNIC
	Interface string     // the network interface that has Addr
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

// Folders of the tree.
const (
	ib    = "class/infiniband/" + Device + "/"
	port  = ib + "ports/1/"
	verbs = "class/infiniband_verbs/uverbs0/"
)

// file is one of the tree, by its name below the folder.
type file struct{ name, text string }

// links of the tree, and where they lead.
var links = map[string]string{
	ib + "device/infiniband_verbs/uverbs0": "../../../../infiniband_verbs/uverbs0",
	verbs + "device":                       "../../infiniband/" + Device + "/device",
}

func (c Config) files() []file {
	node := "4: RNIC"
	if c.RoCE {
		node = "1: CA"
	}
	guid := groups(c.GUID[:])
	gid := c.Addr.As16()
	return []file{
		{"class/infiniband_verbs/abi_version", "6"},
		{verbs + "ibdev", Device},
		{verbs + "abi_version", "1"},
		{verbs + "dev", "231:192"}, // as rdmacore/preload/files.c has it
		{"class/misc/rdma_cm/abi_version", "4"},
		{"class/misc/rdma_cm/dev", "10:58"},
		{ib + "device/modalias", modalias},
		{ib + "device/vendor", "0x8086"}, // those of the modalias
		{ib + "device/device", "0x24f0"},
		{ib + "node_type", node},
		{ib + "node_guid", guid},
		{ib + "sys_image_guid", guid},
		{ib + "node_desc", "softrnic"},
		{ib + "fw_ver", "1.0.0"},
		{port + "state", "4: ACTIVE"},
		{port + "phys_state", "5: LinkUp"},
		{port + "link_layer", "Ethernet"},
		{port + "rate", "100 Gb/sec (4X EDR)"},
		{port + "lid", "0x0"},
		{port + "pkeys/0", "0xffff"},
		{port + "gids/0", groups(gid[:])},
		{port + "gid_attrs/types/0", "RoCE v2"},
		{port + "gid_attrs/ndevs/0", c.Interface},
	}
}

// Text is what a file of the tree has, by its name below the folder; false if the tree has no such file.
func Text(c Config, name string) (string, bool) {
	for _, f := range c.files() {
		if f.name == name {
			return f.text + "\n", true
		}
	}
	return "", false
}

// Write makes the tree in dir, an empty folder. Without an Interface the device has none.
func Write(dir string, c Config) error {
	for _, f := range c.files() {
		name := filepath.Join(dir, f.name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, []byte(f.text+"\n"), 0o444); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, ib, "device", "net", c.Interface), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(dir, ib, "device", "infiniband_verbs"), 0o755); err != nil {
		return err
	}
	for link, to := range links {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			return err
		}
	}
	return nil
}

// groups writes octets as four hexadecimal digits for each two, with colons between.
func groups(b []byte) string {
	var s string
	for i := 0; i < len(b); i += 2 {
		s += fmt.Sprintf(":%02x%02x", b[i], b[i+1])
	}
	return s[1:]
}

package sysfs

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// What of PCI is told of a device: where its function is in devices/pci..., what kind, and which processors are next to it. Programs
// find it by class/infiniband, bus/pci/devices and class/pci_bus, whose links lead there as the kernel's do.

// The names of the class of network controllers, subclass InfiniBand, as the modalias has it.
const pciClass = "0x020800"

// busName is that of the function's bus, such as 0000:3b.
func (c Config) busName() string { return c.PCI[:strings.LastIndexByte(c.PCI, ':')] }

// bus is the folder of the bus, which is at the root: nothing is between it and the processors.
func (c Config) bus() string { return "devices/pci" + c.busName() }

// function is the folder of the function.
func (c Config) function() string { return c.bus() + "/" + c.PCI }

func (c Config) functionLinks() []link {
	return []link{
		{c.class(), "../../" + c.ib()},
		{c.char(), "../../" + c.verbs()},
		{c.ib() + "/device", "../../../" + c.PCI},
		{c.ib() + "/subsystem", "../../../../../class/infiniband"},
		{c.verbs() + "/device", "../../../" + c.PCI},
		{c.verbs() + "/subsystem", "../../../../../class/infiniband_verbs"},
		{c.function() + "/subsystem", "../../../bus/pci"},
		{"bus/pci/devices/" + c.PCI, "../../../" + c.function()},
		{"class/pci_bus/" + c.busName(), "../../" + c.bus() + "/pci_bus/" + c.busName()},
	}
}

func (c Config) functionFiles() []file {
	f, width := c.function()+"/", strconv.Itoa(c.Rate.lanes)
	return []file{
		{f + "class", pciClass},
		{f + "subsystem_vendor", "0x8086"},
		{f + "subsystem_device", "0x0000"},
		{f + "revision", "0x00"},
		{f + "irq", "0"},
		{f + "enable", "1"},
		{f + "numa_node", strconv.Itoa(c.NUMA)},
		{f + "local_cpulist", c.CPUs},
		{f + "local_cpus", mask(c.CPUs)},
		{f + "max_link_speed", c.Rate.bus},
		{f + "current_link_speed", c.Rate.bus},
		{f + "max_link_width", width},
		{f + "current_link_width", width},
		{f + "resource", strings.TrimSuffix(strings.Repeat("0x0000000000000000 0x0000000000000000 0x0000000000000000\n", 13), "\n")},
		{f + "uevent", "PCI_CLASS=20800\nPCI_ID=8086:24F0\nPCI_SUBSYS_ID=8086:0000\nPCI_SLOT_NAME=" + c.PCI + "\nMODALIAS=" + modalias},
		{c.ib() + "/board_id", "softrnic"},
		{c.ib() + "/hca_type", "softrnic"},
		{c.ib() + "/hw_rev", "0x1"},
		{c.ib() + "/ports/1/cap_mask", "0x00010000"},
		{c.ib() + "/ports/1/sm_lid", "0x0"},
		{c.ib() + "/ports/1/sm_sl", "0"},
		{c.ib() + "/ports/1/lid_mask_count", "0"},
	}
}

// space is the configuration space, as libpciaccess and hwloc read it: a header of type 0, and a PCI Express capability that tells
// the link (PCI Express Base Specification 7.5).
func (c Config) space() []byte {
	const express = 0x40 // where the capability is
	b := make([]byte, 256)
	put := binary.LittleEndian.PutUint16
	put(b[0x00:], 0x8086)
	put(b[0x02:], 0x24f0)
	put(b[0x06:], 1<<4) // it has capabilities
	b[0x0a], b[0x0b] = 0x08, 0x02
	put(b[0x2c:], 0x8086)
	b[0x34] = express
	b[express] = 0x10
	put(b[express+2:], 2)             // version
	link := uint16(c.Rate.lanes) << 4 //nolint:gosec // G115: at most 16
	for i, speed := range []string{gen3, gen4, gen5, gen6} {
		if speed == c.Rate.bus {
			link |= uint16(3 + i)
		}
	}
	put(b[express+0x0c:], link)
	put(b[express+0x12:], link)
	return b
}

// hostFunctions are links to the functions that the host has: who lists the bus sees those too.
func hostFunctions(root string) (list []link) {
	there, _ := filepath.Glob(filepath.Join(root, "sys", "bus", "pci", "devices", "*")) // of a good pattern
	for _, path := range there {
		if to, err := filepath.EvalSymlinks(path); err == nil {
			list = append(list, link{"bus/pci/devices/" + filepath.Base(path), to})
		}
	}
	return list
}

// HostHasBus reports whether the host has the bus of a function.
func HostHasBus(root, function string) bool {
	c := Config{PCI: function}
	if _, err := os.Lstat(filepath.Join(root, "sys", c.bus())); err == nil {
		return true
	}
	there, _ := filepath.Glob(filepath.Join(root, "sys", "bus", "pci", "devices", c.busName()+":*"))
	return len(there) > 0
}

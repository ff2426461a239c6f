package sysfs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Rate is how fast a port says that it is, as Linux says it of an Ethernet adapter of that speed (ib_get_eth_speed).
type Rate struct {
	Gbps  int    // gigabits in a second
	Width uint8  // enum ib_port_width: 1 for 1X, 2 for 4X, 4 for 8X
	Speed uint8  // enum ib_port_speed, of a lane
	Path  uint8  // enum ib_rate, of path records
	text  string // as /sys has it
	bus   string // how fast the lanes of its PCI slot are
	lanes int    // and how many
}

// DefaultRate is that of a device of which nothing else is said.
const DefaultRate = 100

const (
	gen3 = "8.0 GT/s PCIe"
	gen4 = "16.0 GT/s PCIe"
	gen5 = "32.0 GT/s PCIe"
	gen6 = "64.0 GT/s PCIe"
)

var rates = []Rate{
	{1, 1, 1, 2, "2.5 Gb/sec (1X SDR)", gen3, 4},
	{10, 1, 8, 3, "10 Gb/sec (1X FDR10)", gen3, 8},
	{25, 1, 32, 15, "25 Gb/sec (1X EDR)", gen3, 8},
	{40, 2, 8, 7, "40 Gb/sec (4X FDR10)", gen3, 8},
	{50, 1, 64, 20, "50 Gb/sec (1X HDR)", gen3, 16},
	{100, 2, 32, 16, "100 Gb/sec (4X EDR)", gen3, 16},
	{200, 2, 64, 17, "200 Gb/sec (4X HDR)", gen4, 16},
	{400, 2, 128, 21, "400 Gb/sec (4X NDR)", gen5, 16},
	{800, 4, 128, 23, "800 Gb/sec (8X NDR)", gen6, 16},
}

// RateOf is the rate of a port of so many Gb/s; 0 stands for DefaultRate. Errors: there is no such port, and which there are.
func RateOf(gbps int) (Rate, error) {
	gbps = cmp.Or(gbps, DefaultRate)
	i := slices.IndexFunc(rates, func(r Rate) bool { return r.Gbps == gbps })
	if i < 0 {
		var known []string
		for _, r := range rates {
			known = append(known, fmt.Sprintf("%dg", r.Gbps))
		}
		return Rate{}, fmt.Errorf("there are ports of %s", strings.Join(known, ", "))
	}
	return rates[i], nil
}

// RateWithin is the fastest rate of at most so many bits a second, or the slowest there is.
func RateWithin(bits float64) Rate {
	within := rates[0]
	for _, r := range rates {
		if float64(r.Gbps)*1e9 <= bits {
			within = r
		}
	}
	return within
}

// Text is what the file rate of a port has.
func (r Rate) Text() string { return r.text }

// MTUOf is an MTU of 256 to 4096 octets as enum ib_mtu has it; 0 stands for 4096. false for other numbers.
func MTUOf(octets int) (uint8, bool) {
	if octets == 0 {
		return 5, true
	}
	i := slices.Index([]int{256, 512, 1024, 2048, 4096}, octets)
	return uint8(i + 1), i >= 0 //nolint:gosec // G115: at most 5
}

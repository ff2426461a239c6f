// Package layout is the file of a fabric: hosts, their NICs, what joins them, what runs on them and what breaks when.
//
//	layout.go    what a fabric is
//	parse.go     the file, line by line
//	words.go     names, ranges of names, units
//	address.go   the addresses that hosts have, and the names for them
//	compose.go, containerlab.go    the same for other people's tools
package layout

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Bounds of a file.
const (
	MaxHosts = 1024
	MaxNICs  = 64 // of one host
	MaxLinks = 8192
	MaxText  = 1 << 16 // octets
)

// Fabric is what a file says.
type Fabric struct {
	Name     string // "" if the file has none
	Hosts    []Host
	Switches []string // by number; those of a mesh have the name of their pair, "h1-h2"
	Links    []Link   // the cables of NICs in the order of hosts, then trunks
	Runs     []Run
	Breaks   []Event
	loopback bool
}

// Host is a host of its own network.
type Host struct {
	Name  string
	NICs  []NIC
	Flags []string // of rnic run, for its programs
}

// RunFlags are those of rnic run for a program of the host: a device for each NIC, and what the file says.
func (h *Host) RunFlags() (flags []string) {
	for _, n := range h.NICs {
		flags = append(flags, n.RunFlags()...)
	}
	return append(flags, h.Flags...)
}

// RunFlags are those of rnic run for the NIC.
func (n *NIC) RunFlags() []string { return []string{"--device", n.Name + "=" + n.Addr.Addr().String()} }

// NIC is an RDMA NIC and its network interface, which have one name.
type NIC struct {
	Name   string
	Switch int // where its cable goes
	Addr   netip.Prefix
}

// Link is a cable. Its two ends are a NIC and a switch, two switches, or the two NICs of a pair in a mesh.
type Link struct {
	Name string // h1.nic0, s1-s2, h1-h2
	Ends []End  // one for each NIC; none of a trunk
	// A and B are the switches of a trunk.
	A, B int
	Properties
	line int // where it was made
}

// End is a NIC at the end of a cable.
type End struct{ Host, NIC int }

// Properties are those of a link, for each of its two ways.
type Properties struct {
	Delay time.Duration // of each packet
	Rate  uint64        // bit/s; 0 is no limit
	Loss  float64       // of packets, from 0 to 1
}

// String is as the file has it, or "" where nothing is set.
func (p Properties) String() string {
	var parts []string
	if p.Delay > 0 {
		parts = append(parts, "delay "+p.Delay.String())
	}
	if p.Rate > 0 {
		parts = append(parts, "rate "+FormatRate(p.Rate))
	}
	if p.Loss > 0 {
		parts = append(parts, "loss "+strconv.FormatFloat(p.Loss*100, 'g', 6, 64)+"%")
	}
	return strings.Join(parts, " ")
}

// Run is a command of a shell on a host, from the fabric's beginning.
type Run struct {
	Host    int
	Command string
}

// Event is what happens at a time after the beginning.
type Event struct {
	At    time.Duration
	Links []int // what Change concerns
	Change
	Runs []Run // if there is no Change
	Line int
}

// Change is one of a link.
type Change struct {
	Verb Verb
	Properties
}

// Verb is what a Change does.
type Verb string

// The verbs.
const (
	Down  Verb = "down"  // as if the cable were pulled
	Up    Verb = "up"    // it is in again
	Delay Verb = "delay" // that property has another value from now on
	Rate  Verb = "rate"
	Loss  Verb = "loss"
	Mend  Verb = "mend" // up, and as the file has it
)

// Apply is p after the change of a property. Mend is the caller's.
func (c Change) Apply(p Properties) Properties {
	switch c.Verb {
	case Delay:
		p.Delay = c.Delay
	case Rate:
		p.Rate = c.Rate
	case Loss:
		p.Loss = c.Loss
	case Down, Up, Mend:
	}
	return p
}

// String is as a line of the file has it.
func (c Change) String() string {
	switch c.Verb {
	case Delay:
		return "delay " + c.Delay.String()
	case Rate:
		return "rate " + FormatRate(c.Rate)
	case Loss:
		return "loss " + strconv.FormatFloat(c.Loss*100, 'g', 6, 64) + "%"
	case Down, Up, Mend:
	}
	return string(c.Verb)
}

// Describe says what happens, in a few words.
func (f *Fabric) Describe(e *Event) string {
	if len(e.Runs) > 0 {
		return e.Runs[0].Command
	}
	var names []string
	for _, l := range e.Links {
		names = append(names, f.Links[l].Name)
	}
	return listed(names) + " " + e.Change.String()
}

// HostNumber is the host of that name, or an error that names those there are.
func (f *Fabric) HostNumber(name string) (int, error) {
	i := slices.IndexFunc(f.Hosts, func(h Host) bool { return h.Name == name })
	if i < 0 {
		return 0, fmt.Errorf("there is no host %q; there are %s", name, listed(f.hostNames()))
	}
	return i, nil
}

func (f *Fabric) hostNames() []string {
	names := make([]string, len(f.Hosts))
	for i, h := range f.Hosts {
		names[i] = h.Name
	}
	return names
}

func (f *Fabric) linkNames() []string {
	names := make([]string, len(f.Links))
	for i := range f.Links {
		names[i] = f.Links[i].Name
	}
	return names
}

// listed names a few of what there is.
func listed(names []string) string {
	switch {
	case len(names) == 0:
		return "none yet"
	case len(names) > 8:
		return strings.Join(names[:6], ", ") + ", ... " + names[len(names)-1]
	}
	return strings.Join(names, ", ")
}

// LinkOf is the number of the link of a NIC.
func (f *Fabric) LinkOf(e End) int {
	return slices.IndexFunc(f.Links, func(l Link) bool { return slices.Contains(l.Ends, e) })
}

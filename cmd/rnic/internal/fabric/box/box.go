// Package box makes a fabric on one machine: a network namespace a host, and cables between them, by netlink. All of it
// is held by descriptors of one process, in a namespace of its own, and ends with it.
//
//	box_linux.go         the hosts, the switches, the cables
//	host_linux.go        a host: its namespaces, programs started in them
//	medium_linux.go      what makes a cable slow or lossy: queueing disciplines, or
//	wire_linux.go        packets carried by this process, where the kernel has none
package box

import "github.com/softrnic/softrnic/cmd/rnic/internal/fabric/layout"

// State is that of a link.
type State struct {
	Name   string            `json:"name"`
	Up     bool              `json:"up"`
	Is     layout.Properties `json:"properties"`
	Medium Medium            `json:"medium"`
}

// Medium is what makes the properties of a link.
type Medium string

// The media.
const (
	Plain Medium = "plain" // nothing has to
	TBF   Medium = "tbf"   // Linux's token bucket filter: a rate alone
	Netem Medium = "netem" // Linux's network emulator
	Wire  Medium = "rnic"  // this process carries the packets
)

package segment

import (
	"fmt"
	"strings"
)

// Attributes are the attribute bits of the CE header (3.3):
//
//	 15                                  7   6   5   4   3   2   1   0
//	+-----------------------------------+---+---+---+---+---+---+---+
//	|             reserved              |P2P|DFC|RRE|RWE| RR| RD| UR|
//	+-----------------------------------+---+---+---+---+---+---+---+
//
// The figure of the draft names bits 3 and 4 both RWE; the list above it says
// which is which.
type Attributes uint16

// The bits above those of the levels. Each end has its own, but P2P must match.
const (
	// WriteEnable: this end takes RDMA Writes.
	WriteEnable Attributes = 1 << (iota + 3)
	// ReadEnable: this end serves RDMA Reads.
	ReadEnable
	// FlowControl: this end holds a Send back until the other has posted a
	// receive for it, and so has to be told of receives.
	FlowControl
	// PeerToPeer: the connection is made peer to peer.
	PeerToPeer

	levelMask Attributes = 1<<numLevels - 1
)

// WithLevel is a with a reliability level.
func (a Attributes) WithLevel(l Level) Attributes { return a&^levelMask | 1<<l }

// Level is the reliability level; ok is false unless exactly one of its three
// bits is set.
func (a Attributes) Level() (l Level, ok bool) {
	switch a & levelMask {
	case 1 << Unreliable:
		return Unreliable, true
	case 1 << ReliableDelivery:
		return ReliableDelivery, true
	case 1 << ReliableReception:
		return ReliableReception, true
	default:
		return 0, false
	}
}

func (a Attributes) String() string {
	names := [...]string{"UR", "RD", "RR", "RWE", "RRE", "DFC", "P2P"}
	var parts []string
	for i, name := range names {
		if a&(1<<i) != 0 {
			parts = append(parts, name)
		}
	}
	if r := a >> len(names) << len(names); r != 0 {
		parts = append(parts, fmt.Sprintf("reserved %#x", uint16(r)))
	}
	return strings.Join(parts, "|")
}

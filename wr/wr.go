// Package wr holds the nouns of the verbs: work requests, scatter/gather
// elements, work completions, and the codes that go with them (Immediate
// Errors, Completion Statuses, Asynchronous Event identifiers).
//
// It has values only: no queue, no lock, no I/O. Every other package of this
// module may import it; it imports none of them. Programs usually meet these
// types through the aliases in package verbs.
package wr

import (
	"cmp"
	"fmt"
	"strings"
)

// STag is a Steering Tag: a 24-bit index chosen by the RNIC and an 8-bit key
// chosen by the Consumer (verbs draft 7.2). Zero is reserved (7.2.1).
type STag uint32

// MakeSTag joins a 24-bit index and a key.
func MakeSTag(index uint32, key uint8) STag { return STag(index<<8 | uint32(key)) }

// Index is the RNIC's part, 0 to 1<<24-1.
func (s STag) Index() uint32 { return uint32(s) >> 8 }

// Key is the Consumer's part.
func (s STag) Key() uint8 { return uint8(s) }

func (s STag) String() string { return fmt.Sprintf("0x%08x", uint32(s)) }

// Identifiers an RNIC gives out. Each is unique within its RNIC while the
// object lives; none is ever zero.
type (
	// PDID names a Protection Domain (verbs draft 5.2).
	PDID uint32
	// QPID names a Queue Pair (verbs draft 6.1.1).
	QPID uint32
	// CQID names a Completion Queue (verbs draft 5.3).
	CQID uint32
	// SRQID names a Shared Receive Queue (verbs draft 6.3).
	SRQID uint32
	// HandlerID is a Completion Event Handler Identifier (verbs draft 9.4.1).
	HandlerID uint32
)

// Access is a set of access rights of a Memory Region or Window (verbs draft
// 7.4, 7.5).
type Access uint8

// The rights.
const (
	// LocalRead lets Send and RDMA Write gather from the region.
	LocalRead Access = 1 << iota
	// LocalWrite lets Receives scatter into the region.
	LocalWrite
	// RemoteRead lets an inbound RDMA Read Request read. Needs LocalRead.
	RemoteRead
	// RemoteWrite lets an inbound RDMA Write or RDMA Read Response write.
	// Needs LocalWrite.
	RemoteWrite
	// BindWindow lets Memory Windows be bound to the region.
	BindWindow
	// RemoteAtomic lets an inbound Atomic Operation change the region (RFC 7306).
	// Needs LocalRead and LocalWrite.
	RemoteAtomic
)

// Valid reports whether a is one of the combinations of figure 18 that a
// Memory Region may have: at least one local right, and no remote right
// without its local one.
func (a Access) Valid() bool {
	switch {
	case a&^(LocalRead|LocalWrite|RemoteRead|RemoteWrite|BindWindow|RemoteAtomic) != 0:
		return false
	case a&(LocalRead|LocalWrite) == 0:
		return false // RV-7.4.1: one local right at least
	case a&RemoteRead != 0 && a&LocalRead == 0:
		return false
	case a&RemoteWrite != 0 && a&LocalWrite == 0:
		return false
	case a&RemoteAtomic != 0 && a&(LocalRead|LocalWrite) != LocalRead|LocalWrite:
		return false
	}
	return true
}

// ValidWindow reports whether a is one of the combinations that a Memory Window
// may be bound with: remote rights only, and at least one (verbs draft 7.10.2).
func (a Access) ValidWindow() bool {
	return a&^(RemoteRead|RemoteWrite|RemoteAtomic) == 0 && a != 0
}

// LocalOf is the local right that the region under a window of access a needs
// (verbs draft figure 20).
func (a Access) LocalOf() Access {
	var need Access
	if a&RemoteRead != 0 {
		need |= LocalRead
	}
	if a&RemoteWrite != 0 {
		need |= LocalWrite
	}
	if a&RemoteAtomic != 0 {
		need |= LocalRead | LocalWrite
	}
	return need
}

func (a Access) String() string {
	var has []string
	for i, n := range [...]string{"local-read", "local-write", "remote-read", "remote-write", "bind", "remote-atomic"} {
		if a&(1<<i) != 0 {
			has = append(has, n)
		}
	}
	return cmp.Or(strings.Join(has, "|"), "none")
}

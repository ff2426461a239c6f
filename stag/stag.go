// Package stag is the STag table of an RNIC: it registers memory, gives out
// Steering Tags for it, and turns (STag, TO, length) into memory after the
// checks of the verbs draft (chapter 7), RFC 5040 8.1.1 and RFC 5041 8.3.1.
//
// # Life of an access
//
// Table.Resolve does the checks once and returns a Ref, a plain value that
// keeps no lock and may be stored as long as wanted. To touch the memory, a
// Ref is held (Ref.Hold, Ref.Release, or the two within Ref.CopyIn and
// Ref.CopyOut). A hold lasts one copy or one non-blocking system call, never
// a wait. Deregistering or invalidating revokes every Ref of the region at
// once: later holds fail, and the caller waits for those in progress only. So
// a stalled peer cannot delay it, and after it nothing touches the memory.
//
// # Concurrency
//
// Resolve and all methods of Ref take no lock and allocate nothing. Register,
// Deregister, invalidation and Close share one mutex, which is not kept while
// waiting for holds. Memory is copied without synchronisation against the
// program that owns it, as by any RNIC: when a buffer may be looked at is told
// by completions.
package stag

import (
	"strconv"

	"github.com/softrnic/softrnic/wr"
)

// User is the party on whose behalf memory is accessed.
type User struct {
	// PD is that of the queue pair; for the elements of a Receive taken
	// from an S-RQ it is that of the S-RQ (verbs draft 7.6.3).
	PD wr.PDID
	// QP is the queue pair. It matters for remote access only.
	QP wr.QPID
}

// Fault says why an access or an invalidation was refused. It is a protocol
// code and not an error: what follows from it is decided by the queue pair.
type Fault uint8

// The faults, in the order in which they are looked for. FaultBounds,
// FaultPD, FaultWrap and FaultSTag are the Tagged Buffer Errors of RFC 5041
// 7.2; FaultAccess is known to the verbs draft (9.5.2) and RFC 5040 4.8.
const (
	// OK is no fault.
	OK Fault = iota
	// FaultSTag: the index names nothing, the key differs, the STag is in
	// the Invalid state, or it is zero.
	FaultSTag
	// FaultPD: the STag belongs to another Protection Domain, or to another
	// queue pair than the one of this stream.
	FaultPD
	// FaultAccess: the STag lacks the access right.
	FaultAccess
	// FaultWrap: the range goes beyond the last TO, 1<<64-1.
	FaultWrap
	// FaultBounds: an octet of the range is outside of the region.
	FaultBounds
)

var faultNames = [...]string{
	OK:          "OK",
	FaultSTag:   "invalid STag",
	FaultPD:     "STag not associated with this PD or QP",
	FaultAccess: "access rights violation",
	FaultWrap:   "TO wrap",
	FaultBounds: "base or bounds violation",
}

func (f Fault) String() string {
	if int(f) < len(faultNames) {
		return faultNames[f]
	}
	return "Fault(" + strconv.Itoa(int(f)) + ")"
}

package stag

import "github.com/softrnic/softrnic/internal/names"

// AccessFault says why an access, an invalidation, a Bind or a Fast-Register was
// refused. It is a protocol code and not an error: what follows from it is
// decided by the queue pair.
type AccessFault uint8

// The faults of accesses and invalidations, in the order in which they are
// looked for. FaultBounds, FaultPD, FaultWrap and FaultSTag are the Tagged
// Buffer Errors of RFC 5041 7.2; FaultAccess is known to the verbs draft (9.5.2)
// and RFC 5040 4.8. Bind and Fast-Register have them too.
const (
	// OK is no fault.
	OK AccessFault = iota
	// FaultSTag: the index names nothing, the key differs, the STag is in
	// the Invalid state, is zero, or is of a kind that the operation is not
	// for (a window, a Shared Memory Region).
	FaultSTag
	// FaultPD: the STag belongs to another Protection Domain, or to another
	// queue pair than the one of this stream.
	FaultPD
	// FaultAccess: the STag lacks the access right; or the memory has vanished
	// (RegionConfig.MayVanish).
	FaultAccess
	// FaultWrap: the range goes beyond the last TO, 1<<64-1.
	FaultWrap
	// FaultBounds: an octet of the range is outside of the region or window.
	FaultBounds
)

// The faults that only the operations on STags have (verbs draft figures 23 and
// 36).
const (
	// FaultNotInvalid: Bind and Fast-Register need an STag in the Invalid
	// state.
	FaultNotInvalid AccessFault = iota + FaultBounds + 1
	// FaultRegion: Bind to an STag that is not that of a Valid Memory Region,
	// is zero, has another key, or is zero-based (figure 19).
	FaultRegion
	// FaultWindow: Bind of an STag that is not that of a window, or by a
	// queue pair that is being destroyed.
	FaultWindow
	// FaultWindowsBound: invalidation of a region with windows.
	FaultWindowsBound
	// FaultRights: Fast-Register with rights that are not a combination of
	// figure 18, or remote ones without the Remote Access Flag.
	FaultRights
	// FaultBufferSize: the physical buffer size is not supported.
	FaultBufferSize
	// FaultBufferEntry: a physical buffer is not aligned to its size (page
	// mode), or not inside memory of one AllocatePages.
	FaultBufferEntry
	// FaultBufferList: the physical buffer list has more entries than the
	// STag, or the RNIC, has room for.
	FaultBufferList
	// FaultFBO: the First Byte Offset is not within the first buffer.
	FaultFBO
	// FaultVA: the virtual address is zero, does not agree with the First
	// Byte Offset, or leads beyond the last TO; or there is no such
	// addressing type.
	FaultVA
	// FaultLength: the length is zero or more than the buffers have.
	FaultLength
	// FaultPrivilege: Fast-Register on a queue pair that is not privileged.
	FaultPrivilege
	// FaultGone: InvalidateRemote of an index that names nothing, whatever the
	// key: the STag is deallocated (verbs draft 7.8).
	FaultGone
	numFaults
)

var faultNames = [numFaults]string{
	OK:                "OK",
	FaultSTag:         "invalid STag",
	FaultPD:           "STag not associated with this PD or QP",
	FaultAccess:       "access rights violation",
	FaultWrap:         "TO wrap",
	FaultBounds:       "base or bounds violation",
	FaultNotInvalid:   "STag not in the Invalid state",
	FaultRegion:       "invalid region STag",
	FaultWindow:       "invalid window STag",
	FaultWindowsBound: "windows are bound to the region",
	FaultRights:       "access rights not allowed",
	FaultBufferSize:   "physical buffer size not supported",
	FaultBufferEntry:  "physical buffer not aligned or not in allocated pages",
	FaultBufferList:   "physical buffer list too long",
	FaultFBO:          "first byte offset not within the first buffer",
	FaultVA:           "virtual address zero, not agreeing with the first byte offset, or too high",
	FaultLength:       "length zero or longer than the buffers",
	FaultPrivilege:    "queue pair not privileged",
	FaultGone:         "STag deallocated",
}

func (f AccessFault) String() string { return names.Of("Fault", faultNames[:], f) }

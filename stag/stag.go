// Package stag (engine of softrnic, not covered by the compatibility promise) is the
// STag table of an RNIC: it registers memory, gives out
// Steering Tags for it, and turns (STag, TO, length) into memory after the
// checks of the verbs draft (chapter 7), RFC 5040 8.1.1 and RFC 5041 8.3.1.
//
// It has the Memory Regions with all ways to make them (Register, Allocate and
// FastRegister, Reregister, RegisterShared), the Memory Windows (AllocateWindow,
// Bind), what ends them (InvalidateLocal, InvalidateRemote, Deallocate), and the
// physical memory that buffer lists and the STag of zero name (AllocatePages).
//
// # Life of an access
//
// Table.Resolve does the checks once and returns a Ref, a plain value that
// keeps no lock and may be stored as long as wanted. To touch the memory, a
// Ref is held (Ref.Hold, Ref.Release, or the two within Ref.CopyIn and
// Ref.CopyOut). A hold lasts one copy or one non-blocking system call, never
// a wait. Deallocating or invalidating revokes every Ref of the STag at once:
// later holds fail, and the caller waits for those in progress only. So a
// stalled peer cannot delay it, and after it nothing touches the memory through
// this STag.
//
// # Concurrency
//
// Resolve and all methods of Ref take no lock, but for the last Release that a
// revocation waits for, which wakes it. They allocate nothing, nor do
// Bind, FastRegister and invalidation once an STag has been through them.
// Everything but Resolve shares one mutex, which is not kept while waiting for
// holds. Memory is copied without synchronisation against the program that owns
// it, as by any RNIC: when a buffer may be looked at is told by completions.
package stag

import "github.com/softrnic/softrnic/wr"

// User is the party on whose behalf memory is accessed.
type User struct {
	// PD is that of the queue pair; for the elements of a Receive taken
	// from an S-RQ it is that of the S-RQ (verbs draft 7.6.3).
	PD wr.PDID
	// QP is the queue pair. It matters for remote access, for Bind and for
	// the invalidation of windows.
	QP wr.QPID
	// Windows counts the windows bound to the queue pair; needed to Bind.
	Windows *Windows
	// Privileged allows the STag of zero and FastRegister.
	Privileged bool
}

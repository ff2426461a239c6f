package stag

import (
	"fmt"
	"unsafe"

	"github.com/softrnic/softrnic/wr"
)

// RegionConfig describes a Non-Shared Memory Region (verbs draft 9.2.6.2).
// PD, Memory and Access are needed; zero values of the others are usable.
type RegionConfig struct {
	// PD is the Protection Domain, not zero.
	PD wr.PDID
	// Memory is what the region covers, at least one octet, of any
	// alignment. It must stay in place until the region is deregistered or
	// invalidated; it may overlap other regions.
	Memory []byte
	// Access is a valid combination of figure 18. With a remote right in it
	// the draft's Remote Access Flag is on.
	Access wr.Access
	// Key becomes the low 8 bits of the STag.
	Key uint8
	// ZeroBased gives the first octet the TO zero (draft 7.6.1.2). Memory
	// Windows cannot be bound to such a region.
	ZeroBased bool
	// VA is the TO of the first octet of a VA-based region (draft 7.6.1.1).
	// Zero means the address of Memory[0].
	VA uint64
	// QP, if not zero, is the only queue pair whose peer may use the STag
	// (RFC 5041 8.2, stream association). Local use is open to all queue
	// pairs of the PD.
	QP wr.QPID
	// NoRemoteInvalidate refuses Send with Invalidate from any peer. It is
	// meant for an STag that several streams use: RFC 5040 8.1.1 does not
	// let one of their peers invalidate it.
	NoRemoteInvalidate bool
}

// Region is the handle of a registered region. Its methods give what was
// registered, also after the STag was invalidated or deregistered.
type Region struct{ e *entry }

// STag is the region's STag: an index chosen here and the key of its config.
func (r *Region) STag() wr.STag { return r.e.stag }

// PD is the region's Protection Domain.
func (r *Region) PD() wr.PDID { return r.e.pd }

// Base is the TO of the first octet.
func (r *Region) Base() uint64 { return r.e.base }

// Len is the length in octets.
func (r *Region) Len() uint64 { return r.e.length }

// Access is the set of access rights.
func (r *Region) Access() wr.Access { return r.e.access }

// ZeroBased reports whether the TO of the first octet is zero by choice.
func (r *Region) ZeroBased() bool { return r.e.zeroBased }

// entry checks c and makes the entry for it, without STag.
func (c *RegionConfig) entry() (*entry, error) {
	if c.PD == 0 {
		return nil, fmt.Errorf("%w: a region needs a protection domain", wr.ErrInvalidPD)
	}
	if !c.Access.Valid() { // figure 18
		return nil, fmt.Errorf("%w (%v): a region needs a local right, and the local right for each remote one",
			wr.ErrInvalidAccess, c.Access)
	}
	if len(c.Memory) == 0 {
		return nil, fmt.Errorf("%w: a region needs at least one octet; an access of length zero needs no region",
			wr.ErrInvalidLength)
	}
	base, length := c.VA, uint64(len(c.Memory))
	switch {
	case c.ZeroBased && c.VA != 0:
		return nil, fmt.Errorf("%w: a zero-based region has none", wr.ErrInvalidVA)
	case !c.ZeroBased && c.VA == 0:
		base = uint64(uintptr(unsafe.Pointer(unsafe.SliceData(c.Memory))))
	}
	// The end must be a 64-bit number too: an access to an octet at 1<<64-1
	// could only be refused (RFC 5041 7.1, check 5).
	if base+length < base {
		return nil, fmt.Errorf("%w: %#x and %d octets reach beyond the last tagged offset",
			wr.ErrInvalidVA, base, length)
	}
	return &entry{
		pd: c.PD, qp: c.QP, access: c.Access,
		zeroBased: c.ZeroBased, noRemoteInvalidate: c.NoRemoteInvalidate,
		base: base, length: length, mem: c.Memory,
	}, nil
}

package stag

import (
	"fmt"
	"unsafe"

	"github.com/softrnic/softrnic/internal/safecopy"
	"github.com/softrnic/softrnic/wr"
)

// RegionConfig describes a Non-Shared Memory Region (verbs draft 9.2.6.2). PD,
// Access, and Memory or Buffers are needed; zero values of the others are
// usable.
type RegionConfig struct {
	// PD is the Protection Domain, not zero.
	PD wr.PDID
	// Memory is what the region covers, at least one octet, of any
	// alignment. It must stay in place until the region is deallocated or
	// invalidated; it may overlap other regions. Its physical buffer list is
	// one of pages of MinPage octets.
	Memory []byte
	// Buffers describe it if Memory is nil.
	Buffers wr.PhysicalBuffers
	// RemoteAccess is the Remote Access Flag; a remote right turns it on too.
	RemoteAccess bool
	// Access is a valid combination of figure 18.
	Access wr.Access
	// Key becomes the low 8 bits of the STag.
	Key uint8
	// Addressing is wr.VABased or wr.ZeroBased. Memory Windows cannot be bound
	// to a zero-based region (figure 19).
	Addressing wr.Addressing
	// VA is the TO of the first octet of a VA-based region (draft 7.6.1.1).
	// Zero means the address of Memory[0]; with Buffers it is not zero, and
	// VA modulo the buffer size is the First Byte Offset. It is zero for a
	// zero-based region.
	VA uint64
	// QP, if not zero, is the only queue pair whose peer may use the STag
	// (RFC 5041 8.2, stream association), and the only one that may bind
	// windows to the region. Other local use is open to all queue pairs of
	// the PD.
	QP wr.QPID
	// RemoteInvalidate lets a peer that may use the STag take it away from
	// all, by Send with Invalidate: the rule of verbs draft 7.8. RFC 5040
	// 8.1.1 allows it for an STag that one stream uses only, so with QP it
	// need not be set.
	RemoteInvalidate bool
	// MayVanish says that Memory may be unmapped, or become read-only, while it
	// is registered. A copy that meets such a page is refused with FaultAccess;
	// without it, it ends the process. What was copied before stays.
	MayVanish bool
}

// AllocateConfig describes an STag without memory (verbs draft 9.2.6.1).
type AllocateConfig struct {
	// PD is the Protection Domain, not zero.
	PD wr.PDID
	// PBL is for how many entries of a physical buffer list there is to be
	// room; one at least there is always.
	PBL int
	// RemoteAccess is the Remote Access Flag: whether FastRegister may give
	// remote rights.
	RemoteAccess bool
	// QP and RemoteInvalidate are those of RegionConfig, for all of the
	// life of the STag.
	QP               wr.QPID
	RemoteInvalidate bool
}

// Info are the attributes of a region (verbs draft 9.2.6.3).
type Info struct {
	// STag has the current key if Valid, else zero in its place.
	STag          wr.STag
	Valid, Shared bool
	PD            wr.PDID
	RemoteAccess  bool
	// PBL is for how many entries of a physical buffer list there is room.
	PBL int
	// Access are the rights; of the last time it was Valid if it is not.
	Access wr.Access
	// Addressing, Base (the TO of the first octet) and Length (in octets)
	// are zero if it is not Valid.
	Addressing   wr.Addressing
	Base, Length uint64
	// QP and RemoteInvalidate are those of RegionConfig.
	QP               wr.QPID
	RemoteInvalidate bool
	// Windows is the number of windows bound to it.
	Windows int
}

// Register makes a Non-Shared Memory Region and an STag for it, in the Valid
// state (verbs draft 7.3.2.2). On an error nothing is registered and no
// resource used: wr.ErrInvalidPD, wr.ErrInvalidAccess, wr.ErrInvalidLength (no
// memory, more than the buffers have, or more buffers than Config.PBL),
// wr.ErrInvalidVA (does not agree with the First Byte Offset, VA and length
// beyond 64 bits, or a VA for a zero-based region), wr.ErrInvalidFBO,
// wr.ErrInvalidPhysBufferSize, wr.ErrInvalidPhysBufferEntry,
// wr.ErrInsufficientResources (table full), wr.ErrInvalidRNIC (table closed).
func (t *Table) Register(c RegionConfig) (Info, error) {
	e, err := t.prepare(&c)
	if err != nil {
		return Info{}, err
	}
	return t.publish(e)
}

// Allocate makes an STag in the Invalid state, for FastRegister or Reregister
// (verbs draft 7.3.2.1). Errors: wr.ErrInvalidPD, wr.ErrInsufficientResources
// (table full, or PBL beyond Config.PBL), wr.ErrInvalidRNIC (table closed).
func (t *Table) Allocate(c AllocateConfig) (Info, error) {
	switch {
	case c.PD == 0:
		return Info{}, errNoPD
	case c.PBL > t.config.PBL:
		return Info{}, &wr.Reason{
			Err: wr.ErrInsufficientResources, What: fmt.Sprintf("a physical buffer list of %d entries, at most %d", c.PBL, t.config.PBL),
			Rule: "RV-7.3.2.1-M1", Remedy: "ask for fewer, or raise PBL in verbs.Config.Limits",
		}
	}
	e := &entry{drain: &t.drain}
	e.grant.store(grant{pd: c.PD, qp: c.QP})
	e.pbl = max(c.PBL, 1)
	e.remoteAccess, e.remoteInvalidate = c.RemoteAccess, c.RemoteInvalidate
	e.word.Store(revokedBit | drainedBit)
	return t.publish(e)
}

// publish puts a new region into the table.
func (t *Table) publish(e *entry) (Info, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := t.insert(e)
	if err != nil {
		return Info{}, err
	}
	return e.info(), nil
}

// QueryRegion tells the attributes of the region of s, of which the key is not
// looked at (verbs draft 9.2.6.3). Errors: wr.ErrInvalidRNIC,
// wr.ErrInvalidSTag (not that of a region).
func (t *Table) QueryRegion(s wr.STag) (Info, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e, err := t.lookupRegion(s)
	if err != nil {
		return Info{}, err
	}
	return e.info(), nil
}

// lookupRegion is lookup for the verbs that do not take windows (RV-7.10.1-M2).
func (t *Table) lookupRegion(s wr.STag) (*entry, error) {
	e, err := t.lookup(s)
	if err == nil && e.window {
		return nil, &wr.Reason{Err: wr.ErrInvalidSTag, What: "it is that of a window", Rule: "RV-7.10.1-M2"}
	}
	return e, err
}

func (e *entry) info() Info {
	g := e.grant.load()
	i := Info{
		STag: wr.MakeSTag(e.index, 0), PD: g.pd, QP: g.qp, Access: g.access,
		Shared: e.shared, RemoteAccess: e.remoteAccess, PBL: e.pbl,
		RemoteInvalidate: e.remoteInvalidate, Windows: e.windows,
	}
	if !e.isRevoked() {
		i.Valid, i.STag = true, e.stag()
		i.Addressing, i.Base, i.Length = g.addressing, g.base, g.length
	}
	return i
}

// prepare checks c and makes the entry for it, without an index.
func (t *Table) prepare(c *RegionConfig) (*entry, error) {
	if err := checkRights(c.PD, c.Access); err != nil {
		return nil, err
	}
	if c.Addressing == wr.ZeroBased && c.VA != 0 {
		return nil, &wr.Reason{Err: wr.ErrInvalidVA, What: fmt.Sprintf("%#x, and a zero-based region has none", c.VA), Rule: "verbs draft 7.6.1.2"}
	}
	if c.MayVanish {
		safecopy.Look()
	}
	e := &entry{drain: &t.drain}
	e.remoteAccess = c.RemoteAccess || c.Access&remoteRights != 0
	e.remoteInvalidate = c.RemoteInvalidate
	over := t.overBuffers
	if c.Memory != nil || len(c.Buffers.Addresses) == 0 && c.Buffers.Size == 0 {
		over = t.overMemory
	}
	base, length, f := over(e, c)
	if f != OK {
		return nil, t.refuse(f, e, c)
	}
	e.grant.store(grant{
		key: c.Key, pd: c.PD, qp: c.QP, access: c.Access,
		addressing: c.Addressing, base: base, length: length,
		vanish: c.MayVanish,
	})
	return e, nil
}

func checkRights(pd wr.PDID, access wr.Access) error {
	if pd == 0 {
		return errNoPD
	}
	if !access.Valid() { // figure 18
		return wrongRights(access)
	}
	return nil
}

// overMemory gives e the Go memory of c, as a list of pages that lie where it
// says.
func (t *Table) overMemory(e *entry, c *RegionConfig) (base, length uint64, f AccessFault) {
	length = uint64(len(c.Memory))
	if length == 0 {
		return 0, 0, FaultLength
	}
	at := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(c.Memory))))
	if c.VA != 0 {
		at = c.VA
	}
	e.size, e.fbo = MinPage, at%MinPage
	pages := (e.fbo + length + MinPage - 1) / MinPage
	if pages > uint64(t.config.PBL) {
		return 0, 0, FaultBufferList
	}
	e.pbl = int(pages)
	e.mem.whole = c.Memory
	base, f = checkBase(c.Addressing, at, length, e.size, e.fbo)
	return base, length, f
}

// overBuffers gives e the physical buffers of c.
func (t *Table) overBuffers(e *entry, c *RegionConfig) (base, length uint64, f AccessFault) {
	b := &c.Buffers
	base, f = t.checkBuffers(b, t.config.PBL, c.Addressing, c.VA)
	if f == OK {
		e.pieces, f = t.lay(nil, b)
	}
	e.pbl, e.size, e.fbo = len(b.Addresses), b.Size, b.FBO
	e.mem = join(e.pieces)
	return base, b.Length, f
}

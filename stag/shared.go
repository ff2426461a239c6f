package stag

import (
	"fmt"

	"github.com/softrnic/softrnic/wr"
)

// SharedConfig describes a Shared Memory Region (verbs draft 9.2.6.6): what of
// it need not be as in the region whose memory it has.
type SharedConfig struct {
	// PD is the Protection Domain, not zero.
	PD wr.PDID
	// Key becomes the low 8 bits of the new STag.
	Key uint8
	// Addressing is wr.VABased or wr.ZeroBased.
	Addressing wr.Addressing
	// VA is the TO of the first octet if VA-based. Modulo the physical
	// buffer size it is the First Byte Offset of the memory. Zero means the
	// base of the existing region, if that is VA-based. It is zero for a
	// zero-based region.
	VA uint64
	// Access is a valid combination of figure 18.
	Access wr.Access
	// RemoteAccess is the Remote Access Flag; a remote right turns it on too.
	RemoteAccess bool
	// QP is that of RegionConfig.
	QP wr.QPID
}

// RegisterShared makes a Shared Memory Region over the memory of the Valid
// region of s, index and key, which becomes a Shared one itself and is otherwise
// unaffected (verbs draft 7.3.2.4). A Shared Memory Region is Valid until it is
// deallocated: it cannot be invalidated, reregistered or fast-registered. Those
// with the same memory do not affect each other.
//
// On an error nothing has changed: wr.ErrInvalidRNIC; wr.ErrInvalidSTag (names
// no region, has another key, or is Invalid); wr.ErrInvalidPD;
// wr.ErrInvalidAccess; wr.ErrInvalidVA; wr.ErrInsufficientResources.
func (t *Table) RegisterShared(s wr.STag, c SharedConfig) (Info, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.registerShared(s, &c)
}

func (t *Table) registerShared(s wr.STag, c *SharedConfig) (Info, error) {
	old, err := t.lookupRegion(s)
	if err != nil {
		return Info{}, err
	}
	if old.isRevoked() || old.stag() != s {
		return Info{}, &wr.Reason{Err: wr.ErrInvalidSTag, What: "the region is in the Invalid state, or has another key", Rule: "RV-7.3.2.4-M1"}
	}
	if err := checkRights(c.PD, c.Access); err != nil {
		return Info{}, err
	}
	base, err := sharedBase(old, c)
	if err != nil {
		return Info{}, err
	}
	e := &entry{drain: &t.drain, mem: old.mem, region: region{
		pbl: old.pbl, size: old.size, fbo: old.fbo, shared: true,
		remoteAccess: c.RemoteAccess || c.Access&remoteRights != 0,
	}}
	e.grant.store(grant{
		key: c.Key, pd: c.PD, qp: c.QP, access: c.Access,
		addressing: c.Addressing, base: base, length: old.grant.length.Load(),
		vanish: old.mayVanish(),
	})
	if err := t.insert(e); err != nil {
		return Info{}, err
	}
	old.shared = true // RV-7.3.2.4-M9
	return e.info(), nil
}

// sharedBase is the TO of the first octet of the new region.
func sharedBase(old *entry, c *SharedConfig) (uint64, error) {
	va, g := c.VA, old.grant.load()
	switch {
	case c.Addressing == wr.ZeroBased && va != 0:
		return 0, &wr.Reason{Err: wr.ErrInvalidVA, What: fmt.Sprintf("%#x, and a zero-based region has none", va), Rule: "verbs draft 7.6.1.2"}
	case va == 0 && g.addressing == wr.VABased:
		va = g.base
	}
	base, f := checkBase(c.Addressing, va, g.length, old.size, old.fbo) // RV-7.3.2.4-M5
	if f != OK {
		why := &wr.Reason{Err: faultErrors[f]}
		explainVA(why, asked{size: old.size, fbo: old.fbo, length: g.length, va: va})
		return 0, why
	}
	return base, nil
}

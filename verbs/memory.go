package verbs

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/softrnic/softrnic/stag"
	"github.com/softrnic/softrnic/wr"
)

// PD is a Protection Domain: queue pairs reach the regions of their own domain
// only (verbs draft 5.2).
type PD struct {
	rnic *RNIC
	id   PDID

	mu   sync.Mutex
	refs int // queue pairs and regions in it; guarded by mu, as gone
	gone bool
}

// AllocPD allocates a Protection Domain. Errors: ErrInvalidRNIC,
// ErrInsufficientResources.
func (r *RNIC) AllocPD() (*PD, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.open(); err != nil {
		return nil, fmt.Errorf("allocate PD: %w", err)
	}
	if len(r.pds) >= r.limits.PDs {
		return nil, fmt.Errorf("allocate PD: %w: all %d are in use", wr.ErrInsufficientResources, r.limits.PDs)
	}
	pd := &PD{rnic: r, id: PDID(r.nextID())}
	r.pds[pd] = struct{}{}
	return pd, nil
}

// ID is the domain's identifier.
func (p *PD) ID() PDID { return p.id }

// Dealloc deallocates the domain. Errors: ErrInvalidPD (it was already),
// ErrPDInUse (a queue pair or region is still in it).
func (p *PD) Dealloc() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.gone:
		return fmt.Errorf("deallocate PD %d: %w", p.id, wr.ErrInvalidPD)
	case p.refs > 0:
		return fmt.Errorf("deallocate PD %d: %w: %d queue pairs and regions are in it", p.id, wr.ErrPDInUse, p.refs)
	}
	p.gone = true
	p.rnic.mu.Lock()
	delete(p.rnic.pds, p)
	p.rnic.mu.Unlock()
	return nil
}

// use counts a user of the domain.
func (p *PD) use() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		return fmt.Errorf("%w: PD %d was deallocated", wr.ErrInvalidPD, p.id)
	}
	p.refs++
	return nil
}

func (p *PD) unuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refs--
}

// RegionConfig describes a Memory Region. Memory and Access are needed.
type RegionConfig struct {
	// Memory is what the region covers, at least one octet. It has to stay in
	// place until the region is deregistered.
	Memory []byte
	// Access is a valid combination of figure 18.
	Access Access
	// Key is the Consumer's part of the STag.
	Key uint8
	// ZeroBased gives the first octet tagged offset 0; else it is VA, and
	// with VA zero the address of Memory[0].
	ZeroBased bool
	VA        uint64
	// QP, if set, is the only queue pair whose peer may use the region.
	QP *QP
	// NoRemoteInvalidate refuses a peer's Send with Invalidate.
	NoRemoteInvalidate bool
}

// MR is a Memory Region (verbs draft 7.3).
type MR struct {
	pd     *PD
	region *stag.Region
	mem    []byte
	gone   atomic.Bool // the STag may be somebody else's by now
}

// Register registers buf with the given rights, VA-based, with a key that
// differs from call to call. Errors: as RegisterRegion.
func (p *PD) Register(buf []byte, access Access) (*MR, error) {
	p.rnic.mu.Lock()
	p.rnic.keys++
	key := p.rnic.keys
	p.rnic.mu.Unlock()
	return p.RegisterRegion(RegionConfig{Memory: buf, Access: access, Key: key})
}

// RegisterRegion registers a Non-Shared Memory Region over Go memory (verbs
// draft 9.2.6.2). Errors: ErrInvalidRNIC, ErrInvalidPD, ErrInvalidAccess,
// ErrInvalidLength, ErrInvalidVA, ErrInsufficientResources, ErrInvalidModifier.
func (p *PD) RegisterRegion(c RegionConfig) (*MR, error) {
	if c.QP != nil && c.QP.rnic != p.rnic {
		return nil, fmt.Errorf("register memory: %w: the QP is another RNIC's", wr.ErrInvalidModifier)
	}
	if err := p.use(); err != nil {
		return nil, fmt.Errorf("register memory: %w", err)
	}
	sc := stag.RegionConfig{
		PD: p.id, Memory: c.Memory, Access: c.Access, Key: c.Key,
		ZeroBased: c.ZeroBased, VA: c.VA, NoRemoteInvalidate: c.NoRemoteInvalidate,
	}
	if c.QP != nil {
		sc.QP = c.QP.ID()
	}
	region, err := p.rnic.stags.Register(sc)
	if err != nil {
		p.unuse()
		return nil, err
	}
	return &MR{pd: p, region: region, mem: c.Memory}, nil
}

// Deregister deallocates the region's STag (verbs draft 9.2.6.4). It is prompt
// even if a peer stalls within a message, and when it returns nothing is placed
// in the memory or read from it any more. Errors: ErrInvalidSTag (it was
// already).
func (m *MR) Deregister() error {
	if m.gone.Swap(true) {
		return fmt.Errorf("deregister memory: %w: %v was deregistered", wr.ErrInvalidSTag, m.STag())
	}
	if err := m.pd.rnic.stags.Deregister(m.STag()); err != nil {
		return err
	}
	m.pd.unuse()
	return nil
}

// STag is the region's Steering Tag.
func (m *MR) STag() STag { return m.region.STag() }

// Base is the tagged offset of the first octet.
func (m *MR) Base() uint64 { return m.region.Base() }

// Len is the length in octets.
func (m *MR) Len() int { return len(m.mem) }

// Bytes is the memory of the region.
func (m *MR) Bytes() []byte { return m.mem }

// SGE is the element for n octets from octet off of the region. It is not
// checked here: what lies outside of the region completes in error.
func (m *MR) SGE(off, n int) SGE {
	return SGE{STag: m.region.STag(), TO: m.region.Base() + uint64(off), Length: uint32(n)}
}

// SGL is a list of one element, as SGE.
func (m *MR) SGL(off, n int) []SGE { return []SGE{m.SGE(off, n)} }

// Remote is the address of octet off, to be told to a peer.
func (m *MR) Remote(off int) Remote {
	return Remote{STag: m.region.STag(), TO: m.region.Base() + uint64(off)}
}

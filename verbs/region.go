package verbs

import (
	"cmp"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/softrnic/softrnic/internal/lockorder"
	"github.com/softrnic/softrnic/stag"
	"github.com/softrnic/softrnic/wr"
)

// RegionConfig describes a Memory Region. Access is needed, and one of Memory and
// Buffers.
type RegionConfig struct {
	// Memory is what the region covers, at least one octet. It has to stay in
	// place until the region is deregistered or invalidated.
	Memory []byte
	// Buffers describe it, if Memory is nil, by physical addresses of the RNIC
	// (see RNIC.AllocatePages).
	Buffers PhysicalBuffers
	// Access is a valid combination of figure 18.
	Access Access
	// RemoteAccess is the Remote Access Flag: whether a later Fast-Register may
	// give remote rights. A remote right in Access sets it too.
	RemoteAccess bool
	// Key is the Consumer's part of the STag.
	Key uint8
	// ZeroBased gives the first octet tagged offset 0; else it is VA, and
	// with VA zero the address of Memory[0]. With Buffers VA is needed; divided
	// by their size it leaves the First Byte Offset.
	ZeroBased bool
	VA        uint64
	// QP, if set, is the only queue pair whose peer may use the region, and
	// invalidate it.
	QP *QP
	// RemoteInvalidate lets any peer that may use the region take it away from
	// all, by Send with Invalidate, as verbs draft 7.8 has it. Without it, and
	// without QP, such a Send ends the peer's stream and the region stays.
	// Local invalidation needs neither.
	RemoteInvalidate bool
}

// MR is a Memory Region (verbs draft 7.3).
type MR struct {
	rnic *RNIC

	// view is what the everyday methods read; written with mu held.
	view atomic.Pointer[regionView]

	// mu makes one verb on the region wait for another. Within it rnic.mu may
	// be taken.
	mu   lockorder.Mutex[lockorder.MR]
	pd   *PD  // guarded by mu, as gone
	gone bool // the STag may be somebody else's by now
}

// regionView is a region as the last verb on it left it.
type regionView struct {
	TaggedBuffer
	length uint64
	mem    []byte
}

// Register registers buf with the given rights, VA-based, with a key that
// differs from call to call. Errors: as RegisterRegion.
func (p *PD) Register(buf []byte, access Access) (*MR, error) {
	if p == nil {
		return nil, refused(errNilPD, "Register Memory Region", "verbs draft 9.2.6.2", Reason{})
	}
	return p.RegisterRegion(RegionConfig{Memory: buf, Access: access, Key: p.rnic.nextKey()})
}

// RegisterRegion registers a Non-Shared Memory Region (RI-Register, verbs draft
// 9.2.6.2). Errors: ErrInvalidRNIC, ErrInvalidPD, ErrInvalidAccess,
// ErrInvalidLength, ErrInvalidVA, ErrInvalidFBO, ErrInvalidPhysBufferSize,
// ErrInvalidPhysBufferEntry, ErrInsufficientResources, ErrInvalidModifier (the QP
// is not one of this RNIC).
func (p *PD) RegisterRegion(c RegionConfig) (_ *MR, err error) {
	defer asRefused(&err, "Register Memory Region", "verbs draft 9.2.6.2", c.about())
	if p == nil {
		return nil, errNilPD
	}
	sc, err := p.region(c)
	if err != nil {
		return nil, err
	}
	info, err := p.rnic.stags.Register(sc)
	p.rnic.traceVerb("Register Memory Region", 0, 0, info.STag, uint64(len(c.Memory)), err)
	return p.newMR(info, c.Memory, err)
}

// about is what of c a Reason tells.
func (c *RegionConfig) about() Reason {
	n := uint64(len(c.Memory))
	if c.Memory == nil {
		n = c.Buffers.Length
	}
	return Reason{Asked: wr.Untagged(n)}
}

// AllocateConfig describes a Memory Region without memory.
type AllocateConfig struct {
	// PBL is how many entries a physical buffer list can have that is
	// registered later; 0 stands for 16, or what the RNIC has if less. The
	// region may get more: see Query.
	PBL int
	// RemoteAccess, QP and RemoteInvalidate are as in RegionConfig.
	RemoteAccess     bool
	QP               *QP
	RemoteInvalidate bool
}

// AllocateRegion allocates a Non-Shared Memory Region's STag, in the Invalid
// state, for Fast-Register or Reregister (verbs draft 9.2.6.1). Errors:
// ErrInvalidRNIC, ErrInvalidPD, ErrInsufficientResources (too large a list too),
// ErrInvalidModifier (a negative PBL, or the QP is not one of this RNIC).
func (p *PD) AllocateRegion(c AllocateConfig) (_ *MR, err error) {
	defer asRefused(&err, "Allocate Non-Shared Memory Region STag", "verbs draft 9.2.6.1", Reason{})
	if p == nil {
		return nil, errNilPD
	}
	c.PBL = cmp.Or(c.PBL, min(16, p.rnic.limits.PBL))
	sc, err := p.region(RegionConfig{QP: c.QP})
	if err == nil && c.PBL < 0 {
		p.unuse()
		err = &wr.Reason{Err: wr.ErrInvalidModifier, What: fmt.Sprintf("a physical buffer list of %d entries", c.PBL), Remedy: "leave PBL zero for the default"}
	}
	if err != nil {
		return nil, err
	}
	info, err := p.rnic.stags.Allocate(stag.AllocateConfig{
		PD: p.id, PBL: c.PBL, RemoteAccess: c.RemoteAccess, QP: sc.QP, RemoteInvalidate: c.RemoteInvalidate,
	})
	return p.newMR(info, nil, err)
}

// region is c as the STag table wants it. The domain has a user more then.
func (p *PD) region(c RegionConfig) (stag.RegionConfig, error) {
	if f := p.rnic.faults; f != nil {
		if err := f.Register(); err != nil {
			return stag.RegionConfig{}, planned(wr.ErrInsufficientResources, err)
		}
	}
	if err := p.use(); err != nil {
		return stag.RegionConfig{}, err
	}
	sc := stag.RegionConfig{
		PD: p.id, Memory: c.Memory, Buffers: c.Buffers, Access: c.Access, RemoteAccess: c.RemoteAccess,
		Key: c.Key, Addressing: addressing(c.ZeroBased), VA: c.VA, RemoteInvalidate: c.RemoteInvalidate,
		MayVanish: p.rnic.vanishing.Load(),
	}
	if c.QP != nil {
		if p.rnic != c.QP.rnic || p.rnic.QP(c.QP.ID()) != c.QP {
			p.unuse()
			return stag.RegionConfig{}, &wr.Reason{Err: wr.ErrInvalidModifier, What: "RegionConfig.QP is no queue pair of this RNIC", Remedy: "leave QP nil for a region that any may use"}
		}
		sc.QP = c.QP.ID()
	}
	return sc, nil
}

func addressing(zeroBased bool) Addressing {
	if zeroBased {
		return ZeroBased
	}
	return VABased
}

// newMR makes the handle of a new region in p, which counts it already, or
// undoes that.
func (p *PD) newMR(info stag.Info, mem []byte, err error) (*MR, error) {
	if err != nil {
		p.unuse()
		return nil, p.rnic.explain(err)
	}
	m := &MR{rnic: p.rnic, pd: p}
	m.show(info, mem)
	return m, nil
}

func (m *MR) show(info stag.Info, mem []byte) {
	m.view.Store(&regionView{TaggedBuffer{info.STag, info.Base}, info.Length, mem})
}

// check begins a verb on the region, with mu held.
func (m *MR) check() error {
	if err := m.rnic.refusal(); err != nil {
		return err
	}
	if m.gone {
		return &wr.Reason{Err: wr.ErrInvalidSTag, What: "the region was deregistered"}
	}
	return nil
}

// Reregister gives the region other memory, rights or another domain, as a
// Deregister and a RegisterRegion would (RI-Reregister, verbs draft 9.2.6.5). A
// nil pd stands for the domain it is in. The handle follows, though the STag may
// change. Errors: ErrInvalidRNIC, ErrInvalidSTag (it is deregistered or shared)
// and ErrWindowsBound leave the region as it was. After any other, which are
// those of RegisterRegion, it is deregistered (RV-7.3.2.3-M6).
func (m *MR) Reregister(pd *PD, c RegionConfig) (err error) {
	about := c.about()
	about.STag, about.HasSTag = m.STag(), true
	defer asRefused(&err, "Reregister Memory Region", "verbs draft 9.2.6.5", about)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.check(); err != nil {
		return err
	}
	pd = cmp.Or(pd, m.pd)
	sc, refusal := m.region(pd, c)
	if errors.Is(refusal, wr.ErrInvalidRNIC) {
		return refusal
	}
	info, err := m.rnic.stags.Reregister(m.STag(), sc)
	if err == nil {
		m.pd.unuse()
		m.pd = pd
		m.show(info, c.Memory)
		return nil
	}
	if refusal == nil {
		pd.unuse()
	}
	if !leavesRegion(err) {
		m.gone = true
		m.pd.unuse()
		if refusal != nil {
			err = refusal
		}
	}
	return m.rnic.explain(err)
}

// region is pd.region for a domain that may be another RNIC's. An error comes
// with a zero RegionConfig, which the STag table refuses too: so Reregister can
// leave to the table what becomes of the region then.
func (m *MR) region(pd *PD, c RegionConfig) (stag.RegionConfig, error) {
	if pd.rnic != m.rnic {
		return stag.RegionConfig{}, &wr.Reason{Err: wr.ErrInvalidPD, What: "the PD is another RNIC's"}
	}
	return pd.region(c)
}

// leavesRegion reports whether a failed Reregister leaves the region as it was
// (RV-7.3.2.3-M5).
func leavesRegion(err error) bool {
	return errors.Is(err, wr.ErrInvalidRNIC) || errors.Is(err, wr.ErrInvalidSTag) || errors.Is(err, wr.ErrWindowsBound)
}

// SharedConfig describes a Memory Region that shares the memory of another.
// Access is needed.
type SharedConfig struct {
	// Access, RemoteAccess, Key and ZeroBased are as in RegionConfig.
	Access       Access
	RemoteAccess bool
	Key          uint8
	ZeroBased    bool
	// VA is the base of a VA-based region; divided by the size of a physical
	// buffer it leaves the First Byte Offset. Zero stands for the base of the
	// existing region, if that is VA-based.
	VA uint64
	// QP is as in RegionConfig.
	QP *QP
	// Existing is the STag that the region has now, if a Fast-Register has given
	// it another key than MR.STag tells; zero stands for MR.STag.
	Existing STag
}

// RegisterShared registers the memory of the region once more, in pd, or with pd
// nil in the same domain (verbs draft 9.2.6.6). Both are Shared Memory Regions
// then, which can be neither invalidated nor reregistered. Errors:
// ErrInvalidRNIC, ErrInvalidSTag (also: not in the Valid state, or another key),
// ErrInvalidVA, ErrInvalidPD, ErrInvalidAccess, ErrInsufficientResources,
// ErrInvalidModifier (the QP is not one of this RNIC).
func (m *MR) RegisterShared(pd *PD, c SharedConfig) (_ *MR, err error) {
	defer asRefused(&err, "Register Shared Memory Region", "verbs draft 9.2.6.6", ofSTag(m.STag()))
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.check(); err != nil {
		return nil, err
	}
	pd = cmp.Or(pd, m.pd)
	c.Existing = cmp.Or(c.Existing, m.STag())
	if c.Existing.Index() != m.STag().Index() {
		return nil, &wr.Reason{Err: wr.ErrInvalidSTag, What: fmt.Sprintf("SharedConfig.Existing is %v, which is not this region's", c.Existing)}
	}
	sc, err := m.region(pd, RegionConfig{QP: c.QP})
	if err != nil {
		return nil, err
	}
	info, err := m.rnic.stags.RegisterShared(c.Existing, stag.SharedConfig{
		PD: pd.id, Key: c.Key, Addressing: addressing(c.ZeroBased), VA: c.VA,
		Access: c.Access, RemoteAccess: c.RemoteAccess, QP: sc.QP,
	})
	return pd.newMR(info, m.Bytes(), err)
}

// RegionAttributes are what Query Memory Region returns (verbs draft 9.2.6.3).
type RegionAttributes struct {
	// STag has the current key if Valid, else zero in its place.
	STag          STag
	Valid, Shared bool
	PD            PDID
	RemoteAccess  bool
	// PBL is for how many entries of a physical buffer list there is room.
	PBL int
	// Access are the rights; of the last time it was Valid if it is not.
	Access Access
	// Addressing, Base (the tagged offset of the first octet) and Length (in
	// octets) are zero if it is not Valid.
	Addressing   Addressing
	Base, Length uint64
	// QP and RemoteInvalidate are those of RegionConfig.
	QP               QPID
	RemoteInvalidate bool
	// Windows is the number of windows bound to it.
	Windows int
}

// Query returns the region's attributes (verbs draft 9.2.6.3). Errors:
// ErrInvalidRNIC, ErrInvalidSTag.
func (m *MR) Query() (_ RegionAttributes, err error) {
	defer asRefused(&err, "Query Memory Region", "verbs draft 9.2.6.3", ofSTag(m.STag()))
	m.mu.Lock()
	defer m.mu.Unlock()
	switch err := m.rnic.closedError(); {
	case err != nil:
		return RegionAttributes{}, err
	case m.gone:
		return RegionAttributes{}, &wr.Reason{Err: wr.ErrInvalidSTag, What: "the region was deregistered"}
	}
	info, err := m.rnic.stags.QueryRegion(m.STag())
	return RegionAttributes(info), err
}

// Deregister deallocates the region's STag (verbs draft 9.2.6.4). It is prompt
// even if a peer stalls within a message, and when it returns nothing is placed
// in the memory or read from it any more. Errors: ErrInvalidRNIC, ErrInvalidSTag
// (it was already), ErrWindowsBound.
func (m *MR) Deregister() (err error) {
	defer asRefused(&err, "Deregister Memory Region", "verbs draft 9.2.6.4", ofSTag(m.STag()))
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.check(); err != nil {
		return err
	}
	err = m.rnic.stags.Deallocate(m.STag())
	m.rnic.traceVerb("Deregister Memory Region", 0, 0, m.STag(), 0, err)
	if err != nil {
		return m.rnic.explain(err)
	}
	m.gone = true
	m.pd.unuse()
	return nil
}

// Buffer is the region for work requests and peers. Like the methods below it
// tells what the last verb on the region made of it, and nothing of a
// Fast-Register: for that see FastRegisterBuffer.
func (m *MR) Buffer() TaggedBuffer { return m.view.Load().TaggedBuffer }

// STag is the region's Steering Tag.
func (m *MR) STag() STag { return m.Buffer().STag }

// WithKey is the region's Steering Tag with another key, for a Fast-Register.
func (m *MR) WithKey(key uint8) STag { return wr.MakeSTag(m.STag().Index(), key) }

// Base is the tagged offset of the first octet.
func (m *MR) Base() uint64 { return m.Buffer().Base }

// Len is the length in octets; 0 of a region that AllocateRegion made.
func (m *MR) Len() int { return int(m.view.Load().length) }

// Bytes is the memory of the region; nil if it was given as physical buffers.
func (m *MR) Bytes() []byte { return m.view.Load().mem }

// SGE is the element for n octets from octet off of the region. It is not
// checked here: see TaggedBuffer.SGE.
func (m *MR) SGE(off, n int) SGE { return m.Buffer().SGE(off, n) }

// SGL is a list of one element, as SGE.
func (m *MR) SGL(off, n int) []SGE { return m.Buffer().SGL(off, n) }

// All is a list of one element for the whole region, of 4 GiB - 1 at most.
func (m *MR) All() []SGE { return m.SGL(0, m.Len()) }

// Remote is the address of octet off, to be told to a peer (Remote.AppendBinary).
func (m *MR) Remote(off int) Remote { return m.Buffer().Remote(off) }

package vipl

import (
	"fmt"

	"github.com/softrnic/softrnic/stag"
	"github.com/softrnic/softrnic/wr"
)

// dataKey is the low octet of the handle of a region of RegisterMem. That of
// RegisterDescriptors is another, so no data segment can name Descriptors.
const dataKey = 1

// region is registered memory. Its handle is an STag, its protection tag a Protection
// Domain, and the STag table does all checks of an access (VI Architecture 6.3.2).
type region struct {
	memory     []byte // kept in place while registered
	attributes MemAttributes
}

// CreatePtag is VipCreatePtag (VI Architecture 9.5.1). Errors: ErrInvalidParameter (the
// Nic is closed), ErrResource (MaxPtags).
func (n *Nic) CreatePtag() (ProtectionHandle, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.closed:
		return 0, errNicClosed
	case len(n.ptags) >= int(n.attributes.MaxPtags):
		return 0, resource("%d protection tags are in use", len(n.ptags))
	}
	for { // VA-3.2.2.1-M1: unique, zero is none
		n.lastPtag++
		if _, used := n.ptags[n.lastPtag]; !used && n.lastPtag != 0 {
			n.ptags[n.lastPtag] = 0
			return n.lastPtag, nil
		}
	}
}

// DestroyPtag is VipDestroyPtag (VI Architecture 9.5.2). Errors: ErrInvalidParameter (no
// such tag), ErrResource (a VI or a region has it).
func (n *Nic) DestroyPtag(p ProtectionHandle) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	users, ok := n.ptags[p]
	switch {
	case !ok:
		return invalid("there is no protection tag %d", p)
	case users > 0: // VA-11.3.9-M2
		return inUse("%d VIs and memory regions have protection tag %d", users, p)
	}
	delete(n.ptags, p)
	return nil
}

// usePtag counts a user of p. The caller has n.mu.
func (n *Nic) usePtag(p ProtectionHandle) error {
	if _, ok := n.ptags[p]; !ok { // VA-3.2.2.1-M2
		return fmt.Errorf("%w: there is no protection tag %d", ErrInvalidPtag, p)
	}
	n.ptags[p]++
	return nil
}

// RegisterMem is VipRegisterMem (VI Architecture 9.5.3): memory may be named by data
// segments, and by the remote end as far as attributes and the VI allow. It is to be
// deregistered in the end. The checks are to the octet, not to the page. Memory may be
// registered more than once.
//
// Read-only pages can be sent and be read by RDMA, but not written to by anybody. On Linux
// that is seen here, and EnableRdmaWrite refused; as elsewhere, and for pages that become
// read-only or are unmapped later, the transfer that meets them has a protection error.
//
// Errors: ErrInvalidParameter (no memory, or not mapped; read-only and EnableRdmaWrite; no
// attributes; the Nic is closed), ErrInvalidPtag, ErrResource (MaxRegisterRegions); nothing
// is registered then.
func (n *Nic) RegisterMem(memory []byte, attributes *MemAttributes) (MemHandle, error) {
	if len(memory) == 0 || attributes == nil {
		return 0, invalid("a memory region needs an octet at least, and attributes")
	}
	config, err := regionConfig(memory, attributes)
	if err != nil {
		return 0, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.checkRegister(attributes.Ptag); err != nil {
		return 0, err
	}
	info, err := n.stags.Register(config)
	if err != nil { // VA-3.2.1-M4
		n.ptags[attributes.Ptag]--
		return 0, resource("%v", err)
	}
	h := MemHandle(info.STag)
	n.regions[h] = &region{memory: memory, attributes: *attributes}
	return h, nil
}

// checkRegister checks that one more region can be registered, and counts it as a user of
// its tag. The caller has n.mu.
func (n *Nic) checkRegister(p ProtectionHandle) error {
	switch {
	case n.closed:
		return errNicClosed
	case len(n.regions)+n.descriptors.len() >= int(n.attributes.MaxRegisterRegions):
		return resource("%d memory regions are registered", n.attributes.MaxRegisterRegions)
	}
	return n.usePtag(p)
}

// regionConfig is what the STag table is to allow. Pages that can be read only are not
// written to by anybody (VA-9.5.3-S1): not by a receive, and RDMA Writes are refused. What
// becomes of pages later is found when they are accessed. Errors: ErrInvalidParameter.
func regionConfig(memory []byte, a *MemAttributes) (stag.RegionConfig, error) {
	access := wr.LocalRead
	switch read, write := permitted(memory); {
	case !read:
		return stag.RegionConfig{}, invalid("pages at %#x are not there, or cannot be read", uint64(AddressOf(memory)))
	case write:
		access |= wr.LocalWrite
	case a.EnableRdmaWrite:
		return stag.RegionConfig{}, invalid("pages at %#x are read-only: no RDMA Writes", uint64(AddressOf(memory)))
	}
	if a.EnableRdmaWrite {
		access |= wr.RemoteWrite
	}
	if a.EnableRdmaRead {
		access |= wr.RemoteRead
	}
	return stag.RegionConfig{PD: wr.PDID(a.Ptag), Memory: memory, Access: access, Key: dataKey, MayVanish: true}, nil
}

// DeregisterMem is VipDeregisterMem (VI Architecture 9.5.4), for regions of Descriptors
// too. When it returns nil, nothing is read from or written to the memory through this
// handle any more; what is posted and names it will fail with a protection error (3.2.1).
// Errors: ErrInvalidParameter (no such region at the address).
func (n *Nic) DeregisterMem(address Address, handle MemHandle) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if d := n.descriptors.find(handle); d != nil && d.base == address {
		n.descriptors.remove(handle)
		n.ptags[d.revoke()]--
		return nil
	}
	r, err := n.region(address, handle)
	if err != nil {
		return err
	}
	delete(n.regions, handle)
	n.ptags[r.attributes.Ptag]--
	return n.stags.Deallocate(wr.STag(handle))
}

// region finds the region of handle, which begins at address. The caller has n.mu.
func (n *Nic) region(address Address, handle MemHandle) (*region, error) {
	r, ok := n.regions[handle]
	if !ok || AddressOf(r.memory) != address {
		return nil, invalid("no memory region %#x at %#x", uint32(handle), uint64(address))
	}
	return r, nil
}

// QueryMem is VipQueryMem (VI Architecture 9.8.5). Errors: ErrInvalidParameter (no such
// region at the address).
func (n *Nic) QueryMem(address Address, handle MemHandle) (*MemAttributes, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if d := n.descriptors.find(handle); d != nil && d.base == address {
		return &MemAttributes{Ptag: d.tag()}, nil
	}
	r, err := n.region(address, handle)
	if err != nil {
		return nil, err
	}
	a := r.attributes
	return &a, nil
}

// SetMemAttributes is VipSetMemAttributes (VI Architecture 9.8.4). The handle stays. A
// transfer in progress may fail with a protection error. Errors: ErrInvalidParameter (no
// such region at the address; RDMA enabled for Descriptors; pages that do not allow it, as
// in RegisterMem), ErrInvalidPtag; nothing has changed then.
func (n *Nic) SetMemAttributes(address Address, handle MemHandle, attributes *MemAttributes) error {
	if attributes == nil {
		return invalid("no attributes")
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if d := n.descriptors.find(handle); d != nil && d.base == address {
		return n.retag(d, attributes)
	}
	r, err := n.region(address, handle)
	if err != nil {
		return err
	}
	config, err := regionConfig(r.memory, attributes)
	if err != nil {
		return err
	}
	if err := n.usePtag(attributes.Ptag); err != nil {
		return err
	}
	if _, err := n.stags.Reregister(wr.STag(handle), config); err != nil {
		n.ptags[attributes.Ptag]--
		return resource("%v", err)
	}
	n.ptags[r.attributes.Ptag]--
	r.attributes = *attributes
	return nil
}

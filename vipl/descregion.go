package vipl

import (
	"unsafe"

	"github.com/softrnic/softrnic/internal/lockorder"
)

// descRegion is registered memory that holds Descriptors (VA-6.1-M2).
type descRegion struct {
	base Address      // constant
	keep []Descriptor // constant; the memory stays while registered

	mu   lockorder.RWMutex[lockorder.DescRegion] // held while a Descriptor in it is written to
	ptag ProtectionHandle
	gone bool // deregistered
}

// holds reports whether d is one of the region's and the region open to a VI with tag p
// (VA-9.5.1-M1).
func (r *descRegion) holds(d *Descriptor, p ProtectionHandle) bool {
	off := Address(uintptr(unsafe.Pointer(d))) - r.base // huge for a d below the base
	size := Address(len(r.keep)) * Address(unsafe.Sizeof(*d))
	if off%Address(unsafe.Sizeof(*d)) != 0 {
		return false
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	return off < size && r.ptag == p && !r.gone
}

// index is where in the region d is, which it holds.
func (r *descRegion) index(d *Descriptor) int {
	return int((Address(uintptr(unsafe.Pointer(d))) - r.base) / Address(unsafe.Sizeof(*d)))
}

// access calls f, which touches Descriptors of the region, unless it is deregistered.
func (r *descRegion) access(f func()) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.gone {
		return false
	}
	f()
	return true
}

// revoke deregisters the region, and tells its tag.
func (r *descRegion) revoke() ProtectionHandle {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gone = true
	return r.ptag
}

func (r *descRegion) tag() ProtectionHandle {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.ptag
}

// descRegions are those of a Nic.
type descRegions struct {
	mu   lockorder.RWMutex[lockorder.DescRegions]
	all  map[MemHandle]*descRegion // guarded by mu
	last MemHandle                 // guarded by mu
}

func (t *descRegions) len() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.all)
}

// find is the region of a handle, or nil.
func (t *descRegions) find(h MemHandle) *descRegion {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.all[h]
}

func (t *descRegions) remove(h MemHandle) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.all, h)
}

// add gives a region a handle. Its low octet is zero, see dataKey; the others count, and
// come round after 1<<24.
func (t *descRegions) add(r *descRegion) MemHandle {
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		t.last += 1 << 8
		if t.all[t.last] == nil && t.last != 0 {
			t.all[t.last] = r
			return t.last
		}
	}
}

// RegisterDescriptors registers the memory of descriptors, for PostSend and PostRecv of
// VIs with the tag (VA-6.1-M2, VA-9.5.3-M1). In C this is RegisterMem too. In Go a peer,
// or a receive, must not be able to write to memory that has pointers in it: the handle is
// good for posting only, not for data segments. DeregisterMem, QueryMem and
// SetMemAttributes take it, with AddressOf(descriptors). An alignment is not asked for:
// that of 6.1 serves hardware.
//
// Errors: ErrInvalidParameter (no descriptors, the Nic is closed), ErrInvalidPtag,
// ErrResource (MaxRegisterRegions).
func (n *Nic) RegisterDescriptors(descriptors []Descriptor, ptag ProtectionHandle) (MemHandle, error) {
	if len(descriptors) == 0 {
		return 0, invalid("no descriptors")
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.checkRegister(ptag); err != nil {
		return 0, err
	}
	return n.descriptors.add(&descRegion{base: AddressOf(descriptors), keep: descriptors, ptag: ptag}), nil
}

// retag is SetMemAttributes for Descriptors. The caller has n.mu.
func (n *Nic) retag(r *descRegion, a *MemAttributes) error {
	if a.EnableRdmaWrite || a.EnableRdmaRead {
		return invalid("no RDMA for memory of descriptors")
	}
	if err := n.usePtag(a.Ptag); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	n.ptags[r.ptag]--
	r.ptag = a.Ptag
	return nil
}

// close deregisters all regions, and tells the tag of each.
func (t *descRegions) close() (tags []ProtectionHandle) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.all {
		tags = append(tags, r.revoke())
	}
	clear(t.all)
	return tags
}

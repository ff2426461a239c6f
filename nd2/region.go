package nd2

import (
	"sync"

	"github.com/softrnic/softrnic/verbs"
)

// MemoryRegion is memory that the adapter may use (IND2MemoryRegion).
type MemoryRegion struct {
	a *Adapter

	mu    sync.Mutex
	v     *verbs.MR // guarded by mu, as below; nil: not registered
	flags MRFlags
}

// Register makes buf the memory of the region, with what flags allow. It stays in
// use until Deregister. It does not wait, so it takes no context. Errors:
// ErrAccessViolation (no octets), ErrInvalidParameter (more than
// MaxRegistrationSize, or unknown flags), ErrInvalidDeviceState (it is registered
// already), ErrInsufficientResources, ErrDeviceRemoved.
func (m *MemoryRegion) Register(buf []byte, flags MRFlags) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case len(buf) == 0:
		return refuse(ErrAccessViolation, "a region of no octets")
	case flags&^allMRFlags != 0 || uint64(len(buf)) > maxRegion:
		return refuse(ErrInvalidParameter, "a region of %d octets, at most %d, with flags %#x, of which there are %#x", len(buf), uint64(maxRegion), uint32(flags), uint32(allMRFlags))
	case m.v != nil:
		return refuse(ErrInvalidDeviceState, "the region is registered already")
	}
	v, err := m.a.pd.Register(buf, access(flags))
	if err != nil {
		return explain(err)
	}
	m.v, m.flags = v, flags
	m.a.mu.Lock()
	defer m.a.mu.Unlock()
	m.a.regions[uint32(v.STag())] = flags
	return nil
}

// access are the rights of verbs. Sending is always allowed, and windows: what a
// window may grant is looked at in Bind.
func access(f MRFlags) verbs.Access {
	a := verbs.LocalRead | verbs.BindWindow
	if f&(MRFlagAllowLocalWrite|MRFlagRDMAReadSink) != 0 { // enough for a sink: QPConfig.ReadIntoLocal
		a |= verbs.LocalWrite
	}
	if f&MRFlagAllowRemoteRead != 0 {
		a |= verbs.RemoteRead
	}
	if f&remoteWriteBit != 0 {
		a |= verbs.LocalWrite | verbs.RemoteWrite
	}
	return a
}

// Deregister takes the memory away. When it returns nothing is read from it or
// written to it any more. Errors: ErrDeviceBusy (windows are bound to it),
// ErrInvalidDeviceState (it is not registered), ErrDeviceRemoved.
func (m *MemoryRegion) Deregister() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.v == nil {
		return refuse(ErrInvalidDeviceState, "the region is not registered")
	}
	return m.deregister()
}

// deregister takes away the memory that there is, with mu held.
func (m *MemoryRegion) deregister() error {
	token := uint32(m.v.STag())
	m.a.mu.Lock()
	defer m.a.mu.Unlock() // nobody gets the token before it is forgotten
	if err := m.v.Deregister(); err != nil {
		return explain(err)
	}
	delete(m.a.regions, token)
	m.v = nil
	return nil
}

// GetLocalToken is the token for SGE; 0 if the region is not registered.
func (m *MemoryRegion) GetLocalToken() uint32 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.v == nil {
		return 0
	}
	return uint32(m.v.STag())
}

// GetRemoteToken is the token for the peer's Reads and Writes, beside an address in
// the region (see Address). It is a number: put it into a message in an order of
// octets that both sides agree on.
func (m *MemoryRegion) GetRemoteToken() uint32 { return m.GetLocalToken() }

// Close deregisters the region if it is registered. Errors: as Deregister.
func (m *MemoryRegion) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.v == nil {
		return nil
	}
	return m.deregister()
}

// bindable checks what Bind asks for, and returns the region (ND-Bind-R4).
func (m *MemoryRegion) bindable(buf []byte, flags OpFlags) (v *verbs.MR, off int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.v == nil {
		return nil, 0, ErrInvalidParameter2
	}
	base, at := m.v.Base(), Address(buf)
	switch {
	case len(buf) == 0 || at < base || at-base > uint64(m.v.Len()) || uint64(len(buf)) > uint64(m.v.Len())-(at-base):
		return nil, 0, ErrAccessViolation
	case flags&OpFlagAllowWrite != 0 && m.flags&MRFlagAllowLocalWrite == 0: // a sink for Reads is none
		return nil, 0, ErrAccessViolation
	}
	return m.v, int(at - base), nil
}

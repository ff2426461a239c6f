//go:build linux && (amd64 || arm64)

package uverbs

import (
	"errors"
	"os"
	"sync/atomic"
	"syscall"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/rdmacore/internal/umem"
	"github.com/softrnic/softrnic/verbs"
)

// mr is a memory region. All but the region is guarded by File.mu.
type mr struct {
	mr     *verbs.MR
	pd     *pd
	memory []byte
	va     uint64
	flags  uint32
}

func init() {
	legacy[uabi.CmdRegMR] = control("REG_MR", (*File).regMR)
	legacy[uabi.CmdReregMR] = control("REREG_MR", (*File).reregMR)
	legacy[uabi.CmdDeregMR] = control("DEREG_MR", (*File).deregMR)
}

const (
	accessKnown = uabi.AccessLocalWrite | uabi.AccessRemoteWrite | uabi.AccessRemoteRead | uabi.AccessRemoteAtomic |
		uabi.AccessMWBind | uabi.AccessZeroBased | uabi.AccessHugetlb | uabi.AccessOptional
	accessChanges = uabi.AccessRemoteWrite | uabi.AccessRemoteAtomic
)

// access are the rights of a region, no more than the program asks for. Remote rights that change the
// memory need the local one, as Linux's ib_check_mr_access has it.
func access(flags uint32) (verbs.Access, error) {
	if flags&^accessKnown != 0 {
		return 0, refuse(syscall.EOPNOTSUPP, "access %#x: the device has no such rights", flags&^accessKnown)
	}
	if flags&accessChanges != 0 && flags&uabi.AccessLocalWrite == 0 {
		return 0, refuse(syscall.EINVAL, "remote write and atomics need local write")
	}
	a := verbs.LocalRead
	for _, r := range [...]struct {
		flag  uint32
		right verbs.Access
	}{
		{uabi.AccessLocalWrite, verbs.LocalWrite},
		{uabi.AccessRemoteWrite, verbs.RemoteWrite},
		{uabi.AccessRemoteRead, verbs.RemoteRead},
		{uabi.AccessRemoteAtomic, verbs.RemoteAtomic},
		{uabi.AccessMWBind, verbs.BindWindow},
	} {
		if flags&r.flag != 0 {
			a |= r.right
		}
	}
	return a, nil
}

var keys atomic.Uint32

// region checks what the program wants to register, and brings its pages in as the kernel does
// that pins them: EFAULT if they are not there, or not to be written.
func region(start, length, va uint64, flags uint32) (verbs.RegionConfig, error) {
	c := verbs.RegionConfig{Key: uint8(keys.Add(1)), VA: va}
	var err error
	if c.Access, err = access(flags); err != nil {
		return c, err
	}
	page := uint64(os.Getpagesize() - 1)
	switch {
	case start&page != va&page:
		return c, refuse(syscall.EINVAL, "the address and its virtual address differ within a page")
	case length == 0:
		return c, refuse(syscall.EINVAL, "the region is empty")
	case start+length < start || va+length < va:
		return c, refuse(syscall.EINVAL, "the region goes around the end of the addresses")
	}
	if c.Memory, err = umem.Slice(start, length); err == nil {
		err = umem.Present(start, length, flags&uabi.AccessLocalWrite != 0)
	}
	if err != nil {
		return c, refuse(refusal(err).Errno, "the memory is not mapped with the rights asked for")
	}
	if flags&uabi.AccessZeroBased != 0 || va == 0 {
		c.ZeroBased, c.VA = true, 0
	}
	return c, nil
}

func (f *File) regMR(q *uabi.RegMR, p *uabi.RegMRResp) error {
	c, err := region(q.Start, q.Length, q.HCAVA, q.AccessFlags)
	if err != nil {
		return err
	}
	d, err := use(&f.pds, q.PDHandle, "protection domain")
	if err != nil {
		return err
	}
	v, err := d.pd.RegisterRegion(c)
	if err != nil {
		return err
	}
	m := &mr{mr: v, pd: d, memory: c.Memory, va: q.HCAVA, flags: q.AccessFlags}
	if err := created(f, &f.mrs, m, &p.MRHandle, func() { _ = v.Deregister() }); err != nil {
		return err
	}
	p.Lkey, p.Rkey = uint32(v.STag()), uint32(v.STag())
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tag(p.Lkey, m)
	return nil
}

// reregMR changes what the flags name and leaves the rest, the keys too, which the peer has, where the memory stays the same. As on
// Linux a region that cannot be made so is gone afterwards, though its handle is to be deregistered still.
func (f *File) reregMR(q *uabi.ReregMR, p *uabi.ReregMRResp) error {
	if q.Flags == 0 || q.Flags&^(uabi.ReregTrans|uabi.ReregPD|uabi.ReregAccess) != 0 {
		return refuse(syscall.EINVAL, "flags %#x", q.Flags)
	}
	page := uint64(os.Getpagesize() - 1)
	if q.Flags&uabi.ReregTrans != 0 && (q.Start == 0 || q.Length == 0 || q.Start&page != q.HCAVA&page) {
		return refuse(syscall.EINVAL, "the new memory is empty, or differs from its virtual address within a page")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	m, err := use(&f.mrs, q.MRHandle, "memory region")
	if err != nil {
		return err
	}
	next := *m
	if q.Flags&uabi.ReregPD != 0 {
		if next.pd, err = use(&f.pds, q.PDHandle, "protection domain"); err != nil {
			return err
		}
	}
	if q.Flags&uabi.ReregAccess != 0 {
		next.flags = q.AccessFlags
	}
	start, length := umem.Address(m.memory), uint64(len(m.memory))
	if q.Flags&uabi.ReregTrans != 0 {
		start, length, next.va = q.Start, q.Length, q.HCAVA
	}
	c, err := region(start, length, next.va, next.flags)
	if err != nil {
		return err
	}
	if q.Flags&uabi.ReregTrans == 0 {
		c.Key = uint8(m.mr.STag())
	}
	next.memory = c.Memory
	was := uint32(m.mr.STag())
	if err = m.mr.Reregister(next.pd.pd, c); !errors.Is(err, verbs.ErrWindowsBound) { // else it is as it was
		delete(f.tags, was)
	}
	if err != nil {
		return err
	}
	m.pd, m.memory, m.va, m.flags = next.pd, next.memory, next.va, next.flags
	p.Lkey, p.Rkey = uint32(m.mr.STag()), uint32(m.mr.STag())
	f.tag(p.Lkey, m)
	return nil
}

// deregMR is EBUSY while windows are bound to the region.
func (f *File) deregMR(q *uabi.DeregMR, _ *uabi.None) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return destroy(&f.mrs, q.MRHandle, "memory region", func(m *mr) error {
		if err := m.deregister(); err != nil {
			return err
		}
		if f.tags[uint32(m.mr.STag())] == m {
			delete(f.tags, uint32(m.mr.STag()))
		}
		return nil
	})
}

// deregister is MR.Deregister, for which a region that a Reregister has lost is gone too.
func (m *mr) deregister() error {
	err := m.mr.Deregister()
	if errors.Is(err, verbs.ErrInvalidSTag) {
		return nil
	}
	return err
}

// tag notes the region of an lkey, with mu held.
func (f *File) tag(lkey uint32, m *mr) {
	if f.tags == nil {
		f.tags = map[uint32]*mr{}
	}
	f.tags[lkey] = m
}

// store writes eight octets, in the order of the machine, into memory that an element names, as the RNIC would: in
// the same domain, with local write. It reports whether it could.
func (f *File) store(d *pd, g uabi.SGE, v uint64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.tags[g.Lkey]
	if m == nil || m.pd.pd != d.pd || m.flags&uabi.AccessLocalWrite == 0 {
		return false
	}
	off := g.Addr
	if m.flags&uabi.AccessZeroBased == 0 {
		off -= m.va
	}
	if off > uint64(len(m.memory)) || uint64(len(m.memory))-off < 8 {
		return false
	}
	return umem.Store(umem.Address(m.memory)+off, &v) == nil
}
